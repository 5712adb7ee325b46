/**
 * From a GlobalIngress and the roles of its leaves to the objects of the balance capability: per host one DNSLoadBalancer,
 * and per address of an offered leaf one DNSLoadBalancerEndpoint. Pure.
 *
 * Guarantees: names are deterministic. A leaf that is withdrawn keeps its endpoints with `drain: true`, which balance leaves
 * out only while another endpoint can serve. The share of a cluster does not depend on how many addresses it has.
 */
import type { Immutable } from '@seamark/kube/object'
import type { DNSLoadBalancerEndpoint } from '../../api/dns-load-balancer-endpoint.ts'
import type { DNSLoadBalancer } from '../../api/dns-load-balancer.ts'
import type { GlobalIngressSpec } from '../../api/global-ingress.ts'
import type { LeafAddress } from '../../api/leaf-ingress.ts'
import { balancerName, endpointName, LEAF_CLUSTER_LABEL } from '../names.ts'
import { isNameOf } from '../../health/policy.ts'
import { ROOT_UID_LABEL } from '../../hosts/root.ts'
import type { DnsRole } from './leaf-phase.ts'

export interface FeedLeaf {
  readonly cluster: string
  readonly role: DnsRole
  readonly addresses: readonly LeafAddress[]
}

export interface FeedFacts {
  readonly name: string
  readonly namespace: string
  readonly spec: Immutable<GlobalIngressSpec>
  readonly leaves: readonly FeedLeaf[]
  /** Clusters on which every other root that shares a host serves too; undefined: the host is not shared. */
  readonly sharedClusters: (host: string) => ReadonlySet<string> | undefined
  /** Hosts whose DNS objects another root of the namespace writes. */
  readonly isLedByOther: (host: string) => boolean
}

export interface Feed {
  readonly balancers: readonly DNSLoadBalancer[]
  readonly endpoints: readonly DNSLoadBalancerEndpoint[]
  /** Shared hosts that no cluster serves completely. */
  readonly partialHosts: readonly string[]
}

export function feedBalance(facts: FeedFacts): Feed {
  const balancers: DNSLoadBalancer[] = []
  const endpoints: DNSLoadBalancerEndpoint[] = []
  const partialHosts: string[] = []
  if (!facts.spec.published) return { balancers, endpoints, partialHosts }
  const offered = facts.leaves.filter(({ role }) => role !== 'none')
  for (const { host, managed } of facts.spec.hosts) {
    const isOwn = !facts.isLedByOther(host)
    if (!isOwn && managed === undefined) continue
    const shared = facts.sharedClusters(host)
    const isPartial = shared !== undefined && !offered.some(({ cluster }) => shared.has(cluster))
    if (isPartial && offered.length > 0) partialHosts.push(host)
    // Where not every root serves the host is probed, and answered while it is served nowhere else.
    const leaves = offered.map((leaf): FeedLeaf =>
      shared === undefined || isPartial || shared.has(leaf.cluster) ? leaf : { ...leaf, role: 'withdraw' },
    )
    for (const name of [...(isOwn ? [host] : []), ...(managed === undefined ? [] : [managed])]) {
      const balancer = balancerOf(name, facts)
      balancers.push(balancer)
      endpoints.push(...endpointsOf(balancer.metadata.name ?? '', leaves, facts))
    }
  }
  return { balancers, endpoints, partialHosts }
}

