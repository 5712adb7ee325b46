/** Runs one scenario inside of a network namespace, and prints a line of JSON: `node runner.ts built-in|envoy`. */
import { EndpointSlice, Namespace, Service } from '@seamark/kube'
import { DNSEndpoint, HTTPProxy } from '@seamark/operator'
import { POD_ADDRESSES } from '../../integration/gateway/network-namespace.ts'
import { AuditedPlane } from '../audited-plane.ts'
import { Installation } from '../installation.ts'
import { allCrds } from '../lives/crds.ts'
import { eventually, put } from '../lives/life.ts'
import { Backend } from './backend.ts'
import { writeOldCertificates } from './certificates.ts'
import { withEnvoys } from './envoys.ts'
import { addRequests, dnsAsk, Load } from './load.ts'
import { type Container, managerPod } from './pod.ts'
import { Rollout } from './rollout.ts'

const HOST = 'shop.rollout.test'
const TARGET = '203.0.113.7'
const NAMESPACE = 'seamark'
const LIMIT_MS = 60_000

/** Of each client, before and after. */
const QUESTIONS = 8

type Scenario = 'built-in' | 'envoy'

async function run(scenario: Scenario): Promise<void> {
  await using plane = await AuditedPlane.start(allCrds())
  await using backend = new Backend()
  const [, address = ''] = POD_ADDRESSES
  const port = await backend.listen({ host: address })
  await writeObjects(plane, { address, port })
  const values = (config: object = {}) => ({
    mode: 'enforce',
    // Longer than it takes until everybody knows.
    drainSeconds: 2,
    crds: { enabled: false },
    dns: { enabled: true },
    gateway: { dataPlane: scenario },
    config: {
      allowLoopback: true,
      installCRDs: false,
      publish: { enabled: false },
      records: { owner: 'rollout' },
      dns: { zones: ['rollout.test'] },
      gateway: { enabled: true, statusAddresses: [address] },
      ...config,
    },
  })
  if (scenario === 'envoy') {
    await plane.client.create(Namespace, { metadata: { name: NAMESPACE } })
    await writeOldCertificates(plane.client, NAMESPACE, `seamark-xds.${NAMESPACE}.svc`)
  }
  await using installation = new Installation(plane, NAMESPACE)
  await installation.apply(values())
  const { container } = await installation.rendered()
  const listen =
    scenario === 'built-in' ? ['--gateway-http-listen', '127.0.0.1:0', '--gateway-https-listen', '127.0.0.1:0'] : []
  const managers = new Rollout(async () =>
    managerPod(await installation.start('--dns-listen', '127.0.0.1:0', ...listen), container as unknown as Container),
  )
  const load = new Load()
  try {
    await managers.scale(2)
    const name = `www.${HOST}.`
    await eventually(
      'the record on every replica',
      async () => Promise.all([0, 1].map(async () => dnsAsk((of) => managers.pick(of), 'udp', name, TARGET)())),
      (failures) => failures.every((failure) => failure === undefined),
      LIMIT_MS,
    )
    load.add(
      'queries over UDP',
      dnsAsk((of) => managers.pick(of), 'udp', name, TARGET),
    )
    load.add(
      'queries over TCP',
      dnsAsk((of) => managers.pick(of), 'tcp', name, TARGET),
    )
    const change = async (): Promise<void> => {
      await installation.apply(values({ logLevel: 'debug' }))
      await managers.roll()
    }
    if (scenario === 'envoy')
      await withEnvoys({ plane, namespace: NAMESPACE, managers, backend, address, port, load, host: HOST, change })
    else {
      addRequests(load, (of) => managers.pick(of), HOST)
      await load.goOn(QUESTIONS)
      await change()
      await load.goOn(QUESTIONS)
    }
    process.stdout.write(`${scenario}: ${await load.end()}; failed ${load.failures.length}\n`)
    if (load.failures.length > 0) throw new Error(load.failures.slice(0, 20).join('\n'))
  } finally {
    await load.end()
    await managers.end()
  }
}

async function writeObjects(plane: AuditedPlane, { address, port }: { address: string; port: number }): Promise<void> {
  const { client } = plane
  const space = 'shop'
  await client.create(Namespace, { metadata: { name: space } })
  await put(plane, Service, {
    metadata: { namespace: space, name: 'web' },
    spec: { ports: [{ name: 'http', port: 80 }] },
  })
  await put(plane, EndpointSlice, {
    metadata: { namespace: space, name: 'web', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
    ports: [{ name: 'http', port, protocol: 'TCP' }],
  })
  await put(plane, HTTPProxy, {
    metadata: { namespace: space, name: 'shop' },
    spec: { virtualhost: { fqdn: HOST }, routes: [{ services: [{ name: 'web', port: 80 }] }] },
  })
  await put(plane, DNSEndpoint, {
    metadata: { namespace: space, name: 'shop' },
    spec: { endpoints: [{ dnsName: `www.${HOST}`, recordType: 'A', recordTTL: 60, targets: [TARGET] }] },
  })
}

const [scenario = 'built-in'] = process.argv.slice(2)
let error: string | undefined
try {
  await run(scenario as Scenario)
} catch (caught) {
  error = caught instanceof Error ? (caught.stack ?? caught.message) : String(caught)
}
process.stdout.write(`${JSON.stringify({ name: scenario, ...(error !== undefined && { error }) })}\n`)
