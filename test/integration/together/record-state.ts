/**
 * Records the state that a version leaves behind: `node --conditions=source --import tsx record-state.ts PROGRAM FILE`, where
 * PROGRAM is the bundle (dist/seamark.mjs) of that version. Held changes of publish and of records, zones in ConfigMaps,
 * claims, leases, markers, and every generated object with its managed fields.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createSocket } from 'node:dgram'
import { writeFileSync } from 'node:fs'
import { createDnsClient, groupRecords } from '@seamark/dns'
import { ConfigMap, Ingress, IngressClass, Namespace, Node, Secret, Service } from '@seamark/kube'
import {
  Cluster,
  DNSEndpoint,
  DNSLoadBalancer,
  DNSLoadBalancerEndpoint,
  GlobalIngressPolicy,
  HTTPProxy,
} from '@seamark/operator'
import { GATEWAY_PORT, GATEWAYS, MEMBERS, SERVERS, startStateWorld, type StateWorld } from './state-world.ts'
import { dumpObjects } from './stored-state.ts'
import { eventually } from './waiting.ts'

const [program = '', file = ''] = process.argv.slice(2)
const ROOTS = ['shop', 'pay']
/** Of each kind of object. More than five and more than a third of all sources are deleted, which guards hold. */
const MANY = 18

const world = await startStateWorld()
const hub = world.client('hub')
const dnsPort = await freePort()

async function freePort(): Promise<number> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const { port } = socket.address()
  socket.close()
  return port
}

