/**
 * One root, from its objects to its objects: claims → plan → GlobalIngress and LeafIngresses → phases of the leaves → DNS
 * objects → status.
 *
 * Guarantees: every step is repeated from the stored objects, so that any prefix of the writes is continued after a crash;
 * a pass that finds everything as decided writes nothing.
 */
import {
  type Context,
  findCondition,
  type Index,
  type Manager,
  type Next,
  requeue,
  addFinalizer,
  timestamp,
  withController,
} from '@seamark/kube'
import { apiVersionOf, type Immutable, keyOf, type Obj } from '@seamark/kube/object'
import { Cluster } from '../api/cluster.ts'
import { DNSLoadBalancerEndpoint } from '../api/dns-load-balancer-endpoint.ts'
import { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import { GlobalIngressPolicy } from '../api/global-ingress-policy.ts'
import { GlobalIngress, type GlobalIngressSpec } from '../api/global-ingress.ts'
import { LeafIngress, type LeafIngressStatus, type Phase } from '../api/leaf-ingress.ts'
import type { ProductMetrics } from '../metrics.ts'
import type { Claims, ClaimedHosts } from './claims.ts'
import type { FleetOptions } from './config.ts'
import { feedBalance } from './decide/dns-feed.ts'
import { decideLeaf, isServing, type LeafDecision, type LeafFacts, type LeafTiming } from './decide/leaf-phase.ts'
import { planRoot, type RootPlan } from './decide/plan.ts'
import { resolvePolicy } from './decide/policy.ts'
import { decideStatus, type LeafSummary, mergeAddresses } from './decide/status.ts'
import { type LeafObservation, observeLeaf } from './leaf-observation.ts'
import type { MemberViews } from './member-view.ts'
import {
  DNS_FINALIZER,
  globalIngressName,
  LEAF_CLUSTER_LABEL,
  REMOTE_FINALIZER,
  ROOT_ANNOTATION,
  ROOT_FINALIZER,
  ROOT_KIND_LABEL,
  ROOT_UID_LABEL,
} from './names.ts'
import { isRoot } from './root-filter.ts'
import { writeRootStatus } from './root-status.ts'
import type { RootKind } from './roots/root-kind.ts'
import type { SyncResults } from './sync-results.ts'
import type { Teardown } from './teardown.ts'
import { syncFeed } from './feed.ts'

export interface RootIndexes {
  readonly leavesByRoot: Index<LeafIngress>
  readonly globalByRoot: Index<GlobalIngress>
  /** Undefined: DNS is not managed. */
  readonly endpointsByRoot: Index<DNSLoadBalancerEndpoint> | undefined
  readonly balancersByRoot: Index<DNSLoadBalancer> | undefined
}

export interface RootReconcilerDeps {
  readonly manager: Manager
  readonly options: FleetOptions
  readonly namespace: string
  readonly claims: Claims
  readonly views: MemberViews
  readonly results: SyncResults
  readonly metrics: ProductMetrics
  readonly indexes: RootIndexes
  readonly teardown: Teardown
  readonly isWriting: () => boolean
  readonly untilMayWrite: (running: { readonly signal: AbortSignal }) => Promise<unknown> | undefined
  readonly hubUid: (client: Context['client']) => Promise<string>
  readonly labelledClusters: (namespace: string, services: readonly string[]) => ReadonlySet<string> | undefined
}

const IDLE_RETRY = '10s'
const DEFAULT_POLICY_NAME = 'default'
/** Without probes: how long a leaf is admitted before it counts as serving. */
const WARM_MS = 5_000
const DEBOUNCE_MS = 10_000

export class RootReconciler {
  readonly #deps: RootReconcilerDeps

  constructor(deps: RootReconcilerDeps) {
    this.#deps = deps
  }

  async reconcile(kind: RootKind, root: Immutable<Obj>, ctx: Context): Promise<Next> {
    const { options, teardown, isWriting, untilMayWrite, metrics } = this.#deps
    const isOurs = root.metadata.finalizers?.includes(ROOT_FINALIZER) === true
    const isLive = root.metadata.deletionTimestamp === undefined && isRoot(kind, root, options.roots, ctx)
    if (!isLive && !isOurs) return
    await untilMayWrite(ctx)
    if (!isWriting()) return requeue(IDLE_RETRY)
    if (!isLive) {
      metrics.leavesDecided(ctx.key, [])
      return teardown.root(kind, root, ctx)
    }
    const policy = resolvePolicy({
      root,
      group: kind.kind.group,
      kind: kind.kind.kind,
      policies: ctx.list(GlobalIngressPolicy, root.metadata.namespace),
      defaultPolicy: ctx.get(GlobalIngressPolicy, `${this.#deps.namespace}/${DEFAULT_POLICY_NAME}`),
    })
    if (!('spec' in policy)) {
      await this.#refuse(kind, root, policy.message, ctx)
      return
    }
    const accepted = isOurs ? root : await addFinalizer(ctx.client, kind.kind, root, ROOT_FINALIZER)
    const { managedDomain = '', customDomains } = policy.spec.hosts ?? {}
    const needsProof = customDomains === 'VerifiedOnly'
    const claimed = await this.#deps.claims.take(kind, accepted, { managedDomain, needsProof }, ctx)
    return this.#carryOut(kind, accepted, policy.spec, claimed, ctx)
  }

  async #carryOut(
    kind: RootKind,
    root: Immutable<Obj>,
    policy: Parameters<typeof planRoot>[0]['policy'],
    claimed: ClaimedHosts,
    ctx: Context,
  ): Promise<Next> {
    const { views, indexes, options, hubUid, labelledClusters } = this.#deps
    const { namespace = '', uid = '' } = root.metadata
    const leaves = new Map(ctx.by(indexes.leavesByRoot, uid).map((leaf) => [leaf.spec.cluster, leaf]))
    const backends = kind.backendsOf(root)
    const observe = (leaf: Immutable<LeafIngress>): LeafObservation =>
      observeLeaf(
        leaf,
        kind,
        { backends, cluster: ctx.get(Cluster, leaf.spec.cluster), rootUid: uid },
        { views, endpointsByRoot: indexes.endpointsByRoot },
        ctx,
      )
    const observed = new Map([...leaves].map(([cluster, leaf]) => [cluster, observe(leaf)]))
    const hub = await hubUid(ctx.client)
    const previous = ctx.by(indexes.globalByRoot, uid)[0]
    const plan = planRoot({
      root,
      kind,
      policy,
      ownedHosts: claimed.owned,
      clusters: ctx.list(Cluster),
      backendOf: (cluster) => views.backendOf(cluster, namespace, backends),
      labelledClusters: labelledClusters(namespace, backends),
      previous: previous?.spec,
      leaves,
      hubId: options.hubId || hub,
      hubUid: hub,
      allowedAnnotations: options.leafAnnotations,
      canPublish:
        options.dns && [...observed.values()].some((leaf) => leaf.isAdmitted === true && leaf.endpointsReady !== 0),
    })
    const global = await this.#applyPlan(kind, root, plan, leaves, ctx)
    const decisions = this.#decideLeaves(plan, leaves, observed, ctx)
    return this.#finish({ kind, root, plan, claimed, global, leaves, observed, decisions, ctx })
  }

  async #applyPlan(
    kind: RootKind,
    root: Immutable<Obj>,
    plan: RootPlan,
    leaves: ReadonlyMap<string, Immutable<LeafIngress>>,
    ctx: Context,
  ): Promise<Immutable<GlobalIngress>> {
    const { name = '', namespace = '', uid = '' } = root.metadata
    const labels = { [ROOT_UID_LABEL]: uid, [ROOT_KIND_LABEL]: kind.kind.kind }
    const annotations = { [ROOT_ANNOTATION]: name }
    const owner = { apiVersion: apiVersionOf(kind.kind), kind: kind.kind.kind, ...root }
    const global = await ctx.apply(
      GlobalIngress,
      withController(
        {
          metadata: {
            name: globalIngressName(kind.kind.kind, name, uid),
            namespace,
            labels,
            annotations,
            finalizers: [DNS_FINALIZER],
          },
          spec: plan.spec,
        },
        owner,
      ),
    )
    const globalOwner = { apiVersion: apiVersionOf(GlobalIngress), kind: GlobalIngress.kind, ...global }
    for (const leaf of plan.leaves) {
      // One that is being deleted is drained first, and then created again if it is still planned.
      if (leaves.get(leaf.cluster)?.metadata.deletionTimestamp !== undefined) continue
      await ctx.apply(
        LeafIngress,
        withController(
          {
            metadata: {
              name: leaf.name,
              namespace,
              labels: { ...labels, [LEAF_CLUSTER_LABEL]: leaf.cluster },
              annotations,
              finalizers: [REMOTE_FINALIZER],
            },
            spec: leaf.spec,
          },
          globalOwner,
        ),
      )
    }
    return global
  }

  #decideLeaves(
    { leaves: planned, spec }: RootPlan,
    leaves: ReadonlyMap<string, Immutable<LeafIngress>>,
    observed: ReadonlyMap<string, LeafObservation>,
    ctx: Context,
  ): Map<string, LeafDecision> {
    const nowMs = ctx.clock.now()
    const timing: LeafTiming = {
      warmMs: WARM_MS,
      debounceMs: DEBOUNCE_MS,
      minHoldMs: spec.minHoldSeconds * 1000,
      // Resolvers may have cached an answer for one TTL when it was withdrawn, and their clients for another.
      drainMs: this.#deps.options.dns
        ? Math.max(2 * spec.ttlSeconds, spec.drainSeconds) * 1000
        : spec.drainSeconds * 1000,
    }
    const lifecycles = new Map(planned.map(({ cluster, spec: { lifecycle } }) => [cluster, lifecycle]))
    const facts = new Map<string, Omit<LeafFacts, 'othersServing'>>()
    for (const [cluster, leaf] of leaves) {
      const seen = observed.get(cluster)
      if (seen === undefined) continue
      const { status, metadata } = leaf
      const isDeleting = metadata.deletionTimestamp !== undefined
      facts.set(cluster, {
        phase: status?.phase ?? 'Pending',
        phaseSinceMs: parseTime(status?.phaseSince) ?? nowMs,
        lifecycle: isDeleting ? 'Draining' : (lifecycles.get(cluster) ?? 'Draining'),
        isApplied: seen.isApplied,
        isAdmitted: seen.isAdmitted,
        hasAddresses: seen.addresses.length > 0,
        endpointsReady: seen.endpointsReady,
        probe: seen.probe,
        isProbeRequired: spec.isProbeRequired && this.#deps.options.dns,
        dns: seen.dns,
        drainStartedMs: parseTime(status?.drainStartedAt),
        nowMs,
        timing,
      })
    }
    const serving = [...facts].filter(([, leaf]) => isServing(leaf)).map(([cluster]) => cluster)
    return new Map(
      [...facts].map(([cluster, leaf]) => [
        cluster,
        decideLeaf({ ...leaf, othersServing: serving.filter((other) => other !== cluster).length }),
      ]),
    )
  }

  async #finish(pass: Pass): Promise<Next> {
    const { ctx, plan, leaves, observed, decisions, global, root, kind } = pass
    const { indexes, metrics, teardown, options } = this.#deps
    const nowMs = ctx.clock.now()
    const summaries: LeafSummary[] = []
    let againAtMs = Number.POSITIVE_INFINITY
    for (const [cluster, leaf] of leaves) {
      const decision = decisions.get(cluster)
      const seen = observed.get(cluster)
      if (decision === undefined || seen === undefined) continue
      const result = this.#deps.results.get(keyOf(leaf))
      await this.#writeLeaf(pass, leaf, decision, seen, result, nowMs)
      againAtMs = Math.min(againAtMs, decision.againAtMs ?? againAtMs)
      if (decision.phase === 'Drained') againAtMs = Math.min(againAtMs, await teardown.leaf(leaf, root, ctx))
      summaries.push(summaryOf(leaf, decision, seen, result, plan.spec, nowMs))
    }
    // Without a leaf yet: what the plan refused is what people have to know.
    metrics.leavesDecided(
      ctx.key,
      summaries.map(({ cluster, phase }) => ({ cluster, phase })),
    )
    const feed = feedBalance({
      name: global.metadata.name ?? '',
      namespace: global.metadata.namespace ?? '',
      spec: plan.spec,
      leaves: summaries.map(({ cluster, addresses }) => ({
        cluster,
        addresses,
        role: decisions.get(cluster)?.dns ?? 'none',
      })),
      sharedClusters: (host) => this.#sharedClusters(host, root.metadata.uid ?? '', ctx),
      isLedByOther: (host) => {
        const [leader] = this.#deps.claims.ownersOf(host, ctx)
        return leader !== undefined && leader !== root.metadata.uid
      },
    })
    if (options.dns) await syncFeed(feed, root, global, indexes, ctx)
    const isDnsVerified = options.dns ? summaries.some(({ isPublished }) => isPublished) : true
    const { status, summary } = decideStatus({
      spec: plan.spec.published || !options.dns ? { ...plan.spec, published: true } : plan.spec,
      generation: global.metadata.generation ?? 0,
      leaves: summaries,
      refusedHosts: [...pass.claimed.refused, ...plan.refused.map((each) => ({ host: '', ...each }))],
      placement: plan.placement,
      partialHosts: feed.partialHosts,
      isDnsVerified,
      previous: global.status?.conditions,
      nowMs,
    })
    this.#report(global, status, root, ctx)
    const stored = { apiVersion: apiVersionOf(GlobalIngress), kind: GlobalIngress.kind, ...global }
    await ctx.status(stored, status)
    const managed = plan.spec.hosts.flatMap((host) => (host.managed === undefined ? [] : [host.managed]))
    const showsManaged = plan.spec.statusMode !== 'Merged' && managed.length > 0 && isDnsVerified && options.dns
    const ready = findCondition(status.conditions, 'Ready')
    await writeRootStatus(
      kind,
      root,
      {
        addresses: showsManaged
          ? managed.map((value) => ({ type: 'Hostname' as const, value }))
          : plan.spec.statusMode === 'ManagedHost'
            ? []
            : mergeAddresses(summaries),
        leaves: summaries,
        isReady: ready?.status === 'True',
        message: ready?.message ?? '',
        summary,
      },
      ctx,
    )
    return Number.isFinite(againAtMs) ? requeue(Math.max(1, againAtMs - nowMs)) : undefined
  }

  async #writeLeaf(
    { root, ctx }: Pass,
    leaf: Immutable<LeafIngress>,
    decision: LeafDecision,
    seen: LeafObservation,
    result: ReturnType<SyncResults['get']>,
    nowMs: number,
  ): Promise<void> {
    const { status } = leaf
    const isNew = status?.phase !== decision.phase
    if (isNew) {
      const type = decision.phase === 'Unhealthy' ? 'Warning' : 'Normal'
      ctx.event(root, type, decision.reason, `leaf on cluster ${leaf.spec.cluster} is ${decision.phase}`)
    }
    const isAdmitted = seen.isAdmitted ?? status?.admitted
    await ctx.status(
      { apiVersion: apiVersionOf(LeafIngress), kind: LeafIngress.kind, ...leaf },
      {
        observedGeneration: leaf.metadata.generation ?? 0,
        phase: decision.phase,
        phaseSince: isNew || status?.phaseSince === undefined ? timestamp(nowMs) : status.phaseSince,
        reason: result === undefined || result.isGone ? decision.reason : result.reason,
        ...(seen.isApplied === undefined ? lastKnown(status) : freshStatus(leaf, seen)),
        ...(seen.isStale && { stale: true }),
        addresses: [...seen.addresses],
        ...(isAdmitted !== undefined && { admitted: isAdmitted }),
        ...(decision.drainStartedMs !== undefined && { drainStartedAt: timestamp(decision.drainStartedMs) }),
      },
    )
  }

  /** Clusters on which every other owner of the host serves; undefined: there is no other owner. */
  #sharedClusters(host: string, uid: string, ctx: Context): ReadonlySet<string> | undefined {
    const others = this.#deps.claims.ownersOf(host, ctx).filter((owner) => owner !== uid)
    if (others.length === 0) return undefined
    const serving = others.map(
      (owner) =>
        new Set(
          ctx
            .by(this.#deps.indexes.leavesByRoot, owner)
            .filter(({ status }) => status?.phase === 'Active')
            .map(({ spec }) => spec.cluster),
        ),
    )
    return new Set([...(serving[0] ?? [])].filter((cluster) => serving.every((clusters) => clusters.has(cluster))))
  }

  /** An Event for every condition that changed, so that a restart repeats none. */
  #report(
    { status: before }: Immutable<GlobalIngress>,
    status: { readonly conditions?: Parameters<typeof findCondition>[0] },
    root: Immutable<Obj>,
    ctx: Context,
  ): void {
    for (const type of ['HostsOwned', 'Placed', 'Degraded', 'Ready']) {
      const [old, now] = [findCondition(before?.conditions, type), findCondition(status.conditions, type)]
      if (now === undefined || (old?.status === now.status && old.reason === now.reason)) continue
      const isBad = type === 'Degraded' ? now.status === 'True' : now.status === 'False'
      if (old === undefined && (type === 'Ready' || !isBad)) continue
      ctx.event(root, isBad ? 'Warning' : 'Normal', now.reason, now.message)
    }
  }

  /** A policy that cannot be used changes nothing but what it says. */
  async #refuse(kind: RootKind, root: Immutable<Obj>, message: string, ctx: Context): Promise<void> {
    const summary = `refused: ${message}`.slice(0, 1024)
    if (root.metadata.annotations?.['seamark.io/summary'] !== summary)
      ctx.event(root, 'Warning', 'PolicyInvalid', message)
    await writeRootStatus(
      kind,
      root,
      { addresses: ingressAddresses(root), leaves: [], isReady: false, message, summary },
      ctx,
    )
  }
}

