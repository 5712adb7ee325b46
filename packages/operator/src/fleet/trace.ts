/**
 * A host of the fleet from its root to its addresses, for `seamark tree`, `seamark explain` and `seamark drain`. Reads the hub
 * only, and computes no decision again: what is shown is what the controllers stored.
 */
import { isIP } from 'node:net'
import { type Client, findCondition, type Immutable, isConditionTrue } from '@seamark/kube'
import { Cluster } from '../api/cluster.ts'
import { DNSLoadBalancerEndpoint } from '../api/dns-load-balancer-endpoint.ts'
import { GlobalIngress } from '../api/global-ingress.ts'
import { HostClaim } from '../api/host-claim.ts'
import { LeafIngress } from '../api/leaf-ingress.ts'
import { normalizeHost } from '@seamark/dialects'
import { type Reason, REASONS } from '../reasons.ts'
import { claimName } from './decide/host-claim.ts'
import { LEAF_CLUSTER_LABEL } from './names.ts'
import { ROOT_UID_LABEL } from '../hosts/root.ts'
import { type AnswerState, timeOf, type Waiting, waitingText } from '../verdict.ts'
import { ROOT_KINDS } from './roots/root-kinds.ts'

interface TracedLeaf {
  readonly cluster: string
  readonly clusterReady: string
  /** Somebody asked for it. */
  readonly isClusterDraining: boolean
  readonly phase: string
  readonly reason: string
  readonly isStale: boolean
  /** RFC 3339; undefined: it does not wait for a time. */
  readonly waitsUntil: string | undefined
  readonly addresses: readonly {
    readonly value: string
    readonly state: string
    /** What balance decided: `published`, `unhealthy`, … */
    readonly decided: string
    /** Undefined: it is not offered to balance. */
    readonly isPublished: boolean | undefined
  }[]
}

interface TracedRoot {
  readonly root: string
  readonly global: Immutable<GlobalIngress>
  readonly leaves: readonly TracedLeaf[]
  readonly isDeleting: boolean
}

export interface HostTrace {
  readonly host: string
  /** `Ingress shop/web`; undefined: no root claims the host. */
  readonly owner: string | undefined
  readonly roots: readonly TracedRoot[]
}

/** What is stored on the hub about one host. */
export interface TracedObjects {
  /** Every one that has the host. */
  readonly globals: readonly Immutable<GlobalIngress>[]
  /** At least those of the roots. */
  readonly leaves: readonly Immutable<LeafIngress>[]
  /** At least those of the roots, and of the owner of the host. */
  readonly endpoints: readonly Immutable<DNSLoadBalancerEndpoint>[]
  readonly findCluster: (name: string) => Immutable<Cluster> | undefined
  readonly claim: Immutable<HostClaim> | undefined
  /** Roots that are being deleted although no GlobalIngress says so yet. @default none */
  readonly deletedRoots?: ReadonlySet<string>
}

/** Undefined: no root of the fleet names the host. */
export async function traceHost(client: Client, given: string, signal?: AbortSignal): Promise<HostTrace | undefined> {
  const host = normalizeHost(given)
  const options = { signal }
  const [globals, leaves, clusters, endpoints, claim] = await Promise.all([
    client.list(GlobalIngress, options),
    client.list(LeafIngress, options),
    client.list(Cluster, options),
    client.list(DNSLoadBalancerEndpoint, options).catch(() => ({ items: [] })),
    client.find(HostClaim, claimName(host), options),
  ])
  const own = globals.items.filter((global) => hostsOf(global).includes(host))
  const clusterByName = new Map(clusters.items.map((cluster) => [cluster.metadata.name ?? '', cluster]))
  const deleted = await Promise.all(
    own.map(async (global) => ((await isRootDeleting(client, global, signal)) ? [global.spec.rootRef.uid] : [])),
  )
  return traceOf(host, {
    globals: own,
    leaves: leaves.items,
    endpoints: endpoints.items,
    findCluster: (name) => clusterByName.get(name),
    claim,
    deletedRoots: new Set(deleted.flat()),
  })
}

/** The hosts of a root, and the managed names of them. */
export function hostsOf({ spec }: Immutable<GlobalIngress>): string[] {
  return spec.hosts.flatMap(({ host, managed }) => (managed === undefined ? [host] : [host, managed]))
}

