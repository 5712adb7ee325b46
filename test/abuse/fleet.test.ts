/**
 * Hostile tenants of a hub and a hostile member, of the shipped manager with little memory: neither reaches what is not its
 * own, and a root of another namespace is followed meanwhile.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Event, Ingress, Namespace, Secret } from '@seamark/kube'
import { isThorough } from '@seamark/kit'
import { type PeerExchange, startPeer } from '@seamark/kube/testing'
import { Cluster, GlobalIngress, GlobalIngressPolicy, LeafIngress } from '@seamark/operator'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FleetEnvironment, POLL_OPTIONS, root } from '../integration/fleet/test-environment.ts'
import { type LimitedProcess, startLimited } from './limited-process.ts'
import { type Watched, watchVictim } from './victim.ts'

const HEAP_MIB = 512
const ROUNDS = isThorough ? 60 : 15

let environment: FleetEnvironment
let manager: LimitedProcess
let folder = ''
let log = ''

beforeAll(async () => {
  environment = await FleetEnvironment.start(['eu1'])
  const { client } = environment.hub
  await environment.register('eu1', { ingress: { ingressClassMap: { global: 'nginx' } } })
  await environment.deploy('eu1')
  await client.create(Namespace, { metadata: { name: 'tenant' } })
  await environment.deploy('eu1', 'tenant')
  await environment.namespace(environment.member('eu1').client, 'bank')
  await client.create(Ingress, root())
  folder = mkdtempSync(join(tmpdir(), 'seamark-abuse-fleet-'))
  const kubeconfig = join(folder, 'kubeconfig')
  writeFileSync(kubeconfig, environment.hub.kubeconfig)
  const addresses = ['--metrics-address', '127.0.0.1:0', '--probes-address', '127.0.0.1:0']
  const flags = [
    '--mode',
    'enforce',
    '--fleet-enabled',
    '--fleet-answered-elsewhere',
    '--fleet-verify-dns=false',
    '--allow-loopback',
    ...addresses,
  ]
  manager = startLimited('bin/seamark', ['run', '--kubeconfig', kubeconfig, '-n', 'manager', ...flags], HEAP_MIB)
  manager.child.stdout?.on('data', (chunk) => (log += String(chunk)))
}, 90_000)
afterAll(async () => {
  await manager?.stop()
  await environment?.[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

/** A change of the victim's root is on the member. */
async function step(round: number): Promise<void> {
  const path = `/r${round}`
  const value = [{ path, pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }]
  await environment.hub.client.patch(Ingress, 'shop/shop', 'json', [
    { op: 'replace', path: '/spec/rules/0/http/paths', value },
  ])
  const seen = async () =>
    (await environment.member('eu1').client.find(Ingress, 'shop/shop'))?.spec?.rules?.[0]?.http?.paths?.[0]?.path
  await expect.poll(seen, { timeout: 60_000, interval: 2 }).toBe(path)
}

/** While this happens the victim waits no longer than without it, and the manager goes on. */
async function expectUnharmed(attack: () => Promise<void>): Promise<Watched> {
  const watched = await watchVictim(step, attack, ROUNDS)
  expect([watched.late, manager.isRunning()]).toEqual([[], true])
  process.stdout.write(`${expect.getState().currentTestName}: ${JSON.stringify(watched)}\n`)
  return watched
}

const policyOf = (name: string, patches: readonly object[]) =>
  ({
    metadata: { namespace: 'tenant', name },
    spec: {
      targetRefs: [{ group: 'networking.k8s.io', kind: 'Ingress', name }],
      overrides: [{ cluster: 'eu1', patches }],
    },
  }) as unknown as GlobalIngressPolicy

const tenantRoot = (name: string, host: string): Ingress => {
  const { metadata, ...rest } = root(name, host)
  return { metadata: { ...metadata, namespace: 'tenant' }, ...rest }
}

