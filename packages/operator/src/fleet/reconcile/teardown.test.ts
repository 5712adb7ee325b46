import { type Context, findCondition } from '@seamark/kube'
import type { Kind, Obj } from '@seamark/kube/object'
import { keyOf } from '@seamark/kube/object'
import { fakeClock, memoryCluster } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import { Cluster } from '../../api/cluster.ts'
import { DNSLoadBalancerEndpoint } from '../../api/dns-load-balancer-endpoint.ts'
import { DNSLoadBalancer } from '../../api/dns-load-balancer.ts'
import { GlobalIngress } from '../../api/global-ingress.ts'
import { HostClaim } from '../../api/host-claim.ts'
import { LeafIngress } from '../../api/leaf-ingress.ts'
import { Claims } from '../claims.ts'
import { claimName } from '../decide/host-claim.ts'
import { PlannedLeaves } from '../members/planned-leaves.ts'
import { SyncResults } from '../members/sync-results.ts'
import { DNS_FINALIZER, REMOTE_FINALIZER } from '../names.ts'
import { ROOT_UID_LABEL } from '../../hosts/root.ts'
import { createRootIndexes } from '../roots/root-indexes.ts'
import { Teardown, type TeardownDeps } from './teardown.ts'

const UID = 'uid-shop'
const HOST = 'shop.example.com'
const ADDRESS = '192.0.2.1'
const TTL_SECONDS = 60
const PROPAGATION_SECONDS = 120
const HOUR_MS = 3_600_000
const ORPHAN_AFTER_MS = 24 * HOUR_MS

/** What the DNS server answers; undefined: nothing. */
type Answer = readonly string[] | undefined

const about = { metadata: { namespace: 'shop', name: 'shop', uid: UID } }
const owner = (uid: string) => ({ kind: 'Ingress', name: uid, uid })

