/** Every scenario of scenarios.ts, with the embedded and with a real API server as hub. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { crdsInUse, type World, worldKinds } from '../publish/world.ts'
import { WildcardBench } from './bench.ts'
import { wildcardScenarios } from './scenarios.ts'

describe.each(worldKinds)(`wildcard on $name, ${crdsInUse}`, ({ isMissing, start }) => {
  let world: World
  let bench: WildcardBench

  beforeAll(async () => {
    if (isMissing) return
    world = await start()
    await WildcardBench.prepare(world)
    bench = new WildcardBench(world)
  })
  afterEach(async () => {
    if (!isMissing) await bench.wipe()
  })
  afterAll(async () => world?.[Symbol.asyncDispose]())

  it.skipIf(isMissing).each(wildcardScenarios)('$title', async ({ run }) => {
    // Each scenario asserts by itself; here it must come to its end.
    await expect(run(bench).then(() => 'came to its end')).resolves.toBe('came to its end')
  })
})
