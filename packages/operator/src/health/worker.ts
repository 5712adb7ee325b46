/**
 * Entry of the prober's worker thread: a prober on real sockets, connected to the main thread by messages.
 *
 * It runs in a thread of its own so that a busy main event loop neither delays probes nor makes answers look late.
 * Bundled as an entry of its own (scripts/build.mjs), because a worker starts from a file.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { addressGuard, systemClock } from '@seamark/kube'
import { systemConnect, systemResolver } from './connection.ts'
import { createProbeClient } from './probe.ts'
import { createProber, type HealthReport } from './prober.ts'
import { HEARTBEAT_MS, type ToWorker, type WorkerSettings } from './worker-messages.ts'

const settings = workerData as WorkerSettings
const beats = new Int32Array(settings.heartbeat)
let reports: HealthReport[] = []

/** One message for all reports of one turn of the event loop. */
function send(report: HealthReport): void {
  reports.push(report)
  if (reports.length > 1) return
  setImmediate(() => {
    parentPort?.postMessage(reports)
    reports = []
  })
}

const prober = createProber({
  clock: systemClock,
  random: Math.random,
  client: createProbeClient({
    clock: systemClock,
    resolve: systemResolver(settings.resolver),
    connect: systemConnect,
    guard: addressGuard(settings.guard),
  }),
  onReport: send,
  ...(settings.maxInFlight !== undefined && { maxInFlight: settings.maxInFlight }),
  ...(settings.ejectionMs !== undefined && { ejectionMs: settings.ejectionMs }),
})

setInterval(() => Atomics.add(beats, 0, 1), HEARTBEAT_MS)
parentPort?.on('message', ({ upsert, remove }: ToWorker) => prober.update(upsert, remove))
