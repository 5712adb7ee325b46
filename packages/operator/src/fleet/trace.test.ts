import { memoryCluster } from '@seamark/kube/testing'
import { expect, it } from 'vitest'
import { Cluster } from '../api/cluster.ts'
import { DNSLoadBalancerEndpoint } from '../api/dns-load-balancer-endpoint.ts'
import { GlobalIngress } from '../api/global-ingress.ts'
import { LeafIngress } from '../api/leaf-ingress.ts'
import { LEAF_CLUSTER_LABEL } from './names.ts'
import { ROOT_UID_LABEL } from '../hosts/root.ts'
import { printTree, publishedAddresses, traceHost } from './trace.ts'

const HOST = 'shop.example.com'
const ADDRESSES = { eu1: '192.0.2.1', us1: '192.0.2.2' }

/** A root with two leaves; balance publishes that of us1. `answered`: what the manager saw of the DNS servers. */
async function trace(answered?: readonly string[]) {
  const cluster = memoryCluster()
  cluster.put(GlobalIngress, {
    metadata: { namespace: 'shop', name: 'shop' },
    spec: { hosts: [{ host: HOST }], rootRef: { kind: 'Ingress', name: 'shop', uid: 'u' } },
    ...(answered !== undefined && { status: { answered } }),
  } as unknown as GlobalIngress)
  for (const [name, value] of Object.entries(ADDRESSES)) {
    const labels = { [ROOT_UID_LABEL]: 'u', [LEAF_CLUSTER_LABEL]: name }
    const metadata = { namespace: 'shop', name: `shop-${name}`, labels }
    cluster.put(Cluster, { metadata: { name }, spec: {} } as unknown as Cluster)
    cluster.put(LeafIngress, {
      metadata,
      spec: { cluster: name },
      status: { addresses: [{ type: 'IPAddress', value }] },
    } as unknown as LeafIngress)
    cluster.put(DNSLoadBalancerEndpoint, {
      metadata,
      spec: { loadbalancer: 'shop', ipaddress: value, drain: name === 'eu1' },
      status: { healthy: true, active: name === 'us1' },
    })
  }
  const found = await traceHost(cluster.client, HOST)
  if (found === undefined) throw new Error('no trace')
  return found
}

const states = async (answered?: readonly string[]) =>
  printTree(await trace(answered))
    .split('\n')
    .flatMap((line) => /(192\.0\.2\.\d {2}.*|DNS answers.*)$/.exec(line)?.[1] ?? [])

it('the tree shows what balance decided, where the DNS servers answer that or were not asked', async () => {
  const wanted = ['192.0.2.1  withdrawn', '192.0.2.2  answered']
  expect(await states()).toEqual(wanted)
  expect(await states(['192.0.2.2'])).toEqual(wanted)
})

it('the tree shows where the DNS servers answer something else', async () => {
  expect(await states(['192.0.2.1', '192.0.2.2'])).toEqual([
    '192.0.2.1  withdrawn, still answered',
    '192.0.2.2  answered',
  ])
  expect(await states(['192.0.2.9'])).toEqual([
    '192.0.2.1  withdrawn',
    '192.0.2.2  published, not answered',
    'DNS answers 192.0.2.9, which no leaf has; seamark explain shop.example.com shows why',
  ])
})

it('explain compares an answer with the addresses that balance publishes', async () => {
  expect(publishedAddresses(await trace())).toEqual(['192.0.2.2'])
})
