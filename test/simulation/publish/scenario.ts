/**
 * A publish scenario of the integration suite as a scenario of the simulation (our small CRDs, the fixture, the
 * invariants), tried under T1 (a crash at every write, three ways), T2 (a restart that sees an old state), T3 (lost
 * events), T5 (410) and T6 (empty and short lists).
 *
 * How many places are tried is in seeds.ts; even seeds read by WatchList, odd ones by lists.
 */
import type { Obj } from '@seamark/kube/object'
import { playgroundCrds } from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { Bench } from '../../integration/publish/bench.ts'
import type { Scenario as PublishScenario } from '../../integration/publish/scenarios.ts'
import { expectConvergence } from '../expect-convergence.ts'
import { publishInvariants } from './invariants.ts'
import type { Scenario } from '../scenario.ts'
import { exploration, type Limits } from '../seeds.ts'
import { simulatedCluster } from '../simulated-cluster.ts'

const given = playgroundCrds() as Obj[]

function simulated({ title, run }: PublishScenario): Scenario {
  return {
    name: title,
    given,
    async prepare(stage) {
      await Bench.prepare(simulatedCluster(stage))
    },
    play: async (stage) => run(new Bench(simulatedCluster(stage))),
    invariants: () => publishInvariants,
  }
}

export function describeDisturbed(part: string, scenarios: readonly PublishScenario[], limits?: Limits): void {
  describe(`${part}, disturbed`, () => {
    it.each(scenarios)('$title', async (scenario) => {
      expect(await expectConvergence(simulated(scenario), exploration(limits))).toBeGreaterThan(0)
    })
  })
}
