/**
 * The names that a namespace may use (INV-15): `grants` of the configuration, an allow-list. Checked where publish decides
 * about a source and where records reads a DNSEndpoint, so a manually written DNSEndpoint follows the same rule. Pure.
 *
 * - Without any grant every namespace may use every name; with one, a namespace may use only what is granted to it.
 * - A domain is granted with every name below it, except those below a longer domain that is granted to others.
 * - A grant for the namespace `*` holds for every namespace without one of its own.
 * - A wildcard matches all names at its level, so it needs an explicit grant: `*.shop.example.com`.
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
  const host = normalizeHost(name)
  const covering = grants.flatMap((grant) =>
    grant.domains.map(normalizeHost).flatMap((domain) => (covers(domain, host) ? [{ domain, grant }] : [])),
  )
  const longest = Math.max(0, ...covering.map(({ domain }) => domain.length))
  const own = grants.filter((grant) => grant.namespace === namespace)
  const applying = own.length > 0 ? own : grants.filter((grant) => grant.namespace === '*')
  if (covering.some(({ domain, grant }) => domain.length === longest && applying.includes(grant))) return undefined
  const domains = applying.flatMap((grant) => grant.domains).map(normalizeHost)
  const allowed = domains.length === 0 ? 'no name: nothing is granted to it' : `names in ${domains.join(', ')}`
  return `namespace ${namespace} may use ${allowed}; ${host} is not granted to it; add a grant to the configuration`
}

function covers(domain: string, host: string): boolean {
  if (host.startsWith('*.') || domain.startsWith('*.')) return host === domain
  return host === domain || host.endsWith(`.${domain}`)
}
