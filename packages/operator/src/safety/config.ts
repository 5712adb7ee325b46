/** The `safety` section of the manager's configuration: how much may change at once before it is held, for every capability. */
import { LIVE } from '../live-setting.ts'
import { z } from 'zod'
import { DEFAULT_MASS_LIMITS, type MassLimits } from './mass-limits.ts'

export const SafetyConfig = z.strictObject({
  maxChanges: z
    .number()
    .int()
    .min(0)
    .default(DEFAULT_MASS_LIMITS.count)
    .describe(
      'up to this number of deletions or changes of target at once nothing is held; more are held if maxChangePercent is exceeded too',
    )
    .meta(LIVE),
  maxChangePercent: z
    .number()
    .min(0)
    .max(100)
    .default(DEFAULT_MASS_LIMITS.share * 100)
    .describe('up to this percentage of what is published nothing is held; 100: nothing is held for its number')
    .meta(LIVE),
})

export type SafetyConfig = z.output<typeof SafetyConfig>

export function massLimits({ maxChanges, maxChangePercent }: SafetyConfig): MassLimits {
  return { count: maxChanges, share: maxChangePercent / 100 }
}
