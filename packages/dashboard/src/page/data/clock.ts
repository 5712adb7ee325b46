/** The time of the manager, so that ages are right where the clock of the browser is not; and its forms on the page. */
import { computed, signal } from '@preact/signals'

const skewMs = signal(0)
const browserMs = signal(Date.now())

/** The time of the manager, ms since the epoch; it changes once a second. */
export const nowMs = computed(() => browserMs.value + skewMs.value)

setInterval(() => {
  if (!document.hidden) browserMs.value = Date.now()
}, 1000)
document.addEventListener('visibilitychange', () => (browserMs.value = Date.now()))

export function setManagerTime(at: string): void {
  const skew = Date.parse(at) - Date.now()
  // The time on the wire is part of it: below a second it is noise.
  if (Math.abs(skew - skewMs.peek()) > 1000) skewMs.value = skew
}

const MINUTE = 60
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** `12 s`, `4 min`, `3 h`, `12 d`: one unit, as kubectl shows ages. */
export function durationText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  if (seconds < 2 * MINUTE) return `${seconds} s`
  if (seconds < 2 * HOUR) return `${Math.floor(seconds / MINUTE)} min`
  if (seconds < 2 * DAY) return `${Math.floor(seconds / HOUR)} h`
  return `${Math.floor(seconds / DAY)} d`
}

const time = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' })

/** `02:13:41` within half a day, else `28 Feb, 18:00`; in the time zone of the browser. */
export function timeText(at: string, now: number): string {
  const ms = Date.parse(at)
  if (Number.isNaN(ms)) return at
  return Math.abs(now - ms) < 12 * HOUR * 1000 ? time.format(ms) : day.format(ms)
}
