/**
 * JSON patch (RFC 6902) with the messages and the leniency of the real server: `replace` may create a key of an object,
 * negative indices count from the end. Pure: the document is not changed; untouched parts are shared with it.
 */
import { jsonEqual } from '../codec/json-equal.ts'
import { getOwn, isJsonObject, setOwn } from '../codec/json-object.ts'
import type { JsonObject } from '../codec/json-object.ts'
import { PatchError } from './patch-error.ts'

const MAX_OPERATIONS = 10_000

export function applyJsonPatch(document: unknown, operations: unknown): unknown {
  if (!Array.isArray(operations)) {
    throw new PatchError(
      400,
      `error decoding patch: json: cannot unmarshal ${kindOf(operations)} into Go value of type []handlers.jsonPatchOp`,
    )
  }
  if (operations.length > MAX_OPERATIONS) {
    throw new PatchError(
      413,
      `The allowed maximum operations in a JSON patch is ${MAX_OPERATIONS}, got ${operations.length}`,
    )
  }
  let result = document
  for (const operation of operations) {
    if (!isJsonObject(operation)) {
      throw new PatchError(
        400,
        `error decoding patch: json: cannot unmarshal ${kindOf(operation)} into Go value of type handlers.jsonPatchOp`,
      )
    }
    result = applyOperation(result, operation)
  }
  return result
}

/** How Go names the type of a JSON value. */
function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'array'
  return typeof value === 'boolean' ? 'bool' : typeof value
}

function fail(message: string): never {
  throw new PatchError(422, message)
}

function applyOperation(document: unknown, operation: JsonObject): unknown {
  const kind = getOwn(operation, 'op')
  const value = getOwn(operation, 'value')
  switch (kind) {
    case 'add': {
      const path = pointer(operation, 'path') ?? fail('add operation failed to decode path: missing value')
      return edit(document, path, `add operation does not apply: doc is missing path: "${path}"`, (parent, key) =>
        addTo(parent, key, value ?? null, (why) => `error in add for path: '${path}': ${why}`),
      )
    }
    case 'remove': {
      const path = pointer(operation, 'path') ?? fail('remove operation failed to decode path: missing value')
      return edit(document, path, `remove operation does not apply: doc is missing path: "${path}"`, (parent, key) =>
        removeFrom(parent, key, (why) => `error in remove for path: '${path}': ${why}`),
      )
    }
    case 'replace':
      return replace(document, operation, value ?? null)
    case 'move':
      return move(document, operation)
    case 'copy':
      return copy(document, operation)
    case 'test':
      return test(document, operation, value ?? null)
    default:
      return fail(`Unexpected kind: ${typeof kind === 'string' ? kind : 'unknown'}`)
  }
}

function pointer(operation: JsonObject, name: string): string | undefined {
  const value = getOwn(operation, name)
  return typeof value === 'string' ? value : undefined
}

function replace(document: unknown, operation: JsonObject, value: unknown): unknown {
  const path =
    pointer(operation, 'path') ??
    fail('replace operation failed to decode path: operation missing path field: missing value')
  if (path === '') {
    return typeof value === 'object' && value !== null
      ? value
      : fail('replace operation value must be object or array: %!w(<nil>)')
  }
  return edit(document, path, `replace operation does not apply: doc is missing path: ${path}`, (parent, key) => {
    if (isJsonObject(parent)) return withKey(parent, key, value)
    const missing = `replace operation does not apply: doc is missing key: ${path}: missing value`
    const index = indexOf(parent, key, () => missing)
    return parent.with(index, value)
  })
}

function move(document: unknown, operation: JsonObject): unknown {
  const from =
    pointer(operation, 'from') ??
    fail('move operation failed to decode from: operation, missing from field: missing value')
  let value: unknown
  const without = edit(
    document,
    from,
    `move operation does not apply: doc is missing from path: ${from}`,
    (parent, key) => {
      const describe = (why: string): string => `error in move for path: '${key}': ${why}`
      value = read(parent, key, describe)
      return removeFrom(parent, key, describe)
    },
  )
  const path =
    pointer(operation, 'path') ??
    fail('move operation failed to decode path: operation missing path field: missing value')
  return edit(without, path, `move operation does not apply: doc is missing destination path: ${path}`, (parent, key) =>
    addTo(parent, key, value, (why) => `error in move for path: '${path}': ${why}`),
  )
}

