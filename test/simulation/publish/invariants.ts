/**
 * What is never false while publish works, whatever goes wrong (the DNS safety invariants that concern it): names do not
 * are deleted while a source requests them, no object of another owner is touched, nothing is made that could not be cleaned up.
 */
import type { Certificate, DNSEndpoint, HTTPProxy } from '@seamark/operator'
import type { Obj } from '@seamark/kube/object'
import type { Invariant, TestEnvironment, Write } from '../scenario.ts'

const childKinds = new Set(['DNSEndpoint', 'Certificate', 'TLSCertificateDelegation'])
const sourceKinds = new Set(['HTTPProxy', 'IngressRoute', 'Ingress', 'Gateway', 'HTTPRoute', 'Route', 'Service'])
const ownedBy = 'contour-plus.cybozu.com/owned-by'
const finalizer = 'contour-plus.cybozu.com/finalizer'

function sourceOf(environment: TestEnvironment, child: Obj | undefined): HTTPProxy | undefined {
  const owner = child?.metadata.annotations?.[ownedBy]
  return owner === undefined ? undefined : environment.find('HTTPProxy', owner)
}

const isOurs = ({ kind, isByController }: Write): boolean => isByController && childKinds.has(kind)

export const publishInvariants: readonly Invariant[] = [
  {
    name: 'a child goes only with its source, or when its source stopped asking',
    check(environment, write) {
      if (!isOurs(write) || write.type !== 'delete') return undefined
      const source = sourceOf(environment, write.before)
      if (source === undefined || source.metadata.deletionTimestamp !== undefined) return undefined
      const { annotations } = source.metadata
      const isAsked =
        write.kind === 'DNSEndpoint'
          ? annotations?.['seamark.io/exclude'] !== 'dns'
          : annotations?.['kubernetes.io/tls-acme'] === 'true'
      return isAsked
        ? `${write.kind} ${write.key} was deleted and ${source.metadata.name} still asks for it`
        : undefined
    },
  },
  {
    name: 'what is written has hosts and targets',
    check(_, write) {
      if (!isOurs(write) || write.type === 'delete') return undefined
      const { spec } = write.after as DNSEndpoint | Certificate
      const isEmpty =
        'endpoints' in spec
          ? spec.endpoints.length === 0 || spec.endpoints.some(({ targets }) => targets.length === 0)
          : 'dnsNames' in spec && spec.dnsNames.length === 0
      return isEmpty ? `${write.kind} ${write.key} was written empty` : undefined
    },
  },
  {
    name: 'what another controller owns stays as it is',
    check(_, write) {
      if (!isOurs(write)) return undefined
      const owner = write.before?.metadata.ownerReferences?.find((reference) => reference.controller === true)
      return owner === undefined || sourceKinds.has(owner.kind) ? undefined : `${write.key} belongs to ${owner.kind}`
    },
  },
  {
    name: 'a child elsewhere is made only when the finalizer is in place',
    check(environment, write) {
      if (!isOurs(write) || write.type !== 'create') return undefined
      const source = sourceOf(environment, write.after)
      if (source === undefined || source.metadata.namespace === write.after?.metadata.namespace) return undefined
      return source.metadata.finalizers?.includes(finalizer) === true
        ? undefined
        : `${write.key} has no finalizer behind`
    },
  },
]
