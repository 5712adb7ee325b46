/**
 * `seamark gateway` on the embedded API server and on a real one, with the built-in proxy and with Envoy. Each suite runs in a network namespace of its own, which
 * ends with its processes (test-environment.ts).
 */
import { spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { needs } from '@seamark/kit'
import { beforeAll, describe, expect, it } from 'vitest'
import { ENVOY_SCENARIOS } from './envoy-scenarios.ts'
import { BUILT_IN_SCENARIOS, SCENARIOS } from './scenarios.ts'
import { POD_ADDRESSES } from './test-environment.ts'

/** A container may have the program and not the right. */
const canUnshare = needs('unshare', 'ip') && spawnSync('unshare', ['--net', 'true']).status === 0

const setUp = ['ip link set lo up', ...POD_ADDRESSES.map((address) => `ip addr add ${address}/32 dev lo`), 'exec "$@"']

async function runInNamespace(server: string, dataPlane: string): Promise<Map<string, string | undefined>> {
  const runner = join(import.meta.dirname, 'runner.ts')
  const child = spawn(
    'unshare',
    [
      '--net',
      'sh',
      '-e',
      '-c',
      setUp.join('\n'),
      'sh',
      process.execPath,
      '--conditions=source',
      '--import',
      'tsx',
      runner,
      server,
      dataPlane,
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let [output, log] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk))
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (log = `${log}${chunk}`.slice(-20_000)))
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  const results = new Map<string, string | undefined>()
  for (const line of output.split('\n').filter((each) => each.startsWith('{'))) {
    const { name, error } = JSON.parse(line) as { name: string; error?: string }
    results.set(name, error)
  }
  if (code !== 0) throw new Error(`the runner ended with ${code}; the end of its log:\n${log}`)
  return results
}

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
      results = await runInNamespace(server, dataPlane)
    }, 170_000)
    it.each(scenarios.map(({ name }) => [name]))('%s', (name) => {
      expect(results.has(name), 'the scenario has run').toBe(true)
      expect(results.get(name)).toBeUndefined()
    })
  })
