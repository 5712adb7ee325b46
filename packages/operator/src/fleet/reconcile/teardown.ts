/**
 * Deletion in the order that no client notices: DNS objects → wait for caches of resolvers → leaves → claims → the root.
 *
 * Guarantees: the state of the chain is in stored objects (`withdrawnAt` of the GlobalIngress, finalizers of leaves), so that
 * it continues after a restart and in a namespace that is being deleted, where nothing can be created. A member that cannot
 * be reached holds up a deletion for `orphanAfterSeconds`; then the leaf is recorded in the status of its Cluster, and the
 * sweep deletes its objects when the member returns.
 */
import {
  type Condition,
  type Context,
  findCondition,
  type Next,
  NotFound,
  removeFinalizer,
  requeue,
  setCondition,
  timestamp,
} from '@seamark/kube'
import { apiVersionOf, type Immutable, keyOf, type Obj } from '@seamark/kube/object'
import { Cluster } from '../../api/cluster.ts'
import { DNSLoadBalancerEndpoint } from '../../api/dns-load-balancer-endpoint.ts'
import { DNSLoadBalancer } from '../../api/dns-load-balancer.ts'
import { GlobalIngress } from '../../api/global-ingress.ts'
import { LeafIngress } from '../../api/leaf-ingress.ts'
import type { MemberRegistry } from '../../clusters/member-registry.ts'
import type { Claims } from '../claims.ts'
import { presenceOf, silentServers } from '../decide/dns-presence.ts'
import { addOrphans } from '../decide/orphans.ts'
import { highestTtlSeconds } from '../decide/published-ttl.ts'
import type { AuthoritativeDns } from '../dns/authoritative-dns.ts'
import type { MemberViews } from '../members/member-view.ts'
import {
  DELETE_ANNOTATION,
  DNS_FINALIZER,
  FORCE_DELETE_ANNOTATION,
  REMOTE_FINALIZER,
  rootKey,
  SUMMARY_ANNOTATION,
} from '../names.ts'
import { ROOT_FINALIZER } from '../../hosts/root.ts'
import type { RootIndexes } from '../roots/root-indexes.ts'
import type { RootKind } from '../roots/root-kind.ts'
import { ttlsOf, unsharedHosts } from './shared-hosts.ts'
import type { PlannedLeaves } from '../members/planned-leaves.ts'
import type { SyncResults } from '../members/sync-results.ts'

export interface TeardownDeps {
  readonly indexes: RootIndexes
  readonly results: SyncResults
  readonly planned: PlannedLeaves
  readonly claims: Claims
  readonly registry: MemberRegistry
  readonly views: MemberViews
  /** Undefined: what balance published counts as answered. */
  readonly dns: AuthoritativeDns | undefined
  readonly orphanAfterMs: number
}

/** Between two reads of what the deletion waits for. */
const RETRY_MS = 2_000

export class Teardown {
  readonly #deps: TeardownDeps

  constructor(deps: TeardownDeps) {
    this.#deps = deps
  }

  async root(kind: RootKind, root: Immutable<Obj>, ctx: Context): Promise<Next> {
    const uid = root.metadata.uid ?? ''
    const isForced = root.metadata.annotations?.[FORCE_DELETE_ANNOTATION] !== undefined
    const isImmediate = isForced || root.metadata.annotations?.[DELETE_ANNOTATION] === 'Immediate'
    const next = await this.global(uid, root, { isForced, isImmediate, hosts: kind.hostsOf(root) }, ctx)
    if (next !== undefined) {
      await this.#summarize(kind, root, ctx)
      return next
    }
    if (root.metadata.annotations?.[SUMMARY_ANNOTATION] !== undefined && root.metadata.deletionTimestamp === undefined)
      await ctx.client.patch(kind.kind, keyOf(root), 'merge', {
        metadata: { annotations: { [SUMMARY_ANNOTATION]: null } },
      })
    if (root.metadata.finalizers?.includes(ROOT_FINALIZER) === true)
      await removeFinalizer(ctx.client, kind.kind, root, ROOT_FINALIZER)
  }

