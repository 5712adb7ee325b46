import { X509Certificate } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createAuthority, splitBundle, type CertificatePair } from '../certificates.ts'
import { CustomResourceDefinition, Secret, type WebhookClientConfig } from '../object/kinds.ts'
import { createMetrics } from '../metrics.ts'
import { kind, type Obj } from '../object/object.ts'
import { fakeClock } from '../testing/clock.ts'
import { memoryCluster } from '../testing/memory/memory-cluster.ts'
import { createFileKeeper } from './certificate-files.ts'
import { createCertificateKeeper } from './certificate-keeper.ts'
import {
  nextRotationStep,
  rotationTimes,
  stateFromData,
  stateToData,
  takeRotationStep,
  type CertificateState,
} from './rotation.ts'

interface Configuration extends Obj {
  webhooks: { name: string; clientConfig: WebhookClientConfig }[]
}
const Validating = kind<Configuration>({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'ValidatingWebhookConfiguration',
  plural: 'validatingwebhookconfigurations',
  namespaced: false,
})

const dnsNames = ['hooks.sys.svc']
const dayMs = 86_400_000
const options = {
  secret: 'hooks',
  namespace: 'sys',
  dnsNames,
  inject: { validating: ['ours', 'absent'], crds: ['routes.edge.test'] },
}

function setUp() {
  const cluster = memoryCluster()
  const clock = fakeClock()
  cluster.put(Validating, {
    metadata: { name: 'ours' },
    webhooks: [
      { name: 'a', clientConfig: {} },
      { name: 'b', clientConfig: { caBundle: 'b2xk' } },
    ],
  })
  const crd = {
    group: 'edge.test',
    scope: 'Namespaced' as const,
    names: { kind: 'Route', plural: 'routes' },
    versions: [],
  }
  const conversion = {
    strategy: 'Webhook' as const,
    webhook: { clientConfig: { url: 'x' }, conversionReviewVersions: ['v1'] },
  }
  cluster.put(CustomResourceDefinition, { metadata: { name: 'routes.edge.test' }, spec: { ...crd, conversion } })
  const replica = (isLeading: boolean, names: readonly string[] = dnsNames) => {
    const leaves: CertificatePair[] = []
    const stop = new AbortController()
    const deps = {
      client: cluster.client,
      clock,
      log: cluster.log,
      metrics: createMetrics(),
      isLeading: () => isLeading,
    }
    const keeper = createCertificateKeeper({ ...options, dnsNames: names }, deps)
    const started = (async () => {
      leaves.push(await keeper.start(stop.signal))
      void keeper.run(stop.signal, (next) => leaves.push(next))
    })()
    return { leaves, stop, started }
  }
  const bundles = () => {
    const hooks = cluster.informers.get(Validating, 'ours')?.webhooks ?? []
    const conversionConfig = cluster.informers.get(CustomResourceDefinition, 'routes.edge.test')?.spec.conversion
      ?.webhook?.clientConfig
    return [...hooks.map(({ clientConfig }) => clientConfig), conversionConfig].map((config) =>
      Buffer.from(config?.caBundle ?? '', 'base64').toString(),
    )
  }
  /** The check of a caller: whether any of its authorities issued the leaf. */
  const isTrusted = (leaf: CertificatePair | undefined) =>
    bundles().every((bundle) =>
      splitBundle(bundle).some((ca) =>
        new X509Certificate(leaf?.certPem ?? '').verify(new X509Certificate(ca).publicKey),
      ),
    )
  const state = () => stateFromData(cluster.informers.get(Secret, 'sys/hooks')?.data)
  return { cluster, clock, replica, bundles, isTrusted, state }
}

