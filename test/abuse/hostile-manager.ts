/**
 * Program of hostile-objects.test.ts: a manager on a cluster in memory, which stores whatever it is given. Reads a JSON list of objects
 * per line, stores them, changes a record of another namespace, and prints `followed` once the DNS service has that change.
 */
import { createInterface } from 'node:readline'
import { CustomResourceDefinition, Ingress, Namespace, Service } from '@seamark/kube'
import { HTTPProxy } from '@seamark/kube/contour'
import type { Kind, Obj } from '@seamark/kube/object'
import { memoryCluster } from '@seamark/kube/testing'
import {
  BalanceConfig,
  DNSEndpoint,
  DNSLoadBalancer,
  DNSLoadBalancerEndpoint,
  memoryProvider,
  RecordsConfig,
  runApp,
  unified,
} from '@seamark/operator'

const ZONE = 'example.test.'
const KINDS: readonly Kind[] = [DNSEndpoint, Ingress, HTTPProxy, Service, DNSLoadBalancer, DNSLoadBalancerEndpoint]

const cluster = memoryCluster()
cluster.put(Namespace, { metadata: { name: 'kube-system' } })
for (const { group, version, kind, plural } of KINDS)
  cluster.put(CustomResourceDefinition, {
    metadata: { name: `${plural}.${group}`, creationTimestamp: '2020-01-01T00:00:00Z' },
    spec: {
      group,
      scope: 'Namespaced',
      names: { kind, plural },
      versions: [{ name: version, served: true, storage: true }],
    },
  })

let answered = ''
let onAnswer: () => void = () => undefined
const memory = memoryProvider({ zones: [ZONE] })
const apply = memory.apply.bind(memory)
memory.apply = async (...given) => {
  await apply(...given)
  answered = memory.dump(ZONE).find(({ name, type }) => name === `victim.${ZONE}` && type === 'A')?.values[0] ?? ''
  onAnswer()
}

let changes = 0
async function followVictim(): Promise<void> {
  changes++
  const address = `198.51.100.${changes % 250}`
  const endpoint = { dnsName: `victim.${ZONE}`, recordType: 'A' as const, recordTTL: 60, targets: [address] }
  const seen = new Promise<void>((resolve) => {
    onAnswer = () => {
      if (answered === address) resolve()
    }
  })
  cluster.put(DNSEndpoint, { metadata: { namespace: 'victim', name: 'victim' }, spec: { endpoints: [endpoint] } })
  await seen
}

const config = RecordsConfig.parse({ enabled: true, owner: 'abuse', dnsEndpoints: { enabled: true } })
void runApp(
  {
    cluster,
    mode: 'enforce',
    namespace: 'seamark',
    installsCrds: false,
    records: { config, env: {}, providers: [memory] },
    publish: { ...unified, sources: ['Ingress', 'HTTPProxy', 'Service'] },
    balance: { config: BalanceConfig.parse({ enabled: true }), resolve: async () => [] },
  },
  new AbortController().signal,
).then(
  () => process.exit(7),
  (error: unknown) => {
    process.stderr.write(`${String(error)}\n`)
    process.exit(8)
  },
)

for await (const line of createInterface(process.stdin)) {
  for (const { kind, object } of JSON.parse(line) as { kind: string; object: Obj }[]) {
    const type = KINDS.find((each) => each.kind === kind)
    if (type !== undefined) cluster.put(type, object)
  }
  await followVictim()
  process.stdout.write('followed\n')
}
