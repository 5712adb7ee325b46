/** Every scenario of scenarios.ts, sources.ts and guards.ts, on the embedded API server and on a real one. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Bench } from './bench.ts'
import { guardScenarios } from './guards.ts'
import { scenarios } from './scenarios.ts'
import { sourceScenarios } from './sources.ts'
import { crdsInUse, type TestEnvironment, environmentKinds } from './test-environment.ts'

describe.each(environmentKinds)(`publish on $name, ${crdsInUse}`, ({ isMissing, start }) => {
  let environment: TestEnvironment
  let bench: Bench

  beforeAll(async () => {
    if (isMissing) return
    environment = await start()
    bench = await Bench.prepare(environment)
  })
  afterEach(async () => {
    if (isMissing) return
    await bench.wipe()
    await bench.restoreService()
  })
  afterAll(async () => environment?.[Symbol.asyncDispose]())

  it.skipIf(isMissing).each([...scenarios, ...sourceScenarios, ...guardScenarios])('$title', async ({ run }) => {
    // Each scenario asserts by itself; here it must come to its end.
    await expect(run(bench).then(() => 'came to its end')).resolves.toBe('came to its end')
  })
})
