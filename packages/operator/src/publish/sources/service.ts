/** Service of type LoadBalancer: the hosts of ExternalDNS' hostname annotation, at the addresses of the Service. */
import { Service } from '@seamark/kube'
import type { Immutable } from '@seamark/kube/object'
import { sortAddresses, normalizeHost } from '@seamark/dialects'
import { externalDns } from '../external-dns-annotations.ts'
import type { Source } from './source.ts'
import { commonOf } from './base.ts'

export function fromService(object: Immutable<Service>): Source {
  const common = commonOf(Service, object)
  const isLoadBalancer = object.spec?.type === 'LoadBalancer'
  const names = isLoadBalancer ? (externalDns(common.annotations, 'hostname') ?? '') : ''
  const hosts = names.split(',').map((name) => normalizeHost(name.trim()))
  return {
    ...common,
    className: '',
    hosts: [...new Set(hosts)].filter((host) => host !== ''),
    tls: [],
    origin: { type: 'addresses', addresses: sortAddresses(object.status?.loadBalancer?.ingress ?? []) },
    asks: 'dns',
  }
}
