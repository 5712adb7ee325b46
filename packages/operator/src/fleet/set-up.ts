/**
 * The fleet as controllers of the manager: Clusters, roots of each kind, the syncer of each member, and GlobalIngresses whose
 * root is gone.
 */
import {
  type Client,
  type Immutable,
  IngressClass,
  type Manager,
  Namespace,
  type Obj,
  Service,
  untilAborted,
} from '@seamark/kube'
import { apiVersionOf, keyOf } from '@seamark/kube/object'
import { Cluster } from '../api/cluster.ts'
import { DNSLoadBalancerEndpoint } from '../api/dns-load-balancer-endpoint.ts'
import { keepStoredVersions, loadBalancerCrds } from '../api/dns-load-balancer-crds.ts'
import { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import { DomainVerification } from '../api/domain-verification.ts'
import { EndpointSlice, SERVICE_NAME_LABEL } from '../api/endpoint-slice.ts'
import { fleetCrds } from '../api/fleet-crds.ts'
import { Gateway, GatewayClass } from '@seamark/kube/gateway-api'
import { GlobalIngressPolicy } from '../api/global-ingress-policy.ts'
import { GlobalIngress } from '../api/global-ingress.ts'
import { HostClaim } from '../api/host-claim.ts'
import { LeafIngress } from '../api/leaf-ingress.ts'
import { installCrds } from '../api/install-crds.ts'
import type { MemberRegistry } from '../clusters/member-registry.ts'
import type { ProductMetrics } from '../metrics.ts'
import { Claims } from './claims.ts'
import { setUpClusters } from './cluster-controller.ts'
import type { FleetOptions } from './config.ts'
import { type LookupTxt, lookupAuthoritative, setUpDomains } from './domain-controller.ts'
import { MemberViews, trimSlice } from './member-view.ts'
import {
  KCP_CLUSTER_LABEL,
  LEAF_ANNOTATION,
  MANAGED_LABEL,
  ROOT_ANNOTATION,
  ROOT_KIND_LABEL,
  ROOT_UID_LABEL,
} from './names.ts'
import { isRoot } from './root-filter.ts'
import { type RootIndexes, RootReconciler } from './root-reconciler.ts'
import type { RootKind } from './roots/root-kind.ts'
import { ROOT_KINDS } from './roots/root-kinds.ts'
import { SyncResults } from './sync-results.ts'
import { setUpSyncer } from './syncer.ts'
import { Teardown } from './teardown.ts'

export interface FleetSetUp {
  readonly options: FleetOptions
  readonly registry: MemberRegistry
  readonly metrics: ProductMetrics
  readonly namespace: string
  /** @default the servers of the zone */
  readonly lookupTxt?: LookupTxt
  readonly isWriting: () => boolean
  readonly untilMayWrite: (running: { readonly signal: AbortSignal }) => Promise<unknown> | undefined
}

const CONCURRENCY = 16

export function setUpFleet(manager: Manager, setUp: FleetSetUp): void {
  const { options, registry, metrics, namespace, isWriting, untilMayWrite } = setUp
  const views = new MemberViews(manager, registry)
  const results = new SyncResults()
  const hubUid = uidReader()
  const hubId = async (client: Client): Promise<string> => options.hubId || (await hubUid(client))
  manager.cache(EndpointSlice, { projection: trimSlice })
  const reader = manager.cluster.informers
  const claims = new Claims(manager, (kind, object) => isRoot(kind, object, options.roots, reader))
  const indexes = indexesOf(manager, options.dns)
  const teardown = new Teardown({
    indexes,
    views,
    results,
    claims,
    registry,
    orphanAfterMs: options.orphanAfterSeconds * 1000,
  })
  const leavesByCluster = manager.index(LeafIngress, 'cluster', ({ spec }) => [spec.cluster])
  setUpClusters(manager, { registry, views, metrics, leavesByCluster, isWriting, untilMayWrite })
  setUpSyncer(manager, { results, views, metrics, hubId, isWriting })
  const triggers = new RootTriggers(manager, results)
  const reconciler = new RootReconciler({
    manager,
    options,
    namespace,
    claims,
    views,
    results,
    metrics,
    indexes,
    teardown,
    isWriting,
    untilMayWrite,
    hubUid,
    labelledClusters: (where, services) => labelledClusters(manager, where, services),
  })
  for (const kind of ROOT_KINDS) setUpRoots(manager, kind, { options, claims, reconciler, triggers })
  setUpOrphans(manager, teardown, isWriting)
  setUpDomains(manager, { lookupTxt: setUp.lookupTxt ?? lookupAuthoritative, isWriting })
  if (options.installCRDs)
    manager.add(
      'fleet-crds',
      async ({ client, signal }) => {
        await installCrds(client, [...fleetCrds(), ...loadBalancerCrds()], signal, keepStoredVersions)
        await untilAborted(signal)
      },
      { leader: true },
    )
}

interface RootWiring {
  readonly options: FleetOptions
  readonly claims: Claims
  readonly reconciler: RootReconciler
  readonly triggers: RootTriggers
}

function setUpRoots(manager: Manager, kind: RootKind, { options, claims, reconciler, triggers }: RootWiring): void {
  const isOptional = kind.kind.kind !== 'Ingress'
  const toRoot = ({ metadata }: Immutable<Obj>): string[] =>
    metadata.labels?.[ROOT_KIND_LABEL] === kind.kind.kind
      ? [`${metadata.namespace}/${metadata.annotations?.[ROOT_ANNOTATION] ?? ''}`]
      : []
  const everyRoot = (cache: { list: Manager['cluster']['informers']['list'] }): string[] =>
    cache.list(kind.kind).map(keyOf)
  const builder = manager
    .controller<Obj>(`fleet-${kind.kind.plural}`, kind.kind, {
      concurrency: CONCURRENCY,
      timeout: '1m',
      optional: isOptional,
    })
    .watches(GlobalIngress, toRoot)
    .watches(LeafIngress, toRoot)
    .watches(HostClaim, ({ spec }, cache) => claims.rootsOf(kind, spec.host, cache).map(keyOf))
    .watches(GlobalIngressPolicy, ({ metadata }, cache) =>
      cache.list(kind.kind, metadata.name === 'default' ? undefined : metadata.namespace).map(keyOf),
    )
    .watches(DomainVerification, ({ metadata }, cache) => cache.list(kind.kind, metadata.namespace).map(keyOf))
    .watches(Cluster, (_cluster, cache) => everyRoot(cache), { when: isPlacementChange })
    .watches(Service, ({ metadata }, cache) => triggers.byBackend(kind, metadata, cache), {
      labelSelector: KCP_CLUSTER_LABEL,
    })
  if (options.dns)
    builder
      .watches(DNSLoadBalancer, toRoot, { optional: true })
      .watches(DNSLoadBalancerEndpoint, toRoot, { optional: true })
  if (kind.kind.kind === 'Ingress') builder.watches(IngressClass, (_class, cache) => everyRoot(cache))
  if (kind.kind.kind === 'HTTPRoute')
    builder
      .watches(Gateway, (_gateway, cache) => everyRoot(cache), { optional: true })
      .watches(GatewayClass, (_class, cache) => everyRoot(cache), { optional: true })
  builder.triggers((mark) => triggers.start(kind, mark)).reconcile((root, ctx) => reconciler.reconcile(kind, root, ctx))
}

/** Changes of a Cluster that matter to placement and rendering; contact with a member alone is none. */
function isPlacementChange(change: {
  readonly type: string
  readonly object: Immutable<Cluster>
  readonly old?: Immutable<Cluster> | undefined
}): boolean {
  if (change.type !== 'updated' && change.type !== 'modified' && change.old === undefined) return true
  return factsOf(change.object) !== (change.old === undefined ? '' : factsOf(change.old))
}

function factsOf({ metadata, spec, status }: Immutable<Cluster>): string {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')?.status
  return JSON.stringify([
    metadata.labels,
    metadata.deletionTimestamp,
    spec,
    ready,
    status?.servedKinds,
    status?.clusterUID,
  ])
}

/** Events on members that concern roots of the hub. */
class RootTriggers {
  readonly #manager: Manager
  readonly #marks = new Map<RootKind, (keys: readonly string[]) => void>()
  readonly #backends = new Map<RootKind, ReturnType<Manager['index']>>()

  constructor(manager: Manager, results: SyncResults) {
    this.#manager = manager
    for (const kind of ROOT_KINDS)
      this.#backends.set(
        kind,
        manager.index<Obj>(kind.kind, 'fleetBackend', (object) =>
          kind.backendsOf(object).map((service) => `${object.metadata.namespace}/${service}`),
        ),
      )
    results.onChange = (leaf) => this.#markLeaf(manager.cluster.informers.get(LeafIngress, leaf))
    const { fleet } = manager
    for (const kind of ROOT_KINDS)
      fleet.watch<Obj>(
        kind.kind,
        ({ object: { metadata } }) =>
          this.#markLeaf(this.#findLeaf(`${metadata.namespace}/${metadata.annotations?.[LEAF_ANNOTATION] ?? ''}`)),
        { labelSelector: `${MANAGED_LABEL}=true` },
      )
    fleet.watch(Service, ({ object }) => this.#markBackend(object.metadata, object.metadata.name ?? ''), {
      projection: 'metadata',
    })
    fleet.watch(EndpointSlice, ({ object }) =>
      this.#markBackend(object.metadata, object.metadata.labels?.[SERVICE_NAME_LABEL] ?? ''),
    )
    fleet.watch(Gateway, ({ object }) => this.#markGateway(object.metadata))
    fleet.subscribe(({ member }) => this.#markCluster(member.name))
  }

  start(kind: RootKind, mark: (keys: readonly string[]) => void): () => void {
    this.#marks.set(kind, mark)
    return () => this.#marks.delete(kind)
  }

  byBackend(
    kind: RootKind,
    { namespace, name }: { readonly namespace?: string; readonly name?: string },
    cache: Pick<Manager['cluster']['informers'], 'by'>,
  ): string[] {
    const index = this.#backends.get(kind)
    return index === undefined ? [] : cache.by(index, `${namespace}/${name}`).map(keyOf)
  }

  #markBackend({ namespace }: { readonly namespace?: string }, service: string): void {
    for (const [kind, mark] of this.#marks)
      mark(
        this.byBackend(
          kind,
          { ...(namespace !== undefined && { namespace }), name: service },
          this.#manager.cluster.informers,
        ),
      )
  }

  /** Few: only HTTPRoutes depend on Gateways of members. */
  #markGateway(_metadata: unknown): void {
    for (const [kind, mark] of this.#marks)
      if (kind.kind.kind === 'HTTPRoute') mark(this.#manager.cluster.informers.list(kind.kind).map(keyOf))
  }

  #markCluster(cluster: string): void {
    for (const leaf of this.#manager.cluster.informers.list(LeafIngress))
      if (leaf.spec.cluster === cluster) this.#markLeaf(leaf)
  }

  #findLeaf(key: string): Immutable<LeafIngress> | undefined {
    return this.#manager.cluster.informers.get(LeafIngress, key)
  }

  #markLeaf(leaf: Immutable<LeafIngress> | undefined): void {
    if (leaf === undefined) return
    const kindName = leaf.metadata.labels?.[ROOT_KIND_LABEL]
    const kind = ROOT_KINDS.find((each) => each.kind.kind === kindName)
    const mark = kind === undefined ? undefined : this.#marks.get(kind)
    mark?.([`${leaf.metadata.namespace}/${leaf.metadata.annotations?.[ROOT_ANNOTATION] ?? ''}`])
  }
}

