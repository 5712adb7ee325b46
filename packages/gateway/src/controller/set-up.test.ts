/** The gateway of a manager on an in-memory cluster. Contour had each of these nine problems, which the names describe. */
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { EndpointSlice, Ingress, Lease, type LeaseOptions, manager, Secret, Service } from '@seamark/kube'
import { HTTPProxy } from '@seamark/kube/contour'
import { fakeClock, memoryCluster, type FakeClock, type MemoryCluster } from '@seamark/kube/testing'
import { afterEach, describe, expect, it } from 'vitest'
import type { ProxyAddresses } from '../ir/listen-addresses.ts'
import { BUILD_DEFAULTS } from '../draft/input.ts'
import { setUpGateway, type GatewayOptions } from './set-up.ts'

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

interface Started {
  readonly cluster: MemoryCluster
  readonly clock: FakeClock
  readonly builds: () => number
  readonly isReady: () => boolean
  /** Lets everything happen that is due, and waits for the ports. */
  readonly ready: () => Promise<number>
  /** Status of a request for a host. */
  readonly ask: (host: string) => Promise<number>
  readonly statusWrites: () => string[]
}

async function start(
  cluster: MemoryCluster,
  { leader, ...options }: Partial<GatewayOptions> & { readonly leader?: LeaseOptions } = {},
): Promise<Started> {
  const clock = fakeClock()
  const mgr = await manager({
    cluster,
    clock,
    fieldManager: 'seamark-gateway',
    log: cluster.log,
    grace: '1s',
    ...(leader !== undefined && { leader }),
  })
  let builds = 0
  let addresses: ProxyAddresses | undefined
  let announce: () => void = () => undefined
  const open = new Promise<void>((resolve) => (announce = resolve))
  setUpGateway(mgr, {
    settings: BUILD_DEFAULTS,
    http: { host: '127.0.0.1', port: 0 },
    statusAddresses: [],
    allowLoopback: true,
    onBuild: () => builds++,
    onReady: (given) => {
      addresses = given
      announce()
    },
    ...options,
  })
  const stopping = new AbortController()
  const running = mgr.run(stopping.signal)
  cleanups.push(async () => {
    stopping.abort()
    // The grace period of a stop is on the clock too.
    const done = new AbortController()
    const ended = running.finally(() => done.abort())
    while (!done.signal.aborted) {
      await clock.advance(100)
      await new Promise((resolve) => setImmediate(resolve))
    }
    await ended
  })
  return {
    cluster,
    clock,
    builds: () => builds,
    isReady: () => addresses !== undefined,
    async ready() {
      await clock.advance(1_000)
      await open
      return addresses?.http?.port ?? 0
    },
    async ask(host) {
      return await new Promise((resolve, reject) => {
        const call = request(
          { host: '127.0.0.1', port: addresses?.http?.port, headers: { host }, agent: false },
          (response) => {
            response.resume()
            resolve(response.statusCode ?? 0)
          },
        )
        call.on('error', reject)
        call.end()
      })
    },
    statusWrites: () =>
      cluster.requests
        .filter(({ verb, subresource }) => verb === 'apply' && subresource === 'status')
        .map(({ kind, key }) => `${kind.split('.')[0]} ${key}`),
  }
}

