/**
 * The names that a namespace may use (INV-15): `grants` of the configuration, an allow-list. Checked where publish decides
 * about a source, where the fleet claims a host, where balance gives a name to a load balancer, where records reads a
 * DNSEndpoint, so a manually written DNSEndpoint follows the same rule, by the admission webhook and by the gateway. Pure.
 *
 * - Without any grant every namespace may use every name; with one, a namespace may use only what is granted to it.
 * - A domain is granted with every name below it, except those below a longer domain that is granted to others.
 * - A grant for the namespace `*` holds for every namespace without one of its own.
 * - A wildcard matches all names at its level, so it needs an explicit grant: `*.shop.example.com`.
 * - What is in the manager's own namespace is its own, and may have every name (`processGrants`).
 */
import { z } from 'zod'
import { normalizeHost } from './host-name.ts'

export const GrantsConfig = z
  .array(
    z.strictObject({
      namespace: z.string().min(1).describe('namespace, or * for every namespace without a grant of its own'),
      domains: z.array(z.string().min(1)).min(1).describe('domains it may use, with every name beneath them'),
    }),
  )
  .default([])

/** `domains` empty: every name, which a configuration cannot say. */
export type Grants = readonly { readonly namespace: string; readonly domains: readonly string[] }[]

/** Most domains that a message lists. */
const SHOWN_DOMAINS = 10

/** The one table of a process, for all of its capabilities and its gateway. */
export function processGrants(grants: Grants, managerNamespace: string): Grants {
  return grants.length === 0 ? grants : [...grants, { namespace: managerNamespace, domains: [] }]
}

/** Undefined when the namespace may use the name, else why not. The cost does not depend on the number of grants. */
export function findGrantFault(grants: Grants, namespace: string, name: string): string | undefined {
  if (grants.length === 0) return undefined
  const { holders, domains, unbound } = tableOf(grants)
  if (unbound.has(namespace)) return undefined
  const host = normalizeHost(name)
  const tenant = domains.has(namespace) ? namespace : '*'
  for (const domain of coveringDomains(host)) {
    const granted = holders.get(domain)
    if (granted === undefined) continue
    // The longest domain decides: those above it grant nothing here.
    if (granted.has(tenant)) return undefined
    break
  }
  return `namespace ${namespace} may use ${describeDomains(domains.get(tenant))}; ${host} is not granted to it; add a grant to the configuration`
}

/** Undefined when the namespace may use the name, else why not and what to do. */
export type NameRule = (namespace: string, name: string) => string | undefined

export function nameRule(grants: Grants): NameRule {
  return (namespace, name) => findGrantFault(grants, namespace, name)
}

interface GrantTable {
  /** Namespaces by domain. */
  readonly holders: ReadonlyMap<string, ReadonlySet<string>>
  /** Domains by namespace. */
  readonly domains: ReadonlyMap<string, readonly string[]>
  /** Namespaces that may use every name. */
  readonly unbound: ReadonlySet<string>
}

const tables = new WeakMap<Grants, GrantTable>()

function tableOf(grants: Grants): GrantTable {
  let table = tables.get(grants)
  if (table === undefined) {
    const holders = new Map<string, Set<string>>()
    const domains = new Map<string, string[]>()
    const unbound = new Set<string>()
    for (const grant of grants) {
      if (grant.domains.length === 0) unbound.add(grant.namespace)
      const own = domains.get(grant.namespace) ?? []
      domains.set(grant.namespace, own)
      for (const domain of grant.domains.map(normalizeHost)) {
        own.push(domain)
        const namespaces = holders.get(domain) ?? new Set()
        holders.set(domain, namespaces.add(grant.namespace))
      }
    }
    table = { holders, domains, unbound }
    tables.set(grants, table)
  }
  return table
}

/** The domains with which the host may be granted, longest first. */
function* coveringDomains(host: string): Generator<string> {
  yield host
  if (host.startsWith('*.')) return
  for (let dot = host.indexOf('.'); dot >= 0; dot = host.indexOf('.', dot + 1)) yield host.slice(dot + 1)
}

function describeDomains(domains: readonly string[] = []): string {
  if (domains.length === 0) return 'no name: nothing is granted to it'
  const more = domains.length > SHOWN_DOMAINS ? ` and ${domains.length - SHOWN_DOMAINS} more domains` : ''
  return `names in ${domains.slice(0, SHOWN_DOMAINS).join(', ')}${more}`
}
