/**
 * The health of all targets in the main thread: starts the prober's worker with the first target, sends it the targets,
 * keeps its reports.
 *
 * Flow: `setTargets` (all targets of one owner, e.g. a load balancer) → deltas of distinct targets to the worker → reports →
 * `onChange(owners)`; `healthOf(owner, id)` reads the current state.
 *
 * Guarantees:
 * - Targets with equal probes are probed once (`targetKey`).
 * - A worker that ends or stops counting its heartbeat is replaced and gets all targets again with their last verdicts;
 *   until it reports, each of them is `unknown`: no news is not bad news.
 * - `stop` resolves when the worker has ended.
 */
import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import type { Clock, GuardOptions, Logger } from '@seamark/kube'
import { type ProbeTarget, targetKey } from './policy.ts'
import type { HealthReport } from './prober.ts'
import type { Verdict } from './verdict.ts'
import { type FromWorker, HEARTBEAT_MS, type ToWorker, type WorkerSettings } from './worker-messages.ts'

export interface TargetHealth {
  readonly verdict: Verdict
  /** Wall clock; undefined before the first report. */
  readonly sinceMs?: number
  readonly code?: HealthReport['code']
  readonly detail: string
  readonly held?: HealthReport['held']
}

export interface MonitoredTarget {
  readonly target: ProbeTarget
  readonly seed?: Verdict
}

export interface HealthMonitor {
  /** Replaces the targets of the owner; an empty map removes it. Ids are the owner's own. */
  setTargets(owner: string, targets: ReadonlyMap<string, MonitoredTarget>): void
  healthOf(owner: string, id: string): TargetHealth
  stop(): Promise<void>
}

/** The part of a worker thread that the monitor uses. */
export interface ProberThread {
  readonly send: (message: ToWorker) => void
  readonly terminate: () => Promise<unknown>
}

export interface ThreadEvents {
  readonly onReports: (reports: FromWorker) => void
  /** The thread ended by itself. */
  readonly onExit: (cause: string) => void
}

export interface HealthMonitorDeps {
  readonly clock: Clock
  readonly log: Pick<Logger, 'warn'>
  readonly guard: GuardOptions
  /** DNS server for the names of targets, `ADDRESS:PORT`. @default those of the machine */
  readonly resolver?: string
  /** Least time that a target which failed its health checks stays out. @default 30 s */
  readonly ejectionMs?: number
  /** Owners of the targets whose health changed. */
  readonly onChange: (owners: readonly string[]) => void
  readonly startThread?: (settings: WorkerSettings, events: ThreadEvents) => ProberThread
}

/** Without a heartbeat for so many checks in a row, the worker is replaced. */
const MISSED_CHECKS = 10
const CHECK_MS = 2 * HEARTBEAT_MS
const RESTART_DELAY_MS = 1_000

const UNREPORTED: TargetHealth = { verdict: 'unknown', detail: 'not probed yet' }
const UNRESPONSIVE = 'the prober does not respond and is being restarted'

