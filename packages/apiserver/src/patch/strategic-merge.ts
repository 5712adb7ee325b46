/**
 * Strategic merge patch for built-in kinds: lists merge by key as the schema says, directives steer (`$patch`,
 * `$retainKeys`, `$setElementOrder/x`, `$deleteFromPrimitiveList/x`).
 *
 * Pure: neither argument is changed. Throws PatchError with the real server's status and message.
 */
import { goText } from '../codec/go-text.ts'
import { jsonEqual } from '../codec/json-equal.ts'
import { getOwn, isJsonObject, setOwn } from '../codec/json-object.ts'
import type { JsonObject } from '../codec/json-object.ts'
import type { Schema } from '../schema/model.ts'
import { orderItems, partitionItems, requireKey } from './element-order.ts'
import { PatchError } from './patch-error.ts'

const DIRECTIVE = '$patch'
const RETAIN_KEYS = '$retainKeys'
const DELETE_PREFIX = '$deleteFromPrimitiveList'
const ORDER_PREFIX = '$setElementOrder'

export function applyStrategicMergePatch(document: unknown, patch: unknown, schema: Schema): unknown {
  if (!isJsonObject(patch)) {
    throw new PatchError(400, 'json: cannot unmarshal array into Go value of type map[string]interface {}')
  }
  return mergeMap(isJsonObject(document) ? document : {}, patch, schema)
}

function mergeMap(document: JsonObject, patch: JsonObject, schema: Schema | undefined): JsonObject {
  if (Object.hasOwn(patch, DIRECTIVE)) return applyDirective(patch)
  const result = retainKeys(document, patch)
  const done = new Set<string>([RETAIN_KEYS])
  for (const key of Object.keys(patch)) {
    if (!key.startsWith(ORDER_PREFIX)) continue
    const name = directiveTarget(key)
    const list = mergeOrdered(getOwn(result, name), getOwn(patch, name), patch[key], fieldSchema(schema, name))
    done.add(key)
    if (list !== undefined) {
      setOwn(result, name, list)
      done.add(name)
    }
  }
  for (const key of Object.keys(patch)) if (!done.has(key)) mergeKey(result, key, patch[key], schema)
  return result
}

function applyDirective(patch: JsonObject): JsonObject {
  const { [DIRECTIVE]: directive, ...rest } = patch
  if (directive === 'replace') return rest
  if (directive === 'delete') return {}
  throw new PatchError(500, `unknown patch type: ${goText(directive)} in map: ${goText(patch)}`)
}

/** `$setElementOrder/containers` → `containers` */
function directiveTarget(key: string): string {
  const slash = key.indexOf('/')
  if (slash >= 0 && key.slice(0, slash) === ORDER_PREFIX) return key.slice(slash + 1)
  throw new PatchError(400, 'invalid patch format of setElementOrder list')
}

function retainKeys(document: JsonObject, patch: JsonObject): JsonObject {
  if (!Object.hasOwn(patch, RETAIN_KEYS)) return { ...document }
  const keys = patch[RETAIN_KEYS]
  if (!Array.isArray(keys)) throw new PatchError(400, 'invalid patch format of retainKeys')
  const kept = new Set<unknown>(keys)
  for (const [key, value] of Object.entries(patch)) {
    const isContent =
      value !== null && key !== RETAIN_KEYS && !key.startsWith(DELETE_PREFIX) && !key.startsWith(ORDER_PREFIX)
    if (isContent && !kept.has(key)) throw new PatchError(400, 'invalid patch format of retainKeys')
  }
  return Object.fromEntries(Object.entries(document).filter(([key]) => kept.has(key)))
}

