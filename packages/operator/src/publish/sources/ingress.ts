/** Ingress: the hosts of its rules, at the addresses in its status; one certificate per TLS entry. */
import { Ingress } from '@seamark/kube'
import type { Immutable } from '@seamark/kube/object'
import { sortAddresses, normalizeHost } from '@seamark/dialects'
import type { Source } from './source.ts'
import { commonOf, sourceOf } from './base.ts'

export function fromIngress(object: Immutable<Ingress>): Source {
  const tls = (object.spec?.tls ?? []).map((entry) => ({
    secretName: entry.secretName ?? '',
    hosts: (entry.hosts ?? []).map(normalizeHost),
  }))
  const ruleHosts = (object.spec?.rules ?? []).map((rule) => normalizeHost(rule.host ?? ''))
  return sourceOf(commonOf(Ingress, object), {
    className: object.spec?.ingressClassName ?? '',
    hosts: [...new Set([...ruleHosts, ...tls.flatMap((entry) => entry.hosts)])].filter((host) => host !== ''),
    tls,
    origin: { type: 'addresses', addresses: sortAddresses(object.status?.loadBalancer?.ingress ?? []) },
    asks: 'both',
  })
}
