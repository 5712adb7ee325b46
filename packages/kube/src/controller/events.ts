/**
 * Events (events.k8s.io/v1): what happened to an object, for `kubectl describe`.
 *
 * Place in the flow: `ctx.event(…)` calls `record`, which only queues it; one sender per cluster writes in the
 * background.
 *
 * Guarantees: recording never blocks, throws or fails a reconcile. The same event again within six minutes becomes a
 * series on the first one, patched at most every ten seconds. An object gets a burst of 25 events and then one every
 * five minutes; at most 1000 are pending. If RBAC denies Events (403), one warning is logged and no more are sent.
 * Events that a previous process reported within the six minutes are not repeated, if Events may be listed.
 * Caveats: events are best effort and may be lost; state belongs in conditions.
 */
import { randomBytes } from 'node:crypto'
import type { Client } from '../client/client.ts'
import { type Clock, sleep, systemClock } from '../clock.ts'
import { microTimestamp } from '../object/conditions.ts'
import { ApiError, Forbidden, messageOf, NotFound } from '../errors.ts'
import { Event, type ObjectReference } from '../object/kinds.ts'
import { openFence, type WriteFence } from '../apply/write-fence.ts'
import type { Logger } from '../log.ts'
import { keyOf, type Key } from '../object/object.ts'
import { untilAborted } from '../stop-signal.ts'

export type EventType = 'Normal' | 'Warning'

export interface EventRecord {
  regarding: ObjectReference
  type: EventType
  /** CamelCase. */
  reason: string
  /** Human-readable; truncated to 1 KiB. */
  note: string
  /** The action taken or attempted. @default Reconcile */
  action?: string
  /** @default that of the recorder */
  reportingController?: string
}

export interface Recorder {
  record(event: EventRecord): void
  /** Sends until the signal aborts, then the pending events for at most `flushMs`. Never rejects. */
  run(signal: AbortSignal, flushMs?: number): Promise<void>
}

export interface RecorderDeps {
  client: Client
  log: Logger
  /** The reporting controller, e.g. `seamark.io/publish`. */
  reportingController: string
  /** Identifies the process. */
  reportingInstance: string
  clock?: Clock
  fence?: WriteFence
}

const SERIES_WINDOW_MS = 6 * 60_000
const SERIES_FLUSH_MS = 10_000
const BURST = 25
const REFILL_MS = 5 * 60_000
const MAX_PENDING = 1_000
const MAX_SERIES = 5_000
const MAX_NOTE_BYTES = 1_024
const MAX_REASON_LENGTH = 128

interface Series {
  id: string
  record: EventRecord
  count: number
  firstAt: number
  lastAt: number
  /** Key of the stored Event. */
  stored: Key | undefined
  /** A send is queued or scheduled. */
  isDue: boolean
}

interface Bucket {
  tokens: number
  at: number
}

