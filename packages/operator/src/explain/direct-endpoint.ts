/** DNSEndpoints without a publish source: written by the wildcard capability, by another program or manually. */
import { type Cluster, NotFound } from '@seamark/kube'
import { type Immutable, keyOf } from '@seamark/kube/object'
import { DNSEndpoint, type Endpoint } from '../api/dns-endpoint.ts'
import { normalizeHost } from '@seamark/dialects'
import { findOwner } from '../publish/decide/child.ts'
import type { EndpointFact } from './facts.ts'

export interface DirectEndpoint extends EndpointFact {
  /** The name in the DNSEndpoint: the host, or the wildcard that covers it. */
  readonly dnsName: string
  readonly origin: string
}

/** Finds a DNSEndpoint without a publish source. */
export async function findDirectEndpoint(
  host: string,
  { client }: Cluster,
  signal: AbortSignal,
): Promise<DirectEndpoint | undefined> {
  const { items } = await client.list(DNSEndpoint, { signal }).catch((error: unknown) => {
    if (error instanceof NotFound) return { items: [] }
    throw error
  })
  return directEndpointOf(host, () => items)
}

/** @param naming DNSEndpoints, at least those with the name. Pure. */
export function directEndpointOf(
  host: string,
  naming: (name: string) => readonly Immutable<DNSEndpoint>[],
): DirectEndpoint | undefined {
  // The closest name wins, as in DNS: the host itself, then the wildcards above it (RFC 4592).
  const labels = host.split('.')
  const names = [host, ...labels.slice(1).map((_, index) => `*.${labels.slice(index + 1).join('.')}`)]
  for (const dnsName of names) {
    const found = naming(dnsName).find((object) => endpointsOf(object, dnsName).length > 0)
    if (found === undefined) continue
    const owner = findOwner(found)
    return {
      name: keyOf(found),
      dnsName,
      origin: `${owner === undefined ? '' : ` of ${owner}`}${dnsName === host ? '' : `, which has ${dnsName}`}`,
      targets: endpointsOf(found, dnsName).flatMap(({ targets }) => targets ?? []),
      generation: found.metadata.generation ?? 0,
      observedGeneration: found.status?.observedGeneration,
    }
  }
  return undefined
}

function endpointsOf(object: Immutable<DNSEndpoint>, name: string): readonly Partial<Immutable<Endpoint>>[] {
  const endpoints: readonly Partial<Immutable<Endpoint>>[] = object.spec.endpoints ?? []
  return endpoints.filter(({ dnsName }) => typeof dnsName === 'string' && normalizeHost(dnsName) === name)
}
