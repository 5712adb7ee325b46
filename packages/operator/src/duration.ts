/** Durations in configuration: text as Go and Kubernetes write it (`45s`, `10m`, `1h30m`). */
import { type LeaseOptions, parseDurationMs } from '@seamark/kube'
import { z } from 'zod'

export const duration = z
  .string()
  .refine((text) => parseDurationMs(text) !== undefined, { error: 'is no duration like 45s or 10m' })
  .meta({ format: 'duration' })

/** In a form for an election. */
export type LeaseTimes = Pick<LeaseOptions, 'durationMs' | 'renewDeadlineMs' | 'retryPeriodMs'>

export function leaseTimes(election: {
  readonly leaseDuration: string
  readonly renewDeadline: string
  readonly retryPeriod: string
}): LeaseTimes {
  const ms = (text: string): number => parseDurationMs(text) ?? 0
  return {
    durationMs: ms(election.leaseDuration),
    renewDeadlineMs: ms(election.renewDeadline),
    retryPeriodMs: ms(election.retryPeriod),
  }
}
