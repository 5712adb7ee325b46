/** The shipped `seamark provider webhook` with very large requests: it continues to answer, and its memory is bounded. */
import { writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type LimitedProcess, startLimited } from './limited-process.ts'

const HEAP_MIB = 512
const PEAK_MIB = 1_000
/** No request is answered later than that, on a machine that is busy with other tests. */
const ANSWER_TIMEOUT_MS = 20_000

let folder = ''
let server: LimitedProcess
let url = ''

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'seamark-abuse-webhook-'))
  const config = join(folder, 'webhook.yaml')
  writeFileSync(
    config,
    `apiVersion: config.seamark.io/v1alpha1
kind: ManagerConfiguration
records: { providers: [{ name: mem, type: memory, zones: [example.test] }] }
`,
  )
  const args = ['provider', 'webhook', '--listen', '127.0.0.1:0', '--config', config]
  server = startLimited('bin/seamark', args, HEAP_MIB)
  const ready = await server.line(/^ready (\S+)$/)
  url = ready[1] ?? ''
}, 60_000)
afterEach(async () => {
  try {
    expect([server.isRunning(), await health()]).toEqual([true, 200])
    const peak = await server.peakMib()
    if (peak !== undefined) expect(peak).toBeLessThan(PEAK_MIB)
  } finally {
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  }
})

async function health(): Promise<number> {
  return (await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) })).status
}

async function post(body: string): Promise<number> {
  const headers = { 'content-type': 'application/external.dns.webhook+json;version=1' }
  return (await fetch(`${url}/records`, { method: 'POST', headers, body })).status
}

const creations = (count: number, labels: object = {}): string =>
  JSON.stringify({
    create: Array.from({ length: count }, (_, index) => ({
      dnsName: `n${index}.example.test`,
      recordType: 'A',
      targets: ['192.0.2.1'],
      labels,
    })),
  })

it('answers its health check while it processes 200 000 changes, and afterwards', async () => {
  const state = { isDone: false }
  const done = post(creations(200_000)).then((status) => {
    state.isDone = true
    return status
  })
  let answered = 0
  while (!state.isDone && answered < 20) {
    expect(await health()).toBe(200)
    if (!state.isDone) answered++
  }
  expect(answered).toBe(20)
  expect(await done).toBe(204)
})

it('refuses a body beyond its limit, and requests beyond the limit of all bodies', async () => {
  expect(await post(`{"create": "${'x'.repeat(33 * 1024 * 1024)}"}`)).toBe(400)
  const body = creations(1, { padding: 'x'.repeat(20 * 1024 * 1024) })
  const statuses = await Promise.all(Array.from({ length: 10 }, async () => post(body).catch(() => 0)))
  const [accepted, refused] = [statuses.filter((status) => status === 204), statuses.filter((status) => status !== 204)]
  expect(accepted.length).toBeGreaterThan(0)
  expect(refused.length).toBeGreaterThan(0)
})
