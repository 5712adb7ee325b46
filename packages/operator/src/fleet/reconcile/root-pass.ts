/** The first half of a root's reconcile: observes its leaves, and writes GlobalIngress and LeafIngresses as planned. */
import type { Context } from '@seamark/kube'
import { type Immutable, keyOf, type Obj } from '@seamark/kube/object'
import type { GlobalIngress } from '../../api/global-ingress.ts'
import type { ClaimedHosts } from '../claims.ts'
import { confirmBackends, confirmClusters, confirmGlobal, confirmLeaves, confirmRemotes } from './confirmed-facts.ts'
import type { FleetOptions } from '../config.ts'
import { drainDeadlineMs } from '../decide/cluster-status.ts'
import type { ObservedLeaf } from '../decide/leaves.ts'
import { planRoot, type RootPlan } from '../decide/plan.ts'
import type { ResolvedPolicy } from '../decide/policy.ts'
import { endpointsByCluster, observeLeaf } from './leaf-observation.ts'
import type { MemberViews } from '../members/member-view.ts'
import type { PlannedLeaves } from '../members/planned-leaves.ts'
import type { SyncResults } from '../members/sync-results.ts'
import { rootKey } from '../names.ts'
import type { RootIndexes } from '../roots/root-indexes.ts'
import { applyPlan } from './root-objects.ts'
import type { RootKind } from '../roots/root-kind.ts'
import { ledEndpoints } from './shared-hosts.ts'

export interface RootPassDeps {
  readonly options: FleetOptions
  readonly views: MemberViews
  readonly results: SyncResults
  readonly planned: PlannedLeaves
  readonly indexes: RootIndexes
  readonly hubUid: (client: Context['client']) => Promise<string>
  /** Clusters named by labels of the Services on the hub; undefined: no Service has the label. */
  readonly labelledClusters: (namespace: string, services: readonly string[]) => ReadonlySet<string> | undefined
}

export interface RootPass {
  readonly kind: RootKind
  readonly root: Immutable<Obj>
  readonly policy: Extract<ResolvedPolicy, { spec: unknown }>
  readonly claimed: ClaimedHosts
  readonly plan: RootPlan
  /** By cluster. */
  readonly leaves: ReadonlyMap<string, ObservedLeaf>
  readonly global: Immutable<GlobalIngress>
  /** By cluster that drains, wall clock in ms. */
  readonly drainDeadlines: ReadonlyMap<string, number>
}

export async function startPass(
  kind: RootKind,
  root: Immutable<Obj>,
  { policy, claimed }: Pick<RootPass, 'policy' | 'claimed'>,
  { views, indexes, options, hubUid, labelledClusters, results, planned }: RootPassDeps,
  ctx: Context,
): Promise<RootPass> {
  const { namespace = '' } = root.metadata
  const key = rootKey(root.metadata)
  const before = await confirmGlobal(kind, root, indexes, ctx)
  const stored = await confirmLeaves(kind, root, ctx.by(indexes.leavesByRoot, key), before, ctx)
  const services = kind.backendsOf(root)
  const findRemote = await confirmRemotes(stored, views, ctx)
  const clusters = await confirmClusters(stored, ctx)
  const clusterByName = new Map(clusters.map((cluster) => [cluster.metadata.name ?? '', cluster]))
  const { endpointsByRoot } = indexes
  const endpoints = endpointsByCluster(endpointsByRoot === undefined ? [] : ctx.by(endpointsByRoot, key))
  const led = endpointsByCluster(ledEndpoints(claimed.owners, root.metadata, indexes, ctx))
  const leaves = new Map(
    [...stored].map(([name, leaf]): [string, ObservedLeaf] => {
      const about = { backends: services, cluster: clusterByName.get(name) }
      const seen = observeLeaf(leaf, kind, about, { views, endpoints, ledEndpoints: led, findRemote })
      return [name, { leaf, seen, result: results.get(keyOf(leaf)) }]
    }),
  )
  const hub = await hubUid(ctx.client)
  const plan = planRoot({
    root,
    kind,
    policy: policy.spec,
    ownedHosts: claimed.owned,
    isGivenUp: claimed.isGivenUp,
    clusters,
    backendOf: await confirmBackends(stored, { namespace, services }, views, ctx),
    labelledClusters: labelledClusters(namespace, services),
    previous: before?.spec,
    leaves: stored,
    hubId: options.hubId || hub,
    hubUid: hub,
    allowedAnnotations: options.leafAnnotations,
    nowMs: ctx.clock.now(),
    canPublish:
      options.dns && [...leaves.values()].some(({ seen }) => seen.isAdmitted === true && seen.endpointsReady !== 0),
  })
  const global = await applyPlan(kind, root, plan, { leaves: stored, planned }, ctx)
  const drainDeadlines = new Map(
    clusters.flatMap((cluster): [string, number][] => {
      const deadlineMs = drainDeadlineMs(cluster)
      return deadlineMs === undefined ? [] : [[cluster.metadata.name ?? '', deadlineMs]]
    }),
  )
  return { kind, root, policy, claimed, plan, leaves, global, drainDeadlines }
}
