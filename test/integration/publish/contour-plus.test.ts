/**
 * The switch from contour-plus and back: on what the original left behind we write nothing, and on what we left it changes
 * nothing. With the real program where a `contour-plus` is on the PATH; the lease and the shadow without it.
 */
import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram, needs } from '@seamark/kit'
import { Lease, type Clock, systemClock } from '@seamark/kube'
import { Certificate, type Difference, DNSEndpoint, HTTPProxy, shadow, type ShadowReport } from '@seamark/operator'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Bench, SERVICE } from './bench.ts'
import { crdsInUse, eventually, type TestEnvironment, environmentKinds } from './test-environment.ts'

const CP = 'contour-plus.cybozu.com/'
const hasOriginal = needs('contour-plus')

interface Original {
  stop(): Promise<void>
}

async function startOriginal(environment: TestEnvironment, flags: string[]): Promise<Original> {
  const folder = await mkdtemp(join(tmpdir(), 'contour-plus-'))
  const kubeconfig = join(folder, 'kubeconfig')
  await writeFile(kubeconfig, environment.kubeconfig, { mode: 0o600 })
  const program = findProgram('contour-plus') ?? ''
  const child = spawn(program, ['--leader-election=false', '--metrics-addr=0', ...flags], {
    env: { KUBECONFIG: kubeconfig, HOME: folder },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let log = ''
  child.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()))
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const stop = async (): Promise<void> => {
    running.delete(stop)
    child.kill('SIGTERM')
    await exited
    await rm(folder, { recursive: true })
    expect(log).not.toContain('panic')
  }
  running.add(stop)
  return { stop }
}

/** A test that fails must not leave the original behind to disturb the next one. */
const running = new Set<() => Promise<void>>()

const FLAGS = [
  `--service-name=${SERVICE}`,
  '--default-issuer-name=test-issuer',
  '--default-issuer-kind=Issuer',
  '--default-delegated-domain=acme.example.com',
  '--allowed-dns-namespaces=dns',
  '--allowed-issuer-namespaces=certs',
  '--propagated-annotations=example.com/p',
  '--propagated-labels=team',
  '--csr-revision-limit=2',
]
const OPTIONS = {
  defaultDelegatedDomain: 'acme.example.com',
  allowedDnsNamespaces: ['dns'],
  allowedIssuerNamespaces: ['certs'],
  propagatedAnnotations: ['example.com/p'],
  propagatedLabels: ['team'],
  revisionHistoryLimit: 2,
}

