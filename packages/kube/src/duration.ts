/**
 * Durations in Go's notation: `'15s'`, `'10m'`, `'1h30m'`, or a number of milliseconds.
 */
import { KubeError } from './errors.ts'

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const

export type Duration = number | `${number}${keyof typeof UNIT_MS}`

/** Milliseconds of a text such as `45s` or `1h30m`, or of `0`; undefined for everything else. */
export function parseDurationMs(text: string): number | undefined {
  if (!/^(?:\d+(?:\.\d+)?(?:ms|s|m|h))+$/.test(text)) return text === '0' ? 0 : undefined
  let total = 0
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)) {
    total += Number(amount) * UNIT_MS[unit as keyof typeof UNIT_MS]
  }
  return Number.isFinite(total) ? total : undefined
}

/** Milliseconds. Throws on an invalid or negative duration. */
export function durationMs(duration: Duration): number {
  const ms = typeof duration === 'number' ? duration : parseDurationMs(duration)
  if (ms === undefined || !(ms >= 0 && Number.isFinite(ms))) {
    throw new KubeError(
      'DURATION',
      `${JSON.stringify(duration)} is not a duration; write for example '500ms', '15s', '10m' or '1h'`,
    )
  }
  return ms
}
