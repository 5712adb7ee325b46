/**
 * How long to wait when a server asks for it: `Retry-After` of HTTP, `retryAfterSeconds` of a Kubernetes Status. The value is
 * the server's and may be anything: text, negative, or so large that a timer overflows into a loop without pause. Every
 * reader of such a value goes through here.
 *
 * Guarantees: the wait is a finite number of milliseconds from 0 to `MAX_REQUESTED_WAIT_MS`, or undefined; clients that
 * were asked to wait together do not come back together.
 */

/** Five minutes: a server that asks for more is asked again, and says so again. */
export const MAX_REQUESTED_WAIT_MS = 300_000

/**
 * Milliseconds from a number of seconds, as a number or in decimal digits, or from an HTTP date (RFC 9110 §10.2.3).
 * `now`: milliseconds since the epoch; without it dates are ignored. Undefined when nothing valid is asked for.
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

/** The wait and up to a fifth more, at least 50 ms; `random` in [0, 1). */
export function spreadWaitMs(waitMs: number, random: number): number {
  return waitMs + random * (waitMs * 0.2 + 50)
}