/** Undefined: no root of the fleet names the host. Pure. */
export function traceOf(host: string, objects: TracedObjects): HostTrace | undefined {
  const { globals, leaves, endpoints, findCluster, claim, deletedRoots = new Set() } = objects
  if (globals.length === 0 && claim === undefined) return undefined
  const [owner] = claim?.spec.owners ?? []
  const roots = globals.map((global): TracedRoot => {
    const uid = global.spec.rootRef.uid
    const offering = claim?.spec.owners.some((each) => each.uid === uid) === true ? (owner?.uid ?? uid) : uid
    const traced = leaves
      .filter(({ metadata }) => metadata.labels?.[ROOT_UID_LABEL] === uid)
      .map(({ spec, status }) => {
        const reported = new Map(
          endpoints
            .filter(
              ({ metadata }) =>
                metadata.labels?.[ROOT_UID_LABEL] === offering && metadata.labels[LEAF_CLUSTER_LABEL] === spec.cluster,
            )
            .map((endpoint) => [endpoint.spec.ipaddress ?? endpoint.spec.cname ?? '', endpoint]),
        )
        return {
          cluster: spec.cluster,
          clusterReady: findCondition(findCluster(spec.cluster)?.status?.conditions, 'Ready')?.reason ?? 'Unknown',
          isClusterDraining: isDraining(findCluster(spec.cluster)),
          phase: status?.phase ?? 'Pending',
          reason: status?.reason ?? 'ApplyPending',
          isStale: status?.stale === true,
          waitsUntil: status?.waitsUntil,
          addresses: (status?.addresses ?? []).map(({ value }) => {
            const offered = reported.get(value)
            const isActive = offered?.status?.active === true
            const address = {
              value,
              decided: decidedState(offered, isActive),
              isPublished: offered === undefined ? undefined : isActive,
            }
            const isSaid = isConditionTrue(global.status?.conditions, 'DNSPublished')
            return { ...address, state: answeredState(address, global.status?.answered, isSaid) }
          }),
        }
      })
      .sort((a, b) => (a.cluster < b.cluster ? -1 : 1))
    return {
      root: `${global.spec.rootRef.kind} ${global.metadata.namespace}/${global.spec.rootRef.name}`,
      global,
      leaves: traced,
      isDeleting: isReportedAsDeleting(global) || deletedRoots.has(uid),
    }
  })
  return {
    host,
    owner: claim === undefined ? undefined : `${owner?.kind ?? 'root'} ${claim.spec.namespace}/${owner?.name ?? ''}`,
    roots,
  }
}

function isDraining(cluster: Immutable<Cluster> | undefined): boolean {
  return cluster?.spec.drain?.enabled === true || cluster?.metadata.deletionTimestamp !== undefined
}

/** The conditions of the GlobalIngress say it as soon as the manager saw it. */
function isReportedAsDeleting({ metadata, status }: Immutable<GlobalIngress>): boolean {
  if (metadata.deletionTimestamp !== undefined || status?.withdrawnAt !== undefined) return true
  return findCondition(status?.conditions, 'Ready')?.reason === 'RootDeleted'
}

/** The root itself says it from the first moment. */
async function isRootDeleting(client: Client, global: GlobalIngress, signal?: AbortSignal): Promise<boolean> {
  if (isReportedAsDeleting(global)) return true
  const { kind, name, uid } = global.spec.rootRef
  const root = ROOT_KINDS.find((each) => each.kind.kind === kind)
  if (root === undefined) return false
  // Without the right to read roots, what the manager said counts.
  const live = await client.find(root.kind, `${global.metadata.namespace}/${name}`, { signal }).catch(() => undefined)
  return live?.metadata.uid === uid && live.metadata.deletionTimestamp !== undefined
}

/** What balance decided, and where DNS servers answer something else, that. `isSaid`: the manager says that all is answered. */
function answeredState(
  { value, decided, isPublished }: Omit<TracedLeaf['addresses'][number], 'state'>,
  answered: readonly string[] | undefined,
  isSaid: boolean,
): string {
  const isActive = isPublished === true
  const isRight = answered?.includes(value) === isActive
  // What a name resolves to is not known here.
  if (answered === undefined || isIP(value) === 0 || isRight)
    return decided === 'published' && (isRight || isSaid) ? 'answered' : decided
  return `${decided}, ${isActive ? 'not answered' : 'still answered'}`
}