  /** On the root, whose summary is of the time when it served. */
  async #summarize(kind: RootKind, root: Immutable<Obj>, ctx: Context): Promise<void> {
    const global = ctx.by(this.#deps.indexes.globalByRoot, rootKey(root.metadata))[0]
    const { leavesUntil } = global?.status ?? {}
    const summary = leavesUntil === undefined ? 'being deleted' : `being deleted; leaves stay until ${leavesUntil}`
    const { [SUMMARY_ANNOTATION]: before } = root.metadata.annotations ?? {}
    if (global === undefined || before === undefined || before === summary) return
    await ctx.client.patch(kind.kind, keyOf(root), 'merge', {
      metadata: { uid: root.metadata.uid, annotations: { [SUMMARY_ANNOTATION]: summary } },
    })
  }

  /** The part that needs no root: also for a GlobalIngress whose root is gone. Undefined: done. */
  async global(
    uid: string,
    about: Immutable<Obj>,
    {
      isForced,
      isImmediate,
      hosts = [],
    }: { readonly isForced: boolean; readonly isImmediate: boolean; readonly hosts?: readonly string[] },
    ctx: Context,
  ): Promise<Next> {
    const { indexes, claims } = this.#deps
    const ref = { namespace: about.metadata.namespace ?? '', uid }
    const key = rootKey(ref)
    const global = ctx.by(indexes.globalByRoot, key)[0]
    const claimed = [...hosts, ...(global?.spec.hosts ?? []).map(({ host }) => host)]
    if (global === undefined) {
      await claims.releaseAll(ref, claimed, ctx)
      return
    }
    if (!(await this.#withdraw(key, ctx))) return requeue(RETRY_MS)
    const owners = await claims.confirmOwners(
      global.spec.hosts.map(({ host }) => host),
      ctx,
    )
    const ownersOf = (host: string): readonly string[] => owners.get(host) ?? []
    const isWithdrawn = isImmediate || global.status?.withdrawnAt !== undefined
    if (!isWithdrawn && !(await this.#isForgotten(global, about, ownersOf, ctx))) return requeue(RETRY_MS)
    const withdrawnAt = global.status?.withdrawnAt ?? timestamp(ctx.clock.now())
    const withdrawnMs = Date.parse(withdrawnAt)
    const ttls = ttlsOf(global.spec, ref, ownersOf, indexes, ctx)
    const waitMs = global.spec.published && !isImmediate ? 2 * highestTtlSeconds(ttls, withdrawnMs) * 1000 : 0
    const untilMs = withdrawnMs + waitMs
    if (global.status?.withdrawnAt === undefined)
      ctx.event(about, 'Normal', 'RootDeleted', 'DNS records are withdrawn; leaves follow when caches have expired')
    await this.#reportDeletion(global, { withdrawnAt, leavesUntil: timestamp(Math.ceil(untilMs / 1000) * 1000) }, ctx)
    const leftMs = untilMs - ctx.clock.now()
    if (leftMs > 0) return requeue(leftMs)
    let againAtMs = Number.POSITIVE_INFINITY
    const leaves = ctx.by(indexes.leavesByRoot, key)
    for (const leaf of leaves) {
      if (leaf.status?.phase !== 'Drained') await this.#markDrained(leaf, ctx)
      againAtMs = Math.min(againAtMs, await this.leaf(leaf, about, ctx, isForced))
    }
    if (ctx.by(indexes.leavesByRoot, key).length > 0)
      return requeue(Math.max(1, Math.min(againAtMs - ctx.clock.now(), RETRY_MS)))
    await claims.releaseAll(ref, claimed, ctx)
    await this.#deleteGlobal(global, ctx)
  }

  /**
   * Deletes a drained leaf; its finalizer goes when the member confirmed that nothing is left there. Returns when to look
   * again, wall clock in ms.
   */
  async leaf(leaf: Immutable<LeafIngress>, about: Immutable<Obj>, ctx: Context, isForced = false): Promise<number> {
    const key = keyOf(leaf)
    const { deletionTimestamp } = leaf.metadata
    if (deletionTimestamp === undefined) {
      await ctx.delete(LeafIngress, leaf)
      return ctx.clock.now() + RETRY_MS
    }
    const isGone = this.#deps.results.get(key)?.isGone === true
    const orphanAtMs = Date.parse(deletionTimestamp) + this.#deps.orphanAfterMs
    const { registry } = this.#deps
    const isUnknown =
      registry.isRead && !registry.clusters.has(leaf.spec.cluster) && ctx.get(Cluster, leaf.spec.cluster) === undefined
    // Forced: one attempt, which only a member that can be reached gets.
    const isGivenUp = isForced && this.#deps.views.readable(leaf.spec.cluster) === undefined
    if (!isGone && !isGivenUp && !isUnknown && ctx.clock.now() < orphanAtMs)
      return Math.min(orphanAtMs, ctx.clock.now() + RETRY_MS * 5)
    if (!isGone) {
      const names = leaf.spec.manifests.map((each) => `${each.kind} ${String(each.metadata['name'])}`).join(', ')
      ctx.event(
        about,
        'Warning',
        'LeafOrphaned',
        `cluster ${leaf.spec.cluster}: ${names} may be left in namespace ${leaf.metadata.namespace}`,
      )
      await this.#recordOrphan(leaf, ctx)
    }
    this.#deps.results.set(key, undefined)
    this.#deps.planned.delete(key)
    await removeFinalizer(ctx.client, LeafIngress, leaf, REMOTE_FINALIZER)
    return Number.POSITIVE_INFINITY
  }

  /** True when no DNS object of the root is left. */
  async #withdraw(key: string, ctx: Context): Promise<boolean> {
    const { balancersByRoot, endpointsByRoot } = this.#deps.indexes
    if (balancersByRoot === undefined || endpointsByRoot === undefined) return true
    for (const balancer of ctx.by(balancersByRoot, key)) await ctx.delete(DNSLoadBalancer, balancer)
    for (const endpoint of ctx.by(endpointsByRoot, key)) await ctx.delete(DNSLoadBalancerEndpoint, endpoint)
    return ctx.by(balancersByRoot, key).length === 0 && ctx.by(endpointsByRoot, key).length === 0
  }

  /**
   * Whether no DNS server answers a leaf any more. Servers that cannot be asked delay the deletion for the time of the
   * policy, counted since they are silent; one that still answers holds it up.
   */
  async #isForgotten(
    global: Immutable<GlobalIngress>,
    about: Immutable<Obj>,
    ownersOf: (host: string) => readonly string[],
    ctx: Context,
  ): Promise<boolean> {
    const { dns, indexes } = this.#deps
    const { spec, status } = global
    const uid = spec.rootRef.uid
    const hosts = unsharedHosts(spec, uid, ownersOf)
    const addresses = ctx
      .by(indexes.leavesByRoot, rootKey({ ...global.metadata, uid }))
      .flatMap((leaf) => leaf.status?.addresses ?? [])
      .filter(({ type }) => type === 'IPAddress')
    if (dns === undefined || !spec.published || hosts.length === 0 || addresses.length === 0) return true
    const answers = await dns.ask(hosts, ctx.signal)
    const presence = presenceOf(addresses, answers)
    if (presence === 'absent') return true
    const nowMs = ctx.clock.now()
    const before = findCondition(status?.conditions, 'DNSPublished')
    // Unknown since the servers are silent, so that neither the time before the deletion nor that of an answer counts.
    const isSilent = before?.reason === 'WaitingForDns' && before.status === 'Unknown'
    const silentSinceMs = isSilent ? Date.parse(before.lastTransitionTime ?? '') : nowMs
    if (presence === 'unknown' && nowMs - silentSinceMs >= spec.propagationTimeoutSeconds * 1000) return true
    const detail = presence === 'present' ? 'DNS servers still answer its leaves' : silentServers(answers).join(', ')
    const condition = {
      type: 'DNSPublished',
      status: presence === 'present' ? 'False' : 'Unknown',
      reason: 'WaitingForDns',
      message: `the root is deleted, and ${detail}; its leaves stay until then, or delete them at once with the annotation seamark.io/delete: Immediate`,
      observedGeneration: global.metadata.generation ?? 0,
    } as const
    if (before?.reason !== condition.reason) ctx.event(about, 'Normal', condition.reason, condition.message)
    await ctx.status(
      { apiVersion: apiVersionOf(GlobalIngress), kind: GlobalIngress.kind, ...global },
      {
        ...(status as NonNullable<GlobalIngress['status']>),
        conditions: setCondition(
          setCondition(status?.conditions, condition, nowMs),
          { ...condition, type: 'Ready', status: 'False', reason: 'RootDeleted' },
          nowMs,
        ),
      },
    )
    return false
  }

  /** Until the last write of its conditions the root served: what they said then is not true any more. */
  async #reportDeletion(
    global: Immutable<GlobalIngress>,
    times: { readonly withdrawnAt: string; readonly leavesUntil: string },
    ctx: Context,
  ): Promise<void> {
    const message = `the root is being deleted: its leaves stay until ${times.leavesUntil}, because caches may have its addresses`
    const observedGeneration = global.metadata.generation ?? 0
    let conditions: Immutable<Condition[]> | undefined = global.status?.conditions
    for (const type of ['DNSPublished', 'Ready'])
      conditions = setCondition(
        conditions,
        { type, status: 'False', reason: 'RootDeleted', message, observedGeneration },
        ctx.clock.now(),
      )
    const { answered: _, ...status } = (global.status ?? {}) as NonNullable<GlobalIngress['status']>
    await ctx.status(
      { apiVersion: apiVersionOf(GlobalIngress), kind: GlobalIngress.kind, ...global },
      { ...status, ...times, conditions },
    )
  }

  async #markDrained(leaf: Immutable<LeafIngress>, ctx: Context): Promise<void> {
    const stored = { apiVersion: apiVersionOf(LeafIngress), kind: LeafIngress.kind, ...leaf }
    await ctx.status(stored, {
      ...(leaf.status as NonNullable<LeafIngress['status']>),
      phase: 'Drained',
      phaseSince: timestamp(ctx.clock.now()),
      reason: 'RootDeleted',
    })
  }

  async #deleteGlobal(global: Immutable<GlobalIngress>, ctx: Context): Promise<void> {
    await ctx.delete(GlobalIngress, global)
    const live = ctx.get(GlobalIngress, keyOf(global)) ?? (await ctx.client.find(GlobalIngress, keyOf(global)))
    if (live?.metadata.finalizers?.includes(DNS_FINALIZER) === true)
      await removeFinalizer(ctx.client, GlobalIngress, live, DNS_FINALIZER)
  }

  async #recordOrphan(leaf: Immutable<LeafIngress>, ctx: Context): Promise<void> {
    const { cluster: name } = leaf.spec
    const cluster = ctx.get(Cluster, name)
    if (cluster === undefined) return
    const known = cluster.status?.orphans ?? []
    const orphans = addOrphans(known, leaf, timestamp(ctx.clock.now()))
    if (orphans.length === known.length) return
    try {
      await ctx.client.patch(Cluster, name, 'merge', { status: { orphans } }, { subresource: 'status' })
    } catch (error) {
      if (!(error instanceof NotFound)) throw error
    }
  }
}