export function createHealthMonitor(deps: HealthMonitorDeps): HealthMonitor {
  const { clock, onChange } = deps
  const startThread = deps.startThread ?? startWorker
  /** By target key. `owners` counts the references of each owner. */
  const targets = new Map<string, { target: ProbeTarget; owners: Map<string, number>; seed: Verdict | undefined }>()
  /** Owner → id → target key. */
  const keysOf = new Map<string, ReadonlyMap<string, string>>()
  const health = new Map<string, TargetHealth>()
  let beats = new Int32Array(new SharedArrayBuffer(4))
  let thread: ProberThread | undefined
  let lastBeat = 0
  let missed = 0
  let isStarted = false
  let isStopped = false
  let cancelTimer: () => void = () => undefined

  function start(): void {
    if (isStopped) return
    isStarted = true
    beats = new Int32Array(new SharedArrayBuffer(4))
    lastBeat = 0
    missed = 0
    const current: ProberThread = startThread(
      {
        guard: deps.guard,
        heartbeat: beats.buffer,
        ...(deps.resolver !== undefined && { resolver: deps.resolver }),
        ...(deps.ejectionMs !== undefined && { ejectionMs: deps.ejectionMs }),
      },
      {
        onReports: (reports) => thread === current && take(reports),
        onExit: (cause) => thread === current && replace(cause),
      },
    )
    thread = current
    const upsert = [...targets].map(([key, { target, seed }]) => ({
      key,
      target,
      ...(seed !== undefined && { seed }),
    }))
    if (upsert.length > 0) current.send({ upsert, remove: [] })
    cancelTimer = clock.after(CHECK_MS, check)
  }

  function check(): void {
    const beat = Atomics.load(beats, 0)
    missed = beat === lastBeat ? missed + 1 : 0
    lastBeat = beat
    if (missed >= MISSED_CHECKS) replace(`no heartbeat for ${MISSED_CHECKS * CHECK_MS} ms`)
    else cancelTimer = clock.after(CHECK_MS, check)
  }

  function replace(cause: string): void {
    deps.log.warn({ cause }, 'health prober is restarted')
    cancelTimer()
    void thread?.terminate()
    thread = undefined
    for (const [key, entry] of targets) {
      // A worker that ended before it reported leaves the verdict of the one before it.
      const last = health.get(key)?.verdict
      if (last !== undefined && last !== 'unknown') entry.seed = last
      health.set(key, { verdict: 'unknown', detail: UNRESPONSIVE })
    }
    if (!isStopped) cancelTimer = clock.after(RESTART_DELAY_MS, start)
    if (keysOf.size > 0) onChange([...keysOf.keys()])
  }

  function take(reports: FromWorker): void {
    const changed = new Set<string>()
    for (const { key, ...report } of reports) {
      const entry = targets.get(key)
      if (entry === undefined) continue
      health.set(key, report)
      for (const owner of entry.owners.keys()) changed.add(owner)
    }
    if (changed.size > 0) onChange([...changed])
  }

  /** Removes one reference of the owner to each key; returns the keys without references. */
  function release(owner: string, keys: Iterable<string>): string[] {
    const unused: string[] = []
    for (const key of keys) {
      const entry = targets.get(key)
      if (entry === undefined) continue
      const count = (entry.owners.get(owner) ?? 0) - 1
      if (count > 0) entry.owners.set(owner, count)
      else entry.owners.delete(owner)
      if (entry.owners.size > 0) continue
      targets.delete(key)
      health.delete(key)
      unused.push(key)
    }
    return unused
  }

  return {
    setTargets(owner, next) {
      const before = keysOf.get(owner)
      const after = new Map<string, string>()
      const upsert: { key: string; target: ProbeTarget; seed?: Verdict }[] = []
      for (const [id, { target, seed }] of next) {
        const key = targetKey(target)
        after.set(id, key)
        const known = targets.get(key)
        if (known === undefined) {
          targets.set(key, { target, owners: new Map([[owner, 1]]), seed })
          upsert.push({ key, target, ...(seed !== undefined && { seed }) })
        } else known.owners.set(owner, (known.owners.get(owner) ?? 0) + 1)
      }
      const remove = release(owner, before?.values() ?? [])
      if (after.size > 0) keysOf.set(owner, after)
      else keysOf.delete(owner)
      // Started with the first target, and sent all of them.
      if (!isStarted && upsert.length > 0) start()
      else if (upsert.length > 0 || remove.length > 0) thread?.send({ upsert, remove })
    },
    healthOf(owner, id) {
      const key = keysOf.get(owner)?.get(id)
      return (key === undefined ? undefined : health.get(key)) ?? UNREPORTED
    },
    async stop() {
      isStopped = true
      cancelTimer()
      const last = thread
      thread = undefined
      await last?.terminate()
    },
  }
}

/** The bundle's own file: beside the entry, or one folder up from a chunk. */
function findWorkerFile(): URL {
  const candidates = ['./health-worker.mjs', '../health-worker.mjs', './worker.js'].map(
    (path) => new URL(path, import.meta.url),
  )
  const found = candidates.find((url) => existsSync(url))
  if (found === undefined) throw new Error('the health prober is not beside the program: health-worker.mjs is missing')
  return found
}

export function startWorker(
  settings: WorkerSettings,
  events: ThreadEvents,
  file: URL = findWorkerFile(),
): ProberThread {
  const worker = new Worker(file, { workerData: settings, name: 'health-prober' })
  let cause = 'the worker ended'
  worker.on('message', events.onReports)
  worker.on('error', (error) => {
    cause = error instanceof Error ? error.message : String(error)
  })
  worker.on('exit', () => events.onExit(cause))
  return { send: (message) => worker.postMessage(message), terminate: () => worker.terminate() }
}