/** What only the member knows, as it was last read. */
function lastKnown(status: Immutable<LeafIngress>['status']): Partial<LeafIngressStatus> {
  const { appliedHash, remoteUID, remoteGeneration, endpointsReady } = status ?? {}
  return {
    ...(appliedHash !== undefined && { appliedHash }),
    ...(remoteUID !== undefined && { remoteUID }),
    ...(remoteGeneration !== undefined && { remoteGeneration }),
    ...(endpointsReady !== undefined && { endpointsReady }),
  }
}

function freshStatus({ spec }: Immutable<LeafIngress>, seen: LeafObservation): Partial<LeafIngressStatus> {
  return {
    ...(seen.isApplied === true && { appliedHash: spec.specHash }),
    ...(seen.remote !== undefined && { remoteUID: seen.remote.uid }),
    ...(seen.remote?.generation !== undefined && { remoteGeneration: seen.remote.generation }),
    ...(seen.endpointsReady !== undefined && { endpointsReady: seen.endpointsReady }),
  }
}

interface Pass {
  readonly kind: RootKind
  readonly root: Immutable<Obj>
  readonly plan: RootPlan
  readonly claimed: ClaimedHosts
  readonly global: Immutable<GlobalIngress>
  readonly leaves: ReadonlyMap<string, Immutable<LeafIngress>>
  readonly observed: ReadonlyMap<string, LeafObservation>
  readonly decisions: ReadonlyMap<string, LeafDecision>
  readonly ctx: Context
}

