/**
 * Load balancing from an annotated Service to a DNSEndpoint, on a real kube-apiserver and on the embedded one: the CRDs are
 * accepted and refuse what they must, the controllers converge, and a restart on the converged state writes nothing.
 */
import { needs } from '@seamark/kit'
import { type Client, configFromText, connect, Invalid, manager, Service } from '@seamark/kube'
import { ControlPlane } from '@seamark/kube/testing'
import {
  BALANCE_DEFAULTS,
  DNSEndpoint,
  DNSLoadBalancer,
  DNSLoadBalancerEndpoint,
  type HealthMonitor,
  loadBalancerCrds,
  playgroundCrds,
  setUpEndpointSources,
  setUpLoadBalancers,
} from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { startEmbeddedPlane } from '../apiserver/embedded-server.ts'

const crds = [...loadBalancerCrds(), ...playgroundCrds()]

const NO_NAMES = {
  setNames: () => undefined,
  addressesOf: () => undefined,
  refresh: async () => undefined,
  subscribe: () => () => undefined,
  touch: () => undefined,
}

/** Every target has the verdict that the test sets. */
function monitorOf(verdict: { current: 'healthy' | 'unhealthy' }, notify: { change: () => void }) {
  return (onChange: (keys: readonly string[]) => void): HealthMonitor => {
    const owners = new Set<string>()
    notify.change = () => onChange([...owners])
    return {
      setTargets: (owner) => void owners.add(owner),
      healthOf: () => ({ verdict: verdict.current, detail: '' }),
      stop: async () => undefined,
    }
  }
}

async function start(plane: ControlPlane) {
  const cluster = connect(configFromText(plane.kubeconfig()), { fieldManager: 'seamark' })
  const writes: string[] = []
  cluster.guardWrites(({ method, path }) => void writes.push(`${method} ${path}`))
  const mgr = await manager({ cluster, fieldManager: 'seamark', grace: '5s' })
  const verdict: { current: 'healthy' | 'unhealthy' } = { current: 'healthy' }
  const notify = { change: () => {} }
  setUpEndpointSources(mgr, { defaults: BALANCE_DEFAULTS })
  setUpLoadBalancers(mgr, { defaults: BALANCE_DEFAULTS, monitor: monitorOf(verdict, notify), lookup: () => NO_NAMES })
  const stopping = new AbortController()
  const outcome = mgr.run(stopping.signal)
  return {
    writes,
    mgr,
    set(next: 'healthy' | 'unhealthy') {
      verdict.current = next
      notify.change()
    },
    async stop() {
      stopping.abort()
      await outcome
    },
  }
}

const POLL_OPTIONS = { timeout: 30_000 }

async function check(plane: ControlPlane): Promise<void> {
  const cluster = connect(configFromText(plane.kubeconfig()), { fieldManager: 'test' })
  const { client } = cluster
  try {
    await checkSchema(client)
    const metadata = { namespace: 'default', name: 'shop' }
    await client.create(DNSLoadBalancer, {
      metadata,
      spec: { DNSName: 'shop.example.com', healthPath: '/healthz', endpointValidityInterval: '10m' },
    })
    await client.create(Service, {
      metadata: { ...metadata, annotations: { 'loadbalancer.gardener.cloud/dnsloadbalancer': 'shop' } },
      spec: { type: 'LoadBalancer', ports: [{ name: 'https', port: 443 }] },
    })
    const first = await start(plane)
    try {
      const status = { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } }
      await client.apply(Service, { metadata, status }, { subresource: 'status' })
      const targets = async () =>
        (await client.find(DNSEndpoint, 'default/shop-dnslb'))?.spec.endpoints.flatMap((each) => each.targets)
      await expect.poll(targets, POLL_OPTIONS).toEqual(['192.0.2.1'])
      const endpointStatus = async () => (await client.get(DNSLoadBalancerEndpoint, 'default/shop-service')).status
      // Two managers share this status and neither removes what the other wrote.
      await expect
        .poll(endpointStatus, POLL_OPTIONS)
        .toMatchObject({ active: true, healthy: true, validUntil: expect.stringMatching(/Z$/) })
      first.set('unhealthy')
      const message = async () => (await client.get(DNSLoadBalancer, 'default/shop')).status?.message
      await expect.poll(message, POLL_OPTIONS).toBe('no healthy targets found')
      expect(await targets()).toEqual(['192.0.2.1'])
      first.set('healthy')
      await expect.poll(message, POLL_OPTIONS).toBeUndefined()
      await expect.poll(async () => (await endpointStatus())?.healthy, POLL_OPTIONS).toBe(true)
    } finally {
      await first.stop()
    }

    const second = await start(plane)
    try {
      const reconciles = async () =>
        await second.mgr.metrics.registry.getSingleMetricAsString('controller_runtime_reconcile_total')
      await expect
        .poll(reconciles, POLL_OPTIONS)
        .toMatch(/controller="balance",result="(success|requeue_after)"\} [1-9]/)
      await expect
        .poll(reconciles, POLL_OPTIONS)
        .toMatch(/controller="endpoint-service",result="(success|requeue_after)"\} [1-9]/)
      expect(second.writes.filter((write) => !write.includes('/events'))).toEqual([])

      const live = await client.get(Service, 'default/shop')
      await client.patch(Service, 'default/shop', 'json', [{ op: 'remove', path: '/metadata/annotations' }])
      expect(live.metadata.finalizers).toContain('loadbalancer.gardener.cloud/endpoint')
      await expect
        .poll(() => client.find(DNSLoadBalancerEndpoint, 'default/shop-service'), POLL_OPTIONS)
        .toBeUndefined()
      const finalizers = async () => (await client.get(Service, 'default/shop')).metadata.finalizers ?? []
      await expect.poll(finalizers, POLL_OPTIONS).not.toContain('loadbalancer.gardener.cloud/endpoint')
    } finally {
      await second.stop()
    }
  } finally {
    await cluster.close()
  }
}

async function checkSchema(client: Client): Promise<void> {
  const bad: [field: string, spec: Record<string, unknown>][] = [
    ['spec.ttl', { ttl: 0 }],
    ['spec.onAllUnhealthy', { onAllUnhealthy: 'Panic' }],
    ['spec.endpointValidityInterval', { endpointValidityInterval: 'soon' }],
    ['spec.healthCheck.port', { healthCheck: { port: 70_000 } }],
  ]
  for (const [field, spec] of bad) {
    const object = { metadata: { namespace: 'default', name: 'bad' }, spec: { DNSName: 'x.example.com', ...spec } }
    const refused = await client.create(DNSLoadBalancer, object as DNSLoadBalancer).catch((error: unknown) => error)
    expect(refused, field).toBeInstanceOf(Invalid)
    expect(String(refused)).toContain(field)
  }
}

describe('load balancing in one cluster', () => {
  it.skipIf(!needs('kube-apiserver', 'etcd'))('works on a real server', async () => {
    await using plane = await ControlPlane.start({ crds })
    await check(plane)
  })

  it('works on the embedded server', async () => {
    await using plane = await startEmbeddedPlane(crds)
    await check(plane)
  })
})
