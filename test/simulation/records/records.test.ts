/** The records scenarios under T1 (crashes), T2 (stale reads), T3 (lost events), T5 (410), T6 (short and empty lists). */
import '../synchronous-zlib.ts'
import { playgroundCrds } from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { expectConvergence } from '../expect-convergence.ts'
import { expectRepeatable } from '../expect-repeatable.ts'
import { FOREIGN, RecordsBench } from './bench.ts'
import { recordsInvariants } from './invariants.ts'
import { budgetScenarios, manyRecordsScenarios, type RecordsScenario, recordsScenarios } from './scenarios.ts'
import type { Scenario } from '../scenario.ts'
import { exploration, type Limits } from '../seeds.ts'

function simulated({ title, run }: RecordsScenario): Scenario {
  return {
    name: title,
    given: playgroundCrds(),
    prepare: async (stage) => RecordsBench.prepare(stage),
    play: async (stage) => run(new RecordsBench(stage)),
    invariants: ({ clock }) => recordsInvariants(() => clock.monotonic(), FOREIGN),
  }
}

function describeDisturbed(part: string, scenarios: readonly RecordsScenario[], limits?: Limits): void {
  describe(`records, ${part}, disturbed`, () => {
    it.each(scenarios)('$title', async (scenario) => {
      expect(await expectConvergence(simulated(scenario), exploration(limits))).toBeGreaterThan(0)
    })
  })
}

describeDisturbed('one source', recordsScenarios)
describeDisturbed('many sources', manyRecordsScenarios, { crashes: 9, hasEmptyLists: true })
describeDisturbed('delete budget', budgetScenarios, { crashes: 9 })

it('a run of records and publish does not depend on the machine', async () => {
  const withPublish = recordsScenarios.find(({ title }) => title.startsWith('an HTTPProxy becomes a record'))
  expect(withPublish).toBeDefined()
  if (withPublish !== undefined) await expectRepeatable(simulated(withPublish))
})
