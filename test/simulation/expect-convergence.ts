/** The one line a scenario's test is: explores it and fails with the first failures in words. */
import { describeFailure, explore, type ExploreOptions } from './explore.ts'
import type { Scenario } from './scenario.ts'

const shown = 3

export async function expectConvergence(scenario: Scenario, options: ExploreOptions = {}): Promise<number> {
  const { runs, failures } = await explore(scenario, options)
  if (failures.length === 0) return runs
  const texts = failures.slice(0, shown).map((failure) => describeFailure(failure))
  throw new Error(`${failures.length} of ${runs} runs went wrong\n${texts.join('\n')}`)
}
