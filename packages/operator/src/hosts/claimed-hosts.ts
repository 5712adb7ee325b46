/**
 * What balance has to know of the HostClaims of the fleet in this process: a load balancer of another namespace that is younger
 * than the root with the claim does not publish the host, whether or not the root has a leaf already.
 */
import { ageOf, compareAge, type NameRule, normalizeHost } from '@seamark/dialects'
import { anyOf, type Informers, specChanged } from '@seamark/kube'
import { type Immutable, type Kind, keyOf, type Obj } from '@seamark/kube/object'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import { HostClaim } from '../api/host-claim.ts'
import type { HostHolding, HostSources } from './host-sources.ts'
import { hostOf, loadBalancerOf, refOf } from './load-balancer.ts'

type Caches = Pick<Informers, 'get' | 'by' | 'index'>

interface ClaimedHostsOptions {
  /** The kinds of roots, which the caches contain. */
  readonly kinds: readonly Kind[]
  readonly findNameFault: NameRule
}

export function createClaimedHosts(caches: Caches, { kinds, findNameFault }: ClaimedHostsOptions): HostSources {
  const claims = caches.index(HostClaim, 'balance-claimed-host', ({ spec }) => [normalizeHost(spec.host)])
  const records = caches.index(DNSEndpoint, 'balance-claimed-record', (object) =>
    loadBalancerOf(object) === undefined ? [] : hostsOf(object),
  )

  /** The oldest root of the claim. */
  function findRoot({ spec }: Immutable<HostClaim>): { kind: Kind; object: Immutable<Obj> } | undefined {
    const found = spec.owners.flatMap(({ kind: name, name: ofOwner, uid }) => {
      const kind = kinds.find((each) => each.kind === name)
      const object = kind === undefined ? undefined : caches.get(kind, `${spec.namespace}/${ofOwner}`)
      return kind === undefined || object?.metadata.uid !== uid ? [] : [{ kind, object }]
    })
    return found.toSorted((a, b) => compareAge(ageOf(a.kind, a.object), ageOf(b.kind, b.object)))[0]
  }

  return {
    watches: [
      { kind: HostClaim, when: () => true, hostsOf: (object) => [(object as Immutable<HostClaim>).spec.host] },
      { kind: DNSEndpoint, when: anyOf(specChanged), hostsOf: (object) => hostsOf(object as Immutable<DNSEndpoint>) },
    ],
    holdingOf(loadBalancer): HostHolding | undefined {
      const host = hostOf(loadBalancer)
      const [claim] = caches.by(claims, host)
      const { namespace = '' } = loadBalancer.metadata
      if (claim === undefined || claim.spec.namespace === namespace) return undefined
      // It is about to be given up.
      if (findNameFault(claim.spec.namespace, host) !== undefined) return undefined
      const root = findRoot(claim)
      if (root === undefined) return undefined
      const ref = refOf(root.object)
      if (ref !== undefined && !('invalid' in ref) && `${ref.namespace}/${ref.name}` === keyOf(loadBalancer))
        return undefined
      const source = ageOf(root.kind, root.object)
      if (compareAge(ageOf(DNSLoadBalancer, loadBalancer), source) < 0) return undefined
      const isInPlace = caches.by(records, host).some(({ metadata }) => metadata.namespace === source.namespace)
      return { source, root: root.kind, isInPlace }
    },
  }
}

/** Those with targets. */
function hostsOf({ spec }: Immutable<DNSEndpoint>): string[] {
  return [
    ...new Set(
      (spec?.endpoints ?? []).flatMap((each) => (each.targets.length > 0 ? [normalizeHost(each.dnsName)] : [])),
    ),
  ]
}