/** What the status says now: a refused policy leaves it as it is. */
function ingressAddresses(root: Immutable<Obj>): { type: 'IPAddress' | 'Hostname'; value: string }[] {
  const { status } = root as { status?: { loadBalancer?: { ingress?: readonly { ip?: string; hostname?: string }[] } } }
  return (status?.loadBalancer?.ingress ?? []).map(({ ip, hostname = '' }) =>
    ip === undefined ? { type: 'Hostname', value: hostname } : { type: 'IPAddress', value: ip },
  )
}

function summaryOf(
  { spec, status }: Immutable<LeafIngress>,
  { phase, reason }: LeafDecision,
  seen: LeafObservation,
  result: ReturnType<SyncResults['get']>,
  global: GlobalIngressSpec,
  nowMs: number,
): LeafSummary {
  const sinceMs = parseTime(status?.phaseSince) ?? nowMs
  const isLate = reason === 'WaitingForDns' && nowMs - sinceMs > global.propagationTimeoutSeconds * 1000
  return {
    cluster: spec.cluster,
    phase,
    reason,
    lifecycle: spec.lifecycle,
    isApplied: seen.isApplied ?? status?.appliedHash === spec.specHash,
    isAdmitted: seen.isAdmitted ?? status?.admitted === true,
    isStale: seen.isStale,
    endpointsReady: seen.isApplied === undefined ? status?.endpointsReady : seen.endpointsReady,
    addresses: seen.addresses,
    isPublished: seen.dns === 'present',
    message: result?.message || (isWaiting(phase) ? seen.message : ''),
    isPropagationLate: isLate && status?.phase === 'Draining',
  }
}

function isWaiting(phase: Phase): boolean {
  return phase === 'Pending' || phase === 'Applied'
}

function parseTime(text: string | undefined): number | undefined {
  const ms = text === undefined ? Number.NaN : Date.parse(text)
  return Number.isNaN(ms) ? undefined : ms
}
