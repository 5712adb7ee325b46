/**
 * Hostile DNSEndpoints for the shipped manager with little memory and its own DNS server: nobody else's record changes, and a
 * record of another namespace is written as fast as without them.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createApiServer, newToken, writeKubeconfig } from '@seamark/apiserver'
import { createDnsClient, type DnsClient, groupRecords } from '@seamark/dns'
import {
  type Client,
  type Cluster,
  configFromText,
  connect,
  CustomResourceDefinition,
  Event,
  Namespace,
} from '@seamark/kube'
import { isThorough } from '@seamark/kit'
import { DNSEndpoint, DNSLoadBalancer, loadBalancerCrds, playgroundCrds } from '@seamark/operator'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from '../integration/dns/peers.ts'
import { eventually } from '../integration/publish/test-environment.ts'
import { type LimitedProcess, startLimited } from './limited-process.ts'
import { watchVictim } from './victim.ts'

const HEAP_MIB = 512
const ROUNDS = isThorough ? 10 : 6
const ZONE = 'example.test'
const POLL = { timeout: 60_000, interval: 5 }
/** Between two changes of an object by a tenant. */
const CHANGE_MS = 300

/** Records of somebody else: no marker is beside them, but `ring`, which a dnslb-controller-manager owns. */
const ZONE_TEXT = `$ORIGIN ${ZONE}.
$TTL 60
@ SOA ns1 host 1 3600 600 86400 30
@ NS ns1
@ MX 10 mail
ns1 A 192.0.2.53
mail A 192.0.2.25
www A 192.0.2.80
*.apps A 192.0.2.81
sub NS ns.sub
ns.sub A 192.0.2.54
ring A 192.0.2.90
comment-ring TXT "owner=Ring"
comment-ring TXT "prefix=comment-"
`

let folder = ''
let manager: LimitedProcess
let cluster: Cluster
let client: Client
let stopServer: () => Promise<void>
let resolver: DnsClient
let server = { address: '127.0.0.1', port: 0 }

