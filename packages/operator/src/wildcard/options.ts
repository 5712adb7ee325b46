/** Wildcard's settings inside the program, derived from the configuration schema (config.ts). */
import { parseDurationMs } from '@seamark/kube'
import { WildcardConfig } from './config.ts'

export interface WildcardOptions extends Readonly<
  Omit<WildcardConfig, 'enabled' | 'ttl' | 'removalDelay' | 'coalesce'>
> {
  readonly ttlSeconds: number
  readonly removalDelayMs: number
  readonly coalesceMs: number
}

export function wildcardOptions(config: WildcardConfig): WildcardOptions {
  const { ttl, removalDelay, coalesce, enabled: _, ...same } = config
  return {
    ...same,
    ttlSeconds: ttl,
    removalDelayMs: parseDurationMs(removalDelay) ?? 0,
    coalesceMs: parseDurationMs(coalesce) ?? 0,
  }
}

export const wildcardDefaults: WildcardOptions = wildcardOptions(WildcardConfig.parse({}))