function decidedState(endpoint: Immutable<DNSLoadBalancerEndpoint> | undefined, isActive: boolean): string {
  if (endpoint === undefined) return 'not offered'
  if (endpoint.spec.drain === true) return isActive ? 'draining' : 'withdrawn'
  if (isActive) return 'published'
  const { healthy } = endpoint.status ?? {}
  return healthy === undefined ? 'not probed yet' : healthy ? 'healthy' : 'unhealthy'
}

/** Addresses that DNS answers and no leaf of the root has. */
function othersAnswered({ global, leaves }: TracedRoot): string[] {
  const own = new Set(leaves.flatMap(({ addresses }) => addresses.map(({ value }) => value)))
  // A leaf whose address is a name: what DNS answers may be what the name resolves to.
  if ([...own].some((value) => isIP(value) === 0)) return []
  return (global.status?.answered ?? []).filter((value) => !own.has(value))
}

/** Addresses that balance publishes for the roots of a host; undefined: it is offered none. */
export function publishedAddresses({ roots }: HostTrace): string[] | undefined {
  const offered = roots.flatMap(({ leaves }) =>
    leaves.flatMap(({ addresses }) => addresses.filter(({ isPublished }) => isPublished !== undefined)),
  )
  if (offered.length === 0) return undefined
  return [...new Set(offered.filter(({ isPublished }) => isPublished === true).map(({ value }) => value))].sort()
}

/** What DNS servers answer for the host now; instead of what the manager found when it last asked them. */
export function withAnswered(trace: HostTrace, answered: readonly string[]): HostTrace {
  const roots = trace.roots.map(({ global, leaves, ...root }) => {
    const asked = { ...global, status: { ...global.status, answered: [...answered] } } as GlobalIngress
    const stated = leaves.map((leaf) => ({
      ...leaf,
      addresses: leaf.addresses.map((address) => ({ ...address, state: answeredState(address, answered, false) })),
    }))
    return { ...root, global: asked, leaves: stated }
  })
  return { ...trace, roots }
}

/** Root → leaves → addresses, with a word of state at each, the clusters without a leaf, and the verdict. */
export function printTree(trace: HostTrace, verdict: string): string {
  const { host, owner, roots } = trace
  const lines = [`${host}  ${owner === undefined ? 'unclaimed' : `claimed by ${owner}`}`]
  for (const [index, traced] of roots.entries()) {
    const { root, global, leaves } = traced
    const isLastRoot = index === roots.length - 1
    lines.push(`${isLastRoot ? '└─' : '├─'} ${root}  ${stateOfRoot(traced)}`)
    const margin = isLastRoot ? '   ' : '│  '
    for (const [position, leaf] of leaves.entries()) {
      const isLast = position === leaves.length - 1
      const stale = leaf.isStale ? ', stale' : ''
      const until = leaf.waitsUntil === undefined ? '' : `, until ${timeOf(leaf.waitsUntil)}`
      lines.push(
        `${margin}${isLast ? '└─' : '├─'} ${leaf.cluster} (${leaf.clusterReady})  ${leaf.phase} ${leaf.reason}${meaningOf(leaf)}${until}${stale}`,
      )
      for (const { value, state } of leaf.addresses)
        lines.push(`${margin}${isLast ? '   ' : '│  '}└─ ${value}  ${state}`)
    }
    for (const { clusters, reason, message } of global.status?.notPlaced ?? [])
      lines.push(`${margin}no leaf on ${clusters.join(', ')}  ${reason}: ${message}`)
    const others = othersAnswered(traced)
    if (others.length > 0)
      lines.push(`${margin}DNS answers ${others.join(', ')}, which no leaf has; seamark explain ${host} shows why`)
  }
  return `${[...lines, verdict].join('\n')}\n`
}

function stateOfRoot(root: TracedRoot): string {
  const deletion = deletionOf(root)
  if (deletion !== undefined) return waitingText(deletion)
  const ready = findCondition(root.global.status?.conditions, 'Ready')
  return ready === undefined ? 'Pending: not decided yet' : `${ready.reason}: ${ready.message}`
}

