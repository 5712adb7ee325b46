/**
 * The fields of one object, and the difference of two objects, along a type.
 *
 * Place in the flow: update tracking and conflict detection use `compareFields`, the ownership of an applied
 * configuration uses `fieldsOf`. Neither changes its arguments.
 */
import { jsonEqual } from '../codec/json-equal.ts'
import { asList, asMap, shapeOf } from './field-type.ts'
import type { FieldType, Fields, ListType, MapType, Shape } from './field-type.ts'
import { FieldSet } from './field-set.ts'
import { itemElement } from './list-item.ts'
import { fieldElement } from './path-element.ts'

export interface Comparison {
  added: FieldSet
  modified: FieldSet
  removed: FieldSet
}

export function compareFields(type: FieldType, before: unknown, after: unknown): Comparison {
  const result: Comparison = { added: new FieldSet(), modified: new FieldSet(), removed: new FieldSet() }
  compareValues(type, before, after, [], result)
  return result
}

function compareValues(type: FieldType, before: unknown, after: unknown, path: string[], result: Comparison): void {
  let isLeaf: boolean
  if (after === undefined) {
    isLeaf = compareAs(shapeOf(type, before), type, before, after, path, result)
  } else {
    const shape = shapeOf(type, after)
    const shapeBefore = before === undefined ? shape : shapeOf(type, before)
    // A value whose shape changed is removed in the old shape and added in the new one.
    if (shapeBefore !== shape) compareAs(shapeBefore, type, before, after, path, result)
    isLeaf = compareAs(shape, type, before, after, path, result)
  }
  if (isLeaf) return
  if (before === undefined) result.added.insert(path)
  else if (after === undefined) result.removed.insert(path)
}

/** True when the value was compared as a whole. */
function compareAs(
  shape: Shape,
  type: FieldType,
  before: unknown,
  after: unknown,
  path: string[],
  result: Comparison,
): boolean {
  if (shape === 'map') {
    const map = type.map!
    const left = asMap(before)
    const right = asMap(after)
    if (!map.atomic && !(isEmptyMap(left) && isEmptyMap(right))) {
      compareMaps(map, left, right, path, result)
      return false
    }
  } else if (shape === 'list') {
    const list = type.list!
    const left = asList(before) ?? []
    const right = asList(after) ?? []
    if (!list.atomic && left.length + right.length > 0) {
      compareLists(list, left, right, path, result)
      return false
    }
  }
  if (before === undefined) result.added.insert(path)
  else if (after === undefined) result.removed.insert(path)
  else if (before !== after && !jsonEqual(before, after)) result.modified.insert(path)
  return true
}

function isEmptyMap(map: Fields | undefined): boolean {
  for (const _ in map) return false
  return true
}

function compareMaps(type: MapType, left: Fields = {}, right: Fields = {}, path: string[], result: Comparison): void {
  for (const key of Object.keys(left)) {
    compareField(type, key, left[key], Object.hasOwn(right, key) ? right[key] : undefined, path, result)
  }
  for (const key of Object.keys(right)) {
    if (!Object.hasOwn(left, key)) compareField(type, key, undefined, right[key], path, result)
  }
}

function compareField(
  type: MapType,
  key: string,
  before: unknown,
  after: unknown,
  path: string[],
  result: Comparison,
): void {
  if (before === undefined && after === undefined) return
  if (before === after && typeof before !== 'object') return
  path.push(fieldElement(key))
  compareValues(childType(type, key), before, after, path, result)
  path.pop()
}

/** Keys that the schema does not allow are compared as if it did: validation has rejected or pruned them before. */
export function childType(type: MapType, key: string): FieldType {
  return type.field(key) ?? type.element?.() ?? UNDECLARED
}

const UNDECLARED: FieldType = { scalar: 'untyped' }

function compareLists(type: ListType, left: unknown[], right: unknown[], path: string[], result: Comparison): void {
  const before = groupItems(type, left)
  const after = groupItems(type, right)
  for (const element of new Set([...before.keys(), ...after.keys()])) {
    const lefts = before.get(element) ?? []
    const rights = after.get(element) ?? []
    path.push(element)
    if (lefts.length <= 1 && rights.length <= 1) {
      compareValues(type.element(), lefts[0], rights[0], path, result)
    } else if (lefts.length >= 2 && rights.length >= 2) {
      if (!jsonEqual(lefts, rights)) result.modified.insert(path)
    } else if (lefts.length >= 2) {
      if (rights.length > 0) compareValues(type.element(), undefined, rights[0], path, result)
      result.removed.insert(path)
    } else {
      if (lefts.length > 0) compareValues(type.element(), lefts[0], undefined, path, result)
      result.added.insert(path)
    }
    path.pop()
  }
}

/** Items by element; more than one when a stored list holds duplicates. */
function groupItems(type: ListType, items: unknown[]): Map<string, unknown[]> {
  const groups = new Map<string, unknown[]>()
  for (const item of items) {
    const element = itemElement(type, item)
    const group = groups.get(element)
    if (group === undefined) groups.set(element, [item])
    else group.push(item)
  }
  return groups
}

/** The fields that a configuration names: leaves, list items, keys of free maps, explicit empty values. */
export function fieldsOf(type: FieldType, value: unknown): FieldSet {
  const set = new FieldSet()
  collectFields(type, value, [], set)
  return set
}

function collectFields(type: FieldType, value: unknown, path: string[], set: FieldSet): void {
  const shape = shapeOf(type, value)
  if (shape === 'map') {
    if (type.map!.atomic) set.insert(path)
    else collectMap(type.map!, asMap(value), path, set)
  } else if (shape === 'list') {
    if (type.list!.atomic) set.insert(path)
    else collectList(type.list!, asList(value), path, set)
  } else {
    set.insert(path)
  }
}

function collectMap(type: MapType, map: Fields | undefined, path: string[], set: FieldSet): void {
  if (map === undefined) return
  for (const key of Object.keys(map)) {
    const value = map[key]
    path.push(fieldElement(key))
    collectFields(childType(type, key), value, path, set)
    const inner = asMap(value)
    if (value === null || (inner !== undefined && isEmptyMap(inner)) || type.field(key) === undefined) set.insert(path)
    path.pop()
  }
}

function collectList(type: ListType, list: unknown[] | undefined, path: string[], set: FieldSet): void {
  if (list === undefined) return
  for (const [element, items] of groupItems(type, list)) {
    path.push(element)
    if (items.length === 1) collectFields(type.element(), items[0], path, set)
    set.insert(path)
    path.pop()
  }
}
