/**
 * Every capability beside every other: what `DNSPublished`, `seamark tree`, `seamark explain` and `ClaimHeldByOther` say is
 * what a resolver and an HTTP client get, through everything that happens to an installation. On embedded API servers and on
 * real ones, each in a network namespace of its own, which ends with its processes.
 */
import { spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { isRequired, needs } from '@seamark/kit'
import { beforeAll, describe, expect, it } from 'vitest'
import { buildBundle } from '../records/manager-process.ts'
import { ALL_ADDRESSES } from './addresses.ts'
import { STEPS } from './steps.ts'

/** A container may have the programs and not the right: skipped too, unless the programs are required. */
const canUnshare =
  needs('unshare', 'ip') && (spawnSync('unshare', ['--net', 'true']).status === 0 || isRequired('unshare'))

const SET_UP = ['ip link set lo up', ...ALL_ADDRESSES.map((each) => `ip addr add ${each}/32 dev lo`), 'exec "$@"']

async function runInNamespace(server: string): Promise<Map<string, string[]>> {
  const node = [process.execPath, '--conditions=source', '--import', 'tsx']
  const runner = join(import.meta.dirname, 'runner.ts')
  const child = spawn('unshare', ['--net', 'sh', '-e', '-c', SET_UP.join('\n'), 'sh', ...node, runner, server], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [output, log] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk))
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (log = `${log}${chunk}`.slice(-20_000)))
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  if (code !== 0) throw new Error(`the runner ended with ${code}; the end of its log:\n${log}`)
  const lines = output.split('\n').filter((line) => line.startsWith('{'))
  return new Map(
    lines.map((line) => {
      const { name, faults } = JSON.parse(line) as { name: string; faults: string[] }
      return [name, faults]
    }),
  )
}

const servers = [
  { server: 'embedded', isMissing: false },
  { server: 'kube-apiserver', isMissing: !needs('kube-apiserver', 'etcd') },
].map((each) => ({ ...each, isMissing: each.isMissing || !canUnshare }))

/** Side by side: an installation mostly waits. */
const running = new Map<string, Promise<Map<string, string[]>>>()
beforeAll(() => {
  if (!canUnshare) return
  buildBundle()
  for (const { server, isMissing } of servers) {
    if (isMissing) continue
    const faults = runInNamespace(server)
    faults.catch(() => undefined)
    running.set(server, faults)
  }
})

describe.each(servers)('all capabilities on $server', ({ server, isMissing }) => {
  describe.skipIf(isMissing)('say what a client gets:', () => {
    let faults: Map<string, string[]> | undefined
    beforeAll(async () => {
      faults = await running.get(server)
      // Only a failure takes this long: each step then waits for what does not come.
    }, 1_200_000)
    it.each(STEPS.map(({ name }) => [name]))('%s', (name) => {
      // As one text: the message of the assertion has all of it.
      expect(faults?.get(name)?.join('\n')).toBe('')
    })
  })
})
