/**
 * `Stop`, a lightweight AbortController and AbortSignal in one, for code that runs once per object: a real pair with
 * its listeners costs as much as a small decision, and every reconcile needs one.
 *
 * Guarantee: every listener registered at the abort is called once; the first reason is kept. `signal` is a real
 * AbortSignal, created on first use.
 */

import { setMaxListeners } from 'node:events'

/** The part of AbortSignal that is used; every AbortSignal implements it. */
export interface StopSignal {
  readonly aborted: boolean
  readonly reason: unknown
  addEventListener(type: 'abort', listener: () => void, options?: { once?: boolean }): void
  removeEventListener(type: 'abort', listener: () => void): void
  throwIfAborted(): void
}

export class Stop implements StopSignal {
  aborted = false
  reason: unknown = undefined
  #listeners: (() => void)[] | undefined
  #controller: AbortController | undefined

  /** A real AbortSignal that aborts with this. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.aborted) this.#controller.abort(this.reason)
    }
    return this.#controller.signal
  }

  abort(reason: unknown): void {
    if (this.aborted) return
    this.aborted = true
    this.reason = reason
    const listeners = this.#listeners
    this.#listeners = undefined
    this.#controller?.abort(reason)
    if (listeners !== undefined) for (const listener of listeners) listener()
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    if (this.aborted) return
    if (this.#listeners === undefined) this.#listeners = [listener]
    else this.#listeners.push(listener)
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    const place = this.#listeners?.indexOf(listener) ?? -1
    if (place >= 0) this.#listeners?.splice(place, 1)
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason
  }
}

/**
 * An AbortController for a whole manager, member or phase: every controller, watch and timer of it listens to its signal,
 * so Node's warning about more than ten listeners would be wrong.
 */
export function sharedStop(): AbortController {
  const controller = new AbortController()
  setMaxListeners(0, controller.signal)
  return controller
}

/** Resolves when the signal aborts; immediately if it has. */
export async function untilAborted(signal: StopSignal): Promise<void> {
  if (signal.aborted) return
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