export function createRecorder(deps: RecorderDeps): Recorder {
  const { client, log, reportingController, reportingInstance, clock = systemClock, fence = openFence } = deps
  const series = new Map<string, Series>()
  const buckets = new Map<string, Bucket>()
  const pending: Series[] = []
  /** Events of previous processes by reporting controller. */
  const reported = new Map<string, Promise<ReadonlyMap<string, Event>>>()
  let isSilent = false
  let dropped = 0
  let wake: () => void = () => undefined

  function enqueue(entry: Series): void {
    // Also called by timers of series that were scheduled before Events were denied.
    if (isSilent) return
    if (pending.length >= MAX_PENDING) {
      entry.isDue = false
      dropped++
      return
    }
    pending.push(entry)
    wake()
  }

  function addRecord(event: EventRecord): void {
    const now = clock.monotonic()
    const { regarding } = event
    const id = idOf({ reportingController, ...event })
    const known = series.get(id)
    if (known !== undefined && now - known.lastAt < SERIES_WINDOW_MS) {
      known.count++
      known.lastAt = now
      if (!known.isDue) clock.after(SERIES_FLUSH_MS, () => enqueue(known))
      known.isDue = true
      return
    }
    if (!takeToken(regarding, now)) {
      dropped++
      return
    }
    const entry: Series = { id, record: event, count: 1, firstAt: now, lastAt: now, stored: undefined, isDue: true }
    if (series.size >= MAX_SERIES) forgetOld(now)
    series.set(id, entry)
    enqueue(entry)
  }

  function takeToken(regarding: ObjectReference, now: number): boolean {
    const id = regarding.uid ?? `${regarding.kind}/${regarding.namespace}/${regarding.name}`
    const bucket = buckets.get(id) ?? { tokens: BURST, at: now }
    bucket.tokens = Math.min(BURST, bucket.tokens + (now - bucket.at) / REFILL_MS)
    bucket.at = now
    buckets.set(id, bucket)
    if (bucket.tokens < 1) return false
    bucket.tokens--
    return true
  }

  /** Removes old entries; if all are recent, clears the maps: a repeated event is better than unbounded memory. */
  function forgetOld(now: number): void {
    for (const [id, entry] of series) if (now - entry.lastAt >= SERIES_WINDOW_MS) series.delete(id)
    for (const [id, bucket] of buckets) if (bucket.tokens + (now - bucket.at) / REFILL_MS >= BURST) buckets.delete(id)
    if (series.size >= MAX_SERIES) series.clear()
    if (buckets.size >= MAX_SERIES) buckets.clear()
  }

  /** Lists once, at the first Event: until then another process may be the reporting one. */
  async function listReported(reporter: string, signal: AbortSignal): Promise<ReadonlyMap<string, Event>> {
    const fieldSelector = `reportingController=${reporter}`
    try {
      const { items } = await client.list(Event, { fieldSelector, limit: MAX_PENDING, signal })
      const own = items.filter((event) => event.reportingController === reporter)
      return new Map(own.map((event) => [idOf(event), event]))
    } catch (error) {
      log.debug({ error: messageOf(error) }, 'earlier events are not known; some may be sent again')
      return new Map()
    }
  }

  async function findReported({ id, record }: Series, signal: AbortSignal): Promise<Event | undefined> {
    const reporter = record.reportingController ?? reportingController
    const known = reported.get(reporter) ?? listReported(reporter, signal)
    reported.set(reporter, known)
    const event = (await known).get(id)
    const lastAt = Date.parse(event?.series?.lastObservedTime ?? event?.eventTime ?? '')
    return clock.now() - lastAt < SERIES_WINDOW_MS ? event : undefined
  }

  /** The fence is checked immediately before each write: it may close while earlier Events are listed. */
  async function send(entry: Series, signal: AbortSignal): Promise<void> {
    const lastObservedTime = microTimestamp(clock.now() - (clock.monotonic() - entry.lastAt))
    if (entry.stored !== undefined) {
      fence.check()
      try {
        await client.patch(
          Event,
          entry.stored,
          'merge',
          { series: { count: entry.count, lastObservedTime } },
          { signal },
        )
        return
      } catch (error) {
        // The Event has expired; create a new one for the series.
        if (!(error instanceof NotFound)) throw error
        entry.stored = undefined
      }
    }
    const before = await findReported(entry, signal)
    if (before !== undefined) {
      entry.stored = keyOf(before)
      entry.count += (before.series?.count ?? 1) - 1
      return
    }
    const event = toEvent(entry, { reportingController, reportingInstance, nowMs: clock.now() })
    fence.check()
    await client.create(Event, event, { signal })
    entry.stored = keyOf(event)
  }

  async function sendNext(signal: AbortSignal): Promise<void> {
    const entry = pending.shift()
    if (entry === undefined) return
    entry.isDue = false
    try {
      await send(entry, signal)
    } catch (error) {
      if (error instanceof Forbidden && !isTerminating(error)) {
        isSilent = true
        pending.length = 0
        series.clear()
        log.warn(
          { error: messageOf(error) },
          'no right to write Events: grant create and patch on events.k8s.io events; none are sent from now on',
        )
      } else if (!signal.aborted) {
        log.debug({ error: messageOf(error), reason: entry.record.reason }, 'event not sent')
      }
    }
  }

  return {
    record(event) {
      if (isSilent) return
      try {
        addRecord(event)
      } catch (error) {
        log.debug({ error: messageOf(error) }, 'event not recorded')
      }
    },
    async run(signal, flushMs = 1_000) {
      const sending = new AbortController()
      const sent = (async () => {
        while (!signal.aborted || pending.length > 0) {
          await sendNext(sending.signal)
          if (pending.length > 0 || signal.aborted) continue
          if (dropped > 0) log.debug({ dropped }, 'events dropped')
          dropped = 0
          await new Promise<void>((resolve) => (wake = resolve))
        }
      })()
      await untilAborted(signal)
      wake()
      await Promise.race([sent, sleep(clock, flushMs)])
      sending.abort()
    },
  }
}

/** A terminating namespace rejects every new object; that does not mean that RBAC denies Events. */
function isTerminating(error: ApiError): boolean {
  return error.status.details?.causes?.some(({ reason }) => reason === 'NamespaceTerminating') === true
}

function toEvent(
  { record, count }: Series,
  by: { reportingController: string; reportingInstance: string; nowMs: number },
): Event {
  const { regarding, type, reason, note, action = 'Reconcile' } = record
  const time = microTimestamp(by.nowMs)
  return {
    metadata: {
      name: `${(regarding.name ?? 'object').slice(0, 200)}.${randomBytes(8).toString('hex')}`,
      namespace: regarding.namespace ?? 'default',
    },
    eventTime: time,
    reportingController: record.reportingController ?? by.reportingController,
    reportingInstance: by.reportingInstance.slice(0, MAX_REASON_LENGTH),
    action: action.slice(0, MAX_REASON_LENGTH),
    reason: reason.slice(0, MAX_REASON_LENGTH),
    regarding,
    note: cut(note),
    type,
    ...(count > 1 ? { series: { count, lastObservedTime: time } } : {}),
  }
}

/** The same id for a recorded event and for its stored form. */
function idOf(event: Partial<EventRecord> | Event): string {
  const { regarding, type, reason, note, action = 'Reconcile', reportingController } = event
  const about = regarding?.uid ?? [regarding?.kind, regarding?.namespace, regarding?.name]
  const [shortReason, shortAction] = [reason?.slice(0, MAX_REASON_LENGTH), action.slice(0, MAX_REASON_LENGTH)]
  return JSON.stringify([reportingController, about, type, shortReason, cut(note ?? ''), shortAction])
}

/** The limit is in bytes; a character is never split. */
function cut(note: string): string {
  const bytes = Buffer.from(note)
  if (bytes.length <= MAX_NOTE_BYTES) return note
  return `${bytes
    .subarray(0, MAX_NOTE_BYTES - 3)
    .toString('utf8')
    .replace(/\uFFFD+$/, '')}…`
}
