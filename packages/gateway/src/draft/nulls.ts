/**
 * Objects without members that are null. Go's servers write an empty list as null, and a user may write null where a schema
 * allows it; code that reads objects treats absent members only.
 *
 * The result is kept per object: an unchanged object is walked once, and one without nulls is returned as it is.
 */

const known = new WeakMap<object, unknown>()

export function withoutNulls<T extends object>(object: T): T {
  let result = known.get(object)
  if (result === undefined) known.set(object, (result = hasNull(object) ? strip(object) : object))
  return result as T
}

/** Most objects have none: they are walked without creating anything. */
function hasNull(value: object): boolean {
  if (Array.isArray(value)) {
    for (const item of value as readonly unknown[]) if (isNullWithin(item)) return true
    return false
  }
  for (const name in value) if (isNullWithin((value as Readonly<Record<string, unknown>>)[name])) return true
  return false
}

function isNullWithin(value: unknown): boolean {
  return typeof value === 'object' && (value === null || hasNull(value))
}

function strip(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    const items = value.map(strip)
    const isSame = items.every((item, index) => item === value[index] && item !== null)
    return isSame ? value : items.filter((item) => item !== null)
  }
  let copy: Record<string, unknown> | undefined
  for (const [name, member] of Object.entries(value)) {
    const stripped = strip(member)
    if (stripped === member && member !== null) continue
    copy ??= { ...value } as Record<string, unknown>
    if (stripped === null) delete copy[name]
    else copy[name] = stripped
  }
  return copy ?? value
}
