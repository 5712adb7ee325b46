/**
 * Safe handling of JSON values with untrusted keys: `__proto__` and similar names are ordinary keys.
 *
 * Invariant: this package never assigns an untrusted key with `target[key] = value`; it uses `setOwn`.
 */
import type { Obj, ObjectMeta } from '@seamark/kube/object'

export type Json = Record<string, unknown>

/** A stored or incoming object: the shared fields plus those of its kind. */
export type ApiObject = Obj & Json

export function isRecord(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Plain assignment would change the prototype for the key `__proto__`. */
export function setOwn(target: Json, key: string, value: unknown): void {
  if (key === '__proto__')
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true })
  else target[key] = value
}

export function getOwn(source: unknown, key: string): unknown {
  return isRecord(source) && Object.hasOwn(source, key) ? source[key] : undefined
}

/** Own value at a path of keys. */
export function getPath(source: unknown, ...path: string[]): unknown {
  let value = source
  for (const key of path) value = getOwn(value, key)
  return value
}

/**
 * Maximum nesting of an object. kube-apiserver accepts 10 000 levels; recursive functions of this package would exhaust
 * the stack.
 */
export const MAX_OBJECT_DEPTH = 1000

/** Whether a value has more than `limit` levels of objects and arrays. Recurses no deeper than the limit. */
export function isDeeperThan(value: unknown, limit: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (limit === 0) return true
  const children: unknown[] = Array.isArray(value) ? value : Object.values(value)
  return children.some((child) => isDeeperThan(child, limit - 1))
}

/** Deep copy of a JSON value. */
export function cloneJson<T>(value: T): T {
  if (Array.isArray(value)) return value.map((item: unknown) => cloneJson(item)) as T
  if (!isRecord(value)) return value
  const copy: Json = {}
  for (const key of Object.keys(value)) setOwn(copy, key, cloneJson(value[key]))
  return copy as T
}

/** Deep equality of JSON values; the order of keys is ignored. */
export function isSameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item: unknown, index) => isSameJson(item, b[index]))
  }
  if (!isRecord(a) || !isRecord(b)) return false
  const keys = Object.keys(a)
  if (keys.length !== Object.keys(b).length) return false
  return keys.every((key) => Object.hasOwn(b, key) && isSameJson(a[key], b[key]))
}

/** A shallow copy with other metadata; the stored object is not modified. */
export function withMetadata(object: ApiObject, changes: Partial<ObjectMeta>): ApiObject {
  const metadata: ObjectMeta = { ...object.metadata, ...changes }
  for (const key of Object.keys(changes) as (keyof ObjectMeta)[]) {
    if (changes[key] === undefined) delete metadata[key]
  }
  return { ...object, metadata }
}

export function asStrings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : []
}

export function asRecords(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}
