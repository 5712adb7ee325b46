/**
 * Fails when a run depends on the machine: it is repeated with a clock of the machine that jumps, as on a busy one, and with other
 * numbers of Math.random. Only the seed may decide which requests are sent, and when.
 *
 * A run that depends on the machine draws other faults in CI than elsewhere, and a failure cannot be repeated.
 */
import { expect, vi } from 'vitest'
import type { Scenario } from './scenario.ts'
import { simulate } from './simulation.ts'

/** Longer than any slice of work that the runtime or the API server measures. */
const JUMP_MS = 5
/** Names of Events have a random part. */
const RANDOM_PART = /\.[0-9a-f]{16}\b/g

export async function expectRepeatable(scenario: Scenario): Promise<void> {
  const first = await requestsOf(scenario)
  expect(first.length).toBeGreaterThan(0)
  const realNow = performance.now.bind(performance)
  let jumpedMs = 0
  const spies = [
    vi.spyOn(performance, 'now').mockImplementation(() => realNow() + (jumpedMs += JUMP_MS)),
    vi.spyOn(Math, 'random').mockImplementation(() => 0.999),
  ]
  try {
    expect(await requestsOf(scenario)).toEqual(first)
  } finally {
    for (const spy of spies) spy.mockRestore()
  }
}

async function requestsOf(scenario: Scenario): Promise<string[]> {
  const { requests, failure } = await simulate(scenario, [], 1)
  expect(failure).toBeUndefined()
  return requests.map((line) => line.replaceAll(RANDOM_PART, '.<random>'))
}