describe('webhook certificate', () => {
  it('is created once by the first replica, shared by all, and trusted by the callers', async () => {
    const { replica, isTrusted, bundles, cluster, state } = setUp()
    const [a, b] = [replica(false), replica(false)]
    await Promise.all([a.started, b.started])
    expect(a.leaves).toEqual(b.leaves)
    expect(isTrusted(a.leaves[0])).toBe(true)
    expect(new Set(bundles()).size).toBe(1)
    expect(new X509Certificate(a.leaves[0]?.certPem ?? '').checkHost('hooks.sys.svc')).toBe('hooks.sys.svc')
    expect(cluster.requests.filter(({ verb }) => verb === 'create').length).toBeLessThanOrEqual(2)
    const third = replica(false)
    const writes = cluster.requests.filter(({ verb }) => verb !== 'get').length
    await third.started
    expect(third.leaves[0]).toEqual(state()?.leaf)
    expect(cluster.requests.filter(({ verb }) => verb !== 'get')).toHaveLength(writes)
    for (const { stop } of [a, b, third]) stop.abort()
  })

  it('has IP addresses as such, and is issued again at the start for a replica whose names it lacks', async () => {
    const { replica, isTrusted, cluster, state } = setUp()
    const first = replica(false)
    await first.started
    first.stop.abort()
    const authorities = state()?.authorities
    const second = replica(false, [...dnsNames, '192.0.2.1', '2001:db8::1', '*.hooks.test'])
    await second.started
    const leaf = new X509Certificate(second.leaves[0]?.certPem ?? '')
    expect(leaf.subjectAltName).toBe(
      'DNS:hooks.sys.svc, DNS:*.hooks.test, IP Address:192.0.2.1, IP Address:2001:DB8:0:0:0:0:0:1',
    )
    expect(isTrusted(second.leaves[0])).toBe(true)
    expect(state()?.authorities).toEqual(authorities)
    const writes = cluster.requests.filter(({ verb }) => verb !== 'get').length
    const third = replica(false)
    await third.started
    expect(third.leaves).toEqual(second.leaves)
    expect(cluster.requests.filter(({ verb }) => verb !== 'get')).toHaveLength(writes)
    for (const { stop } of [second, third]) stop.abort()
  })

  it('is rotated by the leader only, leaf and authority, and never served untrusted', async () => {
    const { replica, isTrusted, clock, state, cluster } = setUp()
    const follower = replica(false)
    const leader = replica(true)
    await Promise.all([follower.started, leader.started])
    const authorities = new Set<string>()
    const leaves = new Set<string>()
    let most = 0
    for (let day = 0; day < 1_000; day += 15) {
      clock.stall(15 * dayMs)
      for (let look = 0; look < 3; look++) {
        await clock.advance(30_000)
        // Keys are generated on other threads: both replicas are idle again when their timers are set.
        await expect.poll(() => clock.pending, { interval: 1 }).toBe(2)
        expect([isTrusted(follower.leaves.at(-1)), isTrusted(leader.leaves.at(-1))]).toEqual([true, true])
      }
      const now = state()
      for (const ca of now?.authorities ?? []) authorities.add(ca)
      leaves.add(now?.leaf.certPem ?? '')
      most = Math.max(most, now?.authorities.length ?? 0)
      if (authorities.size >= 2 && now?.authorities.length === 1) break
    }
    expect([authorities.size, most]).toEqual([2, 2])
    expect(leaves.size).toBeGreaterThan(5)
    expect(follower.leaves.length).toBeGreaterThan(5)
    expect(cluster.lines.join()).toContain('dropAuthorities')
    follower.stop.abort()
    leader.stop.abort()
  })

  it('is not written by followers, and kept when the API server fails', async () => {
    const { replica, clock, cluster } = setUp()
    const follower = replica(false)
    await follower.started
    cluster.requests.length = 0
    clock.stall(80 * dayMs)
    await clock.advance(120_000)
    expect(cluster.requests.every(({ verb }) => verb === 'get')).toBe(true)
    cluster.intercept = () => Promise.reject(new Error('down'))
    await clock.advance(120_000)
    expect(follower.leaves).toHaveLength(1)
    expect(cluster.lines.join()).toContain('the one in use stays')
    follower.stop.abort()
  })

  it('is waited for while the API server does not respond', async () => {
    const { replica, clock, cluster } = setUp()
    cluster.intercept = () => Promise.reject(new Error('down'))
    const { started, leaves, stop } = replica(false)
    await clock.advance(60_000)
    expect(leaves).toEqual([])
    cluster.intercept = undefined
    await clock.advance(60_000)
    await started
    expect(leaves).toHaveLength(1)
    stop.abort()
    const never = replica(false)
    cluster.intercept = () => Promise.reject(new Error('down'))
    never.stop.abort(new Error('stopped'))
    await expect(never.started).rejects.toThrow('stopped')
  })

  it('is created in a Secret without one, and keeps other data of the Secret', async () => {
    const { replica, cluster, state, isTrusted } = setUp()
    cluster.put(Secret, {
      metadata: { name: 'hooks', namespace: 'sys' },
      data: { 'tls.crt': 'bm9uc2Vuc2U=', other: 'eA==' },
    })
    const { started, leaves, stop } = replica(false)
    await started
    expect(isTrusted(leaves[0])).toBe(true)
    expect(state()).toBeDefined()
    expect(cluster.informers.get(Secret, 'sys/hooks')?.data?.['other']).toBe('eA==')
    stop.abort()
  })
})

