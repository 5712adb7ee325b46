/**
 * The work queue: keys that want attention, each once, with delay, back-off and priority.
 *
 * Place in the flow: informer events `add`, a controller `take`s and says `done`. Only keys are kept, never objects, so
 * memory is bounded by the number of objects however fast they change.
 *
 * Guarantees
 * - Dedup: a key is queued once; a second add keeps the earlier ready time and the higher priority.
 * - Exclusive: a taken key is not handed out again before `done`.
 * - At least once: an add while the key is out runs it again afterwards.
 * - Order: higher priority first, first come first served within one.
 * - Back-off: 5 ms doubling to 1000 s per key, forgotten with `forget`; a key that is neither queued, out nor failing
 *   occupies nothing.
 * Caveats: delays are lower bounds; nothing is handed out once closed.
 */
import { type Clock, systemClock } from './clock.ts'
import { createHeap, type Heap, type HeapItem } from './heap.ts'
import type { Key } from './object.ts'

/** What the first list and resyncs add with: they wait behind changes that happen now. */
export const LOW_PRIORITY = -100

export interface AddOptions {
  /** @default 0 */
  priority?: number
  /** @default 0 */
  afterMs?: number
}

/** Called on the hot path: cheap, and it must not throw. */
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
  /** Called when a key may be there to take; may be called in vain. */
  onReady?: () => void
}

export interface Queue {
  add(key: Key, options?: AddOptions): void
  /** The next key, now taken; undefined when none is ready. Call `done` for it exactly once. */
  take(): Key | undefined
  done(key: Key): void
  /** Queues again after the key's back-off, which grows with each call until `forget`. Returns the delay in ms. */
  retry(key: Key): number
  /** Queues again after `afterMs` with the priority it ran with. */
  requeue(key: Key, afterMs: number): void
  /** The next failure starts again at the shortest back-off. */
  forget(key: Key): void
  /** Ready keys. */
  readonly size: number
  /** Keys known: ready, waiting, out. */
  readonly tracked: number
  /** Ready keys by priority, and how long the keys that are out have been, in ms. */
  stats(): { depth: ReadonlyMap<number, number>; unfinishedMs: number; longestMs: number }
  /** Drops everything that is not out; nothing is taken or kept from now on. */
  close(): void
}

interface Entry extends HeapItem {
  readonly key: Key
  priority: number
  /** Priority of the run that is out: a retry or requeue keeps it, whatever was added meanwhile. */
  runPriority: number
  order: number
  /** Monotonic ms from which it may be handed out; `never` when nobody asked for it. */
  readyAt: number
  failures: number
  /** Monotonic ms at which it was handed out; `never` when it is not out. */
  takenAt: number
  /** Where it waits for its turn; undefined when it is out. */
  heap: Heap<Entry> | undefined
}

const never = Number.POSITIVE_INFINITY

/** What a Node timer can hold at most; a longer wait takes several timers. */
const longestTimerMs = 2 ** 31 - 1

export function createQueue(options: QueueOptions = {}): Queue {
  const { clock = systemClock, observer, backoffBaseMs = 5, backoffLimitMs = 1_000_000, onReady } = options
  const entries = new Map<Key, Entry>()
  const out = new Set<Entry>()
  const ready = createHeap<Entry>((a, b) => (a.priority === b.priority ? a.order < b.order : a.priority > b.priority))
  const waiting = createHeap<Entry>((a, b) => (a.readyAt === b.readyAt ? a.order < b.order : a.readyAt < b.readyAt))
  let order = 0
  let timerAt = never
  let cancelTimer: (() => void) | undefined
  let isClosed = false

  function place(entry: Entry, now: number): void {
    entry.heap = entry.readyAt <= now ? ready : waiting
    entry.heap.push(entry)
    if (entry.heap === ready) onReady?.()
    else arm(now)
  }

  function arm(now: number): void {
    const earliest = waiting.peek()?.readyAt ?? never
    if (earliest >= timerAt) return
    cancelTimer?.()
    timerAt = earliest
    cancelTimer = clock.after(Math.min(earliest - now, longestTimerMs), () => {
      timerAt = never
      const later = clock.monotonic()
      promote(later)
      arm(later)
      if (ready.size > 0) onReady?.()
    })
  }

  /** Those whose time came join the end of the line of their priority. */
  function promote(now: number): void {
    for (let entry = waiting.peek(); entry !== undefined && entry.readyAt <= now; entry = waiting.peek()) {
      waiting.pop()
      entry.order = order++
      entry.heap = ready
      ready.push(entry)
    }
  }

  function ask(key: Key, afterMs: number, priority: number | undefined): void {
    if (isClosed) return
    const now = clock.monotonic()
    const readyAt = afterMs > 0 ? now + afterMs : now
    let entry = entries.get(key)
    if (entry === undefined) {
      entry = newEntry(key)
      entries.set(key, entry)
    }
    const wanted = priority ?? entry.runPriority
    if (entry.readyAt === never) {
      entry.readyAt = readyAt
      entry.priority = wanted
      entry.order = order++
      observer?.added()
    } else if (readyAt < entry.readyAt || wanted > entry.priority) {
      entry.heap?.remove(entry)
      entry.readyAt = Math.min(entry.readyAt, readyAt)
      entry.priority = Math.max(entry.priority, wanted)
    } else {
      return
    }
    if (entry.takenAt === never) place(entry, now)
  }

  return {
    add: (key, { priority = 0, afterMs = 0 } = {}) => ask(key, afterMs, priority),
    take() {
      if (isClosed) return undefined
      const now = clock.monotonic()
      promote(now)
      const entry = ready.pop()
      if (entry === undefined) return undefined
      observer?.taken(now - entry.readyAt)
      entry.heap = undefined
      entry.readyAt = never
      entry.takenAt = now
      entry.runPriority = entry.priority
      out.add(entry)
      return entry.key
    },
    done(key) {
      const entry = entries.get(key)
      if (entry === undefined || entry.takenAt === never) return
      const now = clock.monotonic()
      observer?.finished(now - entry.takenAt)
      entry.takenAt = never
      out.delete(entry)
      if (entry.readyAt === never || isClosed) entries.delete(key)
      else place(entry, now)
    },
    retry(key) {
      const failures = entries.get(key)?.failures ?? 0
      const delayMs = Math.min(backoffBaseMs * 2 ** failures, backoffLimitMs)
      ask(key, delayMs, undefined)
      const entry = entries.get(key)
      if (entry !== undefined) entry.failures = failures + 1
      observer?.retried()
      return delayMs
    },
    requeue(key, afterMs) {
      ask(key, afterMs, undefined)
    },
    forget(key) {
      const entry = entries.get(key)
      if (entry !== undefined) entry.failures = 0
    },
    get size() {
      return ready.size
    },
    get tracked() {
      return entries.size
    },
    stats() {
      const now = clock.monotonic()
      const depth = new Map<number, number>()
      for (const entry of entries.values()) {
        if (entry.heap === ready) depth.set(entry.priority, (depth.get(entry.priority) ?? 0) + 1)
      }
      const ages = [...out].map((entry) => now - entry.takenAt)
      return { depth, unfinishedMs: ages.reduce((sum, age) => sum + age, 0), longestMs: Math.max(0, ...ages) }
    },
    close() {
      isClosed = true
      cancelTimer?.()
      for (const entry of entries.values()) {
        entry.heap?.remove(entry)
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
    order: 0,
    readyAt: never,
    failures: 0,
    takenAt: never,
    heap: undefined,
  }
}
