/**
 * Counters of received packets and answers. Each thread that answers has its own, written on the hot path without a lookup by
 * name; `sumCounters` adds them up under the names of types and response codes when they are read.
 */
import { rcodeName, typeName } from '../wire/codes.ts'

/** Index in `Counters.questions` of the types that have no index of their own. */
export const OTHER_TYPE = 0
/** Up to CAA (257). */
const COUNTED_TYPES = 258

export interface Counters {
  queries: number
  /** By type, index 1–257 (CAA); greater ones at OTHER_TYPE. */
  readonly questions: Float64Array
  /** By rcode, index 0–23. */
  readonly answers: Float64Array
  truncated: number
  /** Packets without an answer: too short, or responses. */
  ignored: number
  /** Dynamic RRsets that threw. */
  failures: number
}

export function createCounters(): Counters {
  return {
    queries: 0,
    questions: new Float64Array(COUNTED_TYPES),
    answers: new Float64Array(24),
    truncated: 0,
    ignored: 0,
    failures: 0,
  }
}

/** The counters of one thread as they are read, with the packets that its rate limiter dropped or truncated. */
export interface ThreadCounters {
  readonly queries: number
  readonly questions: ArrayLike<number>
  readonly answers: ArrayLike<number>
  readonly truncated: number
  readonly ignored: number
  readonly limited: number
  readonly failures: number
}

export interface CounterTotals {
  /** All packets, whatever they ask. */
  readonly queries: number
  /** Questions by type; types without a name of their own count as `other`. Transfers are not among them. */
  readonly questions: Readonly<Record<string, number>>
  readonly answers: Readonly<Record<string, number>>
  readonly truncated: number
  readonly ignored: number
  readonly limited: number
  readonly failures: number
}

export function sumCounters(threads: readonly ThreadCounters[]): CounterTotals {
  const sumOf = (field: 'queries' | 'truncated' | 'ignored' | 'limited' | 'failures'): number =>
    threads.reduce((sum, counters) => sum + counters[field], 0)
  const byName = (field: 'answers' | 'questions', nameOf: (index: number) => string): Record<string, number> => {
    const totals: Record<string, number> = {}
    const length = Math.max(0, ...threads.map((counters) => counters[field].length))
    for (let index = 0; index < length; index++) {
      const count = threads.reduce((sum, counters) => sum + (counters[field][index] ?? 0), 0)
      if (count > 0) totals[nameOf(index)] = count
    }
    return totals
  }
  return {
    queries: sumOf('queries'),
    questions: byName('questions', (type) => (type === OTHER_TYPE ? 'other' : typeName(type))),
    answers: byName('answers', rcodeName),
    truncated: sumOf('truncated'),
    ignored: sumOf('ignored'),
    limited: sumOf('limited'),
    failures: sumOf('failures'),
  }
}
