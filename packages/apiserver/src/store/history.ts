/**
 * The latest changes of the whole store, in revision order: what bounds how far back watches and lists can reach. Older changes
 * are compacted: discarded here and in the log of their collection.
 */
import { type Change, ChangeLog } from './change-log.ts'

/** Maximum number of changes in the history. */
export const HISTORY_LIMIT = 100_000
/** Maximum bytes of the objects in the history. */
export const HISTORY_BYTES = 256 * 1024 * 1024
/** Maximum age of a change: the compaction interval of kube-apiserver. */
export const HISTORY_MS = 300_000

export interface HistoryLimits {
  /** Maximum number of changes in the history. @default 100 000 */
  readonly historyLimit?: number
  /** Maximum bytes of the objects in the history. @default 256 MiB */
  readonly historyBytes?: number
  /** Maximum age of a change. @default 5 min, the compaction interval of kube-apiserver */
  readonly historyMs?: number
}

export class History {
  readonly #log = new ChangeLog()
  readonly #limit: number
  readonly #maxBytes: number
  readonly #maxAgeMs: number
  /** Bytes of the objects in the history, each at the change that wrote it. */
  #bytes = 0
  #compacted = 0

  constructor({ historyLimit = HISTORY_LIMIT, historyBytes = HISTORY_BYTES, historyMs = HISTORY_MS }: HistoryLimits) {
    this.#limit = historyLimit
    this.#maxBytes = historyBytes
    this.#maxAgeMs = historyMs
  }

  /** Changes up to and including this revision are compacted. */
  get compactedRevision(): number {
    return this.#compacted
  }

  /** Adds a change and compacts what is then beyond a limit. */
  add(change: Change): void {
    this.#log.push(change)
    this.#bytes += change.current.body.length
    const horizonMs = change.timeMs - this.#maxAgeMs
    for (let oldest = this.#log.at(0); oldest !== undefined; oldest = this.#log.at(0)) {
      const isWithinLimits = this.#log.length <= this.#limit && this.#bytes <= this.#maxBytes
      if (isWithinLimits && oldest.timeMs >= horizonMs) return
      this.#discardOldest()
    }
  }

  /** Discards every change up to and including `revision`. */
  compact(revision: number): void {
    for (let oldest = this.#log.at(0); oldest !== undefined; oldest = this.#log.at(0)) {
      if (oldest.resourceVersion > revision) break
      this.#discardOldest()
    }
    this.#compacted = Math.max(this.#compacted, revision)
  }

  #discardOldest(): void {
    const oldest = this.#log.shift()
    if (oldest === undefined) return
    this.#bytes -= oldest.current.body.length
    this.#compacted = Math.max(this.#compacted, oldest.resourceVersion)
    oldest.collection.discardOldest()
  }
}
