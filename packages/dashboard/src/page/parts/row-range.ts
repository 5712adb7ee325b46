/** Which rows of a list a window shows. Pure. */
export interface Visible {
  /** First and one after the last. */
  readonly from: number
  readonly to: number
  /** Heights of what is left out, px. */
  readonly above: number
  readonly below: number
}

/** `offsets`: where each row begins, px, and at the end where the last one ends. */
export function visibleRows(offsets: ArrayLike<number>, top: number, bottom: number): Visible {
  const count = offsets.length - 1
  const total = offsets[count] ?? 0
  const from = Math.min(lastAtOrBefore(offsets, top), Math.max(0, count - 1))
  const to = Math.min(count, lastAtOrBefore(offsets, bottom) + 1)
  return {
    from,
    to: Math.max(to, from),
    above: offsets[from] ?? 0,
    below: total - (offsets[Math.max(to, from)] ?? total),
  }
}

/** Index of the last of ascending numbers that is at most `y`; 0 when none is. */
export function lastAtOrBefore(offsets: ArrayLike<number>, y: number): number {
  let low = 0
  let high = offsets.length - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if ((offsets[middle] ?? 0) <= y) low = middle
    else high = middle - 1
  }
  return low
}
