/** Durations in configuration: text as Go and Kubernetes write it (`45s`, `10m`, `1h30m`), milliseconds inside. */
import { z } from 'zod'

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const

/** Undefined for what is no duration. */
export function readDurationMs(text: string): number | undefined {
  if (!/^(?:\d+(?:\.\d+)?(?:ms|s|m|h))+$/.test(text)) return text === '0' ? 0 : undefined
  let total = 0
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)) {
    total += Number(amount) * UNIT_MS[unit as keyof typeof UNIT_MS]
  }
  return total
}

export const duration = z
  .string()
  .refine((text) => readDurationMs(text) !== undefined, { error: 'is no duration like 45s or 10m' })
  .meta({ format: 'duration' })
