/** Figures of the embedded API server, each against a real kube-apiserver with etcd, or Node itself, in the same run. */
import { spawn, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { findProgram } from '@seamark/kit'
import { startInProcess, usedBytes } from './apiserver/in-process.ts'
import {
  build,
  createMany,
  findDefinition,
  prepare,
  proxies,
  proxy,
  type Session,
  startEmbedded,
  startReal,
  type Target,
} from './apiserver/servers.ts'
import { type Figure, median, shared } from './figure.ts'

function unavailable(): string | undefined {
  const absent = ['kube-apiserver', 'etcd'].filter((name) => findProgram(name) === undefined)
  return absent.length > 0 ? `not installed: ${absent.join(', ')}` : findDefinition()
}

/** Time from exec to `ready`, in ms. */
async function timeStart(): Promise<number> {
  const file = build()
  const started = performance.now()
  const child = spawn(process.execPath, [file, 'apiserver', '--listen', '127.0.0.1:0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await new Promise<void>((resolve) => child.stdout.once('data', () => resolve()))
  const took = performance.now() - started
  const ended = new Promise<void>((resolve) => child.on('exit', () => resolve()))
  child.kill('SIGTERM')
  await ended
  return took
}

function timeNode(): number {
  const started = performance.now()
  spawnSync(process.execPath, ['-e', '0'])
  return performance.now() - started
}

async function withBoth<T>(measure: (session: Session, target: Target) => Promise<T>): Promise<{ ours: T; theirs: T }> {
  const results: T[] = []
  for (const start of [startEmbedded, startReal]) {
    const target = await start()
    const session = target.open()
    try {
      await prepare(session)
      results.push(await measure(session, target))
    } finally {
      session.session.destroy()
      await target.stop()
    }
  }
  return { ours: results[0] as T, theirs: results[1] as T }
}

async function measureLatency(session: Session): Promise<number> {
  const times: number[] = []
  let arrive: (() => void) | undefined
  // From now on only: a server may cut a watch that is still busy with what was there before.
  const { resourceVersion } = (await session.getJson(`${proxies}?limit=1`)).metadata
  const stop = session.watch(`${proxies}?watch=true&resourceVersion=${resourceVersion}`, () => arrive?.())
  for (let index = 0; index < 220; index += 1) {
    const started = performance.now()
    const seen = new Promise<void>((resolve, reject) => {
      const tooLate = setTimeout(() => reject(new Error('no watch event within 20 s')), 20_000)
      arrive = () => {
        clearTimeout(tooLate)
        resolve()
      }
    })
    await session.send('POST', proxies, proxy(`latency-${index}`))
    await seen
    if (index >= 20) times.push(performance.now() - started)
  }
  stop()
  return median(times)
}

/** One start of each server gives three figures. */
const compared = shared(
  async () =>
    await withBoth(async (session) => {
      await createMany(session, 'warm', 300, 32)
      const rate = 2000 / (await createMany(session, 'rate', 2000, 32))
      const latency = await measureLatency(session)
      await createMany(session, 'fill', 10_000 - 2000 - 300 - 220, 32)
      const lists: number[] = []
      for (let index = 0; index < 3; index += 1) {
        const started = performance.now()
        await session.send('GET', proxies)
        lists.push(performance.now() - started)
      }
      return { rate, latency, list: median(lists) }
    }),
)

function residentBytes(pid: number | undefined): number {
  return pid === undefined ? 0 : Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * 4096
}

/** Slowest delivery of 1000 events to 1000 watches, in s. */
async function measureFanout(): Promise<number> {
  const target = await startEmbedded()
  const sessions = Array.from({ length: 50 }, () => target.open())
  const [writer] = sessions as [Session]
  const maps = '/api/v1/namespaces/default/configmaps'
  const sentAt: number[] = []
  const seen = { delivered: 0, slowestMs: 0 }
  const { metadata } = await writer.getJson(maps)
  for (const session of sessions) {
    for (let index = 0; index < 20; index += 1) {
      // Events arrive in order: the n-th line of a watch is the n-th event.
      let count = 0
      session.watch(`${maps}?watch=true&resourceVersion=${metadata.resourceVersion}`, () => {
        seen.delivered += 1
        seen.slowestMs = Math.max(seen.slowestMs, performance.now() - (sentAt[count] ?? Number.NaN))
        count += 1
      })
    }
  }
  await writer.send('GET', maps)
  await new Promise((resolve) => setTimeout(resolve, 1000))
  const before = residentBytes(target.pid)
  const started = performance.now()
  for (let index = 0; index < 1000; index += 1) {
    sentAt.push(performance.now())
    void writer.send(
      'POST',
      maps,
      Buffer.from(JSON.stringify({ metadata: { name: `event-${index}` }, data: { index: String(index) } })),
    )
    const nextAt = started + (index + 1) * 10
    if (nextAt > performance.now()) await new Promise((resolve) => setTimeout(resolve, nextAt - performance.now()))
  }
  const deadline = performance.now() + 30_000
  while (seen.delivered < 1_000_000 && performance.now() < deadline)
    await new Promise((resolve) => setTimeout(resolve, 50))
  const grown = residentBytes(target.pid) - before
  for (const session of sessions) session.session.destroy()
  await target.stop()
  if (seen.delivered < 1_000_000) throw new Error(`only ${seen.delivered} of 1000000 events were delivered`)
  if (grown > 256 * 1024 * 1024) throw new Error(`the server grew by ${Math.round(grown / 1e6)} MB`)
  return seen.slowestMs / 1000
}

const inProcess = shared(async () => {
  const server = await startInProcess()
  await server.create('warm', 3000)
  await server.close()
  const before = usedBytes()
  const fresh = await startInProcess()
  await fresh.create('first', 1000)
  const small = await fresh.cost('small', 4000)
  await fresh.create('fill', 95_000)
  const bytes = (usedBytes() - before) / 100_000
  const large = await fresh.cost('large', 4000)
  await fresh.close()
  return { growth: large / small, bytes }
})

/** Creates per second, both on the same disk with fsync. */
const durable = shared(async () => {
  const rates: number[] = []
  for (const start of [startEmbedded, startReal]) {
    const target = await start({ isDurable: true })
    const session = target.open()
    try {
      await prepare(session)
      await createMany(session, 'warm', 300, 32)
      rates.push(2000 / (await createMany(session, 'rate', 2000, 32)))
    } finally {
      session.session.destroy()
      await target.stop()
    }
  }
  const [ours = 0, theirs = 1] = rates
  return ours / theirs
})

const real = 'kube-apiserver + etcd'

export const figures: Figure[] = [
  {
    name: 'apiserver.start',
    what: 'exec to `ready` ÷ `node -e 0`',
    unit: 'ratio',
    bound: { max: 5 },
    against: 'node -e 0',
    measure: async () => (await timeStart()) / timeNode(),
  },
  {
    name: 'apiserver.creates',
    what: 'creates/s of 1 kB HTTPProxies over HTTPS and HTTP/2, 32 in flight',
    unit: 'ratio',
    bound: { min: 3 },
    against: real,
    runs: 3,
    unavailable,
    async measure(run) {
      const { ours, theirs } = await compared(run)
      return ours.rate / theirs.rate
    },
  },
  {
    name: 'apiserver.latency',
    what: 'create → watch event p50, 1 in flight',
    unit: 'ratio',
    bound: { max: 0.3 },
    against: real,
    runs: 3,
    unavailable,
    async measure(run) {
      const { ours, theirs } = await compared(run)
      return ours.latency / theirs.latency
    },
  },
  {
    name: 'apiserver.list',
    what: 'list of 10 000 HTTPProxies without gzip',
    unit: 'ratio',
    bound: { max: 1 },
    against: real,
    runs: 3,
    unavailable,
    async measure(run) {
      const { ours, theirs } = await compared(run)
      return ours.list / theirs.list
    },
  },
  {
    name: 'apiserver.durable',
    what: 'those creates/s with --data-dir, both on the same disk with fsync',
    unit: 'ratio',
    bound: { min: 1.5 },
    against: real,
    runs: 3,
    unavailable,
    measure: durable,
  },
  {
    name: 'apiserver.growth',
    what: 'cost of a create at 100 000 objects ÷ at 1 000',
    unit: 'ratio',
    bound: { max: 1.2 },
    against: 'itself at 1 000',
    runs: 3,
    unavailable: findDefinition,
    measure: async (run) => (await inProcess(run)).growth,
  },
  {
    name: 'apiserver.heap',
    what: 'heap and external bytes per stored 1 kB object at 100 000, managedFields and history included',
    unit: 'bytes',
    bound: { max: 4096 },
    against: '-',
    runs: 3,
    unavailable: findDefinition,
    measure: async (run) => (await inProcess(run)).bytes,
  },
  {
    name: 'apiserver.fanout',
    what: '1 000 watchers over HTTPS on one kind, 100 events/s for 10 s: slowest delivery',
    unit: 's',
    bound: { max: 1 },
    against: '-',
    runs: 3,
    measure: measureFanout,
  },
]
