import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { systemClock } from '@seamark/kube'
import { fakeClock } from '@seamark/kube/testing'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHealthMonitor, type ProberThread, startWorker, type ThreadEvents } from './monitor.ts'
import { PROFILES, probeTarget, targetKey } from './policy.ts'
import type { ToWorker, WorkerSettings } from './worker-messages.ts'

const log = { warn: () => undefined }

/** A monitor on threads that only record what they are sent. */
function recorded() {
  const clock = fakeClock()
  const threads: { settings: WorkerSettings; events: ThreadEvents; sent: ToWorker[]; terminated: boolean }[] = []
  const changed: string[][] = []
  const monitor = createHealthMonitor({
    clock,
    log,
    guard: {},
    onChange: (ids) => changed.push([...ids]),
    startThread(settings, events): ProberThread {
      const thread = { settings, events, sent: [] as ToWorker[], terminated: false }
      threads.push(thread)
      return {
        send: (message) => thread.sent.push(message),
        terminate: async () => {
          thread.terminated = true
        },
      }
    },
  })
  return { clock, threads, changed, monitor }
}

const shop = probeTarget({ host: '192.0.2.1' })
const blog = probeTarget({ host: '192.0.2.2' })
const report = (target: typeof shop, verdict: 'healthy' | 'unhealthy') => ({
  key: targetKey(target),
  verdict,
  sinceMs: 1,
  code: 'Passed' as const,
  detail: 'status 200',
})

describe('the health monitor', () => {
  it('probes equal targets once and reports to each owner that refers to them', () => {
    const { threads, changed, monitor } = recorded()
    monitor.setTargets(
      'x',
      new Map([
        ['a', { target: shop }],
        ['b', { target: shop }],
        ['c', { target: blog }],
      ]),
    )
    monitor.setTargets('y', new Map([['a', { target: shop }]]))
    expect(threads[0]?.sent.map(({ upsert }) => upsert.map(({ key }) => key))).toEqual([
      [targetKey(shop), targetKey(blog)],
    ])
    threads[0]?.events.onReports([report(shop, 'healthy')])
    expect(changed).toEqual([['x', 'y']])
    expect(monitor.healthOf('x', 'b')).toMatchObject({ verdict: 'healthy', detail: 'status 200' })
    expect(monitor.healthOf('x', 'c')).toEqual({ verdict: 'unknown', detail: 'not probed yet' })
    expect(monitor.healthOf('z', 'a').verdict).toBe('unknown')
  })

  it('sends nothing when the targets are the same, and removes a target with its last reference', () => {
    const { threads, monitor } = recorded()
    const both = new Map([
      ['a', { target: shop }],
      ['b', { target: shop }],
    ])
    monitor.setTargets('x', both)
    monitor.setTargets('x', new Map(both))
    monitor.setTargets('y', both)
    monitor.setTargets('x', new Map())
    monitor.setTargets('y', new Map([['b', { target: shop }]]))
    expect(threads[0]?.sent).toHaveLength(1)
    monitor.setTargets('y', new Map([['b', { target: blog }]]))
    expect(threads[0]?.sent[1]).toMatchObject({ upsert: [{ key: targetKey(blog) }], remove: [targetKey(shop)] })
  })

  it('reports unknown when the worker ends, and starts another with the last verdicts', async () => {
    const { clock, threads, changed, monitor } = recorded()
    monitor.setTargets('x', new Map([['a', { target: shop }]]))
    threads[0]?.events.onReports([report(shop, 'unhealthy')])
    threads[0]?.events.onExit('out of memory')
    expect(monitor.healthOf('x', 'a').verdict).toBe('unknown')
    expect(changed.at(-1)).toEqual(['x'])
    await clock.advance(1_000)
    expect(threads[1]?.sent[0]?.upsert).toEqual([{ key: targetKey(shop), target: shop, seed: 'unhealthy' }])
    threads[0]?.events.onReports([report(shop, 'healthy')])
    expect(monitor.healthOf('x', 'a').verdict).toBe('unknown')
  })

  it('forgets the health of a target with its last reference, and ignores the end of a worker that was replaced', async () => {
    const { clock, threads, monitor } = recorded()
    const target = new Map([['a', { target: shop }]])
    monitor.setTargets('x', target)
    threads[0]?.events.onReports([report(shop, 'healthy')])
    monitor.setTargets('x', new Map())
    monitor.setTargets('x', target)
    expect(monitor.healthOf('x', 'a')).toEqual({ verdict: 'unknown', detail: 'not probed yet' })
    threads[0]?.events.onExit('out of memory')
    await clock.advance(1_000)
    threads[0]?.events.onExit('terminated')
    await clock.advance(1_000)
    expect([threads.length, threads[1]?.terminated]).toEqual([2, false])
  })

  it('keeps the last verdicts when a worker ends before its first report', async () => {
    const { clock, threads, monitor } = recorded()
    monitor.setTargets('x', new Map([['a', { target: shop }]]))
    threads[0]?.events.onReports([report(shop, 'unhealthy')])
    for (const at of [0, 1]) {
      threads[at]?.events.onExit('out of memory')
      await clock.advance(1_000)
    }
    expect(threads[2]?.sent[0]?.upsert).toEqual([{ key: targetKey(shop), target: shop, seed: 'unhealthy' }])
  })

  it('replaces a worker whose heartbeat has stopped, and not one that the main thread was too busy to look at', async () => {
    const { clock, threads, monitor } = recorded()
    expect(threads).toEqual([])
    monitor.setTargets('x', new Map([['a', { target: shop }]]))
    const beats = new Int32Array(threads[0]!.settings.heartbeat)
    clock.stall(3_600_000)
    Atomics.add(beats, 0, 1)
    await clock.advance(5_000)
    expect(threads).toHaveLength(1)
    await clock.advance(15_000)
    expect(threads).toHaveLength(2)
    expect(threads[0]?.terminated).toBe(true)
    await monitor.stop()
    expect(threads[1]?.terminated).toBe(true)
    await clock.advance(60_000)
    expect(threads).toHaveLength(2)
  })
})

