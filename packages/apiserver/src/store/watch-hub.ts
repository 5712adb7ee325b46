/**
 * The watch hub: delivers every stored change to every matching watch.
 *
 * Flow: watches with the same request (resource version, namespace, selectors, representation) share a channel. A
 * channel selects and encodes each change once; its bytes go to all its watchers. Changes are batched until the hub
 * flushes: immediately when idle, and, after a long flush, only after a pause of the same length, so that a thousand
 * watchers cause larger batches instead of latency for other requests.
 * Guarantees: each watcher gets the changes of its channel in revision order, without duplicates or gaps, from the
 * revision it started at; a watcher whose client does not read is closed after `bufferLimit` bytes and can resume from
 * its last revision.
 */
import type { Clock, Timer } from '../clock.ts'
import type { WatchSink } from '../exchange/exchange.ts'
import type { FieldSelector, LabelSelector } from '../resource/selectors.ts'
import type { Change } from './change-log.ts'
import type { Collection } from './collection.ts'
import type { Stored } from './stored-object.ts'

export type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED'

/** Attributes of a watch that fault rules match. */
export interface WatchInfo {
  readonly group: string
  readonly resource: string
  readonly namespace: string
  readonly user: string
  readonly userAgent: string
}

export interface WatchEvent {
  readonly type: WatchEventType
  readonly key: string
  readonly resourceVersion: number
}

/** Fault injection for watches; see faults.ts. */
export interface WatchFaults {
  /** True when a rule applies to single events, so that bytes cannot be shared. */
  readonly hasEventRules: boolean
  /** Number of deliveries of the event: 0 drops, 2 duplicates. */
  copies(watch: WatchInfo, event: WatchEvent): number
  /** Reorders a batch of events. */
  reorderFrames<T extends { event: WatchEvent }>(watch: WatchInfo, batch: T[]): T[]
  isFrozen(watch: WatchInfo): boolean
  lagMs(watch: WatchInfo): number
}

export interface ChannelRequest {
  readonly collection: Collection
  /** '' watches every namespace. */
  readonly namespace: string
  readonly labels: LabelSelector
  readonly fields: FieldSelector
  /** Encodes one event; may call a conversion webhook. */
  encode(type: WatchEventType, stored: Stored): Buffer | Promise<Buffer>
  /** Equal keys mean equal requests; undefined is never shared. */
  readonly shareKey: string | undefined
}

/** The event of a change for a watch with selectors: an object that starts or stops matching is ADDED or DELETED. */
export function selectEvent(
  change: Change,
  request: ChannelRequest,
): { type: WatchEventType; stored: Stored } | undefined {
  const { namespace, labels, fields } = request
  if (namespace !== '' && !(change.key.startsWith(namespace) && change.key[namespace.length] === '/')) return undefined
  const matches = (stored: Stored | undefined): boolean =>
    stored !== undefined &&
    (labels.isEmpty || labels.matches(stored.labels)) &&
    (fields.isEmpty || fields.matches(stored))
  const did = matches(change.previous)
  const does = change.type !== 'delete' && matches(change.current)
  if (does) return { type: did ? 'MODIFIED' : 'ADDED', stored: change.current }
  return did ? { type: 'DELETED', stored: change.current } : undefined
}

interface Frame {
  readonly event: WatchEvent
  readonly bytes: Buffer
}

export class Watcher {
  readonly info: WatchInfo
  readonly #sink: WatchSink
  readonly #faults: WatchFaults
  readonly #clock: Clock
  readonly #bufferLimit: number
  readonly #held: Buffer[] = []
  /** Time of the last delayed delivery; later ones must not overtake it. */
  #busyUntilMs = 0
  #isOpen = true

