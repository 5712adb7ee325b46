/** Ingress as a root. */
import { Ingress } from '@seamark/kube'
import type { Immutable } from '@seamark/kube/object'
import { classOf, normalizeHost } from '@seamark/dialects'
import {
  type Admission,
  type Confined,
  copyAnnotations,
  isRecord,
  leafAddresses,
  type RenderFacts,
  type Rendered,
  type RootKind,
  uniqueAddresses,
  type Spec,
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
  confine,
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
    rules.push({ ...rule, host })
    const managed = facts.managedHosts.get(host)
    if (managed !== undefined) rules.push({ ...rule, host: managed })
  }
  const hadHosts = (spec.rules ?? []).some(({ host }) => isSet(host))
  // Without its hosts the rest would serve every host of the member.
  if (hadHosts && !rules.some(({ host }) => isSet(host)))
    return { refused: 'HostsNotOwned', message: 'the root owns none of its hosts; no leaf is applied' }
  const tls = ownedTls(spec.tls ?? [], (host) => facts.ownedHosts.has(host))
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

function ownedTls<T extends { readonly hosts?: readonly unknown[] }>(
  entries: readonly T[],
  isOwned: (host: string) => boolean,
): T[] {
  return entries.flatMap((entry) => {
    const hosts = entry.hosts?.map((host) => normalizeHost(String(host))).filter(isOwned)
    if (entry.hosts !== undefined && entry.hosts.length > 0 && (hosts ?? []).length === 0) return []
    return [{ ...entry, ...(hosts !== undefined && { hosts }) }]
  })
}

function confine(patched: Spec, rendered: Spec, isOwned: (host: string) => boolean): Confined {
  const dropped: string[] = []
  const serves = (spec: Spec, hasHost: boolean): boolean =>
    listOf(spec['rules']).some((rule) => hasHost === hasOwnHost(rule))
  const rules = listOf(patched['rules']).flatMap((rule) => {
    if (!hasOwnHost(rule)) {
      if (serves(rendered, false)) return [rule]
      dropped.push('a rule without a host')
      return []
    }
    const given = String(rule['host'])
    const host = normalizeHost(given)
    if (isOwned(host)) return [{ ...rule, host }]
    dropped.push(`host ${given}`)
    return []
  })
  // Without its hosts the rest would serve every host of the member.
  if (serves(rendered, true) && !rules.some(hasOwnHost))
    return { message: 'no rule with a host that the root owns is left' }
  const given = listOf(patched['tls']).filter(({ hosts }) => hosts === undefined || Array.isArray(hosts))
  const tls = ownedTls(given as readonly { hosts?: readonly unknown[] }[], isOwned)
  const count = (entries: readonly { hosts?: readonly unknown[] }[]) =>
    entries.flatMap(({ hosts = [] }) => hosts).length
  if (count(tls) < count(given)) dropped.push('hosts of tls')
  const { rules: _rules, tls: _tls, ingressClassName, defaultBackend, ...rest } = patched
  if (ingressClassName !== rendered['ingressClassName']) dropped.push('ingressClassName')
  const keepsDefault = defaultBackend !== undefined && rendered['defaultBackend'] !== undefined
  if (defaultBackend !== undefined && !keepsDefault) dropped.push('defaultBackend')
  return {
    dropped,
    spec: {
      ...rest,
      ...(rendered['ingressClassName'] !== undefined && { ingressClassName: rendered['ingressClassName'] }),
      ...(keepsDefault && { defaultBackend }),
      ...(rules.length > 0 && { rules }),
      ...(tls.length > 0 && { tls }),
    },
  }
}

function listOf(value: unknown): Spec[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}

function hasOwnHost({ host }: Spec): boolean {
  return host !== undefined && host !== null && host !== ''
}

function readAdmission({ status }: Immutable<Ingress>): Admission {
  const entries = status?.loadBalancer?.ingress ?? []
  const addresses = leafAddresses(entries)
  if (addresses.length > 0) return { isAdmitted: true, addresses: uniqueAddresses(addresses), message: '' }
  return { isAdmitted: false, addresses: [], message: 'status.loadBalancer.ingress has no usable address yet' }
}

function isSet(host: string | undefined): host is string {
  return host !== undefined && host !== ''
}
