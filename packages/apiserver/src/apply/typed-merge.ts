/**
 * Merges an applied configuration into the live object: leaves of the configuration take precedence, maps merge by key,
 * associative lists by item in an order that preserves the relative order of both sides where they agree.
 *
 * Pure; unchanged parts are shared with the arguments.
 */
import { setOwn } from '../codec/json-object.ts'
import { asList, asMap, shapeOf } from './field-type.ts'
import type { FieldType, Fields, ListType, MapType } from './field-type.ts'
import { TypedValueError, itemElement } from './list-item.ts'
import { childType } from './typed-compare.ts'
import { elementText } from './path-element.ts'

/** Undefined when nothing remains, e.g. two empty associative lists of which neither is given. */
export function mergeValues(type: FieldType, live: unknown, applied: unknown): unknown {
  const shape = shapeOf(type, applied === undefined ? live : applied)
  if (shape === 'map') {
    const left = asMap(live)
    const right = asMap(applied)
    if (!type.map!.atomic && (hasKeys(left) || hasKeys(right))) return mergeMaps(type.map!, left, right)
  } else if (shape === 'list') {
    const left = asList(live)
    const right = asList(applied)
    if (!type.list!.atomic && (left?.length ?? 0) + (right?.length ?? 0) > 0) {
      return mergeLists(type.list!, left ?? [], right ?? [])
    }
  }
  return applied === undefined ? live : applied
}

function hasKeys(map: Fields | undefined): boolean {
  for (const _ in map) return true
  return false
}

function mergeMaps(type: MapType, left: Fields = {}, right: Fields = {}): Fields | undefined {
  const out: Fields = {}
  let isEmpty = true
  const put = (key: string, value: unknown): void => {
    if (value === undefined) return
    isEmpty = false
    setOwn(out, key, value)
  }
  for (const key of Object.keys(left)) {
    put(key, Object.hasOwn(right, key) ? mergeValues(childType(type, key), left[key], right[key]) : left[key])
  }
  for (const key of Object.keys(right)) {
    if (!Object.hasOwn(left, key)) put(key, mergeValues(childType(type, key), undefined, right[key]))
  }
  return isEmpty ? undefined : out
}

function mergeLists(type: ListType, left: unknown[], right: unknown[]): unknown[] | undefined {
  const { elements: rightElements, items: rightItems } = indexItems(type, right, false)
  const { elements: leftElements, items: leftItems } = indexItems(type, left, true)
  const shared = rightElements.filter((element) => leftItems.has(element))
  let next = shared.shift()
  const merged = new Set<string>()
  const out: unknown[] = []
  const push = (value: unknown): void => {
    if (value !== undefined) out.push(value)
  }
  const take = (element: string): void => {
    merged.add(element)
    push(mergeValues(type.element(), leftItems.get(element), rightItems.get(element)))
  }
  let l = 0
  let r = 0
  while (l < leftElements.length || r < rightElements.length) {
    if (l < leftElements.length && r < rightElements.length) {
      const element = leftElements[l]!
      if (element === rightElements[r]) {
        take(element)
        l++
        r++
        next = shared.shift()
        continue
      }
      if (rightItems.has(element) && next !== undefined && next !== element) {
        l++
        continue
      }
    }
    if (l < leftElements.length) {
      const element = leftElements[l]!
      if (!rightItems.has(element)) {
        push(mergeValues(type.element(), left[l], undefined))
        l++
        continue
      }
      if (merged.has(element)) l++
    }
    if (r < rightElements.length) {
      const element = rightElements[r]!
      take(element)
      r++
      if (next === element) next = shared.shift()
    }
  }
  return out.length === 0 ? undefined : out
}

function indexItems(
  type: ListType,
  list: unknown[],
  allowsDuplicates: boolean,
): { elements: string[]; items: Map<string, unknown> } {
  const elements: string[] = []
  const items = new Map<string, unknown>()
  for (const item of list) {
    const element = itemElement(type, item)
    if (!items.has(element)) items.set(element, item)
    else if (allowsDuplicates) items.set(element, null)
    else throw new TypedValueError(`duplicate entries for key ${elementText(element)}`)
    elements.push(element)
  }
  return { elements, items }
}
