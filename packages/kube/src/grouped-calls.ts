/**
 * Calls that cost less together: those made while an earlier group is under way are performed as one group.
 *
 * Guarantees: no call waits for a timer; one group at a time, in the order of the calls; a group contains each key once, so
 * that its results can be distinguished. The signal of a group aborts when the signals of all its calls have.
 */
import { Stop, type StopSignal } from './stop-signal.ts'

export interface GroupedCallsOptions<Request, Result> {
  readonly keyOf: (request: Request) => string
  /** Calls in one group. */
  readonly limit: number
  /** By key: the result of each request, or its error. A rejection is the error of the whole group. */
  readonly perform: (requests: readonly Request[], signal: AbortSignal) => Promise<ReadonlyMap<string, Result | Error>>
}

interface Call<Request, Result> {
  readonly request: Request
  readonly key: string
  readonly signal: StopSignal
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}

export class GroupedCalls<Request, Result> {
  readonly #options: GroupedCallsOptions<Request, Result>
  #waiting: Call<Request, Result>[] = []
  #isRunning = false

  constructor(options: GroupedCallsOptions<Request, Result>) {
    this.#options = options
  }

  async call(request: Request, signal: StopSignal): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request, key: this.#options.keyOf(request), signal, resolve, reject })
      if (!this.#isRunning) void this.#run()
    })
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    // Calls of the same turn are one group.
    await Promise.resolve()
    while (this.#waiting.length > 0) await this.#perform(this.#take())
    this.#isRunning = false
  }

  #take(): Call<Request, Result>[] {
    const group = new Map<string, Call<Request, Result>>()
    const rest: Call<Request, Result>[] = []
    for (const call of this.#waiting) {
      if (group.size < this.#options.limit && !group.has(call.key)) group.set(call.key, call)
      else rest.push(call)
    }
    this.#waiting = rest
    return [...group.values()]
  }

  async #perform(group: readonly Call<Request, Result>[]): Promise<void> {
    const stop = new Stop()
    const check = (): void => {
      if (group.every(({ signal }) => signal.aborted)) stop.abort(group[0]?.signal.reason)
    }
    for (const { signal } of group) signal.addEventListener('abort', check)
    check()
    try {
      const requests = group.map(({ request }) => request)
      const results = await this.#options.perform(requests, stop.signal)
      for (const { key, resolve, reject } of group) {
        const result = results.get(key)
        if (result === undefined) reject(new Error(`the group has no result for ${key}`))
        else if (result instanceof Error) reject(result)
        else resolve(result)
      }
    } catch (error) {
      for (const { reject } of group) reject(error)
    } finally {
      for (const { signal } of group) signal.removeEventListener('abort', check)
    }
  }
}
