/**
 * Which names a namespace may use (INV-15): `grants` of the configuration. Checked where publish decides about a source and
 * where records reads a DNSEndpoint, so a DNSEndpoint written by hand is held to the same rule. Pure.
 *
 * A namespace with a grant may use the domains of its grants and everything beneath them, and nothing else. A grant for the
 * namespace `*` holds for every namespace without one of its own. Without any grant every namespace may use every name.
 */
import { z } from 'zod'
import { normalizeHost } from '../host-name.ts'

export const GrantsConfig = z
  .array(
    z.strictObject({
      namespace: z.string().min(1).describe('namespace, or * for every namespace without a grant of its own'),
      domains: z.array(z.string().min(1)).min(1).describe('domains it may use, with every name beneath them'),
    }),
  )
  .default([])

export type Grants = readonly { readonly namespace: string; readonly domains: readonly string[] }[]

/** Undefined when the namespace may use the name, else why not. */
export function findGrantFault(grants: Grants, namespace: string, name: string): string | undefined {
  if (grants.length === 0) return undefined
  const own = grants.filter((grant) => grant.namespace === namespace)
  const applying = own.length > 0 ? own : grants.filter((grant) => grant.namespace === '*')
  if (applying.length === 0) return undefined
  const host = normalizeHost(name)
  const domains = applying.flatMap((grant) => grant.domains).map(normalizeHost)
  if (domains.some((domain) => host === domain || host.endsWith(`.${domain}`))) return undefined
  return `namespace ${namespace} may use names in ${domains.join(', ')}, and ${host} is in none of them; add a grant to the configuration`
}