describe('a tenant of the hub', () => {
  it('gets nothing from overrides that its root could not have', { timeout: 120_000 }, async () => {
    const { client } = environment.hub
    const rule = { host: 'shop.example.com', http: { paths: root().spec?.rules?.[0]?.http?.paths } }
    await expectUnharmed(async () => {
      await client.create(
        GlobalIngressPolicy,
        policyOf('own', [
          { op: 'add', path: '/spec/rules/-', value: rule },
          { op: 'add', path: '/spec/defaultBackend', value: { service: { name: 'web', port: { number: 80 } } } },
          { op: 'replace', path: '/spec/ingressClassName', value: 'internal' },
          { op: 'add', path: '/metadata/labels', value: { type: 'internal-shard' } },
          {
            op: 'add',
            path: '/metadata/annotations/nginx.ingress.kubernetes.io~1configuration-snippet',
            value: 'return 200;',
          },
        ]),
      )
      await client.create(Ingress, tenantRoot('own', 'own.example.com'))
      await expect.poll(async () => environment.exists('eu1', Ingress, 'tenant/own'), POLL_OPTIONS).toBe(true)
    })
    const { metadata, spec } = await environment.member('eu1').client.get(Ingress, 'tenant/own')
    expect(spec).toMatchObject({ ingressClassName: 'nginx', rules: [{ host: 'own.example.com' }] })
    expect([spec?.rules?.length, spec?.defaultBackend]).toEqual([1, undefined])
    expect(Object.keys(metadata.annotations ?? {}).filter((key) => !key.startsWith('seamark.io/'))).toEqual([])
    expect(metadata.labels).not.toHaveProperty('type')
    const degraded = async () =>
      (await environment.global('own'))?.status?.conditions?.find(({ type }) => type === 'Degraded')?.message
    await expect.poll(degraded, POLL_OPTIONS).toContain('overrides may not set')
    expect(await degraded()).toContain('host shop.example.com')
  })

  it('does not end the manager with copies of the whole object', { timeout: 120_000 }, async () => {
    const { client } = environment.hub
    const copies = Array.from({ length: 40 }, (_, index) => ({ op: 'copy', from: '', path: `/x${index}` }))
    await expectUnharmed(async () => {
      await client.create(GlobalIngressPolicy, policyOf('copies', copies))
      await client.create(Ingress, tenantRoot('copies', 'copies.example.com'))
      const message = async () =>
        (await environment.global('copies'))?.status?.conditions?.find(({ type }) => type === 'Degraded')?.message
      await expect.poll(message, POLL_OPTIONS).toContain('the copies of the patch have more than 65536 octets')
    })
    expect(await environment.exists('eu1', Ingress, 'tenant/copies')).toBe(false)
  })

  it('has no effect on a member with a LeafIngress of its own', { timeout: 120_000 }, async () => {
    const { client } = environment.hub
    const manifest = (kind: string, apiVersion: string, namespace: string, more: object = {}) => ({
      apiVersion,
      kind,
      metadata: { namespace, name: 'planted', annotations: { 'seamark.io/leaf': 'planted' } },
      ...more,
    })
    const ingress = { spec: { rules: [{ host: 'shop.example.com' }] } }
    const manifests = {
      elsewhere: manifest('Ingress', 'networking.k8s.io/v1', 'bank', ingress),
      secret: manifest('Secret', 'v1', 'tenant', { stringData: { a: 'b' } }),
      own: manifest('Ingress', 'networking.k8s.io/v1', 'tenant', ingress),
    }
    const { uid = '' } = (await client.get(Ingress, 'shop/shop')).metadata
    await expectUnharmed(async () => {
      for (const [name, each] of Object.entries(manifests))
        await client.create(LeafIngress, {
          metadata: {
            namespace: 'tenant',
            name,
            // As if it belonged to the victim's root.
            labels: { 'seamark.io/root-uid': uid, 'seamark.io/root-kind': 'Ingress' },
            annotations: { 'seamark.io/root': 'shop' },
          },
          spec: { cluster: 'eu1', lifecycle: 'Active', specHash: 'x', manifests: [each], force: true, adopt: true },
        } as unknown as LeafIngress)
      for (const name of Object.keys(manifests)) {
        const condition = async () => (await client.get(LeafIngress, `tenant/${name}`)).status?.conditions?.[0]
        await expect
          .poll(condition, POLL_OPTIONS)
          .toMatchObject({ type: 'Accepted', status: 'False', reason: 'LeafNotPlanned' })
      }
      // It is torn down with what names its root in its namespace, because that root does not exist there.
      await client.create(GlobalIngress, {
        metadata: { namespace: 'tenant', name: 'forged', labels: { 'seamark.io/root-uid': uid } },
        spec: { ...(await environment.global())?.spec },
      } as GlobalIngress)
      await expect.poll(async () => client.find(GlobalIngress, 'tenant/forged'), POLL_OPTIONS).toBeUndefined()
    })
    const member = environment.member('eu1').client
    expect(await member.find(Ingress, 'bank/planted')).toBeUndefined()
    expect(await member.find(Ingress, 'tenant/planted')).toBeUndefined()
    expect(await member.find(Secret, 'tenant/planted')).toBeUndefined()
    // What another namespace claims to be of the victim's root is none of it.
    expect((await client.list(LeafIngress, { namespace: 'shop' })).items).toHaveLength(1)
    expect(await environment.events('planted')).toEqual([])
    expect((await client.list(Event, { namespace: 'tenant' })).items.map(({ reason }) => reason)).toContain(
      'LeafNotPlanned',
    )
  })
})

