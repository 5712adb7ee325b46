/**
 * A bench figure: one number with a bound, measured in the same run as what it is compared with (never against a
 * remembered number). A file test/bench/<area>.ts exports `figures`; main.ts runs and prints them.
 */
export interface Figure {
  /** Stable name, e.g. `kube.writes`. */
  readonly name: string
  readonly what: string
  /** `ratio`, `ms`, `bytes`, `count` … */
  readonly unit: string
  readonly bound: { readonly max: number } | { readonly min: number }
  /** The baseline measured beside it, or `-` for an absolute figure. */
  readonly against: string
  /** The figure is the median of this many runs. @default 5 */
  readonly runs?: number
  /** Why it cannot be measured here (a program that is absent), else undefined. */
  readonly unavailable?: () => string | undefined
  /** One run, numbered from 0: measures baseline and subject, interleaved, and returns the figure. */
  readonly measure: (run: number) => Promise<number>
}

/** One measurement that yields several figures: performed once per run, however many figures read it. */
export function shared<T>(measure: (run: number) => Promise<T>): (run: number) => Promise<T> {
  const results = new Map<number, Promise<T>>()
  return async (run) => {
    let result = results.get(run)
    if (result === undefined) {
      result = measure(run)
      results.set(run, result)
    }
    return result
  }
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}
