/**
 * A host of the fleet from its root to its addresses, for `seamark tree`, `seamark explain` and `seamark drain`. Reads the hub
 * only, and computes no decision again: what is shown is what the controllers stored.
 */
import { isIP } from 'node:net'
import { type Client, findCondition } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
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

interface TracedLeaf {
  readonly cluster: string
  readonly clusterReady: string
  readonly phase: string
  readonly reason: string
  readonly isStale: boolean
  readonly addresses: readonly {
    readonly value: string
    readonly state: string
    /** Undefined: it is not offered to balance. */
    readonly isPublished: boolean | undefined
  }[]
}

interface TracedRoot {
  readonly root: string
  readonly global: GlobalIngress
  readonly leaves: readonly TracedLeaf[]
}

export interface HostTrace {
  readonly host: string
  /** `Ingress shop/web`; undefined: no root claims the host. */
  readonly owner: string | undefined
  readonly roots: readonly TracedRoot[]
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
  const own = globals.items.filter(({ spec }) => spec.hosts.some((each) => each.host === host || each.managed === host))
  const [owner] = claim?.spec.owners ?? []
  if (own.length === 0 && claim === undefined) return undefined
  const ready = new Map(
    clusters.items.map((cluster) => [cluster.metadata.name ?? '', findCondition(cluster.status?.conditions, 'Ready')]),
  )
  const roots = own.map((global) => {
    const uid = global.spec.rootRef.uid
    const traced = leaves.items
      .filter(({ metadata }) => metadata.labels?.[ROOT_UID_LABEL] === uid)
      .map(({ spec, status }) => {
        const reported = new Map(
          endpoints.items
            .filter(
              ({ metadata }) =>
                metadata.labels?.[ROOT_UID_LABEL] === uid && metadata.labels[LEAF_CLUSTER_LABEL] === spec.cluster,
            )
            .map((endpoint) => [endpoint.spec.ipaddress ?? endpoint.spec.cname ?? '', endpoint]),
        )
        return {
          cluster: spec.cluster,
          clusterReady: ready.get(spec.cluster)?.reason ?? 'Unknown',
          phase: status?.phase ?? 'Pending',
          reason: status?.reason ?? 'ApplyPending',
          isStale: status?.stale === true,
          addresses: (status?.addresses ?? []).map(({ value }) => ({
            value,
            state: stateOf(value, reported.get(value), global.status?.answered),
            isPublished: reported.has(value) ? reported.get(value)?.status?.active === true : undefined,
          })),
        }
      })
      .sort((a, b) => (a.cluster < b.cluster ? -1 : 1))
    return {
      root: `${global.spec.rootRef.kind} ${global.metadata.namespace}/${global.spec.rootRef.name}`,
      global,
      leaves: traced,
    }
  })
  return {
    host,
    owner: claim === undefined ? undefined : `${owner?.kind ?? 'root'} ${claim.spec.namespace}/${owner?.name ?? ''}`,
    roots,
  }
}

/** What balance decided, and where DNS servers answer something else, that. `answered`: undefined, they were not asked. */
function stateOf(
  value: string,
  endpoint: DNSLoadBalancerEndpoint | undefined,
  answered: readonly string[] | undefined,
): string {
  const isActive = endpoint?.status?.active === true
  const decided = decidedState(endpoint, isActive)
  // What a name resolves to is not known here.
  if (answered === undefined || isIP(value) === 0 || answered.includes(value) === isActive) return decided
  return isActive ? `${decided === 'answered' ? 'published' : decided}, not answered` : `${decided}, still answered`
}