describe('rotation', () => {
  const times = rotationTimes
  const start = Date.UTC(2030, 0, 1)
  const facts = (state: CertificateState | undefined, nowMs: number, extra: object = {}) => ({
    state,
    dnsNames,
    isTrusted: true,
    nowMs,
    times,
    ...extra,
  })

  it('decides from the current state and time', async () => {
    expect(nextRotationStep(facts(undefined, start))).toBe('create')
    const made = await takeRotationStep('create', facts(undefined, start))
    expect(nextRotationStep(facts(made, start))).toBe('keep')
    expect(nextRotationStep(facts(made, start + 59 * dayMs))).toBe('keep')
    expect(nextRotationStep(facts(made, start + 61 * dayMs))).toBe('issueLeaf')
    expect(nextRotationStep(facts(made, start, { dnsNames: ['other.svc'] }))).toBe('issueLeaf')
    expect(nextRotationStep(facts(made, start, { dnsNames: [...dnsNames, '192.0.2.1'] }))).toBe('issueLeaf')
    expect(nextRotationStep(facts(made, start + 61 * dayMs, { isTrusted: false }))).toBe('keep')
    expect(nextRotationStep(facts(made, start + 490 * dayMs))).toBe('addAuthority')
    expect(nextRotationStep(facts(made, start + 731 * dayMs))).toBe('create')

    const later = start + 490 * dayMs
    const joined = await takeRotationStep('addAuthority', facts(made, later))
    expect(joined.authorities.slice(1)).toEqual(made.authorities)
    expect(joined.leaf).toBe(made.leaf)
    expect(nextRotationStep(facts(joined, later, { isTrusted: false }))).toBe('keep')
    expect(nextRotationStep(facts(joined, later))).toBe('issueLeaf')
    const reissued = await takeRotationStep('issueLeaf', facts(joined, later))
    expect(
      new X509Certificate(reissued.leaf.certPem).verify(new X509Certificate(joined.authorities[0] ?? '').publicKey),
    ).toBe(true)
    expect(nextRotationStep(facts(reissued, later + times.overlapMs / 2))).toBe('keep')
    expect(nextRotationStep(facts(reissued, later + times.overlapMs))).toBe('dropAuthorities')
    expect((await takeRotationStep('dropAuthorities', facts(reissued, later))).authorities).toEqual(
      joined.authorities.slice(0, 1),
    )
  })

  it('is restored from a Secret, and rejects one whose parts do not match', async () => {
    const made = await takeRotationStep('create', facts(undefined, start))
    const data = stateToData(made)
    expect(stateFromData(data)).toEqual(made)
    const other = await createAuthority({ commonName: 'other' })
    const keyOfOther = Buffer.from(other.keyPem).toString('base64')
    for (const wrong of [
      undefined,
      {},
      { ...data, 'ca.key': keyOfOther },
      { ...data, 'tls.key': keyOfOther },
      { ...data, 'ca.crt': '' },
    ]) {
      expect(stateFromData(wrong)).toBeUndefined()
    }
  })
})

describe('certificate files', () => {
  it('are read again when they change, and ignored while invalid', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'certificates-'))
    const [certFile, keyFile] = [join(folder, 'tls.crt'), join(folder, 'tls.key')]
    const authority = await createAuthority({ commonName: 'test' })
    const write = async ({ certPem, keyPem }: CertificatePair) => {
      await writeFile(certFile, certPem)
      await writeFile(keyFile, keyPem)
    }
    const [first, second] = [
      await authority.issue({ commonName: 'first', usages: 'server' }),
      await authority.issue({ commonName: 'second', usages: 'server' }),
    ]
    const { log } = memoryCluster()
    const clock = fakeClock()
    const keeper = createFileKeeper({ certFile, keyFile }, { clock, log, metrics: createMetrics() })
    await expect(keeper.start(new AbortController().signal)).rejects.toThrow('cannot use')
    await write(first)
    expect(await keeper.start(new AbortController().signal)).toEqual(first)
    const stop = new AbortController()
    const seen: CertificatePair[] = []
    const stopped = keeper.run(stop.signal, (pair) => seen.push(pair))
    await writeFile(certFile, second.certPem)
    await clock.advance(10_000)
    await expect.poll(() => clock.pending).toBe(1)
    expect(seen).toEqual([])
    await write(second)
    await clock.advance(10_000)
    await expect.poll(() => seen).toEqual([second])
    stop.abort()
    await stopped
    await rm(folder, { recursive: true })
  })
})
