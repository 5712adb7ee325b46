/**
 * What a program may ask an API server for, as data: roles of the chart, of `seamark hub init` and of `seamark cluster add`,
 * the tables of SECURITY.md and what `seamark check` asks are all made of the same rows.
 */

/** Where a role grants it: in the whole cluster, or in the namespace of the account. */
export type Place = 'cluster' | 'home'

export interface Right {
  readonly group: string
  /** With its subresource: `ingresses/status`. */
  readonly resource: string
  readonly verbs: readonly string[]
  readonly place: Place
  /** Only objects of these names. */
  readonly names?: readonly string[]
  /** What needs it, in a sentence. */
  readonly why: string
  /** Without it everything works, but is noticed later. */
  readonly isOptional?: boolean
  /** Only in states that a cluster is seldom in: `why` says in which. */
  readonly isRare?: boolean
  /** No request: the API server asks for it itself, where it guards owner references or hosts (OpenShift). */
  readonly isAskedByServer?: boolean
}

/** A rule of a Role. */
export interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly verbs: readonly string[]
}

/** `ingresses/status.networking.k8s.io` */
export function resourceNameOf({ group, resource }: Pick<Right, 'group' | 'resource'>): string {
  return group === '' ? resource : `${resource}.${group}`
}

/** In the order of the rights; what several rows grant of one resource is one rule. */
export function rulesOf(rights: readonly Right[], place: Place): Rule[] {
  const rules = new Map<string, { rule: Rule; verbs: Set<string> }>()
  for (const { group, resource, names, verbs, place: where } of rights) {
    if (where !== place) continue
    const rule = { apiGroups: [group], resources: [resource], ...(names !== undefined && { resourceNames: names }) }
    const key = JSON.stringify(rule)
    const known = rules.get(key)
    if (known === undefined) rules.set(key, { rule: { ...rule, verbs: [] }, verbs: new Set(verbs) })
    else for (const verb of verbs) known.verbs.add(verb)
  }
  return [...rules.values()].map(({ rule, verbs }) => ({ ...rule, verbs: VERBS.filter((verb) => verbs.has(verb)) }))
}

/** In the order in which roles name them. */
const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete']
