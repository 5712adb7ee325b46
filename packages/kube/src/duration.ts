/** Durations as people write them in code: `'15s'`, `'10m'`, or a number of milliseconds. */
import { KubeError } from './errors.ts'

const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const

export type Duration = number | `${number}${keyof typeof unitMs}`

/** Milliseconds. Throws on what is not a duration, or less than nothing. */
export function durationMs(duration: Duration): number {
  const match = typeof duration === 'number' ? undefined : /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(duration)
  const ms =
    typeof duration === 'number' ? duration : Number(match?.[1]) * unitMs[(match?.[2] ?? 'ms') as keyof typeof unitMs]
  if (!(ms >= 0 && Number.isFinite(ms))) {
    throw new KubeError(
      'DURATION',
      `${JSON.stringify(duration)} is not a duration; write for example '500ms', '15s', '10m' or '1h'`,
    )
  }
  return ms
}
