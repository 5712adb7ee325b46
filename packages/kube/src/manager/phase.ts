/** Parts of a manager that start and stop together. */
import { KubeError, messageOf } from '../errors.ts'
import type { Logger } from '../log.ts'
import { sharedStop } from '../stop-signal.ts'

export class Phase {
  readonly #stop = sharedStop()
  /** The parts that run, with their names. */
  readonly #running = new Map<Promise<void>, string>()
  readonly #log: Logger
  readonly #onFailure: (error: unknown) => void

  /** `onFailure` gets the error of a part that failed, or that ended before the stop. */
  constructor(log: Logger, onFailure: (error: unknown) => void) {
    this.#log = log
    this.#onFailure = onFailure
  }

  get signal(): AbortSignal {
    return this.#stop.signal
  }

  /** Names of the parts that have not ended. */
  get running(): readonly string[] {
    return [...this.#running.values()]
  }

  start(name: string, run: (signal: AbortSignal) => Promise<void>): void {
    const part = (async () => {
      try {
        await run(this.signal)
        if (!this.signal.aborted) throw new KubeError('PART_ENDED', `${name} ended by itself`)
      } catch (error) {
        if (this.signal.aborted) this.#log.warn({ part: name, error: messageOf(error) }, 'part failed while stopping')
        else this.#onFailure(error)
      }
    })()
    this.#running.set(part, name)
    void part.then(() => this.#running.delete(part))
  }

  /** Resolves when every part has ended. */
  async stop(reason: unknown): Promise<void> {
    this.#stop.abort(reason)
    await Promise.all(this.#running.keys())
  }
}
