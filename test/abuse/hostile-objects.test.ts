/**
 * No input ends the process: a manager in a process of its own, with publish, balance and records, reads random objects of a tenant
 * that no schema checked, and follows another namespace meanwhile. What ends it shrinks to one field of one object.
 */
import { once } from 'node:events'
import { createInterface, type Interface } from 'node:readline'
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { isThorough } from '@seamark/kit'
import fc from 'fast-check'
import { afterAll, expect, it } from 'vitest'
import { type HostileObject, hostileObjects } from './hostile-objects.ts'

/** Each has up to ten objects in one step. */
const STEPS = Number(process.env['SEAMARK_WORLDS'] ?? (isThorough ? 400 : 60))
const HEAP_MIB = 512
/** Of the victim, on a machine that is busy with other tests. */
const PATIENCE_MS = 20_000

interface Manager {
  readonly child: ChildProcess
  readonly lines: Interface
}

let current: Manager | undefined
let log = ''

function start(): Manager {
  const program = join(import.meta.dirname, 'hostile-manager.ts')
  const child = spawn(process.execPath, ['--conditions=source', '--import', 'tsx', program], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, NODE_OPTIONS: `--max-old-space-size=${HEAP_MIB}` },
  })
  log = ''
  child.stderr.on('data', (chunk) => (log = `${log}${String(chunk)}`.slice(-4_000)))
  child.stdin.on('error', () => undefined)
  return (current = { child, lines: createInterface(child.stdout) })
}

afterAll(async () => {
  if (current === undefined || current.child.exitCode !== null) return
  const ended = once(current.child, 'exit')
  current.child.kill('SIGKILL')
  await ended
})

/** What the manager said after it had these objects: `followed`, or why not. A new one is started after one that ended. */
async function give(objects: readonly HostileObject[]): Promise<string> {
  const { child, lines } = current !== undefined && current.child.exitCode === null ? current : start()
  const answered = new Promise<string>((resolve) => {
    const timer = setTimeout(() => resolve('the victim was not followed'), PATIENCE_MS)
    const done = (text: string): void => {
      clearTimeout(timer)
      resolve(text)
    }
    lines.once('line', done)
    child.once('exit', (code, signal) => done(`the process ended with ${code ?? signal}: ${log}`))
  })
  child.stdin?.write(`${JSON.stringify(objects)}\n`)
  const answer = await answered
  if (answer !== 'followed') {
    child.kill('SIGKILL')
    current = undefined
  }
  return answer
}

it(`${STEPS} steps with random objects of a tenant`, { timeout: 400_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(hostileObjects, { minLength: 1, maxLength: 10 }), async (objects) => {
      expect(await give(objects)).toBe('followed')
    }),
    { numRuns: STEPS },
  )
})
