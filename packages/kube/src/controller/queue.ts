/**
 * The work queue: keys to reconcile, each queued once, with delay, back-off and priority.
 *
 * Place in the flow: informer events `add`, a controller calls `take` and `done`. Only keys are kept, never objects, so
 * memory is bounded by the number of objects, independent of the rate of changes.
 *
 * Guarantees
 * - Dedup: a key is queued once; a second add keeps the earlier ready time and the higher priority.
 * - Exclusive: a taken key is not returned again before `done`.
 * - At least once: a key added while it is being processed runs again afterwards.
 * - Order: higher priority first, FIFO within one priority.
 * - Back-off: 5 ms doubling to 1000 s per key, reset by `forget`; a key that is neither queued, taken nor failing uses
 *   no memory.
 * Caveats: delays are lower bounds; nothing is returned once closed.
 */
import { type Clock, systemClock } from '../clock.ts'
import { createHeap, type HeapItem } from './heap.ts'
import type { Key } from '../object/object.ts'

/** Priority of keys from the initial list and resyncs: new changes are processed first. */
export const LOW_PRIORITY = -100

export interface AddOptions {
  /** @default 0 */
  readonly priority?: number
  /** @default 0 */
  readonly afterMs?: number
}

/** Called on the hot path: must be cheap and must not throw. */
export interface QueueObserver {
  added(): void
  retried(): void
  /** @param waitedMs since the key became ready. */
  taken(waitedMs: number): void
  finished(workedMs: number): void
}

export interface QueueOptions {
  clock?: Clock
  observer?: QueueObserver
  /** @default 5 */
  backoffBaseMs?: number
  /** @default 1_000_000 */
  backoffLimitMs?: number
  /** Called when a key may be ready; spurious calls are possible. */
  onReady?: () => void
}

export interface Queue {
  add(key: Key, options?: AddOptions): void
  /** Takes the next key; undefined if none is ready. Call `done` for it exactly once. */
  take(): Key | undefined
  done(key: Key): void
  /** Queues again after the key's back-off, which grows with each call until `forget`. Returns the delay in ms. */
  retry(key: Key): number
  /** Queues again after `afterMs` with the priority of the last run. */
  requeue(key: Key, afterMs: number): void
  /** Resets the back-off of the key. */
  forget(key: Key): void
  /** Ready keys. */
  readonly size: number
  /** Known keys: ready, delayed or taken. */
  readonly tracked: number
  /** Ready keys by priority, and for how long taken keys have been processed, in ms. */
  stats(): { depth: ReadonlyMap<number, number>; unfinishedMs: number; longestMs: number }
  /** Drops everything that is not taken; afterwards nothing is taken or added. */
  close(): void
}

interface Entry extends HeapItem {
  readonly key: Key
  priority: number
  /** Priority of the current run; a retry or requeue keeps it, independent of later adds. */
  runPriority: number
  /** Monotonic ms from which it may be taken; `NEVER` if it is not queued. */
  readyAt: number
  failures: number
  /** Monotonic ms at which it was taken; `NEVER` if it is not taken. */
  takenAt: number
  /** The FIFO it is in; undefined if it is not ready. */
  fifo: Fifo | undefined
  before: Entry | undefined
  after: Entry | undefined
}

/** Ready keys of one priority in FIFO order. Taken keys keep their position and are skipped. */
interface Fifo {
  readonly priority: number
  first: Entry | undefined
  last: Entry | undefined
  size: number
}

const NEVER = Number.POSITIVE_INFINITY

/** Maximum delay of a Node timer; a longer wait uses several timers. */
const MAX_TIMER_MS = 2 ** 31 - 1

