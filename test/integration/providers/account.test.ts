/**
 * Real processes on one Route 53 account, forty of them for five requests a second: all converge, none starves.
 *
 * Time runs faster, for the processes and for the account's limit alike, so that seconds show what three minutes would.
 * Forty processes start with SEAMARK_CRASHES=all; else ten share a quarter of the limit, at a speed that a small machine keeps
 * up with because they are few.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { isThorough } from '@seamark/kit'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { bundleProgram } from '../cli/bundle-program.ts'
import { type Route53Fake, startRoute53Fake } from './route53-fake.ts'

const { processes: PROCESSES, speed: SPEED } = isThorough ? { processes: 40, speed: 10 } : { processes: 10, speed: 20 }
/** Five requests a second for forty processes. */
const PER_SECOND = (5 * SPEED * PROCESSES) / 40
/**
 * Requests served while shares are measured, thirty for each process: 24 s of the forty, 12 s of the ten. Counted in
 * requests and not in seconds, so that a machine too busy to use the account measures for longer, not less.
 */
const MEASURED = 30 * PROCESSES

let folder: string
let fake: Route53Fake
const children: ChildProcess[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'seamark-account-'))
  await bundleProgram(join(import.meta.dirname, 'account-worker.ts'), join(folder, 'worker.mjs'))
  fake = await startRoute53Fake([{ id: 'Z1', name: 'a.test.' }])
  fake.limitPerSecond = PER_SECOND
})
afterAll(async () => {
  for (const child of children) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  await fake.close()
  await rm(folder, { recursive: true, force: true })
})

it(`${PROCESSES} processes on one account converge without starving each other`, { timeout: 400_000 }, async () => {
  const rounds = Array.from({ length: PROCESSES }, () => 0)
  for (let id = 0; id < PROCESSES; id++) {
    const child = spawn(process.execPath, [join(folder, 'worker.mjs'), fake.endpoint, String(id), String(SPEED)], {
      stdio: ['pipe', 'pipe', 'inherit'],
      // The SDK announces on every start which versions of Node it will drop.
      env: { ...process.env, NODE_NO_WARNINGS: '1' },
    })
    children.push(child)
    createInterface({ input: child.stdout }).on('line', () => (rounds[id] = (rounds[id] ?? 0) + 1))
  }
  // Starting them takes its time on a small machine: the account is shared once all of them are at work.
  await expect.poll(() => Math.min(...rounds), { timeout: 120_000 }).toBeGreaterThan(0)
  const before = new Map(fake.counts.served)
  const startedAt = performance.now()
  const servedSince = () => [...fake.counts.served].map(([id, count]) => count - (before.get(id) ?? 0))
  const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0)
  await expect.poll(() => sum(servedSince()), { timeout: 250_000 }).toBeGreaterThanOrEqual(MEASURED)
  const served = servedSince()
  expect(fake.counts.throttled).toBeGreaterThan(0)
  const total = sum(served)
  const fair = total / PROCESSES

  // Most of the account is used, and shared: none has less than a tenth or more than four times an equal part.
  const seconds = (performance.now() - startedAt) / 1000
  expect(total).toBeLessThanOrEqual(PER_SECOND * (seconds + 1))
  expect(Math.min(...served)).toBeGreaterThan(0.1 * fair)
  expect(Math.max(...served)).toBeLessThan(4 * fair)

  fake.limitPerSecond = undefined
  await Promise.all(
    children.map(async (child) => {
      const ended = once(child, 'exit')
      child.stdin?.end()
      expect((await ended)[0]).toBe(0)
    }),
  )
  // Each has its two names with their markers: none is missing, and none wrote for another.
  expect(fake.zones.get('Z1')?.sets.size).toBe(4 * PROCESSES)
})