function globalOf(uid: string, ttlSeconds: number): GlobalIngress {
  return {
    metadata: { namespace: 'shop', name: uid, labels: { [ROOT_UID_LABEL]: uid }, finalizers: [DNS_FINALIZER] },
    spec: {
      rootRef: { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', name: 'shop', uid },
      hosts: [{ host: HOST }],
      published: true,
      ttlSeconds,
      propagationTimeoutSeconds: PROPAGATION_SECONDS,
    },
  } as unknown as GlobalIngress
}

/** A published root with a leaf on eu1, and what its deletion does in each pass. */
function fixture({
  owners = [UID],
  hasCluster = true,
  registry,
}: { owners?: string[]; hasCluster?: boolean; registry?: Partial<TeardownDeps['registry']> } = {}) {
  const clock = fakeClock()
  const hub = memoryCluster('hub', 'test', clock)
  const labels = { [ROOT_UID_LABEL]: UID }
  hub.put(GlobalIngress, globalOf(UID, TTL_SECONDS))
  hub.put(LeafIngress, {
    metadata: { namespace: 'shop', name: 'leaf', labels, finalizers: [REMOTE_FINALIZER] },
    spec: { cluster: 'eu1', manifests: [{ kind: 'Ingress', metadata: { name: 'shop' } }] },
    status: { phase: 'Active', addresses: [{ type: 'IPAddress', value: ADDRESS }] },
  } as unknown as LeafIngress)
  hub.put(DNSLoadBalancer, { metadata: { namespace: 'shop', name: 'lb', labels }, spec: { DNSName: HOST } })
  hub.put(DNSLoadBalancerEndpoint, {
    metadata: { namespace: 'shop', name: 'lb-eu1', labels },
    spec: { loadbalancer: 'lb', ipaddress: ADDRESS },
  })
  hub.put(HostClaim, {
    metadata: { name: claimName(HOST) },
    spec: { host: HOST, namespace: 'shop', owners: owners.map(owner) },
  })
  if (hasCluster) hub.put(Cluster, { metadata: { name: 'eu1' }, spec: { weight: 100, namespacePolicy: 'Require' } })

  const manager = hub.informers as unknown as ConstructorParameters<typeof Claims>[0]
  const results = new SyncResults()
  const dns = { answer: [] as Answer, asked: [] as string[] }
  const teardown = new Teardown({
    indexes: createRootIndexes(manager, true),
    results,
    planned: new PlannedLeaves(),
    claims: new Claims(manager, () => true),
    registry: { isRead: true, clusters: new Map([['eu1', {}]]), ...registry } as unknown as TeardownDeps['registry'],
    views: { readable: () => undefined } as unknown as TeardownDeps['views'],
    dns: {
      ask: async (hosts: readonly string[]) => {
        dns.asked.push(...hosts)
        const values = dns.answer === undefined ? undefined : new Set(dns.answer)
        return hosts.map((host) => ({ host, servers: [{ server: 'ns1', values }] }))
      },
    } as unknown as TeardownDeps['dns'],
    orphanAfterMs: ORPHAN_AFTER_MS,
  })
  const kinds: Readonly<Record<string, Kind>> = { GlobalIngress, LeafIngress }
  const events: string[] = []
  const ctx = {
    ...hub.informers,
    client: hub.client,
    clock,
    signal: AbortSignal.any([]),
    delete: async (kind: Kind, object: Obj) => {
      const live = await hub.client.find(kind, keyOf(object))
      if (live !== undefined) await hub.client.delete(kind, keyOf(object))
    },
    status: async ({ kind = '', ...object }: Obj & { kind?: string }, status: object) =>
      hub.put(kinds[kind] as Kind, { ...hub.informers.get(kinds[kind] as Kind, keyOf(object)), status } as never),
    event: (_about: unknown, _type: string, reason: string) => events.push(reason),
  } as unknown as Context
  return {
    hub,
    clock,
    dns,
    results,
    events,
    pass: async (how: { isForced?: boolean; isImmediate?: boolean } = {}) =>
      teardown.global(UID, about, { isForced: false, isImmediate: false, hosts: [HOST], ...how }, ctx),
    global: () => hub.informers.get(GlobalIngress, `shop/${UID}`),
    leaf: () => hub.informers.get(LeafIngress, 'shop/leaf'),
    isClaimed: () => hub.informers.list(HostClaim).some(({ spec }) => spec.owners.some(({ uid }) => uid === UID)),
    /** What is left of the root. */
    left: () =>
      [GlobalIngress, LeafIngress, DNSLoadBalancer, DNSLoadBalancerEndpoint, HostClaim].flatMap((kind) =>
        hub.informers.list(kind as Kind).map(() => kind.kind),
      ),
  }
}

describe('the deletion of a root', () => {
  it('removes DNS objects, waits until no server answers the leaf and then twice the TTL, and then removes leaf, claim and GlobalIngress', async () => {
    const root = fixture()
    root.dns.answer = [ADDRESS]
    await root.pass()
    expect(root.left()).toEqual(['GlobalIngress', 'LeafIngress', 'HostClaim'])
    expect(root.global()?.status).toMatchObject({
      conditions: [
        { type: 'DNSPublished', reason: 'WaitingForDns' },
        { type: 'Ready', status: 'False', reason: 'RootDeleted' },
      ],
    })
    expect(root.global()?.status?.withdrawnAt).toBeUndefined()
    // A server that answers the leaf holds the deletion up for as long as it does.
    await root.clock.advance(HOUR_MS)
    await root.pass()
    expect(root.global()?.status?.withdrawnAt).toBeUndefined()
    expect(root.leaf()?.metadata.deletionTimestamp).toBeUndefined()

    root.dns.answer = ['192.0.2.9']
    await root.pass()
    expect(root.global()?.status?.withdrawnAt).toBeDefined()
    const leavesUntil = new Date(root.clock.now() + 2 * TTL_SECONDS * 1000).toISOString().replace('.000Z', 'Z')
    expect(root.global()?.status?.leavesUntil).toBe(leavesUntil)
    // What the conditions said while it served is not true any more.
    expect(findCondition(root.global()?.status?.conditions, 'Ready')).toMatchObject({
      status: 'False',
      reason: 'RootDeleted',
      message: expect.stringContaining(`its leaves stay until ${leavesUntil}`),
    })
    await root.clock.advance(2 * TTL_SECONDS * 1000 - 1)
    await root.pass()
    expect(root.leaf()?.metadata.deletionTimestamp).toBeUndefined()
    await root.clock.advance(1)
    await root.pass()
    expect(root.leaf()?.metadata.deletionTimestamp).toBeDefined()
    expect(root.leaf()?.status).toMatchObject({ phase: 'Drained', reason: 'RootDeleted' })
    await root.pass()
    expect(root.left()).toEqual(['GlobalIngress', 'LeafIngress', 'HostClaim'])

    root.results.set('shop/leaf', { reason: 'DrainCompleted', message: '', isGone: true })
    await root.pass()
    expect(root.left()).toEqual([])
    expect(root.events).toEqual(['WaitingForDns', 'RootDeleted'])
  })

  it('waits for a DNS object that is not gone yet', async () => {
    const root = fixture()
    const labels = { [ROOT_UID_LABEL]: UID }
    const metadata = { namespace: 'shop', name: 'lb-eu1', labels, finalizers: ['example.com/other'] }
    root.hub.put(DNSLoadBalancerEndpoint, { metadata, spec: { loadbalancer: 'lb', ipaddress: ADDRESS } })
    await root.pass()
    expect(root.dns.asked).toEqual([])
    expect(root.global()?.status?.withdrawnAt).toBeUndefined()
    root.hub.remove(DNSLoadBalancerEndpoint, 'shop/lb-eu1')
    await root.pass()
    expect(root.global()?.status?.withdrawnAt).toBeDefined()
  })

  it.each([
    { before: 'as published', conditions: [] },
    {
      before: 'as not published for a long time',
      conditions: [
        {
          type: 'DNSPublished',
          status: 'False',
          reason: 'NotYetPropagated',
          message: '',
          lastTransitionTime: '2029-12-31T00:00:00Z',
        },
      ],
    },
  ] as const)(
    'waits for silent DNS servers as long as the policy says, with a host that was reported $before',
    async ({ conditions }) => {
      const root = fixture()
      root.hub.put(GlobalIngress, { ...globalOf(UID, TTL_SECONDS), status: { conditions: [...conditions] } })
      root.dns.answer = undefined
      await root.pass()
      await root.clock.advance(PROPAGATION_SECONDS * 1000 - 1)
      await root.pass()
      expect(root.global()?.status?.withdrawnAt).toBeUndefined()
      await root.clock.advance(1)
      await root.pass()
      expect(root.global()?.status?.withdrawnAt).toBeDefined()
      expect(root.leaf()?.metadata.deletionTimestamp).toBeUndefined()
    },
  )

  it('waits as long for a server that answered the leaf and is silent since then', async () => {
    const root = fixture()
    root.dns.answer = [ADDRESS]
    await root.pass()
    await root.clock.advance(HOUR_MS)
    root.dns.answer = undefined
    await root.pass()
    await root.clock.advance(PROPAGATION_SECONDS * 1000 - 1)
    await root.pass()
    expect(root.global()?.status?.withdrawnAt).toBeUndefined()
    await root.clock.advance(1)
    root.dns.answer = [ADDRESS]
    await root.pass()
    expect(root.global()?.status?.withdrawnAt).toBeUndefined()
    expect(root.global()?.status?.conditions?.[0]).toMatchObject({ status: 'False', reason: 'WaitingForDns' })
  })

  it('does not ask about a host that another root has, waits for its TTL, and leaves it the claim', async () => {
    const root = fixture({ owners: ['uid-other', UID] })
    root.hub.put(GlobalIngress, globalOf('uid-other', 10 * TTL_SECONDS))
    root.dns.answer = [ADDRESS]
    await root.pass()
    expect(root.dns.asked).toEqual([])
    await root.clock.advance(2 * 10 * TTL_SECONDS * 1000 - 1)
    await root.pass()
    expect(root.leaf()?.metadata.deletionTimestamp).toBeUndefined()
    await root.clock.advance(1)
    await root.pass()
    root.results.set('shop/leaf', { reason: 'DrainCompleted', message: '', isGone: true })
    await root.pass()
    expect([root.leaf(), root.global(), root.isClaimed()]).toEqual([undefined, undefined, false])
    expect(root.hub.informers.list(HostClaim)).toHaveLength(1)
  })

  it('waits for no server and no cache if it is to be immediate', async () => {
    const root = fixture()
    root.dns.answer = [ADDRESS]
    await root.pass({ isImmediate: true })
    expect(root.dns.asked).toEqual([])
    expect(root.leaf()?.metadata.deletionTimestamp).toBeDefined()
  })
})

describe('a leaf that its member does not confirm to be gone', () => {
  const orphans = ({ hub }: ReturnType<typeof fixture>) => hub.informers.get(Cluster, 'eu1')?.status?.orphans

  it('stays for the configured time; then it is reported, recorded on its Cluster, and given up', async () => {
    const root = fixture()
    await root.pass({ isImmediate: true })
    await root.clock.advance(ORPHAN_AFTER_MS - 1)
    await root.pass({ isImmediate: true })
    expect(root.left()).toEqual(['GlobalIngress', 'LeafIngress', 'HostClaim'])
    await root.clock.advance(1)
    await root.pass({ isImmediate: true })
    expect(orphans(root)).toMatchObject([{ kind: 'Ingress', namespace: 'shop', name: 'shop' }])
    expect(root.events).toContain('LeafOrphaned')
    expect(root.left()).toEqual([])
  })

  it('is given up at once by force, or if its cluster is registered nowhere; not before the registry was read', async () => {
    const forced = fixture()
    await forced.pass({ isImmediate: true })
    await forced.pass({ isImmediate: true, isForced: true })
    expect(forced.left()).toEqual([])
    expect(orphans(forced)).toHaveLength(1)

    for (const [registry, hasCluster, left] of [
      [{ clusters: new Map() }, false, 0],
      [{ clusters: new Map() }, true, 3],
      [{ clusters: new Map(), isRead: false }, false, 3],
    ] as const) {
      const root = fixture({ registry, hasCluster })
      await root.pass({ isImmediate: true })
      await root.pass({ isImmediate: true })
      expect(root.left()).toHaveLength(left)
    }
  })
})
