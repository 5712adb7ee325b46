/** Every wildcard scenario of the integration suite under T1, T2, T3, T5 and T6. */
import { playgroundCrds, type DNSEndpoint } from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { WildcardBench } from '../../integration/wildcard/bench.ts'
import { wildcardScenarios } from '../../integration/wildcard/scenarios.ts'
import { expectConvergence } from '../expect-convergence.ts'
import type { Invariant } from '../scenario.ts'
import { exploration } from '../seeds.ts'
import { simulatedCluster } from '../simulated-cluster.ts'

/** A wildcard is never written without targets, and never deleted by us: garbage collection does that. */
const neverEmpty: Invariant = {
  name: 'a wildcard keeps its targets',
  check(_, { kind, key, isByController, type, after }) {
    if (kind !== 'DNSEndpoint' || !isByController) return undefined
    if (type === 'delete') return `${key} was deleted`
    const { endpoints } = (after as DNSEndpoint).spec
    return endpoints.length === 0 || endpoints.some(({ targets }) => targets.length === 0)
      ? `${key} is empty`
      : undefined
  },
}

describe('wildcard, whatever goes wrong', () => {
  it.each(wildcardScenarios)('$title', async ({ title, run }) => {
    const runs = await expectConvergence(
      {
        name: title,
        given: playgroundCrds(),
        prepare: async (stage) => WildcardBench.prepare(simulatedCluster(stage)),
        play: async (stage) => run(new WildcardBench(simulatedCluster(stage))),
        invariants: () => [neverEmpty],
      },
      exploration(),
    )
    expect(runs).toBeGreaterThan(0)
  })
})