async function start(service: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, [program, 'run', ...world.configure(dnsPort, service)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await new Promise<void>((resolve, reject) => {
    let text = ''
    child.stdout.on('data', (chunk) => {
      text += String(chunk)
      if (/^ready/m.test(text)) resolve()
    })
    child.once('close', () => reject(new Error(text)))
  })
  return child
}

async function end(child: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  child.kill(signal)
  await once(child, 'close')
}

const dns = createDnsClient({ tries: 1, timeoutMs: 1_000 })
async function ask(name: string): Promise<string> {
  const server = { address: '127.0.0.1', port: dnsPort }
  const { message } = await dns.query({ server, name: `${name}.example.com`, type: 'A' })
  return groupRecords(message.answers)
    .flatMap(({ values }) => [...values])
    .sort()
    .join(' ')
}

async function expectAnswer(name: string, wanted: string): Promise<void> {
  await eventually(`${name} ${wanted}`, async () => ((await ask(name)) === wanted ? true : undefined), 120_000)
}

async function held(): Promise<string[]> {
  const flags = world.configure(dnsPort, 'web/second')
  const child = spawn(process.execPath, [program, 'approve', ...flags], { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.on('data', (chunk) => (text += String(chunk)))
  await once(child, 'close')
  return [...new Set(text.match(/\b(?:[a-z]+-)?[0-9a-f]{12}\b/g))].sort()
}

async function prepare({ client }: StateWorld): Promise<void> {
  for (const name of ['seamark', 'shop', 'web', 'infra']) await hub.create(Namespace, { metadata: { name } })
  await hub.create(IngressClass, { metadata: { name: 'global' }, spec: { controller: 'seamark.io/global' } })
  await hub.create(GlobalIngressPolicy, {
    metadata: { namespace: 'seamark', name: 'default' },
    spec: { health: { protocol: 'HTTP', port: GATEWAY_PORT } },
  } as unknown as GlobalIngressPolicy)
  for (const [index, name] of ['first', 'second'].entries()) {
    const metadata = { namespace: 'web', name }
    await hub.create(Service, { metadata, spec: { type: 'LoadBalancer', ports: [{ port: 443 }] } })
    const status = { loadBalancer: { ingress: [{ ip: `192.0.2.8${index}` }] } }
    await hub.patch(Service, `web/${name}`, 'merge', { status }, { subresource: 'status' })
  }
  for (const [index, name] of MEMBERS.entries()) {
    const member = client(name)
    await member.create(Namespace, { metadata: { name: 'shop' } })
    await member.create(Service, { metadata: { namespace: 'shop', name: 'web' }, spec: { ports: [{ port: 80 }] } })
    await member.create(Node, { metadata: { name: 'node-1' } })
    const addresses = [{ type: 'ExternalIP' as const, address: `203.0.113.${index + 1}` }]
    const status = { addresses, conditions: [{ type: 'Ready', status: 'True' as const }] }
    await member.patch(Node, 'node-1', 'merge', { status }, { subresource: 'status' })
    await hub.create(Secret, {
      metadata: { namespace: 'seamark', name: `cluster-${name}`, labels: { 'seamark.io/cluster': name } },
      data: { kubeconfig: Buffer.from(world.servers.get(name)?.kubeconfig ?? '').toString('base64') },
    })
    await hub.create(Cluster, {
      metadata: { name },
      spec: { kubeconfigSecretRef: { name: `cluster-${name}` } },
    } as unknown as Cluster)
  }
}

async function declare(): Promise<void> {
  for (const name of ROOTS) {
    const backend = { service: { name: 'web', port: { number: 80 } } }
    const paths = [{ path: '/', pathType: 'Prefix' as const, backend }]
    await hub.create(Ingress, {
      metadata: { namespace: 'shop', name },
      spec: { ingressClassName: 'global', rules: [{ host: `${name}.example.com`, http: { paths } }] },
    })
  }
  for (let index = 0; index < MANY; index++) {
    await hub.create(HTTPProxy, {
      metadata: { namespace: 'web', name: `p${index}` },
      spec: { virtualhost: { fqdn: `p${index}.example.com` }, routes: [] },
    })
    const endpoint = { dnsName: `d${index}.example.com`, recordType: 'A' as const, recordTTL: 60 }
    await hub.create(DNSEndpoint, {
      metadata: { namespace: 'infra', name: `d${index}` },
      spec: { endpoints: [{ ...endpoint, targets: [`198.51.100.${index + 1}`] }] },
    })
  }
  await hub.create(DNSLoadBalancer, {
    metadata: { namespace: 'web', name: 'lb' },
    spec: { DNSName: 'lb.example.com', healthPath: '/', healthCheck: { scheme: 'http', port: GATEWAY_PORT } },
  } as unknown as DNSLoadBalancer)
  for (const [name, ipaddress] of Object.entries(GATEWAYS))
    await hub.create(DNSLoadBalancerEndpoint, {
      metadata: { namespace: 'web', name },
      spec: { loadbalancer: 'lb', ipaddress },
    })
  for (const member of MEMBERS)
    for (const name of ROOTS) {
      const client = world.client(member)
      await eventually(`${name} on ${member}`, async () => client.find(Ingress, `shop/${name}`))
      const status = { loadBalancer: { ingress: [{ ip: GATEWAYS[member] }] } }
      await client.patch(Ingress, `shop/${name}`, 'merge', { status }, { subresource: 'status' })
    }
}

await prepare(world)
let manager = await start('web/first')
await declare()
const both = Object.values(GATEWAYS).join(' ')
const answers = new Map<string, string>([
  ...[...ROOTS, 'lb'].map((name): [string, string] => [name, both]),
  ...Array.from({ length: MANY }, (_, index): [string, string] => [`p${index}`, '192.0.2.80']),
  ...Array.from({ length: MANY }, (_, index): [string, string] => [`d${index}`, `198.51.100.${index + 1}`]),
  ...MEMBERS.map((name, index): [string, string] => [`any.${name}.clusters`, `203.0.113.${index + 1}`]),
])
for (const [name, wanted] of answers) await expectAnswer(name, wanted)
await eventually(
  'the baseline of publish',
  async () => (await hub.find(ConfigMap, 'seamark/seamark-publish'))?.data,
  180_000,
)
process.stderr.write('everything is published\n')
// Another Service: publish would retarget every HTTPProxy, and holds that.
await end(manager, 'SIGTERM')
manager = await start('web/second')
await eventually('held objects', async () => ((await held()).length > 0 ? true : undefined), 120_000)
const ofPublish = await held()
await Promise.all(Array.from({ length: MANY }, async (_, index) => hub.delete(DNSEndpoint, `infra/d${index}`)))
await eventually('held records', async () => ((await held()).length > ofPublish.length ? true : undefined), 120_000)
// Some are deleted before the guard sees how many there are.
for (const [name, wanted] of answers) if ((await ask(name)) !== wanted) answers.delete(name)
process.stderr.write(`${answers.size} names are answered\n`)
await end(manager, 'SIGKILL')
const state = {
  recordedAt: Date.now(),
  held: await held(),
  answers: [...answers].map(([name, values]) => `${name}.example.com A ${values}`),
  servers: Object.fromEntries(
    SERVERS.map((name) => {
      const server = world.servers.get(name)?.server
      return [name, server === undefined ? [] : dumpObjects(server)]
    }),
  ),
}
// A line for each object: a difference is readable, and the file is small.
const lines = SERVERS.map(
  (name) =>
    `  "${name}": [\n${(state.servers[name] ?? []).map((each) => `    ${JSON.stringify(each)}`).join(',\n')}\n  ]`,
)
writeFileSync(
  file,
  `{\n"recordedAt": ${state.recordedAt},\n"held": ${JSON.stringify(state.held)},\n"answers": ${JSON.stringify(state.answers)},\n"servers": {\n${lines.join(',\n')}\n}\n}\n`,
)
await dns.close()
await world.close()
