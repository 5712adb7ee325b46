/**
 * Role-based access control. Roles and bindings are the stored objects, read at each decision; resolved rules are
 * cached until one of those objects changes.
 *
 * `system:masters` is always allowed, independent of bindings.
 */
import type { UserInfo } from '../exchange/exchange.ts'
import { type ApiObject, asRecords, asStrings, getPath, isRecord, type Json } from '../codec/object-shape.ts'
import { compileLabelSelector } from '../resource/selectors.ts'
import type { Store } from '../store/store.ts'
import type { Stored } from '../store/stored-object.ts'

export interface Attributes {
  readonly user: UserInfo
  readonly verb: string
  readonly isResource: boolean
  readonly path: string
  readonly group: string
  readonly resource: string
  readonly subresource: string
  readonly namespace: string
  readonly name: string
}

export interface Decision {
  readonly isAllowed: boolean
  /** Empty when no rule allows the request. */
  readonly reason: string
}

const rbacGroup = 'rbac.authorization.k8s.io'

interface Granted {
  readonly rules: readonly Json[]
  readonly reason: string
}

export class Rbac {
  readonly #store: Store
  readonly #cache = new Map<string, Granted[]>()

  constructor(store: Store) {
    this.#store = store
    for (const plural of ['clusterroles', 'clusterrolebindings', 'roles', 'rolebindings']) {
      store.collection(`${plural}.${rbacGroup}`).subscribe(() => this.#cache.clear())
    }
  }

  decide(attributes: Attributes): Decision {
    const { user } = attributes
    if (user.groups.includes('system:masters')) return { isAllowed: true, reason: '' }
    for (const granted of this.granted(user, attributes.isResource ? attributes.namespace : '')) {
      if (granted.rules.some((rule) => isCovered(rule, attributes))) return { isAllowed: true, reason: granted.reason }
    }
    return { isAllowed: false, reason: '' }
  }

  /** Every rule that applies to the user in a namespace ('' is the cluster alone). */
  granted(user: UserInfo, namespace: string): Granted[] {
    const key = JSON.stringify([user.name, user.groups, namespace])
    let granted = this.#cache.get(key)
    if (granted === undefined) {
      granted = this.#resolve(user, namespace)
      if (this.#cache.size > 1000) this.#cache.clear()
      this.#cache.set(key, granted)
    }
    return granted
  }

  #resolve(user: UserInfo, namespace: string): Granted[] {
    const granted: Granted[] = []
    for (const stored of this.#store.collection(`clusterrolebindings.${rbacGroup}`).values()) {
      this.#grant(granted, stored.object, user, '', `ClusterRoleBinding ${JSON.stringify(stored.name)}`)
    }
    if (namespace !== '') {
      for (const stored of this.#store.collection(`rolebindings.${rbacGroup}`).range({ namespace, limit: 0 }).items) {
        this.#grant(
          granted,
          stored.object,
          user,
          namespace,
          `RoleBinding ${JSON.stringify(`${stored.name}/${namespace}`)}`,
        )
      }
    }
    return granted
  }

  #grant(granted: Granted[], binding: ApiObject, user: UserInfo, namespace: string, source: string): void {
    const subject = asRecords(binding['subjects']).find((candidate) => isSubject(candidate, user, namespace))
    if (subject === undefined) return
    const kind = String(getPath(binding, 'roleRef', 'kind'))
    const name = String(getPath(binding, 'roleRef', 'name'))
    const rules = this.#rulesOf(kind, name, namespace)
    const whom =
      subject['kind'] === 'ServiceAccount'
        ? `ServiceAccount "${String(subject['name'])}/${String(subject['namespace'] ?? namespace)}"`
        : `${String(subject['kind'])} "${String(subject['name'])}"`
    granted.push({ rules, reason: `RBAC: allowed by ${source} of ${kind} ${JSON.stringify(name)} to ${whom}` })
  }

  /** The rules of a role; undefined when it does not exist. */
  findRules(kind: string, name: string, namespace: string): Json[] | undefined {
    return this.#findRole(kind, name, namespace) === undefined ? undefined : this.#rulesOf(kind, name, namespace)
  }

  #findRole(kind: string, name: string, namespace: string): Stored | undefined {
    return kind === 'ClusterRole'
      ? this.#store.collection(`clusterroles.${rbacGroup}`).get(name)
      : this.#store.collection(`roles.${rbacGroup}`).get(`${namespace}/${name}`)
  }

  #rulesOf(kind: string, name: string, namespace: string, seen: ReadonlySet<string> = new Set()): Json[] {
    const stored = this.#findRole(kind, name, namespace)
    if (stored === undefined || seen.has(name)) return []
    const own = asRecords(stored.object['rules'])
    const selectors = asRecords(getPath(stored.object, 'aggregationRule', 'clusterRoleSelectors')).map(
      compileLabelSelector,
    )
    if (selectors.length === 0) return own
    const below = new Set([...seen, name])
    const parts = [...this.#store.collection(`clusterroles.${rbacGroup}`).values()].filter((role) =>
      selectors.some((selector) => selector.matches(role.labels)),
    )
    return [...own, ...parts.flatMap((role) => this.#rulesOf('ClusterRole', role.name, '', below))]
  }
}

function isSubject(subject: Json, user: UserInfo, bindingNamespace: string): boolean {
  const name = String(subject['name'])
  switch (subject['kind']) {
    case 'User':
      return user.name === name
    case 'Group':
      return user.groups.includes(name)
    case 'ServiceAccount': {
      const namespace = String(subject['namespace'] ?? bindingNamespace)
      return user.name === `system:serviceaccount:${namespace}:${name}`
    }
    default:
      return false
  }
}

const covers = (list: readonly string[], value: string): boolean => list.includes('*') || list.includes(value)

function isCovered(rule: Json, attributes: Attributes): boolean {
  if (!isRecord(rule) || !covers(asStrings(rule['verbs']), attributes.verb)) return false
  if (!attributes.isResource) {
    return asStrings(rule['nonResourceURLs']).some(
      (pattern) =>
        pattern === '*' ||
        pattern === attributes.path ||
        (pattern.endsWith('*') && attributes.path.startsWith(pattern.slice(0, -1))),
    )
  }
  const { group, resource, subresource, name } = attributes
  const resources = asStrings(rule['resources'])
  const full = subresource === '' ? resource : `${resource}/${subresource}`
  const isResource = resources.some(
    (item) => item === '*' || item === full || (subresource !== '' && item === `*/${subresource}`),
  )
  const names = asStrings(rule['resourceNames'])
  return covers(asStrings(rule['apiGroups']), group) && isResource && (names.length === 0 || names.includes(name))
}
