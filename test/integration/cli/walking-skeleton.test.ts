/**
 * The whole path, with one host: an HTTPProxy becomes a DNSEndpoint, a guarded plan, an RRset of our own DNS server, and the
 * answer to a question over UDP. One manager does all of it, as `seamark run` does.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import {
  createDnsClient,
  createDnsServer,
  createZone,
  type DnsServer,
  fqdn,
  groupRecords,
  createRRset,
  type ServerAddress,
} from '@seamark/dns'
import { findProgram, needs } from '@seamark/kit'
import { Namespace } from '@seamark/kube'
import { embeddedProvider, HTTPProxy, RecordsConfig } from '@seamark/operator'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { Bench, SERVICE } from '../publish/bench.ts'
import {
  createNamespace,
  eventually,
  type RunningApp,
  setAddresses,
  type TestEnvironment,
  environmentKinds,
} from '../publish/test-environment.ts'

const ZONE = 'example.com.'

let environment: TestEnvironment
let bench: Bench
let server: DnsServer
let address: ServerAddress
const client = createDnsClient()

beforeEach(async () => {
  const [embedded] = environmentKinds
  if (embedded === undefined) throw new Error('no embedded environment')
  environment = await embedded.start()
  if ((await environment.client.find(Namespace, 'kube-system')) === undefined)
    await createNamespace(environment.client, 'kube-system')
  bench = await Bench.prepare(environment)
  const zone = createZone(fqdn(ZONE), [
    createRRset(ZONE, 'SOA', 300, [`ns.${ZONE} admin.${ZONE} 1 3600 600 86400 30`]),
    createRRset(ZONE, 'NS', 300, [`ns.${ZONE}`]),
  ])
  server = await createDnsServer({ zones: [zone], listen: [{ address: '127.0.0.1', port: 0 }] })
  const [first] = server.addresses
  if (first === undefined) throw new Error('the DNS server has no address')
  address = first
})
afterEach(async () => {
  await server.close()
  await environment[Symbol.asyncDispose]()
})

/** The manager with publish and records, which writes to our own DNS server. */
function run(): RunningApp {
  const config = RecordsConfig.parse({ enabled: true, owner: 'skeleton', dnsEndpoints: { enabled: true } })
  return bench.run({}, { records: { config, env: {}, providers: [embeddedProvider({ server })] } })
}

async function ask(name: string): Promise<string> {
  const { message } = await client.query({ server: address, name, type: 'A' })
  return groupRecords(message.answers)
    .flatMap((set) => [...set.values])
    .join(' ')
}

async function expectAnswer(name: string, wanted: string): Promise<void> {
  await eventually(
    `the answer of ${name}`,
    async () => ask(name),
    (found) => found === wanted,
  )
}

it('U40: a proxy made before the start answers, and the answer follows the load balancer', async () => {
  await bench.proxy()
  await using _app = run()
  await expectAnswer('test.example.com', '10.0.0.0')
  await setAddresses(environment.client, SERVICE, [{ ip: '203.0.113.5' }])
  await expectAnswer('test.example.com', '203.0.113.5')
  expect(await ask('test.example.com')).toBe('203.0.113.5')
})

it('U40: a restart writes only what is new, and a deleted proxy has no answer any more', async () => {
  await bench.proxy()
  await bench.proxy({ metadata: { name: 'other' }, spec: { virtualhost: { fqdn: 'other.example.com' } } })
  const first = run()
  await expectAnswer('test.example.com', '10.0.0.0')
  await expectAnswer('other.example.com', '10.0.0.0')
  await bench.eventually(
    'the status of both DNSEndpoints',
    async () => Promise.all([bench.dns('ns/foo'), bench.dns('ns/other')]),
    (objects) => objects.every(({ status, metadata }) => status?.observedGeneration === metadata.generation),
  )
  const before = await bench.versions()
  await first.stop()

  await using _second = run()
  await bench.proxy({ metadata: { name: 'second' }, spec: { virtualhost: { fqdn: 'second.example.com' } } })
  await expectAnswer('second.example.com', '10.0.0.0')
  expect(await bench.versions()).toEqual(expect.arrayContaining(before))
  await environment.client.delete(HTTPProxy, 'ns/foo')
  await expectAnswer('test.example.com', '')
  expect(await ask('other.example.com')).toBe('10.0.0.0')
})

it.skipIf(!needs('dig'))('dig reads the same answer', async () => {
  await bench.proxy()
  await using _app = run()
  await expectAnswer('test.example.com', '10.0.0.0')
  const argv = ['@127.0.0.1', '-p', String(address.port), '+short', 'test.example.com']
  const { stdout } = await promisify(execFile)(findProgram('dig') ?? 'dig', argv)
  expect(stdout.trim()).toBe('10.0.0.0')
})
