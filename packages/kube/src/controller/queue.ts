/**
 * The work queue: keys to reconcile, each at most once, with delay, back-off and priority.
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
 * no memory.
 * Caveats: delays are lower bounds; nothing is returned once closed.
 */
import { type Clock, systemClock } from '../clock.ts'
import { createHeap, type HeapItem } from './heap.ts'
import type { Key } from '../object/object.ts'

/** Priority of keys from the initial list and resyncs: new changes are processed first. */
export const LOW_PRIORITY = -100

export interface AddOptions {
  /** @default 0 */
  priority?: number
  /** @default 0 */
  afterMs?: number
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
  /** Monotonic ms from which it may be taken; `never` if it is not queued. */
  readyAt: number
  failures: number
  /** Monotonic ms at which it was taken; `never` if it is not taken. */
  takenAt: number
  /** The FIFO it is in; undefined if it is not ready. */
  line: Line | undefined
  before: Entry | undefined
  after: Entry | undefined
}

/** Ready keys of one priority in FIFO order. Taken keys keep their position and are skipped. */
interface Line {
  readonly priority: number
  first: Entry | undefined
  last: Entry | undefined
  size: number
}

const never = Number.POSITIVE_INFINITY

/** Maximum delay of a Node timer; a longer wait uses several timers. */
const MAX_TIMER_MS = 2 ** 31 - 1

export function createQueue(options: QueueOptions = {}): Queue {
  const { clock = systemClock, observer, backoffBaseMs = 5, backoffLimitMs = 1_000_000, onReady } = options
  const entries = new Map<Key, Entry>()
  const taken = new Set<Entry>()
  /** Highest priority first. */
  const lines: Line[] = []
  const waiting = createHeap<Entry>((a, b) => a.readyAt < b.readyAt)
  let timerAt = never
  let cancelTimer: (() => void) | undefined
  let isClosed = false

  function place(entry: Entry, now: number): void {
    if (entry.readyAt <= now) {
      append(lineOf(lines, entry.priority), entry)
      if (entry.takenAt === never) onReady?.()
    } else {
      waiting.push(entry)
      arm(now)
    }
  }

  function displace(entry: Entry): void {
    if (entry.line === undefined) waiting.remove(entry)
    else remove(lines, entry)
  }

  function arm(now: number): void {
    const earliest = waiting.peek()?.readyAt ?? never
    if (earliest >= timerAt) return
    cancelTimer?.()
    timerAt = earliest
    cancelTimer = clock.after(Math.min(earliest - now, MAX_TIMER_MS), () => {
      timerAt = never
      const later = clock.monotonic()
      const hasReady = promote(later)
      arm(later)
      if (hasReady) onReady?.()
    })
  }

  /** Appends due keys to the FIFO of their priority. */
  function promote(now: number): boolean {
    let hasReady = false
    for (let entry = waiting.peek(); entry !== undefined && entry.readyAt <= now; entry = waiting.peek()) {
      waiting.pop()
      append(lineOf(lines, entry.priority), entry)
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
    if (entry.readyAt === never) {
      entry.readyAt = readyAt
      entry.priority = requested
      observer?.added()
    } else if (readyAt < entry.readyAt || requested > entry.priority) {
      // Already ready, and not with a higher priority now: it keeps its position.
      if (entry.line !== undefined && requested <= entry.priority) return
      displace(entry)
      entry.readyAt = Math.min(entry.readyAt, readyAt)
      entry.priority = Math.max(entry.priority, requested)
    } else {
      return
    }
    place(entry, now)
  }

  function findFirst(): Entry | undefined {
    for (const line of lines) {
      let entry = line.first
      while (entry !== undefined && entry.takenAt !== never) entry = entry.after
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
      remove(lines, entry)
      observer?.taken(now - entry.readyAt)
      entry.readyAt = never
      entry.takenAt = now
      entry.runPriority = entry.priority
      taken.add(entry)
      return entry.key
    },
    done(key) {
      const entry = entries.get(key)
      if (entry === undefined || entry.takenAt === never) return
      observer?.finished(clock.monotonic() - entry.takenAt)
      entry.takenAt = never
      taken.delete(entry)
      if (entry.readyAt === never) entries.delete(key)
      else if (entry.line !== undefined) onReady?.()
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
      return lines.reduce((sum, { size }) => sum + size, 0)
    },
    get tracked() {
      return entries.size
    },
    stats() {
      const now = clock.monotonic()
      const depth = new Map(lines.map(({ priority, size }) => [priority, size]))
      const ages = [...taken].map((entry) => now - entry.takenAt)
      return { depth, unfinishedMs: ages.reduce((sum, age) => sum + age, 0), longestMs: Math.max(0, ...ages) }
    },
    close() {
      isClosed = true
      cancelTimer?.()
      for (const entry of entries.values()) {
        if (entry.readyAt !== never) displace(entry)
        entry.readyAt = never
        if (entry.takenAt === never) entries.delete(entry.key)
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
    readyAt: never,
    failures: 0,
    takenAt: never,
    line: undefined,
    before: undefined,
    after: undefined,
  }
}

/** A linear search: there is one line per priority in use, and those are few. */
function lineOf(lines: Line[], priority: number): Line {
  let index = 0
  for (const line of lines) {
    if (line.priority === priority) return line
    if (line.priority < priority) break
    index++
  }
  const line: Line = { priority, first: undefined, last: undefined, size: 0 }
  lines.splice(index, 0, line)
  return line
}

function append(line: Line, entry: Entry): void {
  entry.line = line
  entry.before = line.last
  entry.after = undefined
  if (line.last === undefined) line.first = entry
  else line.last.after = entry
  line.last = entry
  line.size++
}

function remove(lines: Line[], entry: Entry): void {
  const { line, before, after } = entry
  if (line === undefined) return
  if (before === undefined) line.first = after
  else before.after = after
  if (after === undefined) line.last = before
  else after.before = before
  entry.line = undefined
  entry.before = undefined
  entry.after = undefined
  line.size--
  if (line.size === 0) lines.splice(lines.indexOf(line), 1)
}
