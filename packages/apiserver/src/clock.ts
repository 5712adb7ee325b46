/**
 * Injected time: every timestamp, timer and timeout of the server uses one of these, so that tests and the simulation
 * kit control the passage of time.
 */
export interface Timer {
  cancel(): void
}

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Never goes back, ms from an arbitrary start. For durations. */
  monotonic(): number
  /** Runs `task` once, after `delayMs`. A pending timer never keeps the process alive. */
  schedule(delayMs: number, task: () => void): Timer
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  schedule(delayMs, task) {
    const handle = setTimeout(task, delayMs)
    handle.unref()
    return { cancel: () => clearTimeout(handle) }
  },
}

/** RFC 3339 in whole seconds, the form of `metadata.creationTimestamp`. */
export function timestamp(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}
