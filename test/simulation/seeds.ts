/**
 * How far scenarios are explored: by default one place of two faults each, so that the tier stays short; every fault and
 * every crash with SEAMARK_CRASHES=all, as in CI; every place with the seeds of SEAMARK_SEEDS.
 */
import { isThorough } from '@seamark/kit'
import type { ExploreOptions } from './explore.ts'

/** Of each scenario, unless all are asked for. */
const SHORT_CRASHES = 1
/** Of each scenario, unless all are asked for: lists that stay empty. */
const SHORT_EMPTY_LISTS = 3
/** Kinds of fault of each scenario, unless all are asked for. */
const SHORT_KINDS = 2

/** Of the fault matrix: those that every scenario is tried with. */
const matrix = ['crash', 'stale', 'drop', 'gone', 'emptyList', 'shortList'] as const
/** The others: watches that repeat, mix or hold back what they deliver, and an API server that refuses. */
const disorder = ['duplicate', 'reorder', 'freeze', 'refuse', 'storm'] as const

export interface Limits {
  /** Of a scenario with many writes only as many, unless every place is asked for. @default all */
  readonly crashes?: number
  /** Only as many in a short run. @default SHORT_CRASHES */
  readonly shortCrashes?: number
  /** Places of each other fault in a short run. @default 1 */
  readonly shortSamples?: number
  /** Also the faults of `disorder`. @default false */
  readonly hasDisorder?: boolean
  /** Faults under which the scenario is not expected to end the same. @default none */
  readonly except?: readonly (typeof matrix)[number][]
  /** Lists that stay empty for a minute, a few in a short run: for scenarios with as many sources as a breaker needs. */
  readonly hasEmptyLists?: boolean
}

export function exploration({
  crashes = Infinity,
  shortCrashes = SHORT_CRASHES,
  shortSamples = 1,
  except = [],
  hasDisorder = false,
  hasEmptyLists = false,
}: Limits = {}): ExploreOptions {
  const { env } = process
  const kinds = [
    ...matrix.filter((kind) => !except.includes(kind)),
    ...(hasDisorder ? disorder : []),
    ...(hasEmptyLists ? ['emptyLists' as const] : []),
  ]
  const seeds = (env['SEAMARK_SEEDS'] ?? '').split(',').filter((text) => text !== '')
  const isEveryPlaceTried = seeds.length > 0 || env['SEED'] !== undefined
  if (!isEveryPlaceTried && !isThorough)
    return {
      kinds,
      kindCount: SHORT_KINDS,
      crashes: Math.min(crashes, shortCrashes),
      emptyLists: SHORT_EMPTY_LISTS,
      samples: shortSamples,
      mixtures: 0,
    }
  if (!isEveryPlaceTried) return { kinds, crashes, samples: 1, mixtures: 0 }
  return { kinds, mixtures: 20, ...(seeds.length > 0 && { seeds: seeds.map(Number) }) }
}
