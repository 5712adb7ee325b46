import { manager, Service } from '@seamark/kube'
import { memoryCluster, type MemoryCluster } from '@seamark/kube/testing'
import { afterEach, describe, expect, it } from 'vitest'
import { DNSLoadBalancerEndpoint } from '../../api/dns-load-balancer-endpoint.ts'
import { DNSLoadBalancer } from '../../api/dns-load-balancer.ts'
import { ENDPOINT_FINALIZER } from './decide-source.ts'
import { setUpEndpointSources } from './endpoint-controller.ts'
import { BALANCE_DEFAULTS } from '../load-balancer.ts'
import { LOAD_BALANCER_ANNOTATION } from '../../hosts/load-balancer.ts'

const running: { stop: AbortController; outcome: Promise<unknown> }[] = []

async function stopAll(): Promise<void> {
  for (const { stop, outcome } of running.splice(0)) {
    stop.abort()
    await outcome
  }
}
afterEach(stopAll)

async function start(cluster: MemoryCluster) {
  const mgr = await manager({ cluster, fieldManager: 'test', log: cluster.log, grace: '2s' })
  setUpEndpointSources(mgr, { defaults: BALANCE_DEFAULTS })
  const stop = new AbortController()
  running.push({ stop, outcome: mgr.run(stop.signal).catch((error: unknown) => error) })
  return mgr
}

function putService(cluster: MemoryCluster, ip: string, annotated = true, name = 'web'): void {
  const live = cluster.informers.get(Service, `ns/${name}`)
  cluster.put(Service, {
    metadata: {
      ...(live?.metadata as Service['metadata'] | undefined),
      namespace: 'ns',
      name,
      annotations: annotated ? { [LOAD_BALANCER_ANNOTATION]: 'lb' } : {},
    },
    spec: { type: 'LoadBalancer' },
    status: { loadBalancer: { ingress: [{ ip }] } },
  })
}

function putBalancer(cluster: MemoryCluster, spec: Partial<DNSLoadBalancer['spec']> = {}): void {
  cluster.put(DNSLoadBalancer, {
    metadata: { namespace: 'ns', name: 'lb' },
    spec: { DNSName: 'shop.example.com', ...spec },
  })
}

const endpointIn = (cluster: MemoryCluster) => cluster.informers.get(DNSLoadBalancerEndpoint, 'ns/web-service')
const finalizersOf = (cluster: MemoryCluster) => cluster.informers.get(Service, 'ns/web')?.metadata.finalizers ?? []
const writes = (cluster: MemoryCluster) =>
  cluster.requests.filter(({ verb, kind }) => verb !== 'get' && verb !== 'list' && !kind.startsWith('Event'))

describe('the controller of endpoint sources', () => {
  it('follows an annotated Service from its first address to the removal of the annotation', async () => {
    const cluster = memoryCluster()
    putService(cluster, '192.0.2.1')
    await start(cluster)
    // The load balancer is created later and requeues the source.
    putBalancer(cluster)
    await expect.poll(() => endpointIn(cluster)?.spec).toEqual({ loadbalancer: 'lb', ipaddress: '192.0.2.1' })
    await expect.poll(() => finalizersOf(cluster)).toEqual([ENDPOINT_FINALIZER])
    putService(cluster, '192.0.2.2')
    await expect.poll(() => endpointIn(cluster)?.spec.ipaddress).toBe('192.0.2.2')
    putService(cluster, '192.0.2.2', false)
    await expect.poll(() => endpointIn(cluster)).toBeUndefined()
    await expect.poll(() => finalizersOf(cluster)).toEqual([])
  })

  it('sets the finalizer before the first endpoint', async () => {
    const cluster = memoryCluster()
    putBalancer(cluster)
    putService(cluster, '192.0.2.1')
    await start(cluster)
    await expect.poll(() => endpointIn(cluster)).toBeDefined()
    expect(
      writes(cluster)
        .map(({ verb, kind }) => `${verb} ${kind.split('.')[0]}`)
        .slice(0, 2),
    ).toEqual(['patch Service', 'apply DNSLoadBalancerEndpoint'])
  })

  it('writes the validity, and does not disturb what others write into the status', async () => {
    const cluster = memoryCluster()
    putBalancer(cluster, { endpointValidityInterval: '5m' })
    putService(cluster, '192.0.2.1')
    await start(cluster)
    await expect.poll(() => endpointIn(cluster)?.status?.validUntil).toBeDefined()
    expect(endpointIn(cluster)?.metadata.managedFields?.map((entry) => entry.manager)).toContain(
      'seamark-endpoint-validity',
    )
  })

  it('writes nothing after a restart, and nothing for Services that are not annotated', async () => {
    const cluster = memoryCluster()
    putBalancer(cluster)
    putService(cluster, '192.0.2.1')
    putService(cluster, '192.0.2.9', false, 'plain')
    await start(cluster)
    await expect.poll(() => endpointIn(cluster)).toBeDefined()
    await expect.poll(() => finalizersOf(cluster)).toEqual([ENDPOINT_FINALIZER])
    await stopAll()
    cluster.requests.length = 0
    const mgr = await start(cluster)
    const reconciles = async () =>
      await mgr.metrics.registry.getSingleMetricAsString('controller_runtime_reconcile_total')
    await expect.poll(reconciles).toMatch(/controller="endpoint-service",result="success"\} [1-9]/)
    expect(writes(cluster)).toEqual([])
  })

  it('makes a deleted endpoint again', async () => {
    const cluster = memoryCluster()
    putBalancer(cluster)
    putService(cluster, '192.0.2.1')
    await start(cluster)
    await expect.poll(() => endpointIn(cluster)).toBeDefined()
    const { uid } = endpointIn(cluster)!.metadata
    cluster.remove(DNSLoadBalancerEndpoint, 'ns/web-service')
    await expect.poll(() => endpointIn(cluster)?.metadata.uid ?? uid).not.toBe(uid)
  })
})
