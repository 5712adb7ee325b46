/**
 * Attempts and checks that are repeated, for calls outside a reconcile: a reconcile that fails is repeated by its controller.
 *
 * Guarantee: a wait ends as soon as the signal aborts, and no attempt follows.
 */
import { type Clock, sleep } from './clock.ts'
import type { StopSignal } from './stop-signal.ts'

export interface BackoffOptions {
  readonly clock: Clock
  /** The first wait, ms. Each further one is twice as long. */
  readonly baseMs: number
  /** @default no limit */
  readonly limitMs?: number
  readonly signal?: StopSignal
}

/** The waits between attempts. */
export class Backoff {
  readonly #options: BackoffOptions
  #waits = 0

  constructor(options: BackoffOptions) {
    this.#options = options
  }

  async wait(): Promise<void> {
    const { clock, baseMs, limitMs = Infinity, signal } = this.#options
    await sleep(clock, Math.min(baseMs * 2 ** this.#waits++, limitMs), signal)
  }

  /** After a success: the next wait is the first one again. */
  reset(): void {
    this.#waits = 0
  }
}

/** Rejects with the error of an attempt that is `final`, or of the last one before the signal aborted. */
export async function retry<T>(
  attempt: () => Promise<T>,
  { isFinal, ...options }: BackoffOptions & { readonly isFinal: (error: unknown, attempts: number) => boolean },
): Promise<T> {
  const backoff = new Backoff(options)
  const isStopped = (): boolean => options.signal?.aborted === true
  for (let attempts = 1; ; attempts++) {
    try {
      return await attempt()
    } catch (error) {
      if (isFinal(error, attempts) || isStopped()) throw error
      await backoff.wait()
      if (isStopped()) throw error
    }
  }
}

export interface PollOptions {
  readonly clock: Clock
  /** From the end of one check to the start of the next. */
  readonly intervalMs: number
  /** @default no limit */
  readonly timeoutMs?: number
  readonly signal?: StopSignal
}

/**
 * Calls `check` at once and then repeatedly, until it returns a value. Undefined after the timeout, and when the signal
 * aborts; there is one check at least, unless the signal is aborted already.
 */
export async function poll<T>(
  check: () => Promise<T | undefined> | T | undefined,
  { clock, intervalMs, timeoutMs = Infinity, signal }: PollOptions,
): Promise<T | undefined> {
  const deadlineMs = clock.monotonic() + timeoutMs
  for (;;) {
    if (signal?.aborted === true) return undefined
    const value = await check()
    if (value !== undefined || clock.monotonic() >= deadlineMs) return value
    await sleep(clock, intervalMs, signal)
  }
}