function balancerOf(host: string, { name, namespace, spec }: FeedFacts): DNSLoadBalancer {
  const { health } = spec
  const seconds = (value: number) => `${value}s`
  return {
    metadata: { name: balancerName(name, host), namespace, labels: { [ROOT_UID_LABEL]: spec.rootRef.uid } },
    spec: {
      DNSName: host,
      type: spec.strategy === 'failover' ? 'Exclusive' : 'Balanced',
      ttl: spec.ttlSeconds,
      onAllUnhealthy: spec.onAllUnhealthy,
      ...(spec.strategy === 'failover' && { failBack: spec.failback === 'Auto' ? 'Always' : 'Never' }),
      ...(health.path !== undefined && { healthPath: health.path }),
      healthCheck: {
        scheme: health.scheme,
        port: health.port,
        ...probeHost(host, spec),
        ...(health.statusCodes !== undefined && { statusCodes: [...health.statusCodes] }),
        ...(health.expectedStatus !== undefined && { expectedStatus: [...health.expectedStatus] }),
        ...(health.intervalSeconds !== undefined && { interval: seconds(health.intervalSeconds) }),
        ...(health.timeoutSeconds !== undefined && { timeout: seconds(health.timeoutSeconds) }),
        ...(health.rise !== undefined && { rise: health.rise }),
        ...(health.fall !== undefined && { fall: health.fall }),
      },
    },
  }
}

/**
 * A policy has one Host header for all names of its roots. Where it is another name of this root, the name is asked for itself;
 * balance judges any other.
 */
function probeHost(name: string, { health, hosts }: Immutable<GlobalIngressSpec>): { host?: string } {
  const asked = health.host
  if (asked === undefined) return {}
  const isOfAnother = hosts.some(({ host, managed }) => [host, managed ?? host].some((each) => isNameOf(each, asked)))
  return isOfAnother && !isNameOf(name, asked) ? {} : { host: asked }
}

function endpointsOf(balancer: string, leaves: readonly FeedLeaf[], facts: FeedFacts): DNSLoadBalancerEndpoint[] {
  const { spec, namespace } = facts
  const settings = new Map(spec.clusters.map((cluster) => [cluster.name, cluster]))
  const weights = splitWeights(
    leaves.map(({ cluster, addresses }) => ({
      weight: spec.strategy === 'weighted' ? (settings.get(cluster)?.weight ?? 100) : 1,
      parts: addresses.length,
    })),
  )
  return leaves.flatMap(({ cluster, role, addresses }, index) =>
    addresses.map(({ type, value }) => ({
      metadata: {
        name: endpointName(balancer, cluster, value),
        namespace,
        labels: { [LEAF_CLUSTER_LABEL]: cluster, [ROOT_UID_LABEL]: spec.rootRef.uid },
      },
      spec: {
        loadbalancer: balancer,
        ...(type === 'IPAddress' ? { ipaddress: value } : { cname: value }),
        weight: weights[index] ?? 1,
        ...(spec.strategy === 'failover' && { priority: settings.get(cluster)?.priority ?? 0 }),
        ...regionOf(spec, settings.get(cluster)?.geo),
        ...(role === 'withdraw' && { drain: true }),
      },
    })),
  )
}

/** With the strategy geo: where the cluster is. Without a usable name it serves every region. */
function regionOf({ strategy }: Immutable<GlobalIngressSpec>, geo: string | undefined): { geo?: string } {
  return strategy === 'geo' && geo !== undefined && /^\S{1,63}$/.test(geo) ? { geo } : {}
}

/** The largest weight of an endpoint. */
const MAX_WEIGHT = 1000

/**
 * The weight of each of the `parts` of a cluster, so that clusters have shares in the ratio of their weights whatever the
 * number of their parts: exact while the common multiple fits, else rounded, but never to 0.
 */
export function splitWeights(shares: readonly { readonly weight: number; readonly parts: number }[]): number[] {
  const used = shares.filter(({ weight, parts }) => weight > 0 && parts > 0)
  const multiple = used.reduce((product, { parts }) => lcm(product, parts), 1)
  const exact = shares.map(({ weight, parts }) => (parts > 0 ? (weight * multiple) / parts : 0))
  const divisor = exact.reduce((common, value) => gcd(common, value), 0) || 1
  const reduced = exact.map((value) => value / divisor)
  const largest = Math.max(1, ...reduced)
  if (largest <= MAX_WEIGHT) return reduced
  return reduced.map((value) => (value === 0 ? 0 : Math.max(1, Math.round((value * MAX_WEIGHT) / largest))))
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b)
}

function lcm(a: number, b: number): number {
  return (a / gcd(a, b)) * b
}
