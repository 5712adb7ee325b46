/** Ingress as a root. */
import { Ingress } from '@seamark/kube'
import type { Immutable } from '@seamark/kube/object'
import { classOf, normalizeHost } from '@seamark/dialects'
import {
  type Admission,
  copyAnnotations,
  leafAddresses,
  type RenderFacts,
  type Rendered,
  type RootKind,
  sortAddresses,
  uniqueSorted,
} from './root-kind.ts'

type Rules = NonNullable<NonNullable<Ingress['spec']>['rules']>

export const ingressRoot: RootKind<Ingress> = {
  kind: Ingress,
  hostsOf: ({ spec }) =>
    uniqueSorted((spec?.rules ?? []).flatMap(({ host }) => (isSet(host) ? [normalizeHost(host)] : []))),
  backendsOf({ spec }) {
    const paths = (spec?.rules ?? []).flatMap(({ http }) => http?.paths ?? [])
    const backends = [spec?.defaultBackend, ...paths.map(({ backend }) => backend)]
    return uniqueSorted(backends.flatMap((backend) => (backend?.service === undefined ? [] : [backend.service.name])))
  },
  usesTls: ({ spec }) => (spec?.tls ?? []).length > 0,
  render,
  readAdmission,
}

function render(root: Immutable<Ingress>, facts: RenderFacts): Rendered {
  const { name = '', namespace = '', annotations } = root.metadata
  const spec = structuredClone(root.spec ?? {}) as NonNullable<Ingress['spec']>
  const rules: Rules = []
  for (const rule of spec.rules ?? []) {
    if (!isSet(rule.host)) {
      rules.push(rule)
      continue
    }
    const host = normalizeHost(rule.host)
    if (!facts.ownedHosts.has(host)) continue
    rules.push(rule)
    const managed = facts.managedHosts.get(host)
    if (managed !== undefined) rules.push({ ...rule, host: managed })
  }
  const hadHosts = (spec.rules ?? []).some(({ host }) => isSet(host))
  // Without its hosts the rest would serve every host of the member.
  if (hadHosts && !rules.some(({ host }) => isSet(host)))
    return { refused: 'HostsNotOwned', message: 'the root owns none of its hosts; no leaf is applied' }
  const tls = (spec.tls ?? []).flatMap((entry) => {
    const hosts = entry.hosts?.filter((host) => facts.ownedHosts.has(normalizeHost(host)))
    if (entry.hosts !== undefined && entry.hosts.length > 0 && (hosts ?? []).length === 0) return []
    return [{ ...entry, ...(hosts !== undefined && { hosts }) }]
  })
  const given = classOf(annotations, spec.ingressClassName)
  const className = Object.hasOwn(facts.ingressClassMap, given) ? facts.ingressClassMap[given] : undefined
  const { ingressClassName: _class, rules: _rules, tls: _tls, ...rest } = spec
  return {
    manifests: [
      {
        apiVersion: 'networking.k8s.io/v1',
        kind: 'Ingress',
        metadata: { name, namespace, annotations: copyAnnotations(annotations, facts.allowedAnnotations) },
        spec: {
          ...rest,
          ...(className !== undefined && { ingressClassName: className }),
          ...(rules.length > 0 && { rules }),
          ...(tls.length > 0 && { tls }),
        },
      } as Ingress & { apiVersion: string; kind: string; metadata: { name: string; namespace: string } },
    ],
  }
}

function readAdmission({ status }: Immutable<Ingress>): Admission {
  const entries = status?.loadBalancer?.ingress ?? []
  const addresses = leafAddresses(entries)
  if (addresses.length > 0) return { isAdmitted: true, addresses: sortAddresses(addresses), message: '' }
  return { isAdmitted: false, addresses: [], message: 'status.loadBalancer.ingress has no usable address yet' }
}

function isSet(host: string | undefined): host is string {
  return host !== undefined && host !== ''
}