describe.each(environmentKinds)(`beside contour-plus on $name, ${crdsInUse}`, ({ isMissing, start }) => {
  let environment: TestEnvironment
  let bench: Bench

  beforeAll(async () => {
    if (isMissing) return
    environment = await start()
    bench = await Bench.prepare(environment)
  })
  afterEach(async () => {
    for (const stop of running) await stop()
    if (!isMissing) await bench.wipe()
  })
  afterAll(async () => environment?.[Symbol.asyncDispose]())

  /** Everything that contour-plus can publish, once. */
  async function createProxies(): Promise<void> {
    await bench.proxy()
    await bench.proxy({
      metadata: { name: 'wild' },
      spec: { virtualhost: { fqdn: '*.wild.example.com', tls: { secretName: 'w' } } },
    })
    await bench.proxy({
      metadata: {
        name: 'propagated',
        labels: { team: 'a' },
        annotations: {
          'kubernetes.io/tls-acme': 'true',
          'example.com/p': 'x',
          'cert-manager.io/private-key-algorithm': 'ECDSA',
          'cert-manager.io/private-key-size': '384',
        },
      },
      spec: { virtualhost: { fqdn: 'propagated.example.com', tls: { secretName: 'p' } } },
    })
    await bench.proxy({
      metadata: { name: 'far' },
      annotations: { [`${CP}dns-namespace`]: 'dns', [`${CP}issuer-namespace`]: 'certs' },
      spec: { virtualhost: { fqdn: 'far.example.com' } },
    })
    await bench.proxy({
      metadata: { name: 'refused' },
      annotations: { [`${CP}dns-namespace`]: 'elsewhere' },
      spec: { virtualhost: { fqdn: 'refused.example.com', tls: { secretName: 'r' } } },
    })
    await bench.proxy({
      metadata: { name: 'plain' },
      annotations: { 'kubernetes.io/tls-acme': 'false' },
      spec: { virtualhost: { fqdn: 'plain.example.com' } },
    })
    await bench.proxy({ metadata: { name: 'child' }, spec: {} })
    await bench.proxy({ metadata: { name: 'excluded' }, annotations: { [`${CP}exclude`]: 'true' } })
  }

  /** DNSEndpoint and delegation of six, Certificates of five, one TLSCertificateDelegation. */
  const CHILDREN = 18

  it.skipIf(isMissing || !hasOriginal)(
    'U41: contour-plus first, then we write nothing, then it changes nothing',
    async () => {
      await createProxies()
      const original = await startOriginal(environment, FLAGS)
      await eventually(
        'the original’s children',
        async () => bench.children(),
        (children) => children.length === CHILDREN,
        20_000,
      )
      await eventually(
        'the original’s patch',
        async () => environment.client.find(HTTPProxy, 'ns/far'),
        (proxy) => proxy.spec?.virtualhost?.tls?.secretName === 'certs/ns-far',
      )
      await original.stop()
      const before = await bench.versions()
      {
        await using app = bench.run(OPTIONS, { reportsInitialFindings: false })
        await bench.client.create(HTTPProxy, {
          metadata: { namespace: 'ns2', name: 'late' },
          spec: { routes: [], virtualhost: { fqdn: 'late.example.com' } } as NonNullable<HTTPProxy['spec']>,
        })
        await bench.dns('ns2/late-delegation')
        await bench.dns('ns2/late')
        expect(app.writes.count).toBe(2)
      }
      const ours = await bench.versions()
      expect(ours.filter((line) => !line.includes('/late'))).toEqual(before)
      const again = await startOriginal(environment, FLAGS)
      await bench.client.create(HTTPProxy, {
        metadata: { namespace: 'ns2', name: 'later' },
        spec: { routes: [], virtualhost: { fqdn: 'later.example.com' } } as NonNullable<HTTPProxy['spec']>,
      })
      await bench.dns('ns2/later-delegation')
      await again.stop()
      expect((await bench.versions()).filter((line) => !line.includes('/later'))).toEqual(ours)
    },
  )

  it.skipIf(isMissing || !hasOriginal)(
    'we first, then contour-plus changes nothing, and deletion works either way',
    async () => {
      await createProxies()
      {
        await using _app = bench.run(OPTIONS, { reportsInitialFindings: false })
        await eventually(
          'our children',
          async () => bench.children(),
          (children) => children.length === CHILDREN,
        )
        await eventually(
          'our patch',
          async () => environment.client.find(HTTPProxy, 'ns/far'),
          (proxy) => proxy.spec?.virtualhost?.tls?.secretName === 'certs/ns-far',
        )
      }
      const before = await bench.versions()
      const original = await startOriginal(environment, FLAGS)
      await bench.client.create(HTTPProxy, {
        metadata: { namespace: 'ns2', name: 'late' },
        spec: { routes: [], virtualhost: { fqdn: 'late.example.com' } } as NonNullable<HTTPProxy['spec']>,
      })
      await eventually(
        'late',
        async () => environment.client.find(DNSEndpoint, 'ns2/late-delegation'),
        undefined,
        20_000,
      )
      expect((await bench.versions()).filter((line) => !line.includes('/late'))).toEqual(before)
      await environment.client.delete(HTTPProxy, 'ns/far')
      await eventually(
        'far’s children to go',
        async () => (await bench.children()).filter((child) => child.includes('ns-far')).length,
        (count) => count === 0,
      )
      await original.stop()
    },
  )

  it.skipIf(isMissing)('D26: while another holds the lease nothing is written; when it is free we go on', async () => {
    const holder = {
      holderIdentity: 'contour-plus-1_x',
      leaseDurationSeconds: 3_600,
      leaseTransitions: 1,
      acquireTime: '2026-01-01T00:00:00.000000Z',
      renewTime: new Date().toISOString().replace('Z', '000Z'),
    }
    await environment.client.create(Lease, {
      metadata: { namespace: 'manager', name: 'contour-plus-leader' },
      spec: holder,
    })
    await bench.proxy()
    {
      // Timers of a second or more that fired: it waited for its next attempt at the lease, and would have written by now.
      let waits = 0
      const clock: Clock = {
        now: () => systemClock.now(),
        monotonic: () => systemClock.monotonic(),
        after: (ms, task) =>
          systemClock.after(ms, () => {
            if (ms >= 1_000) waits++
            task()
          }),
      }
      await using app = bench.run({}, { clock, leader: { lease: 'contour-plus-leader', namespace: 'manager' } })
      await eventually(
        'a further attempt at the lease',
        async () => waits,
        (count) => count >= 1,
      )
      expect(app.writes.count).toBe(0)
      expect(await bench.children()).toEqual([])
      await environment.client.patch(Lease, 'manager/contour-plus-leader', 'merge', { spec: { holderIdentity: '' } })
      await eventually(
        'our children',
        async () => bench.children(),
        (children) => children.length === 2,
        20_000,
      )
    }
    // Given back at the stop, so that the original need not wait for it to run out.
    expect((await environment.client.get(Lease, 'manager/contour-plus-leader')).spec?.holderIdentity ?? '').toBe('')
    await environment.client.delete(Lease, 'manager/contour-plus-leader')
  })

  it.skipIf(isMissing)(
    '--shadow compares every change, and one altered flag yields exactly its differences',
    async () => {
      for (const [issuer, expected] of [
        ['test-issuer', 0],
        ['another-issuer', 3],
      ] as const) {
        await using _original = bench.run({})
        const { cluster, writes } = environment.connect('contour-plus')
        const controller = new AbortController()
        const differences: Difference[] = []
        let last: ShadowReport = { changes: 0, differences: 0, initial: 0 }
        let isReady = false
        const options = bench.options({ defaultIssuerName: issuer })
        const done = shadow(
          cluster,
          options,
          {
            clock: systemClock,
            // Time for the app beside it to write, on a busy machine too: what is late is a difference.
            settleMs: 3_000,
            onReady: () => (isReady = true),
            onCompared: (found, report) => {
              differences.push(...found)
              last = report
            },
          },
          controller.signal,
        )
        await eventually('the shadow', async () => (isReady ? true : undefined))
        for (const name of ['a', 'b', 'c'])
          await bench.proxy({
            metadata: { name },
            spec: { virtualhost: { fqdn: `${name}.example.com`, tls: { secretName: name } } },
          })
        await eventually(
          'six changes',
          async () => last,
          (report) => report.changes >= 6,
        )
        controller.abort()
        await done
        await cluster.close()
        expect([last.changes, last.differences, writes.count]).toEqual([6, expected, 0])
        expect(differences.every((difference) => difference.lines.join().includes('issuerRef.name'))).toBe(true)
        expect(new Set(differences.map((difference) => difference.object.split(' ')[0]))).toEqual(
          new Set(expected === 0 ? [] : ['Certificate']),
        )
        await bench.wipe()
      }
      expect((await environment.client.list(Certificate)).items).toEqual([])
    },
  )
})