function indexesOf(manager: Manager, hasDns: boolean): RootIndexes {
  const uidOf = ({ metadata }: Immutable<Obj>): string[] => {
    const uid = metadata.labels?.[ROOT_UID_LABEL]
    return uid === undefined ? [] : [uid]
  }
  return {
    leavesByRoot: manager.index(LeafIngress, 'root', uidOf),
    globalByRoot: manager.index(GlobalIngress, 'root', uidOf),
    endpointsByRoot: hasDns ? manager.index(DNSLoadBalancerEndpoint, 'root', uidOf) : undefined,
    balancersByRoot: hasDns ? manager.index(DNSLoadBalancer, 'root', uidOf) : undefined,
  }
}

/** A GlobalIngress whose root lost its finalizer by force is torn down all the same. */
function setUpOrphans(manager: Manager, teardown: Teardown, isWriting: () => boolean): void {
  manager.controller('fleet-orphan', GlobalIngress, { timeout: '1m' }).reconcile(async (global, ctx) => {
    const { rootRef } = global.spec
    const kind = ROOT_KINDS.find(
      (each) => each.kind.kind === rootRef.kind && apiVersionOf(each.kind) === rootRef.apiVersion,
    )
    if (kind === undefined || !isWriting()) return
    const key = `${global.metadata.namespace}/${rootRef.name}`
    if (ctx.get(kind.kind, key)?.metadata.uid === rootRef.uid) return
    // The cache may be behind: only the server knows that the root is gone.
    const live = await ctx.client.find(kind.kind, key)
    if (live?.metadata.uid === rootRef.uid) return
    return teardown.global(rootRef.uid, global, { isForced: false, isImmediate: false }, ctx)
  })
}

/** Clusters named by labels of the Services on the hub; undefined: no Service has the label. */
function labelledClusters(
  manager: Manager,
  namespace: string,
  services: readonly string[],
): ReadonlySet<string> | undefined {
  const names = services.flatMap((service) => {
    const label = manager.cluster.informers.get(Service, `${namespace}/${service}`)?.metadata.labels?.[
      KCP_CLUSTER_LABEL
    ]
    return label === undefined || label === '' ? [] : [label]
  })
  return names.length === 0 ? undefined : new Set(names)
}

function uidReader(): (client: Client) => Promise<string> {
  let uid: string | undefined
  return async (client) => {
    uid ??= (await client.get(Namespace, 'kube-system')).metadata.uid ?? ''
    return uid
  }
}
