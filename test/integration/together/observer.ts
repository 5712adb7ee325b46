/** Asks the zone's server for each host all the time, so that an answer that was wrong for a moment is seen too. */
import { type Resolver, openResolver, textOf } from './statements.ts'

const PERIOD_MS = 50

export class Observer {
  readonly #resolver: Resolver = openResolver()
  readonly #stopping = new AbortController()
  readonly #running: Promise<void>
  /** Each different answer of a host since the last `take`, in order. */
  #seen = new Map<string, string[]>()
  #hosts: readonly string[]

  constructor(hosts: readonly string[]) {
    this.#hosts = hosts
    this.#running = this.#run()
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      for (const host of this.#hosts) {
        const answer = await this.#resolver.ask(host)
        // The manager is away.
        if (answer === undefined) continue
        const seen = this.#seen.get(host) ?? []
        if (seen.at(-1) !== textOf(answer)) this.#seen.set(host, [...seen, textOf(answer)])
      }
      await new Promise((resolve) => setTimeout(resolve, PERIOD_MS))
    }
  }

  /** What was seen since the last call. */
  take(): ReadonlyMap<string, readonly string[]> {
    const seen = this.#seen
    this.#seen = new Map([...seen].map(([host, answers]) => [host, answers.slice(-1)]))
    return seen
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
    await this.#resolver[Symbol.asyncDispose]()
  }
}
