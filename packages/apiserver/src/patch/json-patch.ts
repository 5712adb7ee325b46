/**
 * JSON patch (RFC 6902) with the messages and the leniency of kube-apiserver: `replace` may create a key of an object,
 * negative indices count from the end.
 *
 * Guarantees: neither the document nor the operations are changed. A container is copied by the first operation that
 * changes it and edited in place by later ones, so the work is bounded by the document, the patch and `MAX_COPY_BYTES`.
 */
import { jsonEqual } from '../codec/json-equal.ts'
import { getOwn, isJsonObject, setOwn } from '../codec/json-object.ts'
import type { JsonObject } from '../codec/json-object.ts'
import { PatchError } from './patch-error.ts'

/** Operations in one JSON patch, as in kube-apiserver. */
export const MAX_OPERATIONS = 10_000
/** Bytes of JSON that all `copy` operations of one patch may add, as in kube-apiserver (JSONPatchMaxCopyBytes). */
export const MAX_COPY_BYTES = 3 * 1024 * 1024

/** A document being patched. */
class Draft {
  root: unknown
  /** Containers that only this draft references: they may be changed in place. */
  readonly #owned = new Set<unknown>()
  #copiedBytes = 0

  constructor(document: unknown) {
    this.root = document
  }

  own(container: Container): Container {
    if (this.#owned.has(container)) return container
    const copy = Array.isArray(container) ? [...container] : { ...container }
    this.#owned.add(copy)
    return copy
  }

  /** A copy whose containers are owned by the draft. Fails before the copies of this patch exceed their limit. */
  clone(value: unknown): unknown {
    if (typeof value !== 'object' || value === null) {
      this.#charge(typeof value === 'string' ? value.length + 2 : 4)
      return value
    }
    this.#charge(2)
    const copy: Container = Array.isArray(value) ? [] : {}
    this.#owned.add(copy)
    if (Array.isArray(value)) for (const item of value) (copy as unknown[]).push(this.clone(item))
    else {
      for (const key of Object.keys(value)) {
        this.#charge(key.length + 4)
        setOwn(copy as JsonObject, key, this.clone((value as JsonObject)[key]))
      }
    }
    return copy
  }

  #charge(bytes: number): void {
    this.#copiedBytes += bytes
    if (this.#copiedBytes > MAX_COPY_BYTES) {
      fail(
        `Unable to complete the copy, the accumulated size increase of copy is ${this.#copiedBytes}, exceeding the limit ${MAX_COPY_BYTES}`,
      )
    }
  }
}

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
  const draft = new Draft(document)
  try {
    for (const operation of operations) applyOperation(draft, requireOperation(operation))
  } catch (error) {
    // Moves may nest values deeper than the stack; the caller checks the depth of the result.
    if (error instanceof RangeError) fail('the patched document is nested too deeply')
    throw error
  }
  return draft.root
}

function requireOperation(operation: unknown): JsonObject {
  if (isJsonObject(operation)) return operation
  throw new PatchError(
    400,
    `error decoding patch: json: cannot unmarshal ${kindOf(operation)} into Go value of type handlers.jsonPatchOp`,
  )
}

/** Go's name for the type of a JSON value. */
function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'array'
  return typeof value === 'boolean' ? 'bool' : typeof value
}

function fail(message: string): never {
  throw new PatchError(422, message)
}

function applyOperation(draft: Draft, operation: JsonObject): void {
  const kind = getOwn(operation, 'op')
  const value = getOwn(operation, 'value')
  switch (kind) {
    case 'add': {
      const path = pointer(operation, 'path') ?? fail('add operation failed to decode path: missing value')
      edit(draft, path, `add operation does not apply: doc is missing path: "${path}"`, (parent, key) =>
        addTo(parent, key, value ?? null, (why) => `error in add for path: '${path}': ${why}`),
      )
      return
    }
    case 'remove': {
      const path = pointer(operation, 'path') ?? fail('remove operation failed to decode path: missing value')
      edit(draft, path, `remove operation does not apply: doc is missing path: "${path}"`, (parent, key) =>
        removeFrom(parent, key, (why) => `error in remove for path: '${path}': ${why}`),
      )
      return
    }
    case 'replace':
      replace(draft, operation, value ?? null)
      return
    case 'move':
      move(draft, operation)
      return
    case 'copy':
      copy(draft, operation)
      return
    case 'test':
      test(draft.root, operation, value ?? null)
      return
    default:
      fail(`Unexpected kind: ${typeof kind === 'string' ? kind : 'unknown'}`)
  }
}

function pointer(operation: JsonObject, name: string): string | undefined {
  const value = getOwn(operation, name)
  return typeof value === 'string' ? value : undefined
}

