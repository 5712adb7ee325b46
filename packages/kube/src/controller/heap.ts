/**
 * A binary heap whose items store their position, so that an item can be moved or removed in O(log n) without a search.
 * The work queue keeps delayed keys in one.
 *
 * Invariant: `item.place` is the item's index, or -1 when it is in no heap. An item is in at most one heap.
 */
export interface HeapItem {
  place: number
}

export interface Heap<T extends HeapItem> {
  readonly size: number
  peek(): T | undefined
  push(item: T): void
  pop(): T | undefined
  remove(item: T): void
}

/** The order given by `isBefore` must not change for items in the heap. */
export function createHeap<T extends HeapItem>(isBefore: (a: T, b: T) => boolean): Heap<T> {
  const items: T[] = []

  function rise(item: T, from: number): void {
    let place = from
    while (place > 0) {
      const above = (place - 1) >> 1
      const parent = items[above] as T
      if (!isBefore(item, parent)) break
      items[place] = parent
      parent.place = place
      place = above
    }
    items[place] = item
    item.place = place
  }

  function sink(item: T, from: number): void {
    const { length } = items
    let place = from
    for (;;) {
      let below = 2 * place + 1
      if (below >= length) break
      if (below + 1 < length && isBefore(items[below + 1] as T, items[below] as T)) below++
      const child = items[below] as T
      if (!isBefore(child, item)) break
      items[place] = child
      child.place = place
      place = below
    }
    items[place] = item
    item.place = place
  }

  function remove(item: T): void {
    const { place } = item
    if (place < 0) return
    item.place = -1
    const last = items.pop() as T
    if (last === item) return
    sink(last, place)
    rise(last, last.place)
  }

  return {
    get size() {
      return items.length
    },
    peek: () => items[0],
    push(item) {
      items.push(item)
      rise(item, items.length - 1)
    },
    pop() {
      const [first] = items
      if (first !== undefined) remove(first)
      return first
    },
    remove,
  }
}