export function createQueue(options: QueueOptions = {}): Queue {
  const { clock = systemClock, observer, backoffBaseMs = 5, backoffLimitMs = 1_000_000, onReady } = options
  const entries = new Map<Key, Entry>()
  const taken = new Set<Entry>()
  /** Highest priority first. */
  const fifos: Fifo[] = []
  const delayed = createHeap<Entry>((a, b) => a.readyAt < b.readyAt)
  let timerAt = NEVER
  let cancelTimer: (() => void) | undefined
  let isClosed = false

  function place(entry: Entry, now: number): void {
    if (entry.readyAt <= now) {
      append(fifoOf(fifos, entry.priority), entry)
      if (entry.takenAt === NEVER) onReady?.()
    } else {
      delayed.push(entry)
      arm(now)
    }
  }

  function displace(entry: Entry): void {
    if (entry.fifo === undefined) delayed.remove(entry)
    else remove(fifos, entry)
  }

  function arm(now: number): void {
    const earliest = delayed.peek()?.readyAt ?? NEVER
    if (earliest >= timerAt) return
    cancelTimer?.()
    timerAt = earliest
    cancelTimer = clock.after(Math.min(earliest - now, MAX_TIMER_MS), () => {
      timerAt = NEVER
      const later = clock.monotonic()
      const hasReady = promote(later)
      arm(later)
      if (hasReady) onReady?.()
    })
  }

  /** Appends due keys to the FIFO of their priority. */
  function promote(now: number): boolean {
    let hasReady = false
    for (let entry = delayed.peek(); entry !== undefined && entry.readyAt <= now; entry = delayed.peek()) {
      delayed.pop()
      append(fifoOf(fifos, entry.priority), entry)
      hasReady = true
    }
    return hasReady
  }

  function schedule(key: Key, afterMs: number, priority: number | undefined): void {
    if (isClosed) return
    const now = clock.monotonic()
    const readyAt = afterMs > 0 ? now + afterMs : now
    let entry = entries.get(key)
    if (entry === undefined) {
      entry = newEntry(key)
      entries.set(key, entry)
    }
    const requested = priority ?? entry.runPriority
    if (entry.readyAt === NEVER) {
      entry.readyAt = readyAt
      entry.priority = requested
      observer?.added()
    } else if (readyAt < entry.readyAt || requested > entry.priority) {
      // Already ready, and not with a higher priority now: it keeps its position.
      if (entry.fifo !== undefined && requested <= entry.priority) return
      displace(entry)
      entry.readyAt = Math.min(entry.readyAt, readyAt)
      entry.priority = Math.max(entry.priority, requested)
    } else {
      return
    }
    place(entry, now)
  }

  function findFirst(): Entry | undefined {
    for (const fifo of fifos) {
      let entry = fifo.first
      while (entry !== undefined && entry.takenAt !== NEVER) entry = entry.after
      if (entry !== undefined) return entry
    }
    return undefined
  }

  return {
    add: (key, { priority = 0, afterMs = 0 } = {}) => schedule(key, afterMs, priority),
    take() {
      if (isClosed) return undefined
      const now = clock.monotonic()
      promote(now)
      const entry = findFirst()
      if (entry === undefined) return undefined
      remove(fifos, entry)
      observer?.taken(now - entry.readyAt)
      entry.readyAt = NEVER
      entry.takenAt = now
      entry.runPriority = entry.priority
      taken.add(entry)
      return entry.key
    },
    done(key) {
      const entry = entries.get(key)
      if (entry === undefined || entry.takenAt === NEVER) return
      observer?.finished(clock.monotonic() - entry.takenAt)
      entry.takenAt = NEVER
      taken.delete(entry)
      if (entry.readyAt === NEVER) entries.delete(key)
      else if (entry.fifo !== undefined) onReady?.()
    },
    retry(key) {
      const failures = entries.get(key)?.failures ?? 0
      const delayMs = Math.min(backoffBaseMs * 2 ** failures, backoffLimitMs)
      schedule(key, delayMs, undefined)
      const entry = entries.get(key)
      if (entry !== undefined) entry.failures = failures + 1
      observer?.retried()
      return delayMs
    },
    requeue(key, afterMs) {
      schedule(key, afterMs, undefined)
    },
    forget(key) {
      const entry = entries.get(key)
      if (entry !== undefined) entry.failures = 0
    },
    get size() {
      return fifos.reduce((sum, { size }) => sum + size, 0)
    },
    get tracked() {
      return entries.size
    },
    stats() {
      const now = clock.monotonic()
      const depth = new Map(fifos.map(({ priority, size }) => [priority, size]))
      const ages = [...taken].map((entry) => now - entry.takenAt)
      return { depth, unfinishedMs: ages.reduce((sum, age) => sum + age, 0), longestMs: Math.max(0, ...ages) }
    },
    close() {
      isClosed = true
      cancelTimer?.()
      for (const entry of entries.values()) {
        if (entry.readyAt !== NEVER) displace(entry)
        entry.readyAt = NEVER
        if (entry.takenAt === NEVER) entries.delete(entry.key)
      }
    },
  }
}

function newEntry(key: Key): Entry {
  return {
    key,
    place: -1,
    priority: 0,
    runPriority: 0,
    readyAt: NEVER,
    failures: 0,
    takenAt: NEVER,
    fifo: undefined,
    before: undefined,
    after: undefined,
  }
}

/** A linear search: there is one FIFO per priority in use, and those are few. */
function fifoOf(fifos: Fifo[], priority: number): Fifo {
  let index = 0
  for (const fifo of fifos) {
    if (fifo.priority === priority) return fifo
    if (fifo.priority < priority) break
    index++
  }
  const fifo: Fifo = { priority, first: undefined, last: undefined, size: 0 }
  fifos.splice(index, 0, fifo)
  return fifo
}

function append(fifo: Fifo, entry: Entry): void {
  entry.fifo = fifo
  entry.before = fifo.last
  entry.after = undefined
  if (fifo.last === undefined) fifo.first = entry
  else fifo.last.after = entry
  fifo.last = entry
  fifo.size++
}

function remove(fifos: Fifo[], entry: Entry): void {
  const { fifo, before, after } = entry
  if (fifo === undefined) return
  if (before === undefined) fifo.first = after
  else before.after = after
  if (after === undefined) fifo.last = before
  else after.before = before
  entry.fifo = undefined
  entry.before = undefined
  entry.after = undefined
  fifo.size--
  if (fifo.size === 0) fifos.splice(fifos.indexOf(fifo), 1)
}