function copy(document: unknown, operation: JsonObject): unknown {
  const from =
    pointer(operation, 'from') ??
    fail('copy operation failed to decode from: operation, missing from field: missing value')
  const [parent, key] =
    find(document, from) ?? fail(`copy operation does not apply: doc is missing from path: ${from}: missing value`)
  const value = read(parent, key, (why) => `error in copy for from: '${from}': ${why}`) ?? null
  const path = pointer(operation, 'path') ?? fail('copy operation failed to decode path: missing value')
  return edit(
    document,
    path,
    `copy operation does not apply: doc is missing destination path: ${path}`,
    (target, name) => addTo(target, name, value, (why) => `error while adding value during copy: ${why}`),
  )
}

function test(document: unknown, operation: JsonObject, expected: unknown): unknown {
  const path =
    pointer(operation, 'path') ??
    fail('test operation failed to decode path: operation missing path field: missing value')
  const failed = `testing value ${path} failed: test failed`
  if (path === '') return jsonEqual(document, expected) ? document : fail(failed)
  const [parent, key] =
    find(document, path) ?? fail(`test operation does not apply: is missing path: ${path}: missing value`)
  const value = read(parent, key, (why) => `error in test for path: '${path}': ${why}`) ?? null
  return jsonEqual(value, expected) ? document : fail(failed)
}

type Container = JsonObject | unknown[]

function splitPointer(path: string): string[] | undefined {
  const parts = path.split('/')
  return parts.length < 2 ? undefined : parts.slice(1).map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** The container that holds the last part of the path; undefined when there is none. */
function find(document: unknown, path: string): [Container, string] | undefined {
  const parts = splitPointer(path)
  let node = document
  for (const part of parts?.slice(0, -1) ?? []) node = step(node, part)
  return parts === undefined || !isContainer(node) ? undefined : [node, parts.at(-1)!]
}

function isContainer(value: unknown): value is Container {
  return typeof value === 'object' && value !== null
}

function step(node: unknown, part: string): unknown {
  if (isJsonObject(node)) return getOwn(node, part)
  if (!Array.isArray(node) || !/^[+-]?\d+$/.test(part)) return undefined
  return node.at(Number(part)) as unknown
}

/** Rebuilds the containers on the way to the path; the innermost is what `change` returns. */
function edit(
  document: unknown,
  path: string,
  missing: string,
  change: (parent: Container, key: string) => Container,
): unknown {
  const parts = splitPointer(path)
  if (parts === undefined) return fail(`${missing}: missing value`)
  const rebuild = (node: unknown, depth: number): unknown => {
    if (!isContainer(node)) return fail(`${missing}: missing value`)
    const part = parts[depth]!
    if (depth === parts.length - 1) return change(node, part)
    const child = step(node, part)
    if (child === undefined) return fail(`${missing}: missing value`)
    const next = rebuild(child, depth + 1)
    return Array.isArray(node) ? node.with(Number(part), next) : withKey(node, part, next)
  }
  return rebuild(document, 0)
}

function withKey(object: JsonObject, key: string, value: unknown): JsonObject {
  const result = { ...object }
  setOwn(result, key, value)
  return result
}

type Describe = (why: string) => string

/** A position that exists. */
function indexOf(list: unknown[], key: string, describe: Describe): number {
  const index = parseIndex(key, (why) => describe(why))
  if (index >= list.length || index < -list.length)
    return fail(describe(`Unable to access invalid index: ${index}: invalid index referenced`))
  return index < 0 ? index + list.length : index
}

function parseIndex(key: string, describe: Describe): number {
  if (/^[+-]?\d{1,15}$/.test(key)) return Number(key)
  return fail(describe(`strconv.Atoi: parsing ${JSON.stringify(key)}: invalid syntax`))
}

function read(parent: Container, key: string, describe: Describe): unknown {
  return isJsonObject(parent) ? getOwn(parent, key) : parent[indexOf(parent, key, describe)]
}

function addTo(parent: Container, key: string, value: unknown, describe: Describe): Container {
  if (isJsonObject(parent)) return withKey(parent, key, value)
  if (key === '-') return [...parent, value]
  const index = parseIndex(key, (why) => describe(`value was not a proper array index: '${key}': ${why}`))
  const size = parent.length + 1
  if (index >= size || index < -size)
    return fail(describe(`Unable to access invalid index: ${index}: invalid index referenced`))
  return parent.toSpliced(index < 0 ? index + size : index, 0, value)
}

function removeFrom(parent: Container, key: string, describe: Describe): Container {
  if (!isJsonObject(parent)) return parent.toSpliced(indexOf(parent, key, describe), 1)
  if (!Object.hasOwn(parent, key)) return fail(describe(`Unable to remove nonexistent key: ${key}: missing value`))
  const { [key]: _, ...rest } = parent
  return rest
}
