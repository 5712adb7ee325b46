/**
 * `seamark gateway` on the embedded API server and on a real one, with the built-in proxy and with Envoy. Each suite runs in a network namespace
 * of its own.
 */
import { join } from 'node:path'
import { needs } from '@seamark/kit'
import { beforeAll, describe, expect, it } from 'vitest'
import { ENVOY_SCENARIOS } from './envoy-scenarios.ts'
import { canUnshare, runInNamespace } from './network-namespace.ts'
import { BUILT_IN_SCENARIOS, SCENARIOS } from './scenarios.ts'

const runner = join(import.meta.dirname, 'runner.ts')

const suites = [
  { server: 'embedded', dataPlane: 'built-in', isMissing: false, scenarios: BUILT_IN_SCENARIOS },
  {
    server: 'kube-apiserver',
    dataPlane: 'built-in',
    isMissing: !needs('kube-apiserver', 'etcd'),
    scenarios: BUILT_IN_SCENARIOS,
  },
  {
    server: 'embedded',
    dataPlane: 'envoy',
    isMissing: !needs('envoy'),
    scenarios: [...SCENARIOS, ...ENVOY_SCENARIOS],
  },
]

for (const { server, dataPlane, isMissing, scenarios } of suites)
  describe.skipIf(!canUnshare || isMissing)(`the gateway on ${server} with ${dataPlane}`, () => {
    let results: Map<string, string | undefined>
    beforeAll(async () => {
      results = await runInNamespace(runner, [server, dataPlane])
    }, 170_000)
    it.each(scenarios.map(({ name }) => [name]))('%s', (name) => {
      expect(results.has(name), 'the scenario has run').toBe(true)
      expect(results.get(name)).toBeUndefined()
    })
  })