function mergeKey(result: JsonObject, patchKey: string, value: unknown, schema: Schema | undefined): void {
  const isDeletion = patchKey.startsWith(DELETE_PREFIX)
  const key = isDeletion ? patchKey.slice(patchKey.indexOf('/') + 1) : patchKey
  if (isDeletion && !patchKey.startsWith(`${DELETE_PREFIX}/`))
    throw new PatchError(400, 'invalid patch format of primitive list')
  if (value === null) {
    delete result[key]
    return
  }
  const current = getOwn(result, key)
  if (current === undefined || typeName(current) !== typeName(value)) {
    if (isDeletion) return
    const cleaned = withoutDirectives(withoutNulls(value))
    if (cleaned === undefined) delete result[key]
    else setOwn(result, key, cleaned)
    return
  }
  const field = fieldSchema(schema, key)
  if (isJsonObject(current)) {
    const merged = strategyOf(field) === 'replace' ? value : mergeMap(current, value as JsonObject, field)
    setOwn(result, key, merged)
  } else if (Array.isArray(current)) {
    setOwn(result, key, mergeLists(current, value as unknown[], field, isDeletion))
  } else {
    setOwn(result, key, value)
  }
}

/** Free maps (labels) have the schema of their values for every key. */
function fieldSchema(schema: Schema | undefined, key: string): Schema | undefined {
  const { properties, additionalProperties } = schema ?? {}
  if (properties !== undefined && Object.hasOwn(properties, key)) return properties[key]
  return typeof additionalProperties === 'object' ? additionalProperties : undefined
}

function strategyOf(schema: Schema | undefined): string | undefined {
  return schema?.['x-kubernetes-patch-strategy']?.split(',').find((strategy) => strategy !== 'retainKeys')
}

function typeName(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'list'
  return typeof value
}

/** New content: nulls in it mean nothing. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!isJsonObject(value)) return value
  const result: JsonObject = {}
  for (const [key, item] of Object.entries(value)) if (item !== null) setOwn(result, key, withoutNulls(item))
  return result
}

/** Undefined when the value is itself a directive. */
function withoutDirectives(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutDirectives).filter((item) => item !== undefined)
  if (!isJsonObject(value)) return value
  if (Object.hasOwn(value, DIRECTIVE)) return undefined
  const result: JsonObject = {}
  for (const [key, item] of Object.entries(value)) {
    const cleaned = withoutDirectives(item)
    if (cleaned !== undefined) setOwn(result, key, cleaned)
  }
  return result
}

function mergeLists(document: unknown[], patch: unknown[], schema: Schema | undefined, isDeletion: boolean): unknown[] {
  if (!isDeletion && strategyOf(schema) !== 'merge') return patch
  if (document.length === 0 && patch.length === 0) return document
  if (!areMaps(document, patch)) {
    if (isDeletion) return document.filter((item) => !patch.some((gone) => jsonEqual(gone, item)))
    const merged = deduplicate([...document, ...patch])
    const [named, others] = partitionItems(merged, patch, undefined)
    return orderItems(named, others, patch, document, undefined)
  }
  const key = schema?.['x-kubernetes-patch-merge-key']
  if (key === undefined)
    throw new PatchError(500, `cannot merge lists without merge key for ${schema?.typeName ?? 'list'}`)
  const { items, changes } = applySpecialItems(document, patch, key)
  const merged = mergeItems(items, changes, key, schema?.items)
  const [named, others] = partitionItems(merged, changes, key)
  return orderItems(named, others, changes, items, key)
}

/** All items must be of one type; lists of lists are not supported. */
function areMaps(...lists: unknown[][]): boolean {
  const types = lists.flat().map(typeName)
  if (types[0] === 'list') throw new PatchError(422, 'lists of lists are not supported')
  if (types.some((type) => type !== types[0]))
    throw new PatchError(500, `list element types are not identical: ${goText(lists)}`)
  return types[0] === 'object'
}

/** As the real server removes repetitions: the last item takes the place of a repeated one. */
function deduplicate(list: unknown[]): unknown[] {
  const items = [...list]
  for (let i = 0; i < items.length; i++) {
    for (let j = i + 1; j < items.length;) {
      if (!jsonEqual(items[i], items[j])) {
        j++
        continue
      }
      const last = items.pop()
      if (j < items.length) items[j] = last
    }
  }
  return items
}

