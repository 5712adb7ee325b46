/** Patches of the in-memory cluster: merge patch, JSON patch, and the fields that an apply owns or abandons. */
import type { Obj } from '../../object/object.ts'

export type Plain = Record<string, unknown>

function isPlain(value: unknown): value is Plain {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** As JSON, whatever the order of fields. Parts that are shared are not read. */
export function isEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((each: unknown, index) => isEqual(each, b[index]))
  if (!isPlain(a) || !isPlain(b)) return false
  for (const key of Object.keys(a)) if (!isEqual(a[key], b[key])) return false
  return Object.keys(b).every((key) => b[key] === undefined || a[key] !== undefined)
}

/** Of JSON values, as a request copies them: without undefined fields. */
export function copyOf<T>(value: T): T {
  if (Array.isArray(value)) return value.map(copyOf) as T
  if (!isPlain(value)) return value
  const copy: Plain = {}
  for (const key of Object.keys(value)) if (value[key] !== undefined) copy[key] = copyOf(value[key])
  return copy as T
}

/** RFC 7386. */
export function merge(target: unknown, patch: unknown): unknown {
  if (!isPlain(patch)) return patch
  const result: Plain = isPlain(target) ? { ...target } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key]
    else if (value !== undefined) result[key] = merge(result[key], value)
  }
  return result
}

/** For a schema in which every list is atomic. */
export function fieldsOf(value: Plain): Plain {
  const entries = Object.entries(value).filter(
    ([, below]) => below !== undefined && (!isPlain(below) || Object.values(below).some((each) => each !== undefined)),
  )
  return Object.fromEntries(entries.map(([key, below]) => [`f:${key}`, isPlain(below) ? fieldsOf(below) : {}]))
}

/** Fields that the previous entry of the manager has and the new one does not are removed, unless another manager has them. */
export function withoutAbandoned(value: unknown, before: Plain, now: Plain, others: readonly Plain[]): unknown {
  if (!isPlain(value)) return value
  const result = { ...value }
  for (const [field, below] of Object.entries(before)) {
    const name = field.slice('f:'.length)
    const shared = others.map((fields) => fields[field]).filter(isPlain)
    const next = now[field]
    if (isPlain(next) && isPlain(below)) result[name] = withoutAbandoned(result[name], below, next, shared)
    else if (shared.length === 0) delete result[name]
  }
  return result
}

export interface JsonOperation {
  op: 'add' | 'remove' | 'replace' | 'test'
  path: string
  value?: unknown
}

/** The subset of RFC 6902 used by the runtime: finalizers. */
export function jsonPatch(object: Obj, operations: readonly JsonOperation[], failPatch: () => never): Obj {
  for (const { op, path, value } of operations) {
    const segments = path.split('/').slice(1)
    const last = segments.pop() ?? ''
    const parent = segments.reduce<unknown>((node, segment) => (node as Plain | undefined)?.[segment], object) as
      | Plain
      | unknown[]
    if (op === 'test') {
      if (JSON.stringify((parent as Plain | undefined)?.[last]) !== JSON.stringify(value)) failPatch()
    } else if (Array.isArray(parent)) {
      if (op === 'add') parent.splice(last === '-' ? parent.length : Number(last), 0, value)
      else if (op === 'remove') parent.splice(Number(last), 1)
      else parent[Number(last)] = value
    } else if (op === 'remove') delete parent[last]
    else parent[last] = value
  }
  return object
}
