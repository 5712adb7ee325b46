/**
 * Entry of a worker thread: answers UDP from copies of the zones, on a socket that shares its port with those of the other
 * threads (SO_REUSEPORT: the kernel distributes clients over them). Bundled as an entry of its own (scripts/build.mjs).
 *
 * The server sends snapshots and changes in their stored form; what only the server can answer is passed on to it.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { readFrames, readSnapshot } from '../../store/zone-frames.ts'
import type { Fqdn } from '../../wire/name.ts'
import { applyDelta } from '../../zone/zone-delta.ts'
import { Answerer } from '../answer.ts'
import { createCounters } from '../counters.ts'
import { CookieJar } from '../limits/cookie.ts'
import { RateLimiter } from '../limits/ratelimit.ts'
import { readRegionSource } from '../regions/region-source.ts'
import { listenUdp } from '../listen/udp.ts'
import type { FromWorker, ToWorker, WorkerSettings } from './worker-messages.ts'
import { ZoneIndex } from '../zone-index.ts'

const COUNTERS_MS = 1000

const settings = workerData as WorkerSettings
const send = (message: FromWorker): void => parentPort?.postMessage(message)
const zones = new ZoneIndex()
const counters = createCounters()
const limiter = new RateLimiter(settings.rateLimit)
const waiting = new Map<number, (bytes: Uint8Array | undefined) => void>()
let nextId = 0

const answerer = new Answerer({
  zones,
  counters,
  cookies: new CookieJar(settings.cookieSecret),
  now: () => Math.floor(Date.now() / 1000),
  special: async (request, { address, port }) => {
    const id = nextId++
    send({ kind: 'special', id, bytes: request.bytes.slice(0, request.length), address, port })
    return new Promise((resolve) => waiting.set(id, resolve))
  },
  onFailure: (error) => send({ kind: 'failed', why: String(error) }),
  ...(settings.maxUdpSize !== undefined && { maxUdpSize: settings.maxUdpSize }),
  ...(settings.regions !== undefined && { regions: readRegionSource(settings.regions) }),
})

function change(origin: Fqdn, deltas: Uint8Array): void {
  let zone = zones.get(origin)
  if (zone === undefined) return
  try {
    for (const frame of readFrames(deltas).frames) if (frame.kind === 'delta') zone = applyDelta(zone, frame.delta)
    zones.set(zone)
  } catch (error) {
    send({ kind: 'failed', why: String(error) })
    send({ kind: 'lost', origin })
  }
}

const onError = (error: Error) => send({ kind: 'failed', why: error.message })
const listeners = await Promise.all(
  settings.addresses.map(async ({ address, port }) =>
    listenUdp({ address, port, answerer, limiter, now: Date.now, onError, isPortShared: true }),
  ),
)
const reporting = setInterval(() => {
  const { answers, questions, ...rest } = counters
  const { limited } = limiter
  send({ kind: 'counters', counters: { ...rest, questions: [...questions], answers: [...answers], limited } })
}, COUNTERS_MS)

parentPort?.on('message', (message: ToWorker) => {
  switch (message.kind) {
    case 'zone':
      zones.set(readSnapshot(message.snapshot, message.origin))
      return
    case 'changes':
      change(message.origin, message.deltas)
      return
    case 'suspend':
      zones.suspend(message.origin)
      return
    case 'remove':
      zones.delete(message.origin)
      return
    case 'limit':
      limiter.setResponsesPerSecond(message.responsesPerSecond)
      return
    case 'answer':
      waiting.get(message.id)?.(message.bytes)
      waiting.delete(message.id)
      return
    case 'close':
      clearInterval(reporting)
      void Promise.all(listeners.map(async (listener) => listener.close())).then(() => parentPort?.close())
  }
})
send({ kind: 'ready' })