beforeAll(async () => {
  const token = newToken()
  const api = createApiServer({
    anonymous: 'refused',
    tokens: new Map([[token, { name: 'admin', groups: ['system:masters'] }]]),
  })
  const { url, caPem = '' } = await api.listen({ tls: 'self-signed' })
  stopServer = async () => api.close()
  const text = writeKubeconfig({ server: url, caPem, token })
  cluster = connect(configFromText(text), { fieldManager: 'test' })
  ;({ client } = cluster)
  for (const definition of [...loadBalancerCrds(), ...playgroundCrds()])
    await client.create(CustomResourceDefinition, definition)
  for (const name of ['victim', 'tenant', 'seamark']) await client.create(Namespace, { metadata: { name } })
  folder = mkdtempSync(join(tmpdir(), 'seamark-abuse-records-'))
  const [kubeconfig, settings, zone] = ['kubeconfig', 'seamark.yaml', 'zone'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  server = { address: '127.0.0.1', port: await freePort() }
  writeFileSync(kubeconfig, text, { mode: 0o600 })
  writeFileSync(zone, ZONE_TEXT)
  writeFileSync(
    settings,
    `apiVersion: config.seamark.io/v1alpha1
kind: ManagerConfiguration
mode: enforce
logLevel: warn
leaderElection: { enabled: false }
dns: { listen: ['127.0.0.1:${server.port}'], zones: ['${ZONE}=${zone}'], dataDir: '${join(folder, 'data')}' }
records:
  enabled: true
  owner: abuse
  types: [A, AAAA, CNAME, TXT, MX, NS]
  registry: { dnslbIdentity: Ring }
  dnsEndpoints: { enabled: true }
`,
  )
  const addresses = ['--metrics-address', '127.0.0.1:0', '--probes-address', '127.0.0.1:0']
  const flags = ['--kubeconfig', kubeconfig, '-n', 'seamark', '--config', settings, ...addresses]
  manager = startLimited('bin/seamark', ['run', ...flags], HEAP_MIB)
  resolver = createDnsClient({ timeoutMs: 5_000, tries: 1 })
  await client.create(DNSEndpoint, endpointOf('victim', 'shop', [['shop', 'A', '192.0.2.1']]))
  const first = async (): Promise<string> => answer('shop').catch(String)
  await eventually('the victim is answered', first, (found) => found === '192.0.2.1', 60_000)
}, 90_000)
afterAll(async () => {
  await resolver?.close()
  await manager?.stop()
  await cluster?.close()
  await stopServer?.()
  rmSync(folder, { recursive: true, force: true })
})

type Asked = readonly [label: string, type: string, target: string, ttl?: number]

const endpointOf = (namespace: string, name: string, asked: readonly Asked[], metadata: object = {}): DNSEndpoint =>
  ({
    metadata: { namespace, name, ...metadata },
    spec: {
      endpoints: asked.map(([label, recordType, target, recordTTL = 60]) => ({
        dnsName: label === '' ? ZONE : `${label}.${ZONE}`,
        recordType,
        targets: [target],
        recordTTL,
      })),
    },
  }) as DNSEndpoint

async function answer(label: string, type = 'A'): Promise<string> {
  const name = label === '' ? ZONE : `${label}.${ZONE}`
  const { message } = await resolver.query({ server, name, type })
  if (message.rcode !== 0) return `RCODE ${message.rcode}`
  return groupRecords(message.answers)
    .filter((set) => set.type === type)
    .flatMap(({ values }) => values)
    .join()
}

async function put(object: DNSEndpoint): Promise<void> {
  await client.apply(DNSEndpoint, object, { fieldManager: 'tenant', force: true })
}

let address = 0

/** A change of the victim's object is answered. */
async function step(): Promise<void> {
  address = (address + 1) % 250
  const target = `198.51.100.${address}`
  await client.patch(DNSEndpoint, 'victim/shop', 'json', [
    { op: 'replace', path: '/spec/endpoints/0/targets/0', value: target },
  ])
  await expect.poll(async () => answer('shop'), { ...POLL, interval: 2 }).toBe(target)
}

/** While this happens, again and again, the victim waits no longer than without it, and the manager goes on. */
async function expectUnharmed(attack: (round: number) => Promise<void>, everyMs = CHANGE_MS): Promise<void> {
  const over = new AbortController()
  const watched = await watchVictim(
    step,
    async () => {
      for (let round = 0; !over.signal.aborted; round++) {
        await attack(round)
        await pause(everyMs)
      }
    },
    ROUNDS,
    () => over.abort(),
  )
  process.stdout.write(`${expect.getState().currentTestName}: ${JSON.stringify(watched)}\n`)
  expect([watched.late, manager.isRunning()]).toEqual([[], true])
}

const reasonsOf = async (name: string): Promise<string> => {
  const events = (await client.list(Event, { namespace: 'tenant' })).items
  return events
    .filter(({ regarding }) => regarding?.name === name)
    .map(({ reason }) => reason)
    .join()
}

it.each([
  ['a label of 63 octets', (round: number) => `${'x'.repeat(59)}${String(round).padStart(4, '0')}`],
  [
    'a name of 250 octets, whose marker would have 261',
    (round: number) => `${`${'x'.repeat(63)}.`.repeat(3)}${'y'.repeat(40)}${String(round).padStart(5, '0')}`,
  ],
])('%s that changes does not stop the zone', { timeout: 120_000 }, async (title, labelOf) => {
  const name = title.startsWith('a label') ? 'label' : 'long'
  await expectUnharmed(async (round) => put(endpointOf('tenant', name, [[labelOf(round), 'A', '192.0.2.66']])))
  if (name === 'long') await expect.poll(async () => reasonsOf(name), POLL).toContain('RecordInvalid')
})

it(
  'a tenant adds nothing to names of others, below delegations, and for what is looked up',
  { timeout: 120_000 },
  async () => {
    const held: Asked[] = [
      ['ns1', 'AAAA', '2001:db8::66'],
      ['mail', 'AAAA', '2001:db8::66'],
      ['www', 'AAAA', '2001:db8::66'],
      ['ns.sub', 'AAAA', '2001:db8::66'],
      ['x.sub', 'A', '192.0.2.66'],
      ['_acme-challenge', 'CNAME', 'evil.test'],
      ['_acme-challenge.www', 'CNAME', 'evil.test'],
      ['_acme-challenge.apps', 'CNAME', 'evil.test'],
      ['s1._domainkey', 'TXT', 'v=DKIM1'],
      ['s1._domainkey.www', 'TXT', 'v=DKIM1'],
      ['s1._domainkey.shop', 'TXT', 'v=DKIM1'],
      ['', 'MX', '10 evil.test'],
      ['loop', 'CNAME', `loop.${ZONE}`],
      ['week', 'A', '192.0.2.66', 604_801],
    ]
    const before = await Promise.all(held.map(async ([label, type]) => answer(label, type)))
    await expectUnharmed(async (round) => {
      // Each is new to the manager.
      await put(endpointOf('tenant', `others-${round % 3}`, held))
      await client.delete(DNSEndpoint, `tenant/others-${(round + 1) % 3}`).catch(() => undefined)
    }, 1_000)
    expect(await Promise.all(held.map(async ([label, type]) => answer(label, type)))).toEqual(before)
    await put(endpointOf('tenant', 'others-0', held))
    for (const reason of ['UnownedRecordExists', 'ClaimHeldByOther', 'RecordInvalid'])
      await expect.poll(async () => reasonsOf('others-0'), POLL).toContain(reason)
  },
)

it(
  'neither a made-up owner nor a younger load balancer takes over the name of another',
  { timeout: 120_000 },
  async () => {
    const addBalancer = async (namespace: string): Promise<string> => {
      const spec = { DNSName: `ring.${ZONE}`, type: 'Balanced', endpointHealth: {} }
      const object = { metadata: { namespace, name: 'ring' }, spec } as unknown as DNSLoadBalancer
      return (await client.create(DNSLoadBalancer, object)).metadata.uid ?? ''
    }
    const uid = await addBalancer('victim')
    // Of a version that is not served: the garbage collector cannot find out that the owner does not exist.
    const apiVersion = `${DNSLoadBalancer.group}/v0`
    const owner = (of: string, name: string) => ({
      ownerReferences: [{ apiVersion, kind: DNSLoadBalancer.kind, name, uid: of, controller: true }],
    })
    await expectUnharmed(async (round) => {
      const made = round % 2 === 0 ? owner(uid, 'ring') : owner('7d1c3e7e-0000-4000-8000-000000000000', 'any')
      const object = endpointOf('tenant', `ring-${round % 4}`, [['ring', 'A', '192.0.2.66']], made)
      await put(object)
    })
    const names = [0, 1, 2, 3].map((each) => `ring-${each}`)
    const reasons = async () => (await Promise.all(names.map(reasonsOf))).join()
    await expect.poll(reasons, { ...POLL, timeout: 3_000 }).toMatch(/ForeignOwner/)
    await Promise.all(names.map(async (name) => client.delete(DNSEndpoint, `tenant/${name}`).catch(() => undefined)))
    const own = await addBalancer('tenant')
    await put(endpointOf('tenant', 'ring-own', [['ring', 'A', '192.0.2.66']], owner(own, 'ring')))
    await expect.poll(async () => reasonsOf('ring-own'), POLL).toContain('ForeignOwner')
    expect([await answer('ring'), await answer('_seamark-a.ring', 'TXT')]).toEqual(['192.0.2.90', 'RCODE 3'])
    // Without the older one the name is the younger one's.
    await client.delete(DNSLoadBalancer, 'victim/ring')
    await expect.poll(async () => answer('ring'), POLL).toBe('192.0.2.66')
  },
)
