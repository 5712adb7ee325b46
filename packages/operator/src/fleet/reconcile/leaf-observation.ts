/** What is known about a leaf: its objects on the member, its endpoints, and what balance says about its addresses. */
import { cleanText, type Kind, keyOf } from '@seamark/kube'
import type { Immutable, Obj } from '@seamark/kube/object'
import type { Cluster } from '../../api/cluster.ts'
import type { DNSLoadBalancerEndpoint } from '../../api/dns-load-balancer-endpoint.ts'
import type { LeafIngress } from '../../api/leaf-ingress.ts'
import { parseAddress } from '@seamark/dialects'
import type { FindRemote } from './confirmed-facts.ts'
import type { LeafObservation } from '../decide/leaf-phase.ts'
import type { MemberViews } from '../members/member-view.ts'
import { HASH_ANNOTATION, LEAF_CLUSTER_LABEL } from '../names.ts'
import { usableManifests } from '../decide/leaf-check.ts'
import { type Admission, leafAddresses, type Manifest, type RootKind } from '../roots/root-kind.ts'
import { ROOT_KINDS } from '../roots/root-kinds.ts'

export interface ObservationDeps {
  readonly views: MemberViews
  readonly findRemote: FindRemote
  /** Endpoints of the root, by cluster. */
  readonly endpoints: EndpointsByCluster
  /** Those of hosts that another root leads. */
  readonly ledEndpoints: EndpointsByCluster
}

type EndpointsByCluster = ReadonlyMap<string, readonly Immutable<DNSLoadBalancerEndpoint>[]>

/** The endpoints of a root by the cluster of their leaf: read once for all leaves. */
export function endpointsByCluster(endpoints: readonly Immutable<DNSLoadBalancerEndpoint>[]): EndpointsByCluster {
  const byCluster = new Map<string, Immutable<DNSLoadBalancerEndpoint>[]>()
  for (const endpoint of endpoints) {
    const cluster = endpoint.metadata.labels?.[LEAF_CLUSTER_LABEL] ?? ''
    const known = byCluster.get(cluster)
    if (known === undefined) byCluster.set(cluster, [endpoint])
    else known.push(endpoint)
  }
  return byCluster
}

export function observeLeaf(
  leaf: Immutable<LeafIngress>,
  kind: RootKind,
  { backends, cluster }: { backends: readonly string[]; cluster: Immutable<Cluster> | undefined },
  { views, endpoints, ledEndpoints, findRemote }: ObservationDeps,
): LeafObservation {
  const { cluster: name, specHash } = leaf.spec
  const manifests = usableManifests(leaf)
  const remotes = manifests.map((manifest) => findRemote(name, kindOf(manifest), keyOf(manifest)))
  const known = remotes.filter((remote) => remote !== 'unknown')
  const dns = readDns(endpoints.get(name) ?? [], ledEndpoints.get(name) ?? [])
  if (known.length < remotes.length || remotes.length === 0)
    return {
      isApplied: undefined,
      isAdmitted: undefined,
      addresses: leaf.status?.addresses ?? [],
      endpointsReady: undefined,
      // At a start the last word stays until the member was tried.
      isStale: views.isLost(name) || leaf.status?.stale === true,
      remote: undefined,
      message: '',
      ...dns,
    }
  const [first] = known
  const admission = first === undefined ? ABSENT : readAdmission(first, kind, cluster, views)
  return {
    isApplied: known.every((remote) => remote?.metadata.annotations?.[HASH_ANNOTATION] === specHash),
    isAdmitted: admission.isAdmitted,
    addresses: admission.addresses,
    endpointsReady: views.endpointsReady(name, leaf.metadata.namespace ?? '', backends),
    isStale: false,
    remote:
      first === undefined
        ? undefined
        : {
            uid: cleanText(first.metadata.uid, 64),
            generation: (first.metadata as { generation?: number }).generation,
          },
    message: admission.message,
    ...dns,
  }
}

const ABSENT: Admission = { isAdmitted: false, addresses: [], message: 'it is not applied yet' }

function readAdmission(
  remote: Immutable<Obj>,
  kind: RootKind,
  cluster: Immutable<Cluster> | undefined,
  views: MemberViews,
): Admission {
  const { addressOverride = [], excludeAddresses = [], routerName } = cluster?.spec.ingress ?? {}
  if (addressOverride.length > 0) {
    const addresses = leafAddresses(addressOverride.map((hostname) => ({ hostname })))
    return { isAdmitted: addresses.length > 0, addresses, message: '' }
  }
  const admission = kind.readAdmission(remote, {
    routerName,
    gatewayAddresses: (namespace, name) => views.gatewayAddresses(cluster?.metadata.name ?? '', namespace, name),
  })
  const excluded = new Set(excludeAddresses.map((text) => parseAddress(text)?.text ?? text))
  const addresses = admission.addresses.filter(({ value }) => !excluded.has(value))
  if (!admission.isAdmitted || addresses.length > 0) return { ...admission, addresses }
  return { isAdmitted: false, addresses, message: 'spec.ingress.excludeAddresses leaves no address' }
}

/**
 * Verdict and presence of the addresses of a leaf, as balance reports them on its endpoints. `led`: those of a root that leads
 * a shared host; the health of a leaf that has others is theirs.
 */
function readDns(
  endpoints: readonly Immutable<DNSLoadBalancerEndpoint>[],
  led: readonly Immutable<DNSLoadBalancerEndpoint>[],
): Pick<LeafObservation, 'probe' | 'dns' | 'isWithdrawn'> {
  const active = [...endpoints, ...led].map(({ status }) => status?.active)
  const verdicts = (endpoints.length > 0 ? endpoints : led).map(({ status }) => status?.healthy)
  const isUnknown = verdicts.length === 0 || verdicts.includes(undefined)
  return {
    probe: verdicts.includes(true) ? 'healthy' : isUnknown ? 'unknown' : 'unhealthy',
    dns: active.includes(true) ? 'present' : active.includes(undefined) ? 'unknown' : 'absent',
    isWithdrawn: endpoints.every(({ spec }) => spec.drain === true),
  }
}

function kindOf({ kind }: Immutable<Manifest>): Kind {
  const found = ROOT_KINDS.find((each) => each.kind.kind === kind)
  if (found === undefined) throw new TypeError(`a leaf has a manifest of kind ${kind}`)
  return found.kind
}
