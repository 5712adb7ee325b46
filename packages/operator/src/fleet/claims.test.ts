import { Conflict, type Context, Ingress } from '@seamark/kube'
import { memoryCluster, type MemoryCluster } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import { DomainVerification } from '../api/domain-verification.ts'
import { HostClaim } from '../api/host-claim.ts'
import { Claims } from './claims.ts'
import { claimName } from './decide/host-claim.ts'
import { ingressRoot } from './roots/ingress.ts'

const HOST = 'shop.example.com'
const OPTIONS = { managedDomain: '', needsProof: false }

function rootOf(namespace: string): Ingress {
  return {
    metadata: { namespace, name: 'shop', uid: `uid-${namespace}`, creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { rules: [{ host: HOST }] },
  }
}

/** A hub with a claim of these roots in namespace `a`, and a manager whose cache has it or has lost it. */
function hubWith(owners: readonly string[], isCached: boolean): { hub: MemoryCluster; claims: Claims; ctx: Context } {
  const hub = memoryCluster()
  if (owners.length > 0)
    hub.put(HostClaim, {
      metadata: { name: claimName(HOST) },
      spec: { host: HOST, namespace: 'a', owners: owners.map((uid) => ({ kind: 'Ingress', name: 'shop', uid })) },
    })
  const cache = isCached ? hub.informers : memoryCluster().informers
  const manager = cache as unknown as ConstructorParameters<typeof Claims>[0]
  const claims = new Claims(manager, () => true)
  const ctx = {
    ...cache,
    client: hub.client,
    delete: deleteIn(hub),
  }
  return { hub, claims, ctx: ctx as unknown as Context }
}

/** Deletes what the server has, if `when` allows it. */
function deleteIn({ client }: MemoryCluster) {
  return async (kind: typeof HostClaim, { metadata }: HostClaim, { when }: { when: (live: HostClaim) => boolean }) => {
    const live = await client.find(kind, metadata.name ?? '')
    if (live !== undefined && when(live)) await client.delete(kind, metadata.name ?? '')
  }
}

const ownersIn = (hub: MemoryCluster): string[] =>
  hub.informers.list(HostClaim).flatMap(({ spec }) => spec.owners.map(({ uid }) => uid))

describe.each([
  { cache: 'in the cache', isCached: true },
  { cache: 'missing from the cache', isCached: false },
])('a claim that is $cache', ({ isCached }) => {
  it('of the root itself leaves it its host, and the other owners are known', async () => {
    const { claims, ctx } = hubWith(['uid-first', 'uid-a'], isCached)
    const { owned, refused, owners } = await claims.take(ingressRoot, rootOf('a'), OPTIONS, ctx)
    expect([owned, refused]).toEqual([[HOST], []])
    expect(owners.get(HOST)).toEqual(['uid-first', 'uid-a'])
  })

  it('tells the owners of its host', async () => {
    const { claims, ctx } = hubWith(['uid-first', 'uid-a'], isCached)
    expect([...(await claims.confirmOwners([HOST, 'free.example.com'], ctx))]).toEqual([[HOST, ['uid-first', 'uid-a']]])
  })

  it('of another namespace refuses the host', async () => {
    const { claims, ctx, hub } = hubWith(['uid-a'], isCached)
    const { owned, refused } = await claims.take(ingressRoot, rootOf('b'), OPTIONS, ctx)
    expect([owned, refused.map(({ reason }) => reason)]).toEqual([[], ['HostConflict']])
    expect(ownersIn(hub)).toEqual(['uid-a'])
  })

  it('is released with its root, and stays with the others that share it', async () => {
    const alone = hubWith(['uid-a'], isCached)
    await alone.claims.releaseAll({ namespace: 'a', uid: 'uid-a' }, [HOST], alone.ctx)
    expect(ownersIn(alone.hub)).toEqual([])
    const shared = hubWith(['uid-a', 'uid-b'], isCached)
    await shared.claims.releaseAll({ namespace: 'a', uid: 'uid-a' }, [HOST], shared.ctx)
    expect(ownersIn(shared.hub)).toEqual(['uid-b'])
    const foreign = hubWith(['uid-b'], isCached)
    await foreign.claims.releaseAll({ namespace: 'a', uid: 'uid-a' }, [HOST], foreign.ctx)
    expect(ownersIn(foreign.hub)).toEqual(['uid-b'])
  })
})

it('a claim of a namespace that may not use the host any more is given up, and the others keep theirs', async () => {
  const { hub, ctx } = hubWith(['uid-a'], true)
  const other = 'blog.example.com'
  const owners = [{ kind: 'Ingress', name: 'shop', uid: 'uid-a' }]
  hub.put(HostClaim, { metadata: { name: claimName(other) }, spec: { host: other, namespace: 'a', owners } })
  const claims = new Claims(
    hub.informers as never,
    () => true,
    (_, name) => (name === HOST ? 'no grant' : undefined),
  )
  const root = { ...rootOf('a'), spec: { rules: [{ host: HOST }, { host: other }] } }
  const claimed = await claims.take(ingressRoot, root, OPTIONS, ctx)
  expect([claimed.owned, claimed.isGivenUp]).toEqual([[other], false])
  expect(claimed.refused).toEqual([{ host: HOST, reason: 'NameNotGranted', message: 'no grant' }])
  expect(hub.informers.list(HostClaim).map(({ spec }) => spec.host)).toEqual([other])
  expect((await claims.take(ingressRoot, rootOf('a'), OPTIONS, ctx)).isGivenUp).toBe(true)
})

it('a claim that does not exist is created', async () => {
  const { claims, ctx, hub } = hubWith([], true)
  const { owned, owners } = await claims.take(ingressRoot, rootOf('a'), OPTIONS, ctx)
  expect([owned, owners.get(HOST), ownersIn(hub)]).toEqual([[HOST], ['uid-a'], ['uid-a']])
})

describe('a claim that changed since it was cached', () => {
  /** The cache has `cached`, the hub `owners`. */
  function staleHub(cached: readonly string[], owners: readonly string[]) {
    const stale = hubWith(cached, true)
    const { hub, ctx } = hubWith(owners, false)
    return {
      hub,
      claims: stale.claims,
      ctx: { ...stale.ctx, client: hub.client, delete: ctx.delete.bind(ctx) } as Context,
    }
  }

  it('is released by its root, and stays with a root that joined it', async () => {
    const { hub, claims, ctx } = staleHub(['uid-a'], ['uid-a', 'uid-b'])
    await claims.releaseAll({ namespace: 'a', uid: 'uid-a' }, [HOST], ctx)
    expect(ownersIn(hub)).toEqual(['uid-b'])
  })

  it('is released by another reconcile if it cannot be now: the root is not deleted before', async () => {
    const { hub, claims, ctx } = staleHub(['uid-a', 'uid-b'], ['uid-a', 'uid-b', 'uid-c'])
    const [live] = hub.informers.list(HostClaim)
    await hub.client.update(HostClaim, live as HostClaim)
    await expect(claims.releaseAll({ namespace: 'a', uid: 'uid-a' }, [HOST], ctx)).rejects.toThrow(Conflict)
    expect(ownersIn(hub)).toEqual(['uid-a', 'uid-b', 'uid-c'])
  })
})

it('a wildcard of another namespace that covers the host refuses it, and so does the host to the wildcard', async () => {
  const take = async (claimed: string, host: string) => {
    const { claims, ctx, hub } = hubWith([], true)
    const owners = [{ kind: 'Ingress', name: 'other', uid: 'uid-other' }]
    hub.put(HostClaim, { metadata: { name: claimName(claimed) }, spec: { host: claimed, namespace: 'b', owners } })
    const root = { ...rootOf('a'), spec: { rules: [{ host }] } }
    return (await claims.take(ingressRoot, root, OPTIONS, ctx)).refused.map(({ reason }) => reason)
  }
  expect(await take('*.example.com', HOST)).toEqual(['HostConflict'])
  expect(await take(HOST, '*.example.com')).toEqual(['HostConflict'])
  expect(await take('*.example.net', HOST)).toEqual([])
})

it('an older root that is being deleted, or is no root, does not keep a host that it has not claimed', async () => {
  const take = async (metadata: object, isRoot = true) => {
    const { ctx, hub } = hubWith([], true)
    const old = { ...rootOf('b').metadata, creationTimestamp: '2025-01-01T00:00:00Z', ...metadata }
    hub.put(Ingress, { ...rootOf('b'), metadata: old })
    const claims = new Claims(hub.informers as never, () => isRoot)
    return (await claims.take(ingressRoot, rootOf('a'), OPTIONS, ctx)).owned
  }
  expect(await take({})).toEqual([])
  expect(await take({ deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['x'] })).toEqual([HOST])
  expect(await take({}, false)).toEqual([HOST])
})

it('a proof that only the server has keeps a host for its owner, and gives none to another root', async () => {
  const take = async (owners: readonly string[]) => {
    const { claims, ctx, hub } = hubWith(owners, true)
    hub.put(DomainVerification, {
      metadata: { namespace: 'a', name: 'example' },
      spec: { domain: 'example.com' },
      status: { token: 't', verified: true },
    })
    const short = { ...ctx, list: () => [] } as unknown as Context
    return (await claims.take(ingressRoot, rootOf('a'), { managedDomain: '', needsProof: true }, short)).owned
  }
  expect(await take(['uid-a'])).toEqual([HOST])
  expect(await take([])).toEqual([])
})
