/**
 * Work in parts: a generator yields between them, and whoever runs it decides whether other work gets a turn. A part takes about
 * a millisecond at most.
 */
export type Parts<T> = Generator<undefined, T>

/** A turn of the event loop without a break; requests wait for so long at most, and the end of a part. */
const TURN_MS = 10

/** Runs all parts at once. */
export function runParts<T>(parts: Parts<T>): T {
  for (;;) {
    const { done, value } = parts.next()
    if (done === true) return value
  }
}

/** Runs the parts, and lets the event loop run in between. */
export async function runInTurns<T>(parts: Parts<T>, nowMs: () => number = () => performance.now()): Promise<T> {
  let begun = nowMs()
  for (;;) {
    const { done, value } = parts.next()
    if (done === true) return value
    if (nowMs() - begun < TURN_MS) continue
    await new Promise<void>((resolve) => void setImmediate(resolve))
    begun = nowMs()
  }
}

/** Elements that are sorted or merged in one part. */
const PART = 1_000

/** It is sorted in one part. */
export function isOnePart(list: readonly unknown[]): boolean {
  return list.length <= PART
}

/** Sorts as `Array.prototype.sort`, in parts. */
export function* sortInParts<T>(list: readonly T[], compare: (a: T, b: T) => number): Parts<T[]> {
  if (isOnePart(list)) return list.toSorted(compare)
  let runs: T[][] = []
  for (let at = 0; at < list.length; at += PART) {
    runs.push(list.slice(at, at + PART).sort(compare))
    yield
  }
  while (runs.length > 1) {
    const merged: T[][] = []
    for (let at = 0; at < runs.length; at += 2) merged.push(yield* merge(runs[at] ?? [], runs[at + 1] ?? [], compare))
    runs = merged
  }
  return runs[0] ?? []
}

function* merge<T>(left: readonly T[], right: readonly T[], compare: (a: T, b: T) => number): Parts<T[]> {
  const [last, first] = [left.at(-1), right[0]]
  // Lists are often in order before.
  if (last === undefined || first === undefined || compare(last, first) <= 0) return [...left, ...right]
  const merged: T[] = []
  for (let l = 0, r = 0; l < left.length || r < right.length;) {
    const a = left[l] as T
    const b = right[r] as T
    // Equal elements keep their order.
    const isLeft = r === right.length || (l < left.length && compare(a, b) <= 0)
    merged.push(isLeft ? a : b)
    if (isLeft) l++
    else r++
    if (merged.length % PART === 0) yield
  }
  return merged
}
