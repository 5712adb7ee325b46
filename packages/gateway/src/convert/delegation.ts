/**
 * Under which path prefix an object is delegated to. An IngressRoute repeats that prefix in the matches of the delegate; an
 * HTTPProxy does not: the conditions of its includes are put in front of its own (concatenated, `//` becomes `/`).
 */
import type { HTTPProxy, IngressRoute } from '@seamark/kube/contour'
import type { ObjectMeta } from '@seamark/kube/object'

/** By key of the delegate: all prefixes under which it is delegated to. Roots are not contained. */
export type DelegatedPrefixes = ReadonlyMap<string, ReadonlySet<string>>

/** Matches of an IngressRoute are whole paths, so a chain of delegations needs no walk. */
export function prefixesOfRoutes(routes: readonly IngressRoute[]): DelegatedPrefixes {
  const prefixes = new Map<string, Set<string>>()
  for (const { metadata, spec } of routes)
    for (const { match, delegate } of spec?.routes ?? []) {
      if (delegate === undefined) continue
      const key = keyFrom(metadata, delegate)
      prefixes.set(key, (prefixes.get(key) ?? new Set()).add(match))
    }
  return prefixes
}

interface Inclusion {
  readonly parent: HTTPProxy
  readonly prefix: string
}

/** Cycles of includes, which no proxy serves, end where they begin. */
export function prefixesOfProxies(proxies: readonly HTTPProxy[]): DelegatedPrefixes {
  const inclusions = new Map<string, Inclusion[]>()
  for (const parent of proxies)
    for (const { name, namespace, conditions = [] } of parent.spec?.includes ?? []) {
      const key = keyFrom(parent.metadata, { name, ...(namespace !== undefined && { namespace }) })
      const prefix = conditions.find((each) => each.prefix !== undefined)?.prefix ?? ''
      inclusions.set(key, [...(inclusions.get(key) ?? []), { parent, prefix }])
    }
  const walk = (key: string, seen: ReadonlySet<string>): string[] => {
    if (seen.has(key)) return []
    const path = new Set([...seen, key])
    return (inclusions.get(key) ?? []).flatMap(({ parent, prefix }) => {
      const before = isRoot(parent) ? [''] : walk(delegateKey(parent.metadata), path)
      return before.map((each) => joinPaths(each, prefix))
    })
  }
  return new Map([...inclusions.keys()].map((key) => [key, new Set(walk(key, new Set()))]))
}

/** Manifests may have no namespace: then all of them are in one. */
export function delegateKey({ namespace = '', name = '' }: ObjectMeta): string {
  return `${namespace}/${name}`
}

function keyFrom({ namespace }: ObjectMeta, to: { readonly name: string; readonly namespace?: string }): string {
  return delegateKey({ namespace: to.namespace ?? namespace ?? '', name: to.name })
}

export function isRoot({ spec }: HTTPProxy | IngressRoute): boolean {
  return spec?.virtualhost !== undefined && spec.virtualhost !== null
}

/** As Contour concatenates the prefixes of includes. */
export function joinPaths(before: string, after: string): string {
  return `${before}${after}`.replaceAll(/\/{2,}/g, '/')
}

/** What has to be put behind `prefix` to get `path`; empty if they are the same. Undefined: `path` is not below it. */
export function relativePath(path: string, prefix: string): string | undefined {
  if (prefix === '' || prefix === '/') return path
  if (path === prefix) return ''
  if (!path.startsWith(prefix)) return undefined
  const rest = path.slice(prefix.length)
  return rest.startsWith('/') ? rest : prefix.endsWith('/') ? `/${rest}` : undefined
}
