/**
 * Prevention of privilege escalation: a user cannot grant permissions by a role or binding that the user does not have,
 * unless the user has the verb `escalate` or `bind` on the role.
 *
 * Place in the flow: called with the object that a write would store, before validation.
 */
import type { UserInfo } from '../exchange/exchange.ts'
import { type ApiObject, asRecords, asStrings, getPath, isSameJson, type Json } from '../codec/object-shape.ts'
import { forbidden, notFound } from '../exchange/status.ts'
import type { Rbac } from './rbac.ts'

const group = 'rbac.authorization.k8s.io'

interface Grant {
  readonly user: UserInfo
  /** `roles`, `clusterrolebindings` … */
  readonly plural: string
  readonly namespace: string
  readonly name: string
  readonly object: ApiObject
  readonly old: ApiObject | undefined
}

/** One group, one resource, one verb, at most one name; or one path and one verb. */
interface Permission {
  readonly group: string
  readonly resource: string
  readonly resourceName: string | undefined
  readonly url: string | undefined
  readonly verb: string
}

/** Throws Forbidden when the object grants permissions that its author does not have. */
export function confirmGrant(rbac: Rbac, grant: Grant): void {
  const { user, plural, old } = grant
  if (user.groups.includes('system:masters')) return
  if (old !== undefined && isSameJson(withoutOwnership(grant.object), withoutOwnership(old))) return
  const isBinding = plural.endsWith('bindings')
  const rules = isBinding ? boundRules(rbac, grant) : ownRules(rbac, grant)
  if (rules === undefined) return
  const owned = rbac.granted(user, grant.namespace).flatMap((granted) => granted.rules)
  const missingOf = (wanted: readonly Json[]): Permission[] =>
    wanted.flatMap(permissionsOf).filter((permission) => !owned.some((rule) => covers(rule, permission)))
  const subject = old?.metadata.name ?? grant.object.metadata.name ?? ''
  if (!isBinding && [grant.object, old].some(isAggregated) && missingOf(FULL_AUTHORITY).length > 0)
    throw forbidden({ group, plural }, subject, 'must have cluster-admin privileges to use the aggregationRule')
  const missing = missingOf(rules)
  if (missing.length === 0) return
  const groups = user.groups.map((name) => JSON.stringify(name)).join(' ')
  const why = `user ${JSON.stringify(user.name)} (groups=[${groups}]) is attempting to grant RBAC permissions not currently held:\n${describe(missing)}`
  throw forbidden({ group, plural }, subject, why)
}

/** The rules of a role with an aggregation are those of any role. */
const FULL_AUTHORITY = [
  { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
  { nonResourceURLs: ['*'], verbs: ['*'] },
]

function isAggregated(role: ApiObject | undefined): boolean {
  return asRecords(getPath(role, 'aggregationRule', 'clusterRoleSelectors')).length > 0
}

const OWNERSHIP_FIELDS: ReadonlySet<string> = new Set([
  'finalizers',
  'ownerReferences',
  'managedFields',
  'resourceVersion',
])

/** Without the fields that the garbage collector changes, which needs no permissions of the role, and those of the server. */
function withoutOwnership(object: ApiObject): object {
  const metadata = Object.entries(object.metadata).filter(([name]) => !OWNERSHIP_FIELDS.has(name))
  return { ...object, metadata: Object.fromEntries(metadata) }
}

/** The rules of a role; undefined when its author may `escalate`. */
function ownRules(rbac: Rbac, { user, plural, namespace, name, object }: Grant): Json[] | undefined {
  const question = { user, verb: 'escalate', isResource: true, path: '', group, resource: plural, subresource: '' }
  if (rbac.decide({ ...question, namespace, name }).isAllowed) return undefined
  return asRecords(object['rules'])
}

/** The rules that a binding grants; undefined when its author may `bind` the role. */
function boundRules(rbac: Rbac, { user, plural, namespace, object }: Grant): Json[] | undefined {
  const [kind, name] = [String(getPath(object, 'roleRef', 'kind')), String(getPath(object, 'roleRef', 'name') ?? '')]
  const resource = kind === 'ClusterRole' ? 'clusterroles' : 'roles'
  const question = { user, verb: 'bind', isResource: true, path: '', group, resource, subresource: '' }
  if (rbac.decide({ ...question, namespace, name }).isAllowed) return undefined
  const rules = rbac.findRules(kind, name, namespace)
  // The error names the resource of the binding, as in kube-apiserver.
  if (rules === undefined) throw notFound({ group, plural }, name)
  return rules
}

function permissionsOf(rule: Json): Permission[] {
  const verbs = asStrings(rule['verbs'])
  const names = asStrings(rule['resourceNames'])
  const none = { group: '', resource: '', resourceName: undefined, url: undefined }
  const resources = asStrings(rule['apiGroups']).flatMap((apiGroup) =>
    asStrings(rule['resources']).flatMap((resource) =>
      (names.length === 0 ? [undefined] : names).flatMap((resourceName) =>
        verbs.map((verb) => ({ ...none, group: apiGroup, resource, resourceName, verb })),
      ),
    ),
  )
  const urls = asStrings(rule['nonResourceURLs']).flatMap((url) => verbs.map((verb) => ({ ...none, url, verb })))
  return [...resources, ...urls]
}

const has = (list: unknown, value: string): boolean => {
  const values = asStrings(list)
  return values.includes('*') || values.includes(value)
}

function covers(rule: Json, permission: Permission): boolean {
  if (!has(rule['verbs'], permission.verb)) return false
  const { url, resource, resourceName } = permission
  if (url !== undefined) {
    return asStrings(rule['nonResourceURLs']).some(
      (own) => own === url || (own.endsWith('*') && url.startsWith(own.slice(0, -1))),
    )
  }
  const subresource = resource.includes('/') ? resource.slice(resource.indexOf('/') + 1) : ''
  const isNamed = has(rule['resources'], resource) || (subresource !== '' && has(rule['resources'], `*/${subresource}`))
  const names = asStrings(rule['resourceNames'])
  const isFree = names.length === 0 || (resourceName !== undefined && names.includes(resourceName))
  return has(rule['apiGroups'], permission.group) && isNamed && isFree
}

/** Lines like `{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}`, sorted. */
function describe(missing: readonly Permission[]): string {
  const verbs = new Map<string, string[]>()
  for (const permission of missing) {
    const what =
      permission.url === undefined
        ? `APIGroups:[${JSON.stringify(permission.group)}], Resources:[${JSON.stringify(permission.resource)}]${permission.resourceName === undefined ? '' : `, ResourceNames:[${JSON.stringify(permission.resourceName)}]`}`
        : `NonResourceURLs:[${JSON.stringify(permission.url)}]`
    // Permissions on paths are listed one by one, those on resources are combined.
    const key = permission.url === undefined ? what : `${what}\0${permission.verb}`
    verbs.set(key, [...(verbs.get(key) ?? []), permission.verb])
  }
  return [...verbs]
    .map(([what, list]) => `{${what.split('\0')[0]}, Verbs:[${list.map((verb) => JSON.stringify(verb)).join(' ')}]}`)
    .toSorted()
    .join('\n')
}
