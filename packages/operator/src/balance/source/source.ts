/**
 * The addresses an annotated source object offers to a load balancer, or why it offers none. Pure.
 *
 * Sources: a Service of type LoadBalancer, an Ingress or a Gateway whose hosts include the load balancer's DNS name.
 */
import type { Immutable, Ingress, Service } from '@seamark/kube'
import { type AddressEntry, normalizeHost, readAddress } from '@seamark/dialects'
import type { Gateway } from '@seamark/kube/gateway-api'
import { compareText } from '../../rrset/rrset.ts'

export type Source =
  | { readonly kind: 'Service'; readonly object: Immutable<Service> }
  | { readonly kind: 'Ingress'; readonly object: Immutable<Ingress> }
  | { readonly kind: 'Gateway'; readonly object: Immutable<Gateway> }

export type Address = { readonly ipaddress: string } | { readonly cname: string }

export type Offer =
  | { readonly addresses: readonly Address[] }
  /** `pending`: no address yet, or not any more; a change of the source triggers the next decision. `invalid`: the source cannot be used. */
  | { readonly problem: 'pending' | 'invalid'; readonly message: string }

export function offerOf(source: Source, dnsName: string): Offer {
  const { namespace = '', name = '' } = source.object.metadata
  const ref = `${namespace}/${name}`
  switch (source.kind) {
    case 'Service': {
      if (source.object.spec?.type !== 'LoadBalancer') {
        return { problem: 'invalid', message: `service ${ref} is not of type LoadBalancer` }
      }
      const addresses = addressesOf(source.object.status?.loadBalancer?.ingress ?? [])
      if (addresses.length > 0) return { addresses }
      return { problem: 'pending', message: `load balancer not yet assigned for '${ref}'` }
    }
    case 'Ingress': {
      const hosts = (source.object.spec?.rules ?? []).flatMap(({ host }) => (host === undefined ? [] : [host]))
      if (!hosts.some((host) => isSameName(host, dnsName))) return notConfigured(dnsName, ref)
      const addresses = addressesOf(source.object.status?.loadBalancer?.ingress ?? [])
      if (addresses.length > 0) return { addresses }
      // As the original: another host of the Ingress is used as the name of its load balancer.
      const other = hosts.find((host) => host !== '' && !isSameName(host, dnsName))
      if (other !== undefined) return { addresses: [{ cname: other }] }
      return { problem: 'pending', message: `no host rule or loadbalancer status defined for '${ref}'` }
    }
    case 'Gateway': {
      const listeners = source.object.spec?.listeners ?? []
      if (!listeners.some(({ hostname }) => isServedBy(hostname, dnsName))) return notConfigured(dnsName, ref)
      const addresses = addressesOf(
        (source.object.status?.addresses ?? []).map(({ type, value }) =>
          type === 'Hostname' ? { hostname: value } : { ip: value },
        ),
      )
      if (addresses.length > 0) return { addresses }
      return { problem: 'pending', message: `load balancer not yet assigned for '${ref}'` }
    }
  }
}

function notConfigured(dnsName: string, ref: string): Offer {
  return { problem: 'invalid', message: `load balancer host '${dnsName}' not configured as host rule for '${ref}'` }
}

function isSameName(a: string, b: string): boolean {
  return normalizeHost(a) === normalizeHost(b)
}

/** A listener without a host name serves every name; `*.a.test` serves one or more labels before it (Gateway API). */
function isServedBy(hostname: string | undefined, dnsName: string): boolean {
  if (hostname === undefined || hostname === '') return true
  if (isSameName(hostname, dnsName)) return true
  return hostname.startsWith('*.') && normalizeHost(dnsName).endsWith(normalizeHost(hostname.slice(1)))
}

/** All usable addresses, sorted, without duplicates: the order of a status has no meaning. */
function addressesOf(entries: readonly AddressEntry[]): Address[] {
  const found = new Map<string, Address>()
  for (const entry of entries) {
    const address = readAddress(entry)
    if (address === undefined) continue
    const { type, text } = address
    found.set(text, type === 'IPAddress' ? { ipaddress: text } : { cname: text })
  }
  return [...found].sort(([a], [b]) => compareText(a, b)).map(([, address]) => address)
}