/** Why a leaf does not serve, in words. */
function meaningOf({ phase, reason }: { readonly phase: string; readonly reason: string }): string {
  return phase === 'Active' || !(reason in REASONS) ? '' : `: ${REASONS[reason as Reason]}`
}

export interface FleetHop {
  readonly name: 'claim' | 'policy' | 'placement' | 'leaf' | 'cluster' | 'endpoint' | 'answer'
  readonly state: 'ok' | 'degraded' | 'broken'
  readonly reason?: Reason
  readonly text: string
}

/** What DNS servers answer, as the conditions of the roots say; undefined: not known. */
export function storedAnswer({
  roots,
}: HostTrace): { readonly state: AnswerState; readonly hop: FleetHop } | undefined {
  const served = roots.filter(({ isDeleting }) => !isDeleting)
  const conditions = served.flatMap(({ global }) => findCondition(global.status?.conditions, 'DNSPublished') ?? [])
  const differs = conditions.find(({ reason }) => reason === 'AnswerDiffers')
  if (differs !== undefined)
    return {
      state: 'wrong',
      hop: { name: 'answer', state: 'broken', reason: 'AnswerDiffers', text: differs.message ?? '' },
    }
  const missing = conditions.find(({ status }) => status === 'False')
  if (missing !== undefined) return { state: 'nothing', hop: { name: 'answer', state: 'broken', ...textOf(missing) } }
  const [published] = conditions
  if (published?.status !== 'True') return undefined
  return { state: 'right', hop: { name: 'answer', state: 'ok', text: published.message ?? '' } }
}

function textOf({ reason, message }: { readonly reason: string; readonly message?: string }) {
  return { ...(reason in REASONS && { reason: reason as Reason }), text: message ?? '' }
}

/** What a deletion, a drain or a move that was asked for waits for. */
export function waitingOf({ roots }: HostTrace): Waiting | undefined {
  const deletions = roots.map(deletionOf)
  const [deletion] = deletions
  if (deletion !== undefined && !deletions.includes(undefined)) return deletion
  const waits = roots.flatMap(({ leaves, isDeleting }) => (isDeleting ? [] : leaves.flatMap((leaf) => leafWait(leaf))))
  return waits.toSorted((a, b) => ((a.until ?? '') < (b.until ?? '') ? 1 : -1))[0]
}

function deletionOf({ isDeleting, global: { status } }: TracedRoot): Waiting | undefined {
  if (!isDeleting) return undefined
  if (status?.withdrawnAt !== undefined)
    return {
      what: 'deleted',
      waitsFor: 'caches that may have its addresses',
      ...(status.leavesUntil !== undefined && { until: status.leavesUntil }),
    }
  const isAnswered = findCondition(status?.conditions, 'DNSPublished')?.reason === 'WaitingForDns'
  return {
    what: 'deleted',
    waitsFor: isAnswered ? 'DNS servers that still answer its leaves' : 'the withdrawal of its DNS records',
  }
}

/** Of a leaf that drains; none for one that has nothing to wait for because it cannot be replaced. */
function leafWait({ phase, reason, cluster, isClusterDraining, waitsUntil }: TracedLeaf): Waiting[] {
  const waitsFor = phase === 'Draining' || phase === 'Drained' ? WAITS[reason]?.(cluster) : undefined
  if (waitsFor === undefined) return []
  const what = isClusterDraining ? 'drained' : 'moved'
  return [{ what, waitsFor, ...(waitsUntil !== undefined && { until: waitsUntil }) }]
}

const WAITS: Readonly<Record<string, (cluster: string) => string>> = {
  ReplacementNotAnswered: (cluster) => `DNS servers to answer a leaf that takes over from ${cluster}`,
  WaitingForDns: (cluster) => `DNS servers that still answer ${cluster}`,
  DrainWait: (cluster) => `caches that may have the addresses of ${cluster}`,
  DrainCompleted: (cluster) => `${cluster} to confirm that its leaf is gone`,
  DrainDeadlineReached: (cluster) => `${cluster} to confirm that its leaf is gone`,
}

