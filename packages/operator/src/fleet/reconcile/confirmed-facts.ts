/**
 * Facts that contradict the placement, confirmed by live reads: a cache may come from a list that was short, and a leaf
 * must not be drained or withdrawn because of it. What cannot be read live stays as it was known.
 *
 * Only what is missing from a cache is read, so that steady state reads nothing.
 */
import { type Context, messageOf, Service } from '@seamark/kube'
import { type Immutable, keyOf, type Key, type Kind, type Obj, type Stored } from '@seamark/kube/object'
import { Cluster } from '../../api/cluster.ts'
import { GlobalIngressPolicy } from '../../api/global-ingress-policy.ts'
import { GlobalIngress } from '../../api/global-ingress.ts'
import { LeafIngress } from '../../api/leaf-ingress.ts'
import { usableManifests } from '../decide/leaf-check.ts'
import type { BackendFact } from '../decide/placement.ts'
import type { MemberViews } from '../members/member-view.ts'
import { globalIngressName, leafName, rootKey, SUMMARY_ANNOTATION } from '../names.ts'
import { ROOT_UID_LABEL } from '../../hosts/root.ts'
import type { RootKind } from '../roots/root-kind.ts'
import type { RootIndexes } from '../roots/root-indexes.ts'
import { ROOT_KINDS } from '../roots/root-kinds.ts'

type Leaves = ReadonlyMap<string, Immutable<LeafIngress>>

/** The leaves of a root by cluster, with those of its last status even if the cache has lost them. */
export async function confirmLeaves(
  { kind }: Pick<RootKind, 'kind'>,
  { metadata: { namespace, name = '', uid } }: Immutable<Obj>,
  cached: readonly Immutable<LeafIngress>[],
  global: Immutable<GlobalIngress> | undefined,
  ctx: Context,
): Promise<Leaves> {
  const nameOn = (cluster: string): string => leafName(kind.kind, name, cluster)
  const own = cached.filter((leaf) => leaf.metadata.name === nameOn(leaf.spec.cluster))
  const leaves = new Map(own.map((leaf) => [leaf.spec.cluster, leaf]))
  for (const { cluster } of global?.status?.leaves ?? []) {
    if (leaves.has(cluster)) continue
    const live = await ctx.client.find(LeafIngress, `${namespace}/${nameOn(cluster)}`)
    if (live !== undefined && live.metadata.labels?.[ROOT_UID_LABEL] === uid) leaves.set(cluster, live)
  }
  return leaves
}

/** The Clusters, with those of leaves even if the cache has lost them. */
export async function confirmClusters(leaves: Leaves, ctx: Context): Promise<readonly Immutable<Cluster>[]> {
  const cached = ctx.list(Cluster)
  const known = new Set(cached.map(({ metadata }) => metadata.name))
  const lost = [...leaves.keys()].filter((name) => !known.has(name))
  const live = await Promise.all(lost.map(async (name) => ctx.client.find(Cluster, name)))
  return [...cached, ...live.filter((cluster) => cluster !== undefined)]
}

/** Whether clusters have the Services of a root; a missing one of a cluster with a leaf is confirmed. */
export async function confirmBackends(
  leaves: Leaves,
  { namespace, services }: { readonly namespace: string; readonly services: readonly string[] },
  views: MemberViews,
  ctx: Context,
): Promise<(cluster: string) => BackendFact> {
  const confirmed = new Map<string, BackendFact>()
  for (const name of leaves.keys()) {
    const fact = views.backendOf(name, namespace, services)
    if (fact.state !== 'missing') continue
    try {
      const found = await Promise.all(
        fact.services.map(async (service) => views.readLive(name, Service, `${namespace}/${service}`, ctx.signal)),
      )
      const missing = fact.services.filter((_, index) => found[index] === undefined)
      const isAnyPresent = missing.length < services.length
      confirmed.set(
        name,
        missing.length === 0 ? { state: 'present' } : { state: 'missing', services: missing, isAnyPresent },
      )
    } catch (error) {
      ctx.signal.throwIfAborted()
      ctx.log.warn({ cluster: name, error: messageOf(error) }, 'a missing Service cannot be confirmed; the leaf stays')
      confirmed.set(name, { state: 'unknown' })
    }
  }
  return (cluster) => confirmed.get(cluster) ?? views.backendOf(cluster, namespace, services)
}

export type FindRemote = (name: string, kind: Kind, key: Key) => Immutable<Stored<Obj>> | undefined | 'unknown'

/** Objects of leaves on members; one that was admitted and is missing is confirmed. */
export async function confirmRemotes(leaves: Leaves, views: MemberViews, ctx: Context): Promise<FindRemote> {
  const confirmed = new Map<string, ReturnType<FindRemote>>()
  for (const [name, leaf] of leaves) {
    if (leaf.status?.admitted !== true || leaf.status.phase === 'Drained') continue
    for (const manifest of usableManifests(leaf)) {
      const kind = ROOT_KINDS.find((each) => each.kind.kind === manifest.kind)?.kind
      const key = keyOf(manifest)
      if (kind === undefined || views.find(name, kind, key) !== undefined) continue
      try {
        confirmed.set(`${name} ${kind.kind} ${key}`, await views.readLive(name, kind, key, ctx.signal))
      } catch {
        ctx.signal.throwIfAborted()
        confirmed.set(`${name} ${kind.kind} ${key}`, 'unknown')
      }
    }
  }
  return (name, kind, key) => {
    const id = `${name} ${kind.kind} ${key}`
    return confirmed.has(id) ? confirmed.get(id) : views.find(name, kind, key)
  }
}

/**
 * The GlobalIngress of a root. If the cache lacks that of a root whose summary was written before, it is read, because it has the
 * TTLs that were published.
 */
export async function confirmGlobal(
  { kind }: Pick<RootKind, 'kind'>,
  { metadata: { namespace = '', name = '', uid = '', annotations } }: Immutable<Obj>,
  { globalByRoot }: Pick<RootIndexes, 'globalByRoot'>,
  ctx: Context,
): Promise<Immutable<GlobalIngress> | undefined> {
  const cached = ctx.by(globalByRoot, rootKey({ namespace, uid }))[0]
  if (cached !== undefined || annotations?.[SUMMARY_ANNOTATION] === undefined) return cached
  return ctx.client.find(GlobalIngress, `${namespace}/${globalIngressName(kind.kind, name, uid)}`)
}

/** Policies of a namespace, with the one that the root had even if the cache has lost it. `used`: as status.policy has it. */
export async function confirmPolicies(
  namespace: string | undefined,
  used: string | undefined,
  ctx: Context,
): Promise<readonly Immutable<GlobalIngressPolicy>[]> {
  const cached = ctx.list(GlobalIngressPolicy, namespace)
  const [, key] = /^GlobalIngressPolicy (.+)$/.exec(used ?? '') ?? []
  if (key === undefined || !key.startsWith(`${namespace}/`) || cached.some((policy) => keyOf(policy) === key))
    return cached
  const live = await ctx.client.find(GlobalIngressPolicy, key)
  return live === undefined ? cached : [...cached, live]
}

/** The policy of roots without one, also if the cache has lost it and the root had it. */
export async function confirmDefaultPolicy(
  key: Key,
  used: string | undefined,
  ctx: Context,
): Promise<Immutable<GlobalIngressPolicy> | undefined> {
  const cached = ctx.get(GlobalIngressPolicy, key)
  if (cached !== undefined || used !== `GlobalIngressPolicy ${key}`) return cached
  return ctx.client.find(GlobalIngressPolicy, key)
}
