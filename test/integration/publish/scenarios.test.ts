/** Every scenario of scenarios.ts, sources.ts and guards.ts, on the embedded API server and on a real one. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Bench } from './bench.ts'
import { guardScenarios } from './guards.ts'
import { scenarios } from './scenarios.ts'
import { sourceScenarios } from './sources.ts'
import { crdsInUse, type World, worldKinds } from './world.ts'

describe.each(worldKinds)(`publish on $name, ${crdsInUse}`, ({ isMissing, start }) => {
  let world: World
  let bench: Bench

  beforeAll(async () => {
    if (isMissing) return
    world = await start()
    bench = await Bench.prepare(world)
  })
  afterEach(async () => {
    if (isMissing) return
    await bench.wipe()
    await bench.restoreService()
  })
  afterAll(async () => world?.[Symbol.asyncDispose]())

  it.skipIf(isMissing).each([...scenarios, ...sourceScenarios, ...guardScenarios])('$title', async ({ run }) => {
    // Each scenario asserts by itself; here it must come to its end.
    await expect(run(bench).then(() => 'came to its end')).resolves.toBe('came to its end')
  })
})
