/** Order of merged lists: what the patch names stands as the patch says, the rest keeps its place around it. */
import { goText } from '../codec/go-text.ts'
import { jsonEqual } from '../codec/json-equal.ts'
import { getOwn, isJsonObject } from '../codec/json-object.ts'
import type { JsonObject } from '../codec/json-object.ts'
import { PatchError } from './patch-error.ts'

export function requireKey(item: JsonObject, key: string): unknown {
  const value = isJsonObject(item) ? getOwn(item, key) : undefined
  if (value !== undefined) return value
  throw new PatchError(500, `map: ${goText(item)} does not contain declared merge key: ${key}`)
}

function identity(item: unknown, key: string | undefined): unknown {
  return key === undefined ? item : requireKey(item as JsonObject, key)
}

function indexIn(list: readonly unknown[], item: unknown, key: string | undefined): number {
  const wanted = identity(item, key)
  return list.findIndex((other) => jsonEqual(identity(other, key), wanted))
}

/** Items that `by` names, and the others. */
export function partitionItems(
  items: readonly unknown[],
  by: readonly unknown[],
  key: string | undefined,
): [named: unknown[], others: unknown[]] {
  const named: unknown[] = []
  const others: unknown[] = []
  for (const item of items) (indexIn(by, item, key) >= 0 ? named : others).push(item)
  return [named, others]
}

export function orderItems(
  named: readonly unknown[],
  others: readonly unknown[],
  patchOrder: readonly unknown[],
  documentOrder: readonly unknown[],
  key: string | undefined,
): unknown[] {
  const right = sortBy(named, patchOrder, key)
  const left = sortBy(others, documentOrder, key)
  const result: unknown[] = []
  let i = 0
  let j = 0
  while (i < left.length || j < right.length) {
    if (i >= left.length) {
      result.push(right[j++])
    } else if (j >= right.length) {
      result.push(left[i++])
    } else {
      const a = indexIn(documentOrder, left[i], key)
      const b = indexIn(documentOrder, right[j], key)
      result.push(a >= 0 && b >= 0 && a < b ? left[i++] : right[j++])
    }
  }
  return result
}

/**
 * Stable insertion sort with the real server's comparison, which is "less" for items it does not know: new items come
 * before known ones and in reverse.
 */
function sortBy(items: readonly unknown[], order: readonly unknown[], key: string | undefined): unknown[] {
  const isLess = (a: unknown, b: unknown): boolean => {
    const ia = indexIn(order, a, key)
    const ib = ia < 0 ? -1 : indexIn(order, b, key)
    return ia >= 0 && ib >= 0 ? ia < ib : true
  }
  const result = [...items]
  for (let i = 1; i < result.length; i++) {
    for (let j = i; j > 0 && isLess(result[j], result[j - 1]); j--) {
      ;[result[j - 1], result[j]] = [result[j], result[j - 1]]
    }
  }
  return result
}