function replace(draft: Draft, operation: JsonObject, value: unknown): void {
  const path =
    pointer(operation, 'path') ??
    fail('replace operation failed to decode path: operation missing path field: missing value')
  if (path === '') {
    if (typeof value !== 'object' || value === null) fail('replace operation value must be object or array: %!w(<nil>)')
    draft.root = value
    return
  }
  edit(draft, path, `replace operation does not apply: doc is missing path: ${path}`, (parent, key) => {
    if (isJsonObject(parent)) {
      setOwn(parent, key, value)
      return
    }
    const missing = `replace operation does not apply: doc is missing key: ${path}: missing value`
    parent[indexOf(parent, key, () => missing)] = value
  })
}

function move(draft: Draft, operation: JsonObject): void {
  const from =
    pointer(operation, 'from') ??
    fail('move operation failed to decode from: operation, missing from field: missing value')
  let value: unknown
  edit(draft, from, `move operation does not apply: doc is missing from path: ${from}`, (parent, key) => {
    const describe = (why: string): string => `error in move for path: '${key}': ${why}`
    value = read(parent, key, describe)
    removeFrom(parent, key, describe)
  })
  const path =
    pointer(operation, 'path') ??
    fail('move operation failed to decode path: operation missing path field: missing value')
  edit(draft, path, `move operation does not apply: doc is missing destination path: ${path}`, (parent, key) =>
    addTo(parent, key, value, (why) => `error in move for path: '${path}': ${why}`),
  )
}

function copy(draft: Draft, operation: JsonObject): void {
  const from =
    pointer(operation, 'from') ??
    fail('copy operation failed to decode from: operation, missing from field: missing value')
  const [parent, key] =
    find(draft.root, from) ?? fail(`copy operation does not apply: doc is missing from path: ${from}: missing value`)
  const value = draft.clone(read(parent, key, (why) => `error in copy for from: '${from}': ${why}`) ?? null)
  const path = pointer(operation, 'path') ?? fail('copy operation failed to decode path: missing value')
  edit(draft, path, `copy operation does not apply: doc is missing destination path: ${path}`, (target, name) =>
    addTo(target, name, value, (why) => `error while adding value during copy: ${why}`),
  )
}

function test(document: unknown, operation: JsonObject, expected: unknown): void {
  const path =
    pointer(operation, 'path') ??
    fail('test operation failed to decode path: operation missing path field: missing value')
  const failed = `testing value ${path} failed: test failed`
  if (path === '') {
    if (!jsonEqual(document, expected)) fail(failed)
    return
  }
  const [parent, key] =
    find(document, path) ?? fail(`test operation does not apply: is missing path: ${path}: missing value`)
  const value = read(parent, key, (why) => `error in test for path: '${path}': ${why}`) ?? null
  if (!jsonEqual(value, expected)) fail(failed)
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

/** Copies the containers on the path on first change and calls `change` with the innermost. */
function edit(draft: Draft, path: string, missing: string, change: (parent: Container, key: string) => void): void {
  const parts = splitPointer(path)
  if (parts === undefined || !isContainer(draft.root)) return fail(`${missing}: missing value`)
  let parent = draft.own(draft.root)
  draft.root = parent
  for (const part of parts.slice(0, -1)) {
    const child = step(parent, part)
    if (!isContainer(child)) return fail(`${missing}: missing value`)
    const owned = draft.own(child)
    if (owned !== child) {
      if (Array.isArray(parent)) parent[positionOf(parent, part)] = owned
      else setOwn(parent, part, owned)
    }
    parent = owned
  }
  change(parent, parts.at(-1)!)
}

/** Negative positions count from the end. */
function positionOf(list: readonly unknown[], part: string): number {
  const index = Number(part)
  return index < 0 ? index + list.length : index
}

type Describe = (why: string) => string

/** The index of an existing item. */
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

function addTo(parent: Container, key: string, value: unknown, describe: Describe): void {
  if (isJsonObject(parent)) {
    setOwn(parent, key, value)
    return
  }
  if (key === '-') {
    parent.push(value)
    return
  }
  const index = parseIndex(key, (why) => describe(`value was not a proper array index: '${key}': ${why}`))
  const size = parent.length + 1
  if (index >= size || index < -size)
    fail(describe(`Unable to access invalid index: ${index}: invalid index referenced`))
  parent.splice(index < 0 ? index + size : index, 0, value)
}

function removeFrom(parent: Container, key: string, describe: Describe): void {
  if (!isJsonObject(parent)) {
    parent.splice(indexOf(parent, key, describe), 1)
    return
  }
  if (!Object.hasOwn(parent, key)) fail(describe(`Unable to remove nonexistent key: ${key}: missing value`))
  delete parent[key]
}
