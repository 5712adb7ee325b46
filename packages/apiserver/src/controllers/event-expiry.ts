/** Deletes Events one hour after their last change. */
import type { Timer } from '../clock.ts'
import type { Controller, ControllerContext } from './controller.ts'

const lifetimeMs = 3_600_000

interface Due {
  readonly key: string
  readonly resourceVersion: number
  readonly atMs: number
}

export class EventExpiry implements Controller {
  readonly #unsubscribe: () => void
  /** Oldest first; a later change of the same event is queued again with a higher revision. */
  readonly #waiting: Due[] = []
  #timer: Timer | undefined

  constructor({ backend }: ControllerContext) {
    const events = backend.store.collection('events')
    const arm = (): void => {
      const next = this.#waiting[0]
      if (next === undefined || this.#timer !== undefined) return
      this.#timer = backend.clock.schedule(Math.max(0, next.atMs - backend.clock.now()), () => {
        this.#timer = undefined
        while (this.#waiting[0] !== undefined && this.#waiting[0].atMs <= backend.clock.now()) {
          const due = this.#waiting.shift() as Due
          if (events.get(due.key)?.resourceVersion === due.resourceVersion) events.remove(due.key)
        }
        arm()
      })
    }
    this.#unsubscribe = events.subscribe(({ key, type, resourceVersion, timeMs }) => {
      if (type === 'delete') return
      this.#waiting.push({ key, resourceVersion, atMs: timeMs + lifetimeMs })
      arm()
    })
  }

  close(): void {
    this.#unsubscribe()
    this.#timer?.cancel()
  }
}
