/** The `wildcard` section of the manager's configuration (options.ts explains the fields). */
import { parseDurationMs } from '@seamark/kube'
import { parseLabelSelector } from '@seamark/kube/object'
import { z } from 'zod'
import { duration } from '../duration.ts'
import { wildcardDefaults, type WildcardOptions } from './options.ts'

export const WildcardConfig = z.strictObject({
  enabled: z.boolean().default(false),
  zone: z.string().default(wildcardDefaults.zone),
  namePrefix: z.string().default(wildcardDefaults.namePrefix),
  ttl: z
    .number()
    .int()
    .min(1)
    .max(2 ** 31 - 1)
    .default(wildcardDefaults.ttlSeconds),
  nodeSelector: z
    .string()
    .refine((text) => typeof parseLabelSelector(text) === 'function', { error: 'is no label selector' })
    .default(wildcardDefaults.nodeSelector),
  excludeUnschedulable: z.boolean().default(wildcardDefaults.excludeUnschedulable),
  allowInternal: z.boolean().default(wildcardDefaults.allowInternal),
  removalDelay: duration.default('45s'),
  coalesce: duration.default('5s'),
  minTargets: z.number().int().min(0).default(wildcardDefaults.minTargets),
  onEmpty: z.enum(['keep', 'delete']).default(wildcardDefaults.onEmpty),
  apex: z.boolean().default(wildcardDefaults.apex),
  localCluster: z.string().default(wildcardDefaults.localCluster),
})

export function wildcardOptions(config: z.output<typeof WildcardConfig>): WildcardOptions {
  const { ttl, removalDelay, coalesce, enabled: _, ...same } = config
  return {
    ...same,
    ttlSeconds: ttl,
    removalDelayMs: parseDurationMs(removalDelay) ?? 0,
    coalesceMs: parseDurationMs(coalesce) ?? 0,
  }
}
