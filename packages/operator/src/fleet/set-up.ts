/**
 * The fleet as controllers of the manager: Clusters, roots of each kind, the syncer of each member, and GlobalIngresses whose
 * root is gone.
 */
import {
  type Client,
  EndpointSlice,
  type Immutable,
  IngressClass,
  type Manager,
  Namespace,
  type Obj,
  Service,
  untilAborted,
  parseDurationMs,
} from '@seamark/kube'
import type { NameRule } from '@seamark/dialects'
import { isWithin } from '../rrset/rrset.ts'
import { createDnsClient, type DnsClient } from '@seamark/dns'
import { keyOf, type Kind } from '@seamark/kube/object'
import { Cluster } from '../api/cluster.ts'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import { type Finding, warning } from '../finding.ts'
import { findKindFaults } from '../process/reports/kind-faults.ts'
import { DNSLoadBalancerEndpoint } from '../api/dns-load-balancer-endpoint.ts'
import { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import { DomainVerification } from '../api/domain-verification.ts'
import { Gateway, GatewayClass } from '@seamark/kube/gateway-api'
import { DEFAULT_POLICY_NAME, GlobalIngressPolicy } from '../api/global-ingress-policy.ts'
import { GlobalIngress } from '../api/global-ingress.ts'
import { HostClaim } from '../api/host-claim.ts'
import { LeafIngress } from '../api/leaf-ingress.ts'
import type { MemberRegistry } from '../clusters/member-registry.ts'
import type { ProductMetrics } from '../metrics.ts'
import { Claims } from './claims.ts'
import { setUpClusters } from './members/cluster-controller.ts'
import type { FleetOptions } from './config.ts'
import type { AuthoritativeClient } from '../authority/answers.ts'
import { AuthoritativeDns } from './dns/authoritative-dns.ts'
import { lookupTxt, setUpDomains } from './dns/domain-controller.ts'
import { findServersBy, type OwnServers } from '../authority/name-servers.ts'
import { BACKEND_CACHE_LIMITS } from './members/limits.ts'
import { MemberViews, trimSlice } from './members/member-view.ts'
import { KCP_CLUSTER_LABEL, ROOT_ANNOTATION, ROOT_KIND_LABEL } from './names.ts'
import { isReportOnly, rootBatchMs } from './reconcile/root-batch.ts'
import { isRoot } from '../hosts/root.ts'
import { createRootIndexes } from './roots/root-indexes.ts'
import { RootReconciler } from './reconcile/root-reconciler.ts'
import { RootTriggers } from './reconcile/root-triggers.ts'
import type { RootKind } from './roots/root-kind.ts'
import { ROOT_KINDS } from './roots/root-kinds.ts'
import { setUpStrayLeaves } from './reconcile/stray-leaf-controller.ts'
import { PlannedLeaves } from './members/planned-leaves.ts'
import { SyncResults } from './members/sync-results.ts'
import { setUpSyncer, type SyncerOptions } from './members/syncer.ts'
import { setUpOrphans } from './reconcile/orphan-controller.ts'
import { Teardown } from './reconcile/teardown.ts'

export interface FleetSetUp {
  readonly options: FleetOptions
  /** The names that a namespace may use. */
  readonly findNameFault: NameRule
  readonly registry: MemberRegistry
  readonly metrics: ProductMetrics
  readonly namespace: string
  /** Asks authoritative servers. @default over UDP and TCP */
  readonly dnsClient?: (AuthoritativeClient & Pick<DnsClient, 'close'>) | undefined
  readonly ownServers: OwnServers
  /** Every zone in which a host can be answered, canonical; undefined: others may answer it. */
  readonly zones?: () => readonly string[]
  readonly isWriting: () => boolean
  readonly untilMayWrite: (running: { readonly signal: AbortSignal }) => Promise<unknown> | undefined
  /** What the syncers of members need beside these. */
  readonly secondWriter: SyncerOptions['secondWriter']
  readonly heldObjects: SyncerOptions['heldObjects']
  readonly massLimits: SyncerOptions['massLimits']
  readonly notify: SyncerOptions['notify']
  readonly clock: SyncerOptions['clock']
}

const CONCURRENCY = 16

export function setUpFleet(manager: Manager, setUp: FleetSetUp): void {
  const { options, registry, metrics, namespace, isWriting, untilMayWrite } = setUp
  const views = new MemberViews(manager, registry)
  const results = new SyncResults()
  const planned = new PlannedLeaves()
  const hubUid = uidReader()
  const hubId = async (client: Client): Promise<string> => options.hubId || (await hubUid(client))
  manager.cache(EndpointSlice, { projection: trimSlice, limits: BACKEND_CACHE_LIMITS })
  const reader = manager.cluster.informers
  const isSelected = (kind: RootKind, object: Immutable<Obj>) => isRoot(kind, object, options.roots, reader)
  const claims = new Claims(manager, isSelected, setUp.findNameFault)
  const indexes = createRootIndexes(manager, options.dns)
  const client = setUp.dnsClient ?? createDnsClient({ tries: 2 })
  const nowMs = (): number => performance.now()
  const findServers = findServersBy(
    { configured: options.dnsServers, ownServers: setUp.ownServers, resolver: '' },
    nowMs,
  )
  const dns = options.verifyDns ? new AuthoritativeDns({ client, findServers }) : undefined
  const teardown = new Teardown({
    indexes,
    views,
    results,
    planned,
    claims,
    registry,
    dns,
    orphanAfterMs: options.orphanAfterSeconds * 1000,
  })
  const leavesByCluster = manager.index(LeafIngress, 'cluster', ({ spec }) => [spec.cluster])
  const batchMs = (): number => rootBatchMs(manager.fleet.members.size)
  const contactMs = parseDurationMs(options.contactInterval) ?? 0
  setUpClusters(manager, { registry, views, metrics, leavesByCluster, contactMs, batchMs, isWriting, untilMayWrite })
  setUpSyncer(manager, {
    hasTlsSecrets: options.tlsSecrets,
    results,
    planned,
    views,
    metrics,
    leavesByCluster,
    hubId,
    isWriting,
    untilMayWrite,
    secondWriter: setUp.secondWriter,
    heldObjects: setUp.heldObjects,
    massLimits: setUp.massLimits,
    notify: setUp.notify,
    clock: setUp.clock,
  })
  const triggers = new RootTriggers(manager, { results, leavesByCluster, batchMs })
  const reconciler = new RootReconciler({
    options,
    dns,
    namespace,
    claims,
    views,
    results,
    planned,
    metrics,
    indexes,
    teardown,
    batchMs,
    isWriting,
    untilMayWrite,
    hubUid,
    labelledClusters: (where, services) => labelledClusters(manager, where, services),
    findBlocked: (hosts) => findBlocked(manager, hosts, setUp.zones?.()),
  })
  for (const kind of ROOT_KINDS) setUpRoots(manager, kind, { options, claims, reconciler, triggers, batchMs })
  setUpStrayLeaves(manager, { indexes, isWriting, untilMayWrite })
  setUpOrphans(manager, { teardown, isWriting, untilMayWrite })
  setUpDomains(manager, {
    lookupTxt: async (name) => lookupTxt(name, client, findServers),
    isWriting,
    untilMayWrite,
  })
  manager.add('fleet-dns', async ({ signal }) => {
    await untilAborted(signal)
    await client.close()
  })
}

/** Without them no host is published. */
const DNS_KINDS: ReadonlySet<Kind> = new Set<Kind>([DNSLoadBalancer, DNSLoadBalancerEndpoint, DNSEndpoint])

function findBlocked(
  { cluster }: Manager,
  hosts: readonly string[],
  zones: readonly string[] | undefined,
): Finding | undefined {
  const denied = findKindFaults(cluster.informers, DNS_KINDS).find(({ kind }) => DNS_KINDS.has(kind))?.finding
  const outside =
    zones === undefined ? undefined : hosts.find((host) => !zones.some((zone) => isWithin(`${host}.`, zone)))
  if (denied !== undefined || outside === undefined || zones === undefined) return denied
  const names = zones.map((zone) => zone.replace(/\.$/, '')).join(', ')
  return warning(
    'NoMatchingZone',
    `${outside} is in no zone of this manager (${names}); add it to dns.zones, or a provider for it to records.providers; fleet.answeredElsewhere: true says that ExternalDNS or another manager answers it`,
  )
}

interface RootWiring {
  readonly options: FleetOptions
  readonly claims: Claims
  readonly reconciler: RootReconciler
  readonly triggers: RootTriggers
  readonly batchMs: () => number
}

function setUpRoots(
  manager: Manager,
  kind: RootKind,
  { options, claims, reconciler, triggers, batchMs }: RootWiring,
): void {
  const isOptional = kind.kind.kind !== 'Ingress'
  const toRoot = ({ metadata }: Immutable<Obj>): string[] =>
    metadata.labels?.[ROOT_KIND_LABEL] === kind.kind.kind
      ? [`${metadata.namespace}/${metadata.annotations?.[ROOT_ANNOTATION] ?? ''}`]
      : []
  const toRoots = (object: Immutable<Obj>, cache: Pick<Manager['cluster']['informers'], 'by'>): string[] => [
    ...toRoot(object),
    ...claims.sharersOf(kind, object, cache),
  ]
  const everyRoot = (cache: { list: Manager['cluster']['informers']['list'] }): string[] =>
    cache.list(kind.kind).map(keyOf)
  const builder = manager
    .controller<Obj>(`fleet-${kind.kind.plural}`, kind.kind, {
      concurrency: CONCURRENCY,
      timeout: '1m',
      optional: isOptional,
      batchMs: (change) => (isReportOnly(change) ? batchMs() : 0),
    })
    .watches(GlobalIngress, toRoot, { batchMs })
    .watches(LeafIngress, toRoots, { batchMs })
    .watches(HostClaim, ({ spec }, cache) => claims.waitersFor(kind, spec.host, cache).map(keyOf))
    .watches(GlobalIngressPolicy, ({ metadata }, cache) =>
      cache.list(kind.kind, metadata.name === DEFAULT_POLICY_NAME ? undefined : metadata.namespace).map(keyOf),
    )
    .watches(DomainVerification, ({ metadata }, cache) => cache.list(kind.kind, metadata.namespace).map(keyOf))
    .watches(Cluster, (_cluster, cache) => everyRoot(cache), { when: isPlacementChange, batchMs })
    .watches(Service, ({ metadata }, cache) => triggers.byBackend(kind, metadata, cache), {
      labelSelector: KCP_CLUSTER_LABEL,
    })
  if (options.dns)
    builder
      .watches(DNSLoadBalancer, toRoot, { optional: true, batchMs })
      .watches(DNSLoadBalancerEndpoint, toRoots, { optional: true, batchMs })
  if (kind.kind.kind === 'Ingress') builder.watches(IngressClass, (_class, cache) => everyRoot(cache))
  if (kind.kind.kind === 'HTTPRoute')
    builder
      .watches(Gateway, (_gateway, cache) => everyRoot(cache), { optional: true })
      .watches(GatewayClass, (_class, cache) => everyRoot(cache), { optional: true })
  if (options.dns)
    builder.triggers((mark) =>
      manager.cluster.informers.onHealthChange((informer) => {
        const roots = manager.cluster.informers.informer(kind.kind)
        if (DNS_KINDS.has(informer.kind) && roots.hasSynced) mark(everyRoot(manager.cluster.informers))
      }),
    )
  // An older root keeps a host from the younger ones before it has a claim.
  for (const rival of ROOT_KINDS)
    builder.watches<Obj>(
      rival.kind,
      (object, cache) => rival.hostsOf(object).flatMap((host) => claims.rootsOf(kind, host, cache).map(keyOf)),
      {
        optional: rival.kind.kind !== 'Ingress',
        when: (change) => change.type === 'deleted' || (change.type === 'updated' && !isReportOnly(change)),
      },
    )
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