/** An HTTP server in a thread of its own that counts what it served and resolves waits for the count. */
const SERVER = `
const { parentPort, workerData } = require('node:worker_threads')
const server = require('node:http').createServer((request, response) => {
  Atomics.add(workerData, 0, 1)
  Atomics.notify(workerData, 0)
  response.end('ok')
})
server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))
`

describe('the prober in its worker thread', () => {
  let folder = ''
  let file = new URL('file:///')

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'seamark-health-'))
    const outfile = join(folder, 'health-worker.mjs')
    await build({
      entryPoints: [join(import.meta.dirname, 'worker.ts')],
      outfile,
      bundle: true,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      conditions: ['source', 'node'],
      banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
      logLevel: 'error',
    })
    file = pathToFileURL(outfile)
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('goes on probing a real server while the main thread is blocked, and follows its health', async () => {
    const served = new Int32Array(new SharedArrayBuffer(4))
    const server = new Worker(SERVER, { eval: true, workerData: served })
    const [port] = (await once(server, 'message')) as [number]
    const monitor = createHealthMonitor({
      clock: systemClock,
      log,
      guard: { allowLoopback: true },
      onChange: () => undefined,
      startThread: (settings, events) => startWorker(settings, events, file),
    })
    const until = async (id: string, verdict: string) => {
      await expect.poll(() => monitor.healthOf('x', id).verdict, { interval: 5 }).toBe(verdict)
    }
    try {
      const policy = { ...PROFILES.default, intervalMs: 20, edgeIntervalMs: 10 }
      const target = probeTarget({ host: '127.0.0.1', scheme: 'http', port }, policy)
      const denied = probeTarget({ host: '169.254.169.254' }, policy)
      monitor.setTargets(
        'x',
        new Map([
          ['a', { target }],
          ['denied', { target: denied }],
        ]),
      )
      await until('a', 'healthy')
      const enough = Atomics.load(served, 0) + 10
      for (let count = 0; count < enough; count = Atomics.load(served, 0)) Atomics.wait(served, 0, count)
      expect(monitor.healthOf('x', 'a')).toMatchObject({ verdict: 'healthy', code: 'Passed' })
      await server.terminate()
      await until('a', 'unhealthy')
      await until('denied', 'unhealthy')
      expect(monitor.healthOf('x', 'a')).toMatchObject({ code: 'Refused' })
      expect(monitor.healthOf('x', 'denied')).toMatchObject({ code: 'AddressDenied' })
    } finally {
      await server.terminate()
      await monitor.stop()
    }
  })
})
