/**
 * The wait requested by a server: `Retry-After` of HTTP, `retryAfterSeconds` of a Kubernetes Status. The value is not
 * trusted and may be anything: text, negative, or so large that a timer overflows and a loop runs without pause. All
 * such values are parsed here.
 *
 * Guarantees: the wait is a finite number of milliseconds from 0 to `MAX_REQUESTED_WAIT_MS`, or undefined; clients that
 * got the same wait do not retry at the same time.
 */

/** Five minutes: a longer wait is split into several requests. */
export const MAX_REQUESTED_WAIT_MS = 300_000

/**
 * Milliseconds from a number of seconds, as a number or in decimal digits, or from an HTTP date (RFC 9110 §10.2.3).
 * `now`: milliseconds since the epoch; without it dates are ignored. Undefined if the value is invalid.
 */
export function requestedWaitMs(value: unknown, now?: number): number | undefined {
  const ms =
    typeof value === 'number' ? value * 1000 : typeof value === 'string' ? textMs(value.trim(), now) : undefined
  if (ms === undefined || Number.isNaN(ms) || ms < 0) return undefined
  return Math.min(ms, MAX_REQUESTED_WAIT_MS)
}

function textMs(text: string, now: number | undefined): number | undefined {
  if (/^\d+$/.test(text)) return Number(text) * 1000
  if (now === undefined || !/^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text))
    return undefined
  return Math.max(0, Date.parse(text) - now)
}

/** The wait plus up to a fifth, at least 50 ms; `random` in [0, 1). */
export function spreadWaitMs(waitMs: number, random: number): number {
  return waitMs + random * (waitMs * 0.2 + 50)
}
