/** Service of type LoadBalancer: the hosts of ExternalDNS' hostname annotation, at the addresses of the Service. */
import { Service } from '@seamark/kube'
import type { Immutable } from '@seamark/kube/object'
import { sortAddresses, normalizeHost } from '@seamark/dialects'
import { externalDns } from '../external-dns-annotations.ts'
import type { Source } from './source.ts'
import { commonOf, sourceOf } from './base.ts'

/** Most Services declare no host, and are read at each event: what they have in common is made once. */
const NONE = {
  className: '',
  hosts: [],
  tls: [],
  origin: { type: 'addresses', addresses: sortAddresses([]) },
  asks: 'dns',
} as const

export function fromService(object: Immutable<Service>): Source {
  const common = commonOf(Service, object)
  const isLoadBalancer = object.spec?.type === 'LoadBalancer'
  const names = isLoadBalancer ? (externalDns(common.annotations, 'hostname') ?? '') : ''
  if (names === '') return sourceOf(common, NONE)
  const hosts = names.split(',').map((name) => normalizeHost(name.trim()))
  return sourceOf(common, {
    className: '',
    hosts: [...new Set(hosts)].filter((host) => host !== ''),
    tls: [],
    origin: { type: 'addresses', addresses: sortAddresses(object.status?.loadBalancer?.ingress ?? []) },
    asks: 'dns',
  })
}
