/** Durations in configuration: text as Go and Kubernetes write it (`45s`, `10m`, `1h30m`). */
import { parseDurationMs } from '@seamark/kube'
import { z } from 'zod'

export const duration = z
  .string()
  .refine((text) => parseDurationMs(text) !== undefined, { error: 'is no duration like 45s or 10m' })
  .meta({ format: 'duration' })
