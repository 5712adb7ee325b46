/**
 * Worker threads that answer UDP beside each other, on one port. Node has SO_REUSEPORT from 23.1 on; before, one thread
 * answers (`canShareTheServerPort`).
 *
 * Guarantees: a change reaches every worker in the order of changes; a worker that ends is replaced and gets all zones again.
 */
import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { deltaFrame, snapshotFrames } from '../../store/zone-frames.ts'
import type { Fqdn } from '../../wire/name.ts'
import type { ZoneDelta } from '../../zone/zone-delta.ts'
import type { Zone } from '../../zone/zone-table.ts'
import type { ThreadCounters } from '../counters.ts'
import type { FromWorker, ToWorker, WorkerSettings } from './worker-messages.ts'

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)

/** Whether several threads can answer on one port. */
export const CAN_SHARE_PORT = major > 23 || (major === 23 && minor >= 1)

export interface WorkersOptions {
  readonly count: number
  readonly settings: WorkerSettings
  readonly zones: () => Iterable<Zone>
  readonly suspended: () => Iterable<Fqdn>
  /** Answers what workers pass on. */
  readonly answer: (query: Uint8Array, address: string, port: number) => Promise<Uint8Array | undefined>
  readonly onError: (error: Error) => void
}

interface Thread {
  worker: Worker
  counters: ThreadCounters | undefined
}

/** Delay before a worker that ended is replaced. */
const RESTART_MS = 1000

export class Workers {
  readonly #options: WorkersOptions
  readonly #threads: Thread[] = []
  /** Since the start: for threads that are replaced. */
  #limit: ToWorker | undefined
  #isClosed = false

  private constructor(options: WorkersOptions) {
    this.#options = options
  }

  /** Resolves when all of them answer. */
  static async start(options: WorkersOptions): Promise<Workers> {
    const workers = new Workers(options)
    try {
      await Promise.all(Array.from({ length: options.count }, async () => workers.#start()))
    } catch (error) {
      await workers.close()
      throw error
    }
    return workers
  }

  async #start(): Promise<void> {
    const { settings, zones, suspended } = this.#options
    const worker = new Worker(workerFile(), { workerData: settings, name: 'dns-worker' })
    const thread: Thread = { worker, counters: undefined }
    this.#threads.push(thread)
    const post = (message: ToWorker) => worker.postMessage(message)
    if (this.#limit !== undefined) post(this.#limit)
    for (const origin of suspended()) post({ kind: 'suspend', origin })
    for (const zone of zones()) post({ kind: 'zone', origin: zone.origin, snapshot: snapshotOf(zone) })
    await new Promise<void>((resolve, reject) => {
      worker.on('message', (message: FromWorker) => {
        if (message.kind === 'ready') resolve()
        else this.#take(message, thread)
      })
      worker.on('error', (error) => {
        reject(error)
        this.#options.onError(error instanceof Error ? error : new Error(String(error)))
      })
      worker.on('exit', () => {
        reject(new Error('the DNS worker ended before it answered'))
        this.#replace(thread)
      })
    })
  }

  #replace(thread: Thread): void {
    const at = this.#threads.indexOf(thread)
    if (at !== -1) this.#threads.splice(at, 1)
    if (this.#isClosed) return
    this.#options.onError(new Error('a DNS worker ended and is being replaced'))
    setTimeout(() => {
      if (!this.#isClosed) void this.#start().catch(() => undefined)
    }, RESTART_MS).unref()
  }

  #take(message: FromWorker, thread: Thread): void {
    const { answer, zones, onError } = this.#options
    switch (message.kind) {
      case 'special':
        void answer(message.bytes, message.address, message.port)
          .catch(() => undefined)
          .then((bytes) => thread.worker.postMessage({ kind: 'answer', id: message.id, bytes } satisfies ToWorker))
        return
      case 'counters':
        thread.counters = message.counters
        return
      case 'lost':
        for (const zone of zones()) {
          if (zone.origin !== message.origin) continue
          const again: ToWorker = { kind: 'zone', origin: zone.origin, snapshot: snapshotOf(zone) }
          thread.worker.postMessage(again)
        }
        return
      case 'failed':
        onError(new Error(`a DNS worker reports: ${message.why}`))
        return
      case 'ready':
    }
  }

  #post(message: ToWorker): void {
    for (const { worker } of this.#threads) worker.postMessage(message)
  }

  swap(zone: Zone, deltas: readonly ZoneDelta[] | undefined): void {
    const { origin } = zone
    if (deltas === undefined) this.#post({ kind: 'zone', origin, snapshot: snapshotOf(zone) })
    else this.#post({ kind: 'changes', origin, deltas: Buffer.concat(deltas.map(deltaFrame)) })
  }

  suspend(origin: Fqdn): void {
    this.#post({ kind: 'suspend', origin })
  }

  remove(origin: Fqdn): void {
    this.#post({ kind: 'remove', origin })
  }

  /** Of each thread. */
  setResponsesPerSecond(responsesPerSecond: number): void {
    this.#limit = { kind: 'limit', responsesPerSecond }
    this.#post(this.#limit)
  }

  /** As reported within the last second. */
  counters(): ThreadCounters[] {
    return this.#threads.flatMap(({ counters }) => counters ?? [])
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all(
      [...this.#threads].map(async ({ worker }) => {
        const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
        worker.postMessage({ kind: 'close' } satisfies ToWorker)
        await ended
      }),
    )
  }
}

const snapshotOf = (zone: Zone): Buffer => Buffer.concat([...snapshotFrames(zone)])

/** Beside the bundle, or the source. */
function workerFile(): URL {
  const bundled = ['./dns-worker.mjs', '../dns-worker.mjs'].map((path) => new URL(path, import.meta.url))
  return bundled.find((url) => existsSync(url)) ?? new URL('./worker.ts', import.meta.url)
}