function applySpecialItems(
  document: unknown[],
  patch: unknown[],
  key: string,
): { items: unknown[]; changes: unknown[] } {
  let items = document
  const changes: unknown[] = []
  let isReplaced = false
  for (const item of patch as JsonObject[]) {
    const directive = getOwn(item, DIRECTIVE)
    if (directive === undefined) {
      changes.push(item)
    } else if (directive === 'delete') {
      const gone = requireKey(item, key)
      items = items.filter((other) => !jsonEqual(getOwn(other as JsonObject, key), gone))
    } else if (directive === 'replace') {
      isReplaced = true
    } else if (directive === 'merge') {
      throw new PatchError(500, 'merging lists cannot yet be specified in the patch')
    } else {
      throw new PatchError(500, `unknown patch type: ${goText(directive)} in map: ${goText(item)}`)
    }
  }
  return isReplaced ? { items: changes, changes: [] } : { items, changes }
}

function mergeItems(document: unknown[], patch: unknown[], key: string, schema: Schema | undefined): unknown[] {
  const result = [...document]
  for (const item of patch as JsonObject[]) {
    const value = requireKey(item, key)
    const index = result.findIndex((other) => jsonEqual(getOwn(other as JsonObject, key), value))
    if (index < 0) result.push(item)
    else result[index] = mergeMap(result[index] as JsonObject, item, schema)
  }
  return result
}

/** Undefined: nothing to do here, the patch's own value (if any) is handled as usual. */
function mergeOrdered(
  current: unknown,
  patch: unknown,
  order: unknown,
  schema: Schema | undefined,
): unknown[] | undefined {
  for (const list of [order, current ?? [], patch ?? []]) {
    if (!Array.isArray(list)) throw new PatchError(500, `expected a []interface {}, but received a ${goType(list)}`)
  }
  const key = schema?.['x-kubernetes-patch-merge-key']
  checkOrder((patch ?? []) as unknown[], order as unknown[], key)
  let merged: unknown[]
  if (current === undefined && patch === undefined) return undefined
  if (patch === undefined) merged = current as unknown[]
  else if (current === undefined) merged = withoutDirectives(patch) as unknown[]
  else merged = mergeLists(current as unknown[], patch as unknown[], schema, false)
  const [named, others] = partitionItems(merged, order as unknown[], key)
  return orderItems(named, others, order as unknown[], orderAfterMerge((current ?? []) as unknown[], patch, key), key)
}

/**
 * The order of the document as the real server sees it after merging: it deletes and appends in place, so that deleted
 * items are overwritten by what follows and freed places by new items. Where items without an order go depends on it.
 */
function orderAfterMerge(document: unknown[], patch: unknown, key: string | undefined): unknown[] {
  if (key === undefined || !Array.isArray(patch)) return document
  const places = [...document]
  let length = places.length
  const indexOf = (item: JsonObject): number =>
    places.slice(0, length).findIndex((other) => jsonEqual(getOwn(other as JsonObject, key), getOwn(item, key)))
  for (const item of patch as JsonObject[]) {
    if (getOwn(item, DIRECTIVE) !== 'delete') continue
    for (let at = indexOf(item); at >= 0; at = indexOf(item)) places.copyWithin(at, at + 1, length--)
  }
  for (const item of patch as JsonObject[]) {
    if (Object.hasOwn(item, DIRECTIVE) || indexOf(item) >= 0) continue
    if (length === places.length) break
    places[length++] = item
  }
  return places
}

/** The items of the patch must stand in the order that the directive gives. */
function checkOrder(patch: unknown[], order: unknown[], key: string | undefined): void {
  if (order.length === 0 || patch.length === 0) return
  const items = patch.filter((item) => !(isJsonObject(item) && Object.hasOwn(item, DIRECTIVE)))
  const identity = (item: unknown): unknown => (key === undefined ? item : requireKey(item as JsonObject, key))
  let next = 0
  for (const item of order) if (next < items.length && jsonEqual(identity(items[next]), identity(item))) next++
  if (next < items.length) {
    throw new PatchError(
      500,
      `The order in patch list:\n${goText(patch)}\n doesn't match ${ORDER_PREFIX} list:\n${goText(order)}\n`,
    )
  }
}

function goType(value: unknown): string {
  if (isJsonObject(value)) return 'map[string]interface {}'
  return typeof value === 'number' ? 'int64' : typeof value === 'boolean' ? 'bool' : typeof value
}
