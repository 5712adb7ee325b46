/**
 * How far scenarios are explored: by default every crash and one place of each other fault, so that the tier stays short;
 * every place with the seeds of SEAMARK_SEEDS.
 */
import type { ExploreOptions } from './explore.ts'

const matrix = ['crash', 'stale', 'drop', 'gone', 'emptyList', 'shortList'] as const

/** `crashes`: of a scenario with many writes only as many, unless every place is asked for. */
export function exploration(crashes = Infinity, env: NodeJS.ProcessEnv = process.env): ExploreOptions {
  const seeds = (env['SEAMARK_SEEDS'] ?? '').split(',').filter((text) => text !== '')
  const isThorough = seeds.length > 0 || env['SEED'] !== undefined
  if (!isThorough) return { kinds: matrix, crashes, samples: 1, mixtures: 0 }
  return { kinds: matrix, mixtures: 20, ...(seeds.length > 0 && { seeds: seeds.map(Number) }) }
}