  constructor(info: WatchInfo, sink: WatchSink, faults: WatchFaults, clock: Clock, bufferLimit: number) {
    this.info = info
    this.#sink = sink
    this.#faults = faults
    this.#clock = clock
    this.#bufferLimit = bufferLimit
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  send(chunk: Buffer): void {
    if (!this.#isOpen) return
    if (this.#held.length > 0 || this.#faults.isFrozen(this.info)) {
      this.#held.push(chunk)
      return
    }
    const lagMs = this.#faults.lagMs(this.info)
    const now = this.#clock.now()
    if (lagMs > 0 || this.#busyUntilMs > now) {
      this.#busyUntilMs = Math.max(this.#busyUntilMs, now + lagMs)
      this.#clock.schedule(this.#busyUntilMs - now, () => this.#write(chunk))
      return
    }
    this.#write(chunk)
  }

  /** Delivers the events buffered while the watch was frozen. */
  thaw(): void {
    for (const chunk of this.#held.splice(0)) this.#write(chunk)
  }

  #write(chunk: Buffer): void {
    if (!this.#isOpen) return
    if (this.#sink.bufferedBytes > this.#bufferLimit) {
      this.abort()
      return
    }
    this.#sink.write(chunk)
  }

  end(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#sink.end()
  }

  abort(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#sink.abort()
  }

  /** The client disconnected: later events are discarded. */
  forget(): void {
    this.#isOpen = false
  }
}

class Channel {
  readonly watchers = new Set<Watcher>()
  readonly #request: ChannelRequest
  readonly #faults: WatchFaults
  readonly #wake: (channel: Channel) => void
  readonly #unsubscribe: () => void
  #batch: Frame[] = []
  /** Encodings in progress, in order. */
  #pending: Promise<void> | undefined

  constructor(request: ChannelRequest, faults: WatchFaults, wake: (channel: Channel) => void) {
    this.#request = request
    this.#faults = faults
    this.#wake = wake
    this.#unsubscribe = request.collection.subscribe((change) => this.#accept(change))
  }

  get isConverting(): boolean {
    return this.#pending !== undefined
  }

  #accept(change: Change): void {
    const selected = selectEvent(change, this.#request)
    if (selected === undefined) return
    const event: WatchEvent = { type: selected.type, key: change.key, resourceVersion: change.resourceVersion }
    const encoded = this.#request.encode(selected.type, selected.stored)
    if (this.#pending === undefined && Buffer.isBuffer(encoded)) {
      this.#push({ event, bytes: encoded })
      return
    }
    const turn = (this.#pending ?? Promise.resolve()).then(async () => {
      this.#push({ event, bytes: await encoded })
      if (this.#pending === turn) this.#pending = undefined
    })
    // A failed conversion ends the watches: they would otherwise miss a change.
    turn.catch(() => {
      for (const watcher of this.watchers) watcher.abort()
    })
    this.#pending = turn
  }

  #push(frame: Frame): void {
    this.#batch.push(frame)
    if (this.#batch.length === 1) this.#wake(this)
  }

  flush(): void {
    if (this.#batch.length === 0) return
    const batch = this.#batch
    this.#batch = []
    if (!this.#faults.hasEventRules) {
      const chunk = batch.length === 1 ? (batch[0] as Frame).bytes : Buffer.concat(batch.map((frame) => frame.bytes))
      for (const watcher of this.watchers) watcher.send(chunk)
      return
    }
    for (const watcher of this.watchers) {
      const frames = this.#faults.reorderFrames(
        watcher.info,
        batch.flatMap((frame) => Array.from({ length: this.#faults.copies(watcher.info, frame.event) }, () => frame)),
      )
      for (const frame of frames) watcher.send(frame.bytes)
    }
  }

  close(): void {
    this.#unsubscribe()
  }
}

export class WatchHub {
  readonly #clock: Clock
  readonly #faults: WatchFaults
  readonly #channels = new Map<string, Channel>()
  readonly #watchers = new Map<Watcher, { leave: () => void; request: ChannelRequest }>()
  #dirty = new Set<Channel>()
  #isScheduled = false
  #pause: Timer | undefined
  #resumeAtMs = 0

  constructor(clock: Clock, faults: WatchFaults) {
    this.#clock = clock
    this.#faults = faults
  }

  get size(): number {
    return this.#watchers.size
  }

  watchers(): Iterable<Watcher> {
    return this.#watchers.keys()
  }

  /** Adds `watcher` to the live changes, beginning with the next one. The returned function removes it. */
  join(watcher: Watcher, request: ChannelRequest): () => void {
    const { shareKey } = request
    let channel = shareKey === undefined ? undefined : this.#channels.get(shareKey)
    if (channel === undefined || channel.isConverting) {
      channel = new Channel(request, this.#faults, (dirty) => this.#markDirty(dirty))
      if (shareKey !== undefined && !this.#channels.has(shareKey)) this.#channels.set(shareKey, channel)
    } else {
      // The new watcher has received everything up to now; pending changes go only to the others.
      channel.flush()
      this.#dirty.delete(channel)
    }
    const joined = channel
    joined.watchers.add(watcher)
    const leave = (): void => {
      joined.watchers.delete(watcher)
      this.#watchers.delete(watcher)
      if (joined.watchers.size > 0) return
      joined.close()
      this.#dirty.delete(joined)
      if (shareKey !== undefined && this.#channels.get(shareKey) === joined) this.#channels.delete(shareKey)
    }
    this.#watchers.set(watcher, { leave, request })
    return leave
  }

  #markDirty(channel: Channel): void {
    this.#dirty.add(channel)
    if (this.#isScheduled) return
    this.#isScheduled = true
    const waitMs = this.#resumeAtMs - this.#clock.monotonic()
    if (waitMs < 1) setImmediate(() => this.flush())
    else this.#pause = this.#clock.schedule(waitMs, () => this.flush())
  }

  /** Sends the pending batch. */
  flush(): void {
    this.#isScheduled = false
    this.#pause?.cancel()
    const startedMs = this.#clock.monotonic()
    const dirty = this.#dirty
    this.#dirty = new Set()
    for (const channel of dirty) channel.flush()
    const endedMs = this.#clock.monotonic()
    const tookMs = endedMs - startedMs
    // Fan-out takes at most half of the time; changes that arrive meanwhile go into the next batch.
    this.#resumeAtMs = tookMs > 2 ? endedMs + Math.min(tookMs, 200) : 0
  }

  /** Ends the watches of a collection that is no longer served. */
  end(collection: Collection): void {
    this.flush()
    for (const [watcher, { leave, request }] of Array.from(this.#watchers)) {
      if (request.collection !== collection) continue
      leave()
      watcher.end()
    }
  }

  /** Ends every watch on shutdown. */
  close(): void {
    this.flush()
    for (const [watcher, { leave }] of Array.from(this.#watchers)) {
      leave()
      watcher.end()
    }
  }

  /** The clock of delayed deliveries. */
  get clock(): Clock {
    return this.#clock
  }
}
