/**
 * Every fleet scenario with a crash at every write: before it is sent, and carried out without a response. With
 * SEAMARK_CRASHES=all at every one, as in CI; else at a few.
 */
import { isThorough } from '@seamark/kit'
import { manager, messageOf } from '@seamark/kube'
import { describe, expect, it } from 'vitest'
import { describeFailure, type Failure } from '../explore.ts'
import { FleetActions } from './actions.ts'
import { type FleetScenario, fleetScenarios } from './scenarios.ts'
import { inProcessConfig } from '../in-process-transport.ts'
import { MEMORY_REST_MS, MemoryFleet } from './memory-fleet.ts'
import { judge } from '../oracle.ts'
import { planName, type Plan } from '../plan.ts'
import type { Run } from '../simulation.ts'

type Crash = Extract<Plan, { kind: 'crash' }>

/** Of each scenario, unless all are asked for. */
const SHORT_CRASHES = 2
/** A failure names its run; more are not needed to be red. */
const MAX_FAILURES = 3

// Loads what a manager loads at its first use: real time must not pass inside a run.
await manager({ config: inProcessConfig() })

async function play({ run, given }: FleetScenario, crash?: Crash): Promise<Run & Pick<MemoryFleet, 'undelivered'>> {
  const fleet = new MemoryFleet(crash, given)
  let failure: string | undefined
  await run(new FleetActions(fleet)).catch((error: unknown) => (failure = messageOf(error)))
  return { ...fleet.result(failure), undelivered: fleet.undelivered }
}

function chooseCrashes({ extent, undelivered }: Awaited<ReturnType<typeof play>>): Crash[] {
  const all = Array.from({ length: extent.sentWrites }, (_, index) => index + 1).flatMap((at): Crash[] => {
    const points: readonly Crash['point'][] = undelivered.has(at) ? ['before'] : ['before', 'unanswered']
    return points.map((point) => ({ kind: 'crash', at, point }))
  })
  const { PLAN } = process.env
  if (PLAN !== undefined) return all.filter((crash) => planName(crash) === PLAN)
  if (isThorough) return all
  const step = Math.max(1, Math.floor(all.length / SHORT_CRASHES))
  return all.filter((_, index) => index % step === step - 1)
}

describe('the fleet, wherever it crashes', () => {
  it.each(fleetScenarios)('$title', async (scenario) => {
    const reference = await play(scenario)
    expect(judge(reference, reference, MEMORY_REST_MS)).toEqual([])
    const failures: Failure[] = []
    for (const crash of chooseCrashes(reference)) {
      const run = await play(scenario, crash)
      const problems = judge(run, reference, MEMORY_REST_MS)
      if (problems.length > 0)
        failures.push({ scenario: scenario.title, seed: 1, plans: [crash], problems, history: run.history })
      if (failures.length >= MAX_FAILURES) break
    }
    expect(failures.map((failure) => describeFailure(failure)).join('\n')).toBe('')
  })
})
