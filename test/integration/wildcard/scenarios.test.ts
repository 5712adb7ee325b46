/** Every scenario of scenarios.ts, with the embedded and with a real API server as hub. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { crdsInUse, type TestEnvironment, environmentKinds } from '../publish/test-environment.ts'
import { WildcardBench } from './bench.ts'
import { wildcardScenarios } from './scenarios.ts'

describe.each(environmentKinds)(`wildcard on $name, ${crdsInUse}`, ({ isMissing, start }) => {
  let environment: TestEnvironment
  let bench: WildcardBench

  beforeAll(async () => {
    if (isMissing) return
    environment = await start()
    await WildcardBench.prepare(environment)
    bench = new WildcardBench(environment)
  })
  afterEach(async () => {
    if (!isMissing) await bench.wipe()
  })
  afterAll(async () => environment?.[Symbol.asyncDispose]())

  it.skipIf(isMissing).each(wildcardScenarios)('$title', async ({ run }) => {
    // Each scenario asserts by itself; here it must come to its end.
    await expect(run(bench).then(() => 'came to its end')).resolves.toBe('came to its end')
  })
})
