/** OpenShift's Route as a root. A Route has one host, so the managed host is a second Route. */
import type { Immutable } from '@seamark/kube/object'
import { Route } from '../../api/route.ts'
import { normalizeHost } from '@seamark/dialects'
import {
  type Admission,
  type AdmissionFacts,
  type Confined,
  copyAnnotations,
  leafAddresses,
  type Manifest,
  type RenderFacts,
  type Rendered,
  type RootKind,
  uniqueAddresses,
  type Spec,
  uniqueSorted,
} from './root-kind.ts'

interface Target {
  readonly kind?: string
  readonly name?: string
}

export const routeRoot: RootKind<Route> = {
  kind: Route,
  hostsOf: ({ spec }) => (spec?.host === undefined || spec.host === '' ? [] : [normalizeHost(spec.host)]),
  backendsOf({ spec }) {
    const { to, alternateBackends = [] } = (spec ?? {}) as { to?: Target; alternateBackends?: readonly Target[] }
    const targets = [...(to === undefined ? [] : [to]), ...alternateBackends]
    return uniqueSorted(
      targets.flatMap(({ kind = 'Service', name }) => (kind === 'Service' && name !== undefined ? [name] : [])),
    )
  },
  usesTls: ({ spec }) => spec?.tls !== undefined,
  render,
  confine,
  readAdmission,
}

function render(root: Immutable<Route>, facts: RenderFacts): Rendered {
  const { name = '', namespace = '', annotations } = root.metadata
  // A router would serve every host below the parent domain, and generate hosts: what was claimed is one host.
  const {
    wildcardPolicy: _policy,
    subdomain: _subdomain,
    ...spec
  } = structuredClone(root.spec ?? {}) as NonNullable<Route['spec']> & { wildcardPolicy?: string; subdomain?: string }
  const host = normalizeHost(spec.host ?? '')
  if (!facts.ownedHosts.has(host))
    return { refused: 'HostsNotOwned', message: 'the root does not own its host; no leaf is applied' }
  const managed = facts.managedHosts.get(host)
  const copied = copyAnnotations(annotations, facts.allowedAnnotations)
  const manifest = (suffix: string, as: string): Manifest =>
    ({
      apiVersion: 'route.openshift.io/v1',
      kind: 'Route',
      metadata: { name: `${name}${suffix}`, namespace, annotations: copied },
      spec: { ...spec, host: as },
    }) as Manifest
  return { manifests: [manifest('', host), ...(managed === undefined ? [] : [manifest('-seamark', managed)])] }
}

function confine(patched: Spec, rendered: Spec, isOwned: (host: string) => boolean): Confined {
  const { host, wildcardPolicy, subdomain, ...rest } = patched
  const isKept = typeof host === 'string' && isOwned(normalizeHost(host))
  const dropped = [
    ...(isKept ? [] : [`host ${String(host)}`]),
    ...(wildcardPolicy === undefined ? [] : ['wildcardPolicy']),
    ...(subdomain === undefined ? [] : ['subdomain']),
  ]
  return { spec: { ...rest, host: isKept ? normalizeHost(host) : rendered['host'] }, dropped }
}

function readAdmission({ status }: Immutable<Route>, { routerName }: AdmissionFacts): Admission {
  const admitted = (status?.ingress ?? []).filter(
    (entry) =>
      (routerName === undefined || entry.routerName === routerName) &&
      entry.conditions?.some(({ type, status: value }) => type === 'Admitted' && value === 'True') === true,
  )
  if (admitted.length === 0) return { isAdmitted: false, addresses: [], message: 'no router has admitted the Route' }
  // Never the host of the Route itself: that would be a record that points to itself.
  const addresses = leafAddresses(admitted.map(({ routerCanonicalHostname: hostname }) => ({ hostname })))
  if (addresses.length === 0)
    return { isAdmitted: false, addresses: [], message: 'the router reports no routerCanonicalHostname' }
  return { isAdmitted: true, addresses: uniqueAddresses(addresses), message: '' }
}
