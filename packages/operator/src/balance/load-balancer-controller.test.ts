import { manager, type Manager } from '@seamark/kube'
import { type FakeClock, fakeClock, memoryCluster, type MemoryCluster } from '@seamark/kube/testing'
import { afterEach, describe, expect, it } from 'vitest'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import { DNSLoadBalancerEndpoint } from '../api/dns-load-balancer-endpoint.ts'
import { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import type { HealthMonitor, MonitoredTarget } from '../health/monitor.ts'
import type { Verdict } from '../health/verdict.ts'
import { SecondWriterGuard } from '../safety/second-writer-guard.ts'
import { UNDO_LIMIT } from '../safety/second-writer.ts'
import { BALANCE_DEFAULTS } from './load-balancer.ts'
import { setUpLoadBalancers } from './load-balancer-controller.ts'

const running: { stop: AbortController; outcome: Promise<unknown> }[] = []
afterEach(async () => {
  for (const { stop, outcome } of running.splice(0)) {
    stop.abort()
    await outcome
  }
})

/** Verdicts by host, as the test sets them. */
function fakeMonitor() {
  const verdicts = new Map<string, Verdict>()
  const targets = new Map<string, ReadonlyMap<string, MonitoredTarget>>()
  let onChange: (keys: readonly string[]) => void = () => undefined
  const monitor: HealthMonitor = {
    setTargets: (owner, next) => void (next.size > 0 ? targets.set(owner, next) : targets.delete(owner)),
    healthOf(owner, id) {
      const target = targets.get(owner)?.get(id)
      const verdict = verdicts.get(target?.target.request.host ?? '') ?? target?.seed ?? 'unknown'
      return { verdict, detail: '' }
    },
    stop: async () => undefined,
  }
  return {
    targets,
    start(notify: typeof onChange) {
      onChange = notify
      return monitor
    },
    set(host: string, verdict: Verdict) {
      verdicts.set(host, verdict)
      onChange([...targets.keys()])
    },
  }
}

const NO_NAMES = {
  setNames: () => undefined,
  addressesOf: () => undefined,
  refresh: async () => undefined,
  subscribe: () => () => undefined,
  touch: () => undefined,
}

interface Fixture {
  readonly cluster: MemoryCluster
  readonly clock: FakeClock
  readonly health: ReturnType<typeof fakeMonitor>
}

function fixture(): Fixture {
  return { cluster: memoryCluster(), clock: fakeClock(), health: fakeMonitor() }
}

async function start({ cluster, health }: Fixture, secondWriter?: SecondWriterGuard): Promise<Manager> {
  const mgr = await manager({ cluster, fieldManager: 'test', log: cluster.log, grace: '2s' })
  setUpLoadBalancers(mgr, {
    defaults: BALANCE_DEFAULTS,
    monitor: (onChange) => health.start(onChange),
    lookup: () => NO_NAMES,
    ...(secondWriter !== undefined && { secondWriter }),
  })
  const stop = new AbortController()
  const outcome = mgr.run(stop.signal).catch((error: unknown) => error)
  running.push({ stop, outcome })
  return mgr
}

function put({ cluster }: Fixture, spec: Partial<DNSLoadBalancer['spec']> = {}, name = 'shop'): void {
  cluster.put(DNSLoadBalancer, { metadata: { namespace: 'web', name }, spec: { DNSName: 'shop.example.com', ...spec } })
}

function putEndpoint({ cluster }: Fixture, name: string, ipaddress: string, loadbalancer = 'shop'): void {
  cluster.put(DNSLoadBalancerEndpoint, { metadata: { namespace: 'web', name }, spec: { loadbalancer, ipaddress } })
}

const targetsIn = ({ cluster }: Fixture, key = 'web/shop-dnslb') =>
  cluster.informers.get(DNSEndpoint, key)?.spec.endpoints.flatMap(({ targets }) => targets)
const statusOf = ({ cluster }: Fixture, name = 'shop') => cluster.informers.get(DNSLoadBalancer, `web/${name}`)?.status
const writes = ({ cluster }: Fixture) => cluster.requests.filter(({ verb }) => verb !== 'get' && verb !== 'list')

describe('the controller of load balancers', () => {
  it('publishes the healthy endpoints, follows their health, and keeps the last answer when all are down', async () => {
    const the = fixture()
    put(the)
    putEndpoint(the, 'a', '192.0.2.1')
    putEndpoint(the, 'b', '192.0.2.2')
    await start(the)
    await expect.poll(() => the.health.targets.get('web/shop')?.size).toBe(3)
    expect(targetsIn(the)).toBeUndefined()
    the.health.set('192.0.2.1', 'healthy')
    await expect.poll(() => targetsIn(the)).toEqual(['192.0.2.1'])
    the.health.set('192.0.2.2', 'healthy')
    await expect.poll(() => targetsIn(the)).toEqual(['192.0.2.1', '192.0.2.2'])
    the.health.set('192.0.2.1', 'unhealthy')
    await expect.poll(() => targetsIn(the)).toEqual(['192.0.2.2'])
    the.health.set('192.0.2.2', 'unhealthy')
    await expect.poll(() => statusOf(the)?.message).toBe('no healthy targets found')
    expect(targetsIn(the)).toEqual(['192.0.2.2'])
    await expect
      .poll(() => the.cluster.informers.get(DNSLoadBalancerEndpoint, 'web/b')?.status)
      .toMatchObject({ active: true, healthy: false })
  })

  it('publishes missing records again, but not those of a load balancer whose deletion the watch missed', async () => {
    const the = fixture()
    put(the)
    putEndpoint(the, 'a', '192.0.2.1')
    await start(the)
    the.health.set('192.0.2.1', 'healthy')
    await expect.poll(() => statusOf(the)?.active?.length).toBe(1)
    the.cluster.remove(DNSEndpoint, 'web/shop-dnslb')
    await expect.poll(() => targetsIn(the)).toEqual(['192.0.2.1'])

    // The server does not have the load balancer any more, and the cache does.
    let reads = 0
    const client = { ...the.cluster.client }
    the.cluster.client.find = async (kind, key, options) => {
      if (kind.kind !== 'DNSLoadBalancer') return client.find(kind, key, options)
      reads++
      return undefined
    }
    const before = writes(the).length
    the.cluster.remove(DNSEndpoint, 'web/shop-dnslb')
    await expect.poll(() => reads).toBe(1)
    // Another event of the same load balancer: still nothing is written.
    the.health.set('192.0.2.1', 'healthy')
    await expect.poll(() => reads).toBe(2)
    expect(writes(the).slice(before)).toEqual([])

    the.cluster.remove(DNSLoadBalancer, 'web/shop')
    await expect.poll(() => the.health.targets.size).toBe(0)
  })

  it('changes records and does not create them again when only the cache has them, and reports nothing then', async () => {
    const the = fixture()
    put(the)
    putEndpoint(the, 'a', '192.0.2.1')
    putEndpoint(the, 'b', '192.0.2.2')
    await start(the)
    the.health.set('192.0.2.1', 'healthy')
    await expect.poll(() => statusOf(the)?.active?.length).toBe(1)
    const uid = the.cluster.informers.get(DNSEndpoint, 'web/shop-dnslb')?.metadata.uid
    const status = statusOf(the)
    const applied: unknown[] = []
    const client = { ...the.cluster.client }
    the.cluster.client.apply = async (kind, intent, options) => {
      if (kind.kind !== 'DNSEndpoint') return client.apply(kind, intent, options)
      applied.push(intent.metadata.uid)
      return client.apply(
        kind,
        { ...intent, metadata: { ...intent.metadata, uid: 'of an object that is gone' } },
        options,
      )
    }
    the.health.set('192.0.2.2', 'healthy')
    await expect.poll(() => applied).toEqual([uid])
    the.cluster.client.apply = async (kind, intent, options) => client.apply(kind, intent, options)
    the.health.set('192.0.2.2', 'healthy')
    await expect.poll(() => targetsIn(the)).toEqual(['192.0.2.1', '192.0.2.2'])
    expect(status?.message).toBe(statusOf(the)?.message)
    const reported = the.cluster.requests.filter(({ kind, subresource }) => kind === 'DNSLoadBalancer' && subresource)
    expect(JSON.stringify(reported)).not.toContain('Conflict')
  })

  it('writes nothing in steady state, nor after a restart on what it left', async () => {
    const the = fixture()
    put(the)
    putEndpoint(the, 'a', '192.0.2.1')
    the.health.set('192.0.2.1', 'healthy')
    await start(the)
    await expect.poll(() => the.cluster.informers.get(DNSLoadBalancerEndpoint, 'web/a')?.status?.active).toBe(true)
    for (const { stop, outcome } of running.splice(0)) {
      stop.abort()
      await outcome
    }
    const again = { ...the, health: fakeMonitor() }
    the.cluster.requests.length = 0
    const second = await start(again)
    const reconciles = async () =>
      await second.metrics.registry.getSingleMetricAsString('controller_runtime_reconcile_total')
    await expect.poll(reconciles).toMatch(/controller="balance",result="success"\} [1-9]/)
    again.health.set('192.0.2.1', 'healthy')
    await expect.poll(reconciles).toMatch(/controller="balance",result="success"\} [2-9]/)
    expect(writes(again).filter(({ kind }) => !kind.startsWith('Event'))).toEqual([])
  })

  it('gives a shared name to the oldest load balancer, and to the other when that one goes', async () => {
    const the = fixture()
    const created = (seconds: number) => ({ creationTimestamp: `2029-01-01T00:00:0${seconds}Z` })
    the.cluster.put(DNSLoadBalancer, {
      metadata: { namespace: 'web', name: 'old', ...created(1) },
      spec: { DNSName: 'shop.example.com' },
    })
    the.cluster.put(DNSLoadBalancer, {
      metadata: { namespace: 'web', name: 'new', ...created(2) },
      spec: { DNSName: 'shop.example.com' },
    })
    putEndpoint(the, 'a', '192.0.2.1', 'old')
    putEndpoint(the, 'b', '192.0.2.2', 'new')
    the.health.set('192.0.2.1', 'healthy')
    the.health.set('192.0.2.2', 'healthy')
    await start(the)
    await expect.poll(() => targetsIn(the, 'web/old-dnslb')).toEqual(['192.0.2.1'])
    await expect.poll(() => statusOf(the, 'new')?.state).toBe('Error')
    expect(targetsIn(the, 'web/new-dnslb')).toBeUndefined()
    the.cluster.remove(DNSLoadBalancer, 'web/old')
    await expect.poll(() => targetsIn(the, 'web/new-dnslb')).toEqual(['192.0.2.2'])
    await expect.poll(() => the.health.targets.has('web/old')).toBe(false)
  })

  it('does not touch a DNSEndpoint that is not its own, and says so', async () => {
    const the = fixture()
    put(the)
    putEndpoint(the, 'a', '192.0.2.1')
    the.health.set('192.0.2.1', 'healthy')
    const spec = {
      endpoints: [{ dnsName: 'x.example.com', recordType: 'A' as const, targets: ['198.51.100.1'], recordTTL: 60 }],
    }
    the.cluster.put(DNSEndpoint, { metadata: { namespace: 'web', name: 'shop-dnslb' }, spec })
    await start(the)
    await expect.poll(() => statusOf(the)?.message).toContain('does not belong to the load balancer')
    expect(targetsIn(the)).toEqual(['198.51.100.1'])
  })

  it('reports a change that the API server refuses, and tries again', async () => {
    const the = fixture()
    put(the)
    putEndpoint(the, 'a', '192.0.2.1')
    the.health.set('192.0.2.1', 'healthy')
    let refusals = 2
    the.cluster.intercept = ({ verb, kind }) => {
      if (verb === 'apply' && kind.startsWith('DNSEndpoint') && refusals-- > 0) throw new Error('quota exceeded')
    }
    await start(the)
    await expect.poll(() => targetsIn(the)).toEqual(['192.0.2.1'])
    const messages = the.cluster.requests.flatMap(
      ({ body }) => (body as DNSLoadBalancer | undefined)?.status?.message ?? [],
    )
    expect(messages).toContain('replacing shop.example.com with  192.0.2.1: quota exceeded')
    await expect.poll(() => statusOf(the)?.conditions?.[0]).toMatchObject({ type: 'Ready', status: 'True' })
  })

  it('stops writing records and a status that another client undoes, says so, and continues when it is resumed', async () => {
    const the = fixture()
    const stopped: string[] = []
    const guard = new SecondWriterGuard({
      client: the.cluster.client,
      clock: the.clock,
      namespace: undefined,
      findPeers: async () => ({ peers: [] }),
      onStopped: ({ reason }) => void stopped.push(reason),
    })
    put(the)
    putEndpoint(the, 'a', '192.0.2.1')
    the.health.set('192.0.2.1', 'healthy')
    await start(the, guard)
    const applies = () =>
      the.cluster.requests.filter(({ verb, kind }) => verb === 'apply' && kind.startsWith('DNSEndpoint')).length
    const undo = () => {
      const object = the.cluster.informers.get(DNSEndpoint, 'web/shop-dnslb')!
      const [endpoint] = object.spec.endpoints
      const spec = { endpoints: [{ ...endpoint!, targets: ['198.51.100.1'] }] }
      the.cluster.put(DNSEndpoint, structuredClone({ ...object, spec }) as DNSEndpoint)
    }
    for (let written = 1; written <= UNDO_LIMIT + 1; written++) {
      await expect.poll(() => [applies(), targetsIn(the)]).toEqual([written, ['192.0.2.1']])
      undo()
    }
    const ready = () => statusOf(the)?.conditions?.find(({ type }) => type === 'Ready')
    await expect.poll(ready).toMatchObject({ status: 'False', reason: 'SecondWriter' })
    expect([applies(), targetsIn(the), stopped]).toEqual([UNDO_LIMIT + 1, ['198.51.100.1'], ['SecondWriter']])
    guard.resume()
    await expect.poll(() => targetsIn(the)).toEqual(['192.0.2.1'])
    await expect.poll(ready).toMatchObject({ status: 'True' })

    const state = () => statusOf(the)?.state
    const reset = () => {
      const object = the.cluster.informers.get(DNSLoadBalancer, 'web/shop')!
      the.cluster.put(DNSLoadBalancer, structuredClone({ ...object, status: { state: 'mine' } }) as DNSLoadBalancer)
    }
    for (let written = 1; written <= UNDO_LIMIT + 1; written++) {
      await expect.poll(state).toBe('unreachable')
      reset()
    }
    await expect.poll(() => stopped).toEqual(['SecondWriter', 'SecondWriter'])
    expect(state()).toBe('mine')
  })

  it('publishes a new name when the load balancer is renamed, in one write', async () => {
    const the = fixture()
    put(the)
    putEndpoint(the, 'a', '192.0.2.1')
    the.health.set('192.0.2.1', 'healthy')
    await start(the)
    await expect.poll(() => targetsIn(the)).toEqual(['192.0.2.1'])
    const { metadata } = the.cluster.informers.get(DNSLoadBalancer, 'web/shop')!
    the.cluster.put(DNSLoadBalancer, {
      metadata: { namespace: 'web', name: 'shop', uid: metadata.uid ?? '' },
      spec: { DNSName: 'store.example.com' },
    })
    const names = () =>
      the.cluster.informers.get(DNSEndpoint, 'web/shop-dnslb')?.spec.endpoints.map(({ dnsName }) => dnsName)
    await expect.poll(names).toEqual(['store.example.com'])
  })
})
