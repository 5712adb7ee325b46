/**
 * The difference of two JSON values as a JSON Patch (RFC 6902), for the response of a mutating webhook.
 *
 * Invariant: applying `diff(from, to)` to `from` gives `to`. Lists are compared by position; the patch is not minimal.
 */
export type PatchOperation = { op: 'add' | 'replace'; path: string; value: unknown } | { op: 'remove'; path: string }

/** Both must be plain JSON; undefined members count as absent. */
export function diff(from: unknown, to: unknown, path = ''): PatchOperation[] {
  if (isObject(from) && isObject(to)) return diffObjects(from, to, path)
  if (Array.isArray(from) && Array.isArray(to)) return diffLists(from, to, path)
  return from === to ? [] : [{ op: 'replace', path, value: to }]
}

function diffObjects(from: Plain, to: Plain, path: string): PatchOperation[] {
  const operations: PatchOperation[] = []
  for (const name of Object.keys(from)) {
    if (!has(to, name) && has(from, name)) operations.push({ op: 'remove', path: `${path}/${escape(name)}` })
  }
  for (const name of Object.keys(to)) {
    if (!has(to, name)) continue
    const below = `${path}/${escape(name)}`
    if (has(from, name)) operations.push(...diff(from[name], to[name], below))
    else operations.push({ op: 'add', path: below, value: to[name] })
  }
  return operations
}

function diffLists(from: readonly unknown[], to: readonly unknown[], path: string): PatchOperation[] {
  const common = Math.min(from.length, to.length)
  const operations = from.slice(0, common).flatMap((value, index) => diff(value, to[index], `${path}/${index}`))
  // From the end, so that the remaining positions do not change.
  for (let index = from.length - 1; index >= common; index--)
    operations.push({ op: 'remove', path: `${path}/${index}` })
  for (const value of to.slice(common)) operations.push({ op: 'add', path: `${path}/-`, value })
  return operations
}

type Plain = Readonly<Record<string, unknown>>

function isObject(value: unknown): value is Plain {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Own members only: `constructor` and `__proto__` are ordinary names. */
function has(object: Plain, name: string): boolean {
  return Object.hasOwn(object, name) && object[name] !== undefined
}

/** RFC 6901 §3. */
function escape(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}
