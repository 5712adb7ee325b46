/** Requests a second of the gateways in this process, from their counters. */
import type { TrafficView } from '../api/state.ts'

/** Requests that were answered since the gateway began, by class of the status (`2xx`). */
export type AnswerCounts = ReadonlyMap<string, number>

/** Over so long a rate is taken: what changes more often than it can be read is of no use. */
const SPAN_MS = 2_000

interface Sample {
  readonly atMs: number
  readonly requests: number
  readonly errors: number
}

export class TrafficRates {
  readonly #read: () => ReadonlyMap<string, AnswerCounts | undefined>
  #samples = new Map<string, Sample>()
  #rates: ReadonlyMap<string, TrafficView> = new Map()
  #takenAtMs = Number.NEGATIVE_INFINITY

  /** `read`: by cluster, and of the gateway of this installation under the empty name. */
  constructor(read: () => ReadonlyMap<string, AnswerCounts | undefined>) {
    this.#read = read
  }

  /** Undefined: it has no gateway in this process, or one that has just begun. */
  of(name: string): TrafficView | undefined {
    return this.#rates.get(name)
  }

  /** Names whose rate is another one than at the last call. */
  take(nowMs: number): ReadonlySet<string> {
    if (nowMs - this.#takenAtMs < SPAN_MS) return new Set()
    this.#takenAtMs = nowMs
    const samples = new Map<string, Sample>()
    const rates = new Map<string, TrafficView>()
    for (const [name, counts] of this.#read()) {
      if (counts === undefined) continue
      const sample = sampleOf(counts, nowMs)
      const before = this.#samples.get(name)
      samples.set(name, sample)
      if (before !== undefined) rates.set(name, rateOf(before, sample))
    }
    const changed = [...this.#rates.keys(), ...rates.keys()].filter(
      (name) => JSON.stringify(this.#rates.get(name)) !== JSON.stringify(rates.get(name)),
    )
    this.#samples = samples
    this.#rates = rates
    return new Set(changed)
  }
}

function sampleOf(counts: AnswerCounts, atMs: number): Sample {
  const requests = [...counts.values()].reduce((sum, count) => sum + count, 0)
  return { atMs, requests, errors: counts.get('5xx') ?? 0 }
}

/** A gateway that was started again counts from 0. */
function rateOf(before: Sample, after: Sample): TrafficView {
  const from = after.requests < before.requests ? { requests: 0, errors: 0 } : before
  const seconds = (after.atMs - before.atMs) / 1_000
  const rate = (count: number): number => rounded(count / seconds)
  return {
    requestsPerSecond: rate(after.requests - from.requests),
    errorsPerSecond: rate(after.errors - from.errors),
  }
}

/** As it is shown: a difference that nobody sees is none. */
const rounded = (value: number): number => (value < 10 ? Math.round(value * 10) / 10 : Math.round(value))