function decidedState(endpoint: DNSLoadBalancerEndpoint | undefined, isActive: boolean): string {
  if (endpoint === undefined) return 'not offered'
  if (endpoint.spec.drain === true) return isActive ? 'draining' : 'withdrawn'
  if (isActive) return 'answered'
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

/** Root → leaves → addresses, with a word of state at each. */
export function printTree({ host, owner, roots }: HostTrace): string {
  const lines = [`${host}  ${owner === undefined ? 'unclaimed' : `claimed by ${owner}`}`]
  for (const [index, { root, global, leaves }] of roots.entries()) {
    const isLastRoot = index === roots.length - 1
    const ready = findCondition(global.status?.conditions, 'Ready')
    const state = ready === undefined ? 'Pending: not decided yet' : `${ready.reason}: ${ready.message}`
    lines.push(`${isLastRoot ? '└─' : '├─'} ${root}  ${state}`)
    const margin = isLastRoot ? '   ' : '│  '
    for (const [position, leaf] of leaves.entries()) {
      const isLast = position === leaves.length - 1
      const stale = leaf.isStale ? ', stale' : ''
      lines.push(
        `${margin}${isLast ? '└─' : '├─'} ${leaf.cluster} (${leaf.clusterReady})  ${leaf.phase} ${leaf.reason}${meaningOf(leaf)}${stale}`,
      )
      for (const { value, state } of leaf.addresses)
        lines.push(`${margin}${isLast ? '   ' : '│  '}└─ ${value}  ${state}`)
    }
    const others = othersAnswered({ root, global, leaves })
    if (others.length > 0)
      lines.push(`${margin}DNS answers ${others.join(', ')}, which no leaf has; seamark explain ${host} shows why`)
  }
  return `${lines.join('\n')}\n`
}

/** Why a leaf does not serve, in words. */
function meaningOf({ phase, reason }: { readonly phase: string; readonly reason: string }): string {
  return phase === 'Active' || !(reason in REASONS) ? '' : `: ${REASONS[reason as Reason]}`
}

export interface FleetHop {
  readonly name: 'claim' | 'policy' | 'placement' | 'leaf' | 'cluster'
  readonly state: 'ok' | 'broken'
  readonly reason?: Reason
  readonly text: string
}

/** The hops of `seamark explain` in front of the DNS records. */
export function fleetHops({ host, owner, roots }: HostTrace): FleetHop[] {
  const hops: FleetHop[] = []
  const add = (name: FleetHop['name'], isOk: boolean, reason: string | undefined, text: string): void => {
    const known = reason !== undefined && reason in REASONS ? (reason as Reason) : undefined
    hops.push({ name, state: isOk ? 'ok' : 'broken', ...(known !== undefined && !isOk && { reason: known }), text })
  }
  add(
    'claim',
    owner !== undefined,
    'HostsNotOwned',
    owner === undefined ? `no root owns ${host}` : `${host} is owned by ${owner}`,
  )
  for (const { root, global, leaves } of roots) {
    const { spec, status } = global
    const placed = findCondition(status?.conditions, 'Placed')
    const source = status?.policy === undefined ? '' : ` (${status.policy})`
    const settings = `${spec.strategy}, TTL ${spec.ttlSeconds} s, ${spec.onAllUnhealthy}`
    add('policy', true, undefined, `${root}: ${settings}${source}`)
    add('placement', placed?.status !== 'False', placed?.reason, placed?.message ?? 'not planned yet')
    for (const leaf of leaves) {
      const addresses = leaf.addresses.map(({ value, state }) => `${value} ${state}`).join(', ')
      const isOk = leaf.phase === 'Active' || leaf.phase === 'Draining' || leaf.phase === 'Drained'
      add('leaf', isOk, leaf.reason, `${leaf.cluster}: ${leaf.phase}${addresses === '' ? '' : `, ${addresses}`}`)
      add('cluster', leaf.clusterReady === 'ClusterReady', leaf.clusterReady, `${leaf.cluster}: ${leaf.clusterReady}`)
    }
  }
  return hops
}

export interface DrainPreview {
  /** Roots with a leaf on the cluster, and where their traffic goes. */
  readonly moves: readonly {
    readonly root: string
    readonly hosts: readonly string[]
    /** Clusters that serve it. */
    readonly to: readonly string[]
    /** Clusters of which one gets a leaf when no other serves. */
    readonly spares: readonly string[]
  }[]
  /** Roots that no other cluster serves or could serve. */
  readonly dark: readonly string[]
}

/** What draining a cluster does, from the stored state. */
export async function previewDrain(client: Client, cluster: string, signal?: AbortSignal): Promise<DrainPreview> {
  const [globals, leaves] = await Promise.all([
    client.list(GlobalIngress, { signal }),
    client.list(LeafIngress, { signal }),
  ])
  const moves: { root: string; hosts: string[]; to: string[]; spares: string[] }[] = []
  for (const global of globals.items) {
    const own = leaves.items.filter(({ metadata }) => metadata.labels?.[ROOT_UID_LABEL] === global.spec.rootRef.uid)
    if (!own.some(({ spec }) => spec.cluster === cluster)) continue
    const to = own
      .filter(
        ({ spec, status }) => spec.cluster !== cluster && status?.phase === 'Active' && spec.lifecycle === 'Active',
      )
      .map(({ spec }) => spec.cluster)
    moves.push({
      root: keyOf({ metadata: { ...global.metadata, name: global.spec.rootRef.name } }),
      hosts: global.spec.hosts.map(({ host }) => host),
      to: to.sort(),
      spares: (global.status?.spareClusters ?? []).filter((name) => name !== cluster),
    })
  }
  const dark = moves.filter(({ to, spares }) => to.length === 0 && spares.length === 0)
  return { moves, dark: dark.map(({ root }) => root) }
}
