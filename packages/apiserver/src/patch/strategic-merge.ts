/**
 * Strategic merge patch for built-in kinds: lists merge by the key in the schema; directives (`$patch`, `$retainKeys`,
 * `$setElementOrder/x`, `$deleteFromPrimitiveList/x`) change the merge.
 *
 * Pure: neither argument is changed. Throws PatchError with kube-apiserver's status and message.
 */
import { goText } from '../codec/go-text.ts'
import { jsonEqual } from '../codec/json-equal.ts'
import { getOwn, isJsonObject, setOwn } from '../codec/json-object.ts'
import type { JsonObject } from '../codec/json-object.ts'
import type { Schema } from '../schema/model.ts'
import { deduplicate } from './deduplicate.ts'
import { orderItems, partitionItems } from './element-order.ts'
import { canonicalText, findKey, identityOf, requireKey } from './item-index.ts'
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

/** New content: nulls in it are dropped. */
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
    if (isDeletion) {
      const gone = new Set(patch.map(canonicalText))
      return document.filter((item) => !gone.has(canonicalText(item)))
    }
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

function applySpecialItems(
  document: unknown[],
  patch: unknown[],
  key: string,
): { items: unknown[]; changes: unknown[] } {
  const gone = new Set<string>()
  const changes: unknown[] = []
  let isReplaced = false
  for (const item of patch as JsonObject[]) {
    const directive = getOwn(item, DIRECTIVE)
    if (directive === undefined) {
      changes.push(item)
    } else if (directive === 'delete') {
      gone.add(canonicalText(requireKey(item, key)))
    } else if (directive === 'replace') {
      isReplaced = true
    } else if (directive === 'merge') {
      throw new PatchError(500, 'merging lists cannot yet be specified in the patch')
    } else {
      throw new PatchError(500, `unknown patch type: ${goText(directive)} in map: ${goText(item)}`)
    }
  }
  if (isReplaced) return { items: changes, changes: [] }
  const items = gone.size === 0 ? document : document.filter((item) => !gone.has(canonicalText(findKey(item, key))))
  return { items, changes }
}

function mergeItems(document: unknown[], patch: unknown[], key: string, schema: Schema | undefined): unknown[] {
  const result = [...document]
  const positions = new Map<string, number>()
  const remember = (item: unknown, position: number): void => {
    const text = canonicalText(findKey(item, key))
    if (!positions.has(text)) positions.set(text, position)
  }
  for (const [position, item] of document.entries()) remember(item, position)
  for (const item of patch as JsonObject[]) {
    const position = positions.get(canonicalText(requireKey(item, key)))
    if (position === undefined) remember(item, result.push(item) - 1)
    else result[position] = mergeMap(result[position] as JsonObject, item, schema)
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
 * The order of the document as kube-apiserver computes it after merging: it deletes and appends in place, so that
 * deleted items are overwritten by their successors and freed slots by new items. The position of items without an
 * order depends on it.
 */
function orderAfterMerge(document: readonly unknown[], patch: unknown, key: string | undefined): readonly unknown[] {
  if (key === undefined || !Array.isArray(patch)) return document
  const { survivors, freed } = removeInPlace(document, patch as JsonObject[], key)
  const known = new Set(survivors.map((item) => canonicalText(findKey(item, key))))
  const slots = [...survivors]
  for (const item of patch as JsonObject[]) {
    if (Object.hasOwn(item, DIRECTIVE)) continue
    const text = canonicalText(findKey(item, key))
    if (known.has(text)) continue
    if (slots.length === document.length) break
    known.add(text)
    slots.push(item)
  }
  return [...slots, ...freed.slice(slots.length - survivors.length)]
}

/**
 * Deletes items one by one by moving their successors forward, as in a slice of fixed capacity: every deletion leaves
 * the item that was last at that moment in the slot it frees. `freed` are those slots, from the first to the last.
 */
function removeInPlace(
  document: readonly unknown[],
  patch: readonly JsonObject[],
  key: string,
): { survivors: unknown[]; freed: unknown[] } {
  const positions = new Map<string, number[]>()
  for (const [position, item] of document.entries()) {
    const text = canonicalText(findKey(item, key))
    const same = positions.get(text)
    if (same === undefined) positions.set(text, [position])
    else same.push(position)
  }
  const isDeleted = Array.from({ length: document.length }, () => false)
  const freed: unknown[] = []
  let last = document.length - 1
  for (const item of patch) {
    if (getOwn(item, DIRECTIVE) !== 'delete') continue
    const text = canonicalText(findKey(item, key))
    for (const position of positions.get(text) ?? []) {
      while (isDeleted[last] === true) last -= 1
      freed.push(document[last])
      isDeleted[position] = true
    }
    positions.delete(text)
  }
  return { survivors: document.filter((_, position) => isDeleted[position] !== true), freed: freed.reverse() }
}

/** The items of the patch must be in the order of the directive. */
function checkOrder(patch: unknown[], order: unknown[], key: string | undefined): void {
  if (order.length === 0 || patch.length === 0) return
  const items = patch.filter((item) => !(isJsonObject(item) && Object.hasOwn(item, DIRECTIVE)))
  let next = 0
  for (const item of order)
    if (next < items.length && jsonEqual(identityOf(items[next], key), identityOf(item, key))) next++
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