async function backend(): Promise<number> {
  const server = createServer((_request, response) => response.end('ok'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanups.push(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return (server.address() as AddressInfo).port
}

const direct = (name: string, fqdn: string, statusCode = 200): HTTPProxy => ({
  metadata: { namespace: 'a', name, creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { virtualhost: { fqdn }, routes: [{ directResponsePolicy: { statusCode } }] },
})
const toService = (fqdn: string, service: string): HTTPProxy => ({
  metadata: { namespace: 'a', name: 'web', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { virtualhost: { fqdn }, routes: [{ services: [{ name: service, port: 80 }] }] },
})

function putService(cluster: MemoryCluster, name: string, port: number): void {
  cluster.put(Service, {
    metadata: { namespace: 'a', name },
    spec: { ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
  })
  putSlice(cluster, name, port)
}

function putSlice(cluster: MemoryCluster, service: string, port: number): void {
  cluster.put(EndpointSlice, {
    metadata: { namespace: 'a', name: `${service}-1`, labels: { 'kubernetes.io/service-name': service } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['127.0.0.1'], conditions: { ready: true } }],
    ports: [{ name: 'http', port, protocol: 'TCP' }],
  })
}

const LEASE = { lease: 'gateway', namespace: 'default' }

function putLease(cluster: MemoryCluster, clock: FakeClock, holderIdentity: string): void {
  const renewTime = new Date(clock.now()).toISOString().replace('Z', '000Z')
  cluster.put(Lease, {
    metadata: { namespace: 'default', name: 'gateway' },
    spec: { holderIdentity, leaseDurationSeconds: 15, acquireTime: renewTime, renewTime, leaseTransitions: 1 },
  })
}

it('serves what changed settings allow, without a change of an object and on the same ports', async () => {
  const cluster = memoryCluster()
  cluster.put(HTTPProxy, direct('web', 'web.test'))
  let replace: (settings: GatewayOptions['settings']) => void = () => undefined
  const gateway = await start(cluster, {
    settings: { ...BUILD_DEFAULTS, grants: [{ namespace: 'a', domains: ['other.test'] }] },
    onSettings(taken) {
      replace = taken
      return () => undefined
    },
  })
  const port = await gateway.ready()
  expect(await gateway.ask('web.test')).toBe(404)
  replace({ ...BUILD_DEFAULTS, grants: [{ namespace: 'a', domains: ['web.test'] }] })
  await gateway.clock.advance(1_000)
  await expect.poll(async () => gateway.ask('web.test')).toBe(200)
  expect(await gateway.ready()).toBe(port)
})

describe('the gateway of a manager', () => {
  it('problem 1, two caches: an object that was just created gets its status without being read again', async () => {
    const gateway = await start(memoryCluster())
    await gateway.ready()
    gateway.cluster.put(HTTPProxy, direct('new', 'new.test'))
    await gateway.clock.advance(1_000)
    expect(gateway.statusWrites()).toEqual(['HTTPProxy a/new'])
    expect(gateway.cluster.requests.filter(({ verb }) => verb === 'get')).toEqual([])
  })

  it('problem 2, serving too early: ports open when EndpointSlices are known too, and the first request is answered', async () => {
    const cluster = memoryCluster()
    putService(cluster, 'web', await backend())
    cluster.put(HTTPProxy, toService('web.test', 'web'))
    cluster.setState(EndpointSlice, 'starting')
    const gateway = await start(cluster)
    await gateway.clock.advance(60_000)
    expect([gateway.builds(), gateway.isReady()]).toEqual([0, false])
    cluster.setState(EndpointSlice, 'live')
    await gateway.ready()
    await expect.poll(async () => gateway.ask('web.test')).toBe(200)
  })

  it('problem 3, a gate that never opens: an empty cluster is served, with 404', async () => {
    const gateway = await start(memoryCluster())
    await gateway.ready()
    await expect.poll(async () => gateway.ask('any.test')).toBe(404)
  })

  it('problem 4, a flood of statuses: what is right is not written again, and a change of a status causes no build', async () => {
    const cluster = memoryCluster()
    cluster.put(HTTPProxy, direct('web', 'web.test'))
    cluster.put(Ingress, { metadata: { namespace: 'a', name: 'i' }, spec: { rules: [] } })
    const gateway = await start(cluster)
    await gateway.ready()
    const [writes, builds] = [gateway.statusWrites().length, gateway.builds()]
    const before = cluster.informers.get(HTTPProxy, 'a/web') as HTTPProxy
    cluster.put(HTTPProxy, { ...before, status: { ...before.status, description: 'touched' } })
    await gateway.clock.advance(10_000)
    expect(gateway.builds()).toBe(builds)
    cluster.put(HTTPProxy, direct('other', 'other.test'))
    await gateway.clock.advance(10_000)
    expect(gateway.builds()).toBe(builds + 1)
    expect(gateway.statusWrites().slice(writes)).toEqual(['HTTPProxy a/other'])
  })

  it('problem 4, a replica that does not lead: it builds and serves however many changes there are, and writes nothing', async () => {
    const cluster = memoryCluster()
    const gateway = await start(cluster, { leader: { ...LEASE, identity: 'me' } })
    putLease(cluster, gateway.clock, 'other')
    await gateway.ready()
    for (let index = 0; index < 300; index++) cluster.put(HTTPProxy, direct(`p${index}`, `h${index}.test`))
    await gateway.clock.advance(1_000)
    await expect.poll(async () => gateway.ask('h299.test')).toBe(200)
    expect(gateway.statusWrites()).toEqual([])
  })

  it('problem 5, leadership: who begins to lead writes every status; who loses the lease goes on serving', async () => {
    const cluster = memoryCluster()
    const gateway = await start(cluster, { leader: { ...LEASE, identity: 'me' } })
    putLease(cluster, gateway.clock, 'other')
    cluster.put(HTTPProxy, direct('web', 'web.test'))
    await gateway.ready()
    expect(gateway.statusWrites()).toEqual([])
    // The other holder is gone: its lease expires.
    await gateway.clock.advance(60_000)
    expect(gateway.statusWrites()).toEqual(['HTTPProxy a/web'])
    // Another process takes the lease.
    putLease(cluster, gateway.clock, 'other')
    const keep = () => putLease(cluster, gateway.clock, 'other')
    for (let seconds = 0; seconds < 30; seconds += 5) {
      await gateway.clock.advance(5_000)
      keep()
    }
    const writes = gateway.statusWrites().length
    cluster.put(HTTPProxy, direct('later', 'later.test'))
    await gateway.clock.advance(1_000)
    await expect.poll(async () => gateway.ask('later.test')).toBe(200)
    expect(gateway.statusWrites()).toHaveLength(writes)
  })

  it('problem 6, order of changes: a route moves to another Service without a failed request', async () => {
    const cluster = memoryCluster()
    putService(cluster, 'blue', await backend())
    cluster.put(HTTPProxy, toService('web.test', 'blue'))
    const gateway = await start(cluster)
    await gateway.ready()
    const statuses: number[] = []
    const moved = new AbortController()
    const load = (async () => {
      while (!moved.signal.aborted) statuses.push(await gateway.ask('web.test'))
    })()
    putService(cluster, 'green', await backend())
    cluster.put(HTTPProxy, toService('web.test', 'green'))
    await gateway.clock.advance(1_000)
    cluster.remove(Service, 'a/blue')
    cluster.remove(EndpointSlice, 'a/blue-1')
    await gateway.clock.advance(1_000)
    statuses.push(await gateway.ask('web.test'))
    moved.abort()
    await load
    expect(new Set(statuses)).toEqual(new Set([200]))
  })

  it('problem 7, endpoints: a change of endpoints is followed at once and causes no build', async () => {
    const cluster = memoryCluster()
    putService(cluster, 'web', 1)
    cluster.put(HTTPProxy, toService('web.test', 'web'))
    const gateway = await start(cluster)
    await gateway.ready()
    const builds = gateway.builds()
    await expect.poll(async () => gateway.ask('web.test')).toBe(503)
    putSlice(cluster, 'web', await backend())
    await expect.poll(async () => gateway.ask('web.test')).toBe(200)
    await gateway.clock.advance(10_000)
    expect(gateway.builds()).toBe(builds)
  })

  it('problem 8, Secrets: unrelated ones cause no build, and tokens and releases are not read at all', async () => {
    const cluster = memoryCluster()
    cluster.put(HTTPProxy, direct('web', 'web.test'))
    const gateway = await start(cluster)
    await gateway.ready()
    const builds = gateway.builds()
    cluster.put(Secret, { metadata: { namespace: 'a', name: 'unrelated' }, type: 'Opaque', data: { 'ca.crt': 'eA==' } })
    cluster.put(Service, { metadata: { namespace: 'a', name: 'unrelated' }, spec: { ports: [] } })
    await gateway.clock.advance(10_000)
    expect(gateway.builds()).toBe(builds)
    expect(cluster.informers.configured(Secret)?.fieldSelector).toBe(
      'type!=helm.sh/release.v1,type!=kubernetes.io/service-account-token',
    )
  })

  it('writes nothing while it is paused, and everything when the pause ends', async () => {
    const listeners = new Set<(isPaused: boolean) => void>()
    const pause = {
      isPaused: true,
      subscribe: (listener: (isPaused: boolean) => void) => {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
    }
    const cluster = memoryCluster()
    cluster.put(HTTPProxy, direct('web', 'web.test'))
    const gateway = await start(cluster, { pause })
    await gateway.ready()
    await gateway.clock.advance(60_000)
    expect(gateway.statusWrites()).toEqual([])
    await expect.poll(async () => gateway.ask('web.test')).toBe(200)
    pause.isPaused = false
    for (const listener of listeners) listener(false)
    await gateway.clock.advance(1_000)
    expect(gateway.statusWrites()).toEqual(['HTTPProxy a/web'])
  })
})
