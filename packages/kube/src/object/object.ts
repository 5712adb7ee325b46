/**
 * The common shape of Kubernetes objects, and kind tokens: a kind is a frozen value that carries its TypeScript type,
 * so `client.get(Service, 'web/shop')` is typed without a scheme, code generation or reflection.
 *
 * Place in the flow: basic types of packages/kube, packages/apiserver and packages/operator. No I/O, no dependencies.
 */

export {
  matchesLabelSelector,
  parseLabelSelector,
  type InvalidSelector,
  type LabelPredicate,
  type Labels,
  type LabelSelector,
} from './label-selector.ts'

export interface OwnerReference {
  apiVersion: string
  kind: string
  name: string
  uid: string
  controller?: boolean
  blockOwnerDeletion?: boolean
}

export interface ManagedFieldsEntry {
  manager?: string
  operation?: 'Apply' | 'Update'
  apiVersion?: string
  time?: string
  fieldsType?: 'FieldsV1'
  fieldsV1?: Record<string, unknown>
  subresource?: string
}

export interface ObjectMeta {
  name?: string
  generateName?: string
  namespace?: string
  uid?: string
  resourceVersion?: string
  generation?: number
  creationTimestamp?: string
  deletionTimestamp?: string
  deletionGracePeriodSeconds?: number
  labels?: Record<string, string>
  annotations?: Record<string, string>
  ownerReferences?: OwnerReference[]
  finalizers?: string[]
  managedFields?: ManagedFieldsEntry[]
}

/** Any Kubernetes object. Kinds extend it with `spec`, `status`, `data` …, typing only the fields they use. */
export interface Obj {
  apiVersion?: string
  kind?: string
  metadata: ObjectMeta
}

export interface ListMeta {
  resourceVersion?: string
  continue?: string
  remainingItemCount?: number
}

export interface List<T extends Obj> {
  apiVersion: string
  kind: string
  metadata: ListMeta
  items: T[]
}

/** The server's explanation of a failure (or of a delete); carried inside every typed error. */
export interface Status {
  kind: 'Status'
  apiVersion: 'v1'
  metadata?: ListMeta
  status?: 'Success' | 'Failure'
  message?: string
  reason?: string
  details?: {
    name?: string
    group?: string
    kind?: string
    uid?: string
    causes?: { reason?: string; message?: string; field?: string }[]
    retryAfterSeconds?: number
  }
  code?: number
}

/** Deeply read-only view, returned by caches: the object is shared by all readers and must not be modified. */
export type Immutable<T> = T extends (infer U)[]
  ? readonly Immutable<U>[]
  : T extends object
    ? { readonly [K in keyof T]: Immutable<T[K]> }
    : T

/** Metadata that every object on a server has. */
export interface StoredMeta {
  name: string
  uid: string
  resourceVersion: string
}

/**
 * An object in a cache or reconciler: read from a server, so it has a name, a uid and a version, and, if the kind has a
 * spec, a generation.
 */
export type Stored<T extends Obj> = T & {
  metadata: StoredMeta & (T extends { spec?: unknown } ? { generation: number } : unknown)
}

export interface Kind<T extends Obj = Obj> {
  /** API group; '' is the core group. */
  readonly group: string
  readonly version: string
  readonly kind: string
  /** Lower-case plural, the resource name in URLs and RBAC. */
  readonly plural: string
  readonly namespaced: boolean
  /** Never set at run time: only carries the type parameter. */
  readonly __type?: T
}

/** Declares a kind token: plain frozen data. */
export function kind<T extends Obj = Obj>(description: Omit<Kind<T>, '__type'>): Kind<T> {
  return Object.freeze({ ...description })
}

export function apiVersionOf(kind: Kind): string {
  return kind.group === '' ? kind.version : `${kind.group}/${kind.version}`
}

/** Name of a kind in messages: `Service`, `HTTPProxy.projectcontour.io`. */
export function kindName(kind: Kind): string {
  return kind.group === '' ? kind.kind : `${kind.kind}.${kind.group}`
}

/** `namespace/name`, or `name` for cluster-scoped objects. One string per object; names cannot contain a slash. */
export type Key = string

export function keyOf(object: { readonly metadata: { readonly namespace?: string; readonly name?: string } }): Key {
  const { namespace, name = '' } = object.metadata
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`
}

export function parseKey(key: Key): { namespace?: string; name: string } {
  const slash = key.indexOf('/')
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}

/** Collection path, e.g. `/apis/apps/v1/namespaces/web/deployments` or `/api/v1/nodes`. */
export function collectionPath(kind: Kind, namespace?: string): string {
  const root = kind.group === '' ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`
  const scope = kind.namespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : ''
  return `${root}${scope}/${kind.plural}`
}

export function objectPath(kind: Kind, key: Key, subresource?: string): string {
  const { namespace, name } = parseKey(key)
  const path = `${collectionPath(kind, namespace)}/${encodeURIComponent(name)}`
  return subresource === undefined ? path : `${path}/${subresource}`
}