const TOKEN = 'eyJhbGciOiJSUzI1NiJ9.the-token-of-the-member.c2lnbmF0dXJl'

describe('a hostile member', () => {
  async function join(name: string, script: (exchange: PeerExchange) => void): Promise<() => Promise<void>> {
    const peer = await startPeer({ script })
    await environment.registerSecret(name, peer.kubeconfig().replace(/(["]?token["]?:\s*)["]?t["]?/, `$1"${TOKEN}"`))
    await environment.hub.client.create(Cluster, { metadata: { name }, spec: {} } as Cluster)
    return peer.close
  }
  const textOf = async (name: string) => JSON.stringify((await environment.hub.client.get(Cluster, name)).status ?? {})

  it(
    'is not collected without end, and puts no credential of ours into a status, an Event or the log',
    {
      timeout: 180_000,
    },
    async () => {
      const { client } = environment.hub
      const closes: (() => Promise<void>)[] = []
      await expectUnharmed(async () => {
        closes.push(
          await join('endless', (exchange) => {
            // One stream: with so much to send in several, the HTTP/2 session of the peer would refuse them.
            if (exchange.url.pathname !== '/readyz') return exchange.reply(404, {})
            exchange.start()
            // Twice the limit at once, and then in small parts until the manager ends the stream: the watched client is in this
            // process, too, and with more in its memory the peer would refuse streams itself.
            const chunk = Buffer.alloc(2 ** 16, 'x')
            for (let sent = 0; sent < 32; sent++) exchange.write(chunk)
            const sending = setInterval(() => exchange.write(chunk), 100)
            void exchange.closed.then(() => clearInterval(sending))
          }),
          await join('echo', (exchange) => {
            const message = `\u001B[31m${'x'.repeat(200)}\n${JSON.stringify(exchange.headers)}${'y'.repeat(100_000)}`
            exchange.reply(403, { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'Forbidden', message })
          }),
          await join('version', (exchange) => {
            const answers: Record<string, object> = {
              '/version': { gitVersion: `v1.34\u001B[2J${'v'.repeat(100_000)}` },
              '/apis': { groups: [{ name: 'networking.k8s.io' }] },
              '/api/v1/namespaces/kube-system': { metadata: { name: 'kube-system', uid: 'u'.repeat(100_000) } },
            }
            exchange.reply(200, answers[exchange.url.pathname] ?? {})
          }),
        )
        for (const name of ['endless', 'echo', 'version'])
          await expect.poll(async () => textOf(name), POLL_OPTIONS).toContain('"conditions"')
        await expect.poll(async () => textOf('endless'), POLL_OPTIONS).toContain('longer than 1048576 bytes')
        await expect.poll(async () => textOf('echo'), POLL_OPTIONS).toContain('[credential removed]')
      })
      for (const close of closes) await close()
      const statuses = (await Promise.all(['endless', 'echo', 'version'].map(textOf))).join()
      const events = JSON.stringify((await client.list(Event)).items)
      expect(statuses).toContain('authorization')
      for (const text of [statuses, events, log]) {
        expect(text).not.toContain(TOKEN)
        expect(text).not.toMatch(/\\u001b/i)
      }
      expect(statuses.length).toBeLessThan(30_000)
      const peak = await manager.peakMib()
      if (peak !== undefined) expect(peak).toBeLessThan(1_000)
    },
  )
})
