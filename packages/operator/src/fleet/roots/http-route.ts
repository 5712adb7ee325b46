/** HTTPRoute as a root: its parents are mapped to Gateways of the member; others of its parents are left alone. */
import { isDeepStrictEqual } from 'node:util'
import type { Immutable } from '@seamark/kube/object'
import { HTTPRoute, type ParentRef } from '@seamark/kube/gateway-api'
import type { LeafAddress } from '../../api/leaf-ingress.ts'
import { normalizeHost } from '@seamark/dialects'
import {
  type Admission,
  type AdmissionFacts,
  type Confined,
  copyAnnotations,
  type RenderFacts,
  type Rendered,
  type RootKind,
  uniqueAddresses,
  type Spec,
  uniqueSorted,
} from './root-kind.ts'

interface BackendRef {
  readonly kind?: string
  readonly group?: string
  readonly name?: string
  readonly namespace?: string
}

interface Rule {
  readonly backendRefs?: readonly BackendRef[]
  readonly filters?: readonly { readonly requestMirror?: { readonly backendRef?: BackendRef } }[]
}

export const httpRouteRoot: RootKind<HTTPRoute> = {
  kind: HTTPRoute,
  hostsOf: ({ spec }) => uniqueSorted((spec?.hostnames ?? []).map((host) => normalizeHost(host))),
  backendsOf({ spec, metadata }) {
    const rules = (spec as { rules?: readonly Rule[] } | undefined)?.rules ?? []
    const refs = rules.flatMap(({ backendRefs = [], filters = [] }) => [
      ...backendRefs,
      ...filters.flatMap(({ requestMirror }) =>
        requestMirror?.backendRef === undefined ? [] : [requestMirror.backendRef],
      ),
    ])
    const local = refs.filter(
      ({ kind = 'Service', group = '', namespace }) =>
        kind === 'Service' && group === '' && (namespace === undefined || namespace === metadata.namespace),
    )
    return uniqueSorted(local.flatMap(({ name }) => (name === undefined ? [] : [name])))
  },
  usesTls: () => false,
  render,
  confine,
  readAdmission,
}

function render(root: Immutable<HTTPRoute>, facts: RenderFacts): Rendered {
  const { name = '', namespace = '', annotations } = root.metadata
  const spec = withoutOtherParents(structuredClone(root.spec ?? {})) as NonNullable<HTTPRoute['spec']>
  const parentRefs = (spec.parentRefs ?? []).flatMap((parent) => mapParent(parent, namespace, facts))
  if (parentRefs.length === 0)
    return {
      refused: 'NoMatchingParent',
      message: 'no parent is in spec.ingress.parentRefMap of the Cluster; add the Gateway of the member there',
    }
  const owned = (spec.hostnames ?? []).map((host) => normalizeHost(host)).filter((host) => facts.ownedHosts.has(host))
  const hostnames = [...new Set(owned)].flatMap((host) => {
    const managed = facts.managedHosts.get(host)
    return managed === undefined ? [host] : [host, managed]
  })
  // An empty list means every host.
  if (hostnames.length === 0)
    return { refused: 'HostsNotOwned', message: 'the root owns none of its hostnames; no leaf is applied' }
  return {
    manifests: [
      {
        apiVersion: 'gateway.networking.k8s.io/v1',
        kind: 'HTTPRoute',
        metadata: { name, namespace, annotations: copyAnnotations(annotations, facts.allowedAnnotations) },
        spec: { ...spec, parentRefs, hostnames },
      } as HTTPRoute & { apiVersion: string; kind: string; metadata: { name: string; namespace: string } },
    ],
  }
}

function confine(patched: Spec, rendered: Spec, isOwned: (host: string) => boolean): Confined {
  const given: readonly unknown[] = Array.isArray(patched['hostnames']) ? patched['hostnames'] : []
  const isKept = (host: unknown): host is string => typeof host === 'string' && isOwned(normalizeHost(host))
  const hostnames = [...new Set(given.filter(isKept).map((host) => normalizeHost(host)))]
  // An empty list means every host.
  if (hostnames.length === 0) return { message: 'no hostname that the root owns is left' }
  const dropped = given.filter((host) => !isKept(host)).map((host) => `host ${String(host)}`)
  if (!isDeepStrictEqual(patched['parentRefs'], rendered['parentRefs'])) dropped.push('parentRefs')
  if (patched['useDefaultGateways'] !== undefined) dropped.push('useDefaultGateways')
  return { spec: { ...withoutOtherParents(patched), parentRefs: rendered['parentRefs'], hostnames }, dropped }
}

/** Default Gateways of the member are parents that no map has. */
function withoutOtherParents({ useDefaultGateways: _scope, ...spec }: Spec): Spec {
  return spec
}

function mapParent(parent: ParentRef, namespace: string, { parentRefMap }: RenderFacts): ParentRef[] {
  const mapping = parentRefMap.find(
    ({ from }) => from.name === parent.name && (from.namespace ?? namespace) === (parent.namespace ?? namespace),
  )
  if (mapping === undefined) return []
  const { to } = mapping
  return [
    {
      name: to.name,
      ...(to.namespace !== undefined && { namespace: to.namespace }),
      ...(to.sectionName !== undefined && { sectionName: to.sectionName }),
    },
  ]
}

function readAdmission(leaf: Immutable<HTTPRoute>, { gatewayAddresses }: AdmissionFacts): Admission {
  const { namespace = '', generation } = leaf.metadata
  const addresses: LeafAddress[] = []
  const waiting: string[] = []
  for (const parent of leaf.spec?.parentRefs ?? []) {
    const status = leaf.status?.parents?.find(({ parentRef }) => isSameParent(parentRef, parent, namespace))
    const isTrue = (type: string) =>
      status?.conditions?.some(
        (condition) =>
          condition.type === type &&
          condition.status === 'True' &&
          ((condition as { observedGeneration?: number }).observedGeneration ?? generation) === generation,
      ) === true
    const found = gatewayAddresses(parent.namespace ?? namespace, parent.name)
    if (!isTrue('Accepted')) waiting.push(`Gateway ${parent.name} has not accepted the route`)
    else if (!isTrue('ResolvedRefs')) waiting.push(`Gateway ${parent.name} has not resolved the references`)
    else if (found === undefined || found.length === 0) waiting.push(`Gateway ${parent.name} has no address`)
    else addresses.push(...found)
  }
  const isAdmitted = waiting.length === 0 && addresses.length > 0
  return { isAdmitted, addresses: isAdmitted ? uniqueAddresses(addresses) : [], message: waiting.join('; ') }
}

function isSameParent(a: ParentRef, b: ParentRef, namespace: string): boolean {
  return (
    a.name === b.name &&
    (a.namespace ?? namespace) === (b.namespace ?? namespace) &&
    (a.sectionName ?? '') === (b.sectionName ?? '')
  )
}
