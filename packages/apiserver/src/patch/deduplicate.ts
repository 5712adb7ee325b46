/**
 * Removes repetitions from a list of primitives as kube-apiserver does: the last item of the list replaces a repeated
 * one. The positions of each value are kept in a heap, so that n items take n log n steps.
 */
import { canonicalText } from './item-index.ts'

export function deduplicate(list: readonly unknown[]): unknown[] {
  const items = [...list]
  const texts = items.map(canonicalText)
  const positions = new Map<string, MinHeap>()
  for (const [at, text] of texts.entries()) {
    let heap = positions.get(text)
    if (heap === undefined) positions.set(text, (heap = new MinHeap()))
    heap.push(at)
  }
  if (positions.size === items.length) return items
  for (let at = 0; at < items.length; at += 1) {
    const text = texts[at] as string
    const heap = positions.get(text) as MinHeap
    for (let next = heap.pop(); next !== undefined; next = heap.pop()) {
      // Positions before this one are done; a position past the end belongs to an item that was moved from there.
      if (next <= at || next >= items.length || texts[next] !== text) continue
      const last = items.pop()
      if (next >= items.length) continue
      const moved = texts[items.length] as string
      items[next] = last
      texts[next] = moved
      ;(positions.get(moved) as MinHeap).push(next)
    }
  }
  return items
}

class MinHeap {
  readonly #values: number[] = []

  push(value: number): void {
    const values = this.#values
    let at = values.length
    values.push(value)
    while (at > 0) {
      const parent = (at - 1) >> 1
      if ((values[parent] as number) <= value) break
      values[at] = values[parent] as number
      at = parent
    }
    values[at] = value
  }

  pop(): number | undefined {
    const values = this.#values
    const [least] = values
    const last = values.pop()
    if (values.length === 0 || last === undefined) return least
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= values.length) break
      if (child + 1 < values.length && (values[child + 1] as number) < (values[child] as number)) child += 1
      if ((values[child] as number) >= last) break
      values[at] = values[child] as number
      at = child
    }
    values[at] = last
    return least
  }
}
