/**
 * Order of merged lists: items that the patch names follow the patch's order, the others keep their relative position.
 */
import { ItemIndex } from './item-index.ts'

/** Items that `by` names, and the others. */
export function partitionItems(
  items: readonly unknown[],
  by: readonly unknown[],
  key: string | undefined,
): [named: unknown[], others: unknown[]] {
  const index = new ItemIndex(by, key)
  const named: unknown[] = []
  const others: unknown[] = []
  for (const item of items) (index.find(item) >= 0 ? named : others).push(item)
  return [named, others]
}

export function orderItems(
  named: readonly unknown[],
  others: readonly unknown[],
  patchOrder: readonly unknown[],
  documentOrder: readonly unknown[],
  key: string | undefined,
): unknown[] {
  const inDocument = new ItemIndex(documentOrder, key)
  const right = sortByIndex(named, new ItemIndex(patchOrder, key))
  const left = sortByIndex(others, inDocument)
  const result: unknown[] = []
  let i = 0
  let j = 0
  while (i < left.length || j < right.length) {
    if (i >= left.length) {
      result.push(right[j++])
    } else if (j >= right.length) {
      result.push(left[i++])
    } else {
      const a = inDocument.find(left[i])
      const b = inDocument.find(right[j])
      result.push(a >= 0 && b >= 0 && a < b ? left[i++] : right[j++])
    }
  }
  return result
}

interface Node {
  readonly item: unknown
  next: Node | undefined
}

/**
 * The order that an insertion sort with kube-apiserver's comparison produces. The comparison is "less" whenever one of
 * the two items is not in `order`, so an unknown item moves to the front, and a known one passes unknown items until it
 * reaches a known one that does not sort after it.
 *
 * Known items are therefore always sorted among themselves, and each is inserted directly after its predecessor among
 * the known items that were inserted before it. The predecessors are computed from the sorted list of all known items,
 * by removing items from it in reverse order of insertion: n log n steps.
 */
function sortByIndex(items: readonly unknown[], order: ItemIndex): unknown[] {
  // A list of one item is never compared.
  if (items.length < 2) return [...items]
  const positions = items.map((item) => order.find(item))
  const predecessors = findPredecessors(positions)
  let head: Node | undefined
  const nodes: Node[] = []
  for (const [at, item] of items.entries()) {
    const predecessor = nodes[predecessors[at] as number]
    const node: Node = { item, next: predecessor === undefined ? head : predecessor.next }
    if (predecessor === undefined) head = node
    else predecessor.next = node
    nodes.push(node)
  }
  const result: unknown[] = []
  for (let node = head; node !== undefined; node = node.next) result.push(node.item)
  return result
}

/** For each item the last one before it in the sorted order among earlier items; -1: none, or the item is unknown. */
function findPredecessors(positions: readonly number[]): number[] {
  const sorted = positions
    .map((_, at) => at)
    .filter((at) => (positions[at] as number) >= 0)
    .sort((a, b) => (positions[a] as number) - (positions[b] as number) || a - b)
  const before = Array.from({ length: positions.length }, () => -1)
  const after = Array.from({ length: positions.length }, () => -1)
  for (const [rank, at] of sorted.entries()) {
    before[at] = sorted[rank - 1] ?? -1
    after[at] = sorted[rank + 1] ?? -1
  }
  const result = Array.from({ length: positions.length }, () => -1)
  for (let at = positions.length - 1; at >= 0; at -= 1) {
    if ((positions[at] as number) < 0) continue
    const [previous, next] = [before[at] as number, after[at] as number]
    result[at] = previous
    if (previous >= 0) after[previous] = next
    if (next >= 0) before[next] = previous
  }
  return result
}