/** The hops of `seamark explain` in front of the DNS records. */
export function fleetHops({ host, owner, roots }: HostTrace): FleetHop[] {
  const hops: FleetHop[] = []
  const add = (name: FleetHop['name'], state: FleetHop['state'], reason: string | undefined, text: string): void => {
    const known = reason !== undefined && reason in REASONS ? (reason as Reason) : undefined
    hops.push({ name, state, ...(known !== undefined && state !== 'ok' && { reason: known }), text })
  }
  add(
    'claim',
    owner === undefined ? 'broken' : 'ok',
    'HostsNotOwned',
    owner === undefined ? `no root owns ${host}` : `${host} is owned by ${owner}`,
  )
  const isServing = roots.some(({ leaves }) => leaves.some(serves))
  for (const traced of roots) {
    const { root, global, leaves, isDeleting } = traced
    const { spec, status } = global
    const source = status?.policy === undefined ? '' : ` (${status.policy})`
    const settings = `${spec.strategy}, TTL ${spec.ttlSeconds} s, ${spec.onAllUnhealthy}`
    add('policy', 'ok', undefined, `${root}: ${settings}${source}`)
    const deletion = deletionOf(traced)
    if (deletion === undefined) {
      const placement = placementOf(traced)
      const state = placement.isOk ? 'ok' : isServing ? 'degraded' : 'broken'
      add('placement', state, placement.reason, placement.text)
    } else add('placement', 'ok', undefined, `${root} is ${waitingText(deletion)}`)
    const blocked = blockOf(traced)
    if (blocked !== undefined) add('endpoint', blocked.state, blocked.reason, blocked.text)
    for (const leaf of leaves) {
      const addresses = leaf.addresses.map(({ value, state }) => `${value} ${state}`).join(', ')
      const until = leaf.waitsUntil === undefined ? '' : `, until ${timeOf(leaf.waitsUntil)}`
      const text = `${leaf.cluster}: ${leaf.phase}${until}${addresses === '' ? '' : `, ${addresses}`}`
      add('leaf', isDeleting ? 'ok' : leafState(leaf, isServing), leaf.reason, text)
      const isReady = leaf.clusterReady === 'ClusterReady'
      // That its API server cannot be reached does not mean that its ingress cannot.
      add('cluster', isReady ? 'ok' : 'degraded', leaf.clusterReady, `${leaf.cluster}: ${leaf.clusterReady}`)
    }
  }
  return hops
}

/** What the manager lacks to publish the hosts: before the leaves, which wait for it. */
function blockOf({ global: { status } }: TracedRoot) {
  const degraded = findCondition(status?.conditions, 'Degraded')
  if (degraded?.status !== 'True' || !BLOCKS.has(degraded.reason)) return undefined
  const isPublished = findCondition(status?.conditions, 'DNSPublished')?.status === 'True'
  return {
    state: isPublished ? ('degraded' as const) : ('broken' as const),
    reason: degraded.reason,
    text: degraded.message ?? '',
  }
}

const BLOCKS: ReadonlySet<string> = new Set<Reason>(['CRDNotInstalled', 'WatchForbidden'])

function serves({ phase, reason }: TracedLeaf): boolean {
  return phase === 'Active' || (phase === 'Draining' && reason === 'NoReplacement')
}

/** One that drains as it was asked for is as it should be; one that fails is not, and clients notice it when no other serves. */
function leafState({ phase, reason }: TracedLeaf, isServing: boolean): FleetHop['state'] {
  if (reason === 'NoReplacement') return 'degraded'
  if (phase === 'Active' || phase === 'Draining' || phase === 'Drained') return 'ok'
  return isServing ? 'degraded' : 'broken'
}

/** Of a root without leaves the reason of Ready: it may have been placed, and no leaf could be made of it. */
function placementOf({ global: { status }, leaves }: TracedRoot) {
  const placed = findCondition(status?.conditions, 'Placed')
  const ready = findCondition(status?.conditions, 'Ready')
  const isWithoutLeaf = leaves.length === 0 && ready?.status === 'False'
  const { reason, message } = (isWithoutLeaf ? ready : placed) ?? { reason: undefined, message: 'not planned yet' }
  // The condition names the first clusters only.
  const [first = ''] = (message ?? '').split('; not on ')
  const others = (status?.notPlaced ?? []).map((each) => `not on ${each.clusters.join(', ')}: ${each.message}`)
  return { isOk: !isWithoutLeaf && placed?.status !== 'False', reason, text: [first, ...others].join('; ') }
}
