/**
 * The watch hub: carries every stored change to every watch that asked for it.
 *
 * Flow: watches that ask for the same thing (resource version, namespace, selectors, representation) share a channel. A
 * channel selects and encodes each change once; its bytes go to all its watchers. Changes are gathered until the hub
 * flushes: at once when idle, and, when the last flush took long, only after as long a pause again, so that a thousand
 * watchers cost batches instead of latency for everybody else.
 * Guarantees: each watcher gets the changes of its channel in revision order, none twice, none missing, from the revision it
 * started at; a watcher whose client does not read is cut after `bufferLimit` bytes and can resume from its last revision.
 */
import type { Clock, Timer } from '../clock.ts'
import type { WatchSink } from '../http/exchange.ts'
import type { FieldSelector, LabelSelector } from '../resource/selectors.ts'
import type { Change, Collection } from './store.ts'
import type { Stored } from './stored-object.ts'

export type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED'

/** A watch as faults see it. */
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

/** What tests may do to watches; see faults.ts. */
export interface WatchFaults {
  /** True when some rule looks at single events, so that bytes cannot be shared. */
  readonly hasEventRules: boolean
  /** How often the event is delivered: 0 drops, 2 duplicates. */
  copies(watch: WatchInfo, event: WatchEvent): number
  /** Order of a batch of events. */
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
  /** Encodes one event; may need to ask a conversion webhook. */
  encode(type: WatchEventType, stored: Stored): Buffer | Promise<Buffer>
  /** Equal keys mean equal requests; undefined never shares. */
  readonly shareKey: string | undefined
}

/** The event a change is to a watch with selectors: an object that starts or stops matching appears or disappears. */
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
  /** The last lagging delivery; later ones must not overtake it. */
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

  /** Delivers what was held while the watch was frozen. */
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

  /** The client is gone: nothing to say to it any more. */
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
  /** Encodings still under way, in order. */
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
    // A conversion that fails ends the watches: they would otherwise miss a change without knowing.
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

  /** Joins `watcher` to the live changes, beginning with the next one. The answer leaves. */
  join(watcher: Watcher, request: ChannelRequest): () => void {
    const { shareKey } = request
    let channel = shareKey === undefined ? undefined : this.#channels.get(shareKey)
    if (channel === undefined || channel.isConverting) {
      channel = new Channel(request, this.#faults, (dirty) => this.#markDirty(dirty))
      if (shareKey !== undefined && !this.#channels.has(shareKey)) this.#channels.set(shareKey, channel)
    } else {
      // The newcomer has seen everything up to now; the others have not been sent it yet.
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
    const waitMs = this.#resumeAtMs - performance.now()
    if (waitMs < 1) setImmediate(() => this.flush())
    else {
      const timer = setTimeout(() => this.flush(), waitMs)
      this.#pause = { cancel: () => clearTimeout(timer) }
    }
  }

  /** Sends what is gathered. */
  flush(): void {
    this.#isScheduled = false
    this.#pause?.cancel()
    const started = performance.now()
    const dirty = this.#dirty
    this.#dirty = new Set()
    for (const channel of dirty) channel.flush()
    const tookMs = performance.now() - started
    // At most half of the time goes into fan-out; what arrives meanwhile travels in the next batch.
    this.#resumeAtMs = tookMs > 2 ? performance.now() + Math.min(tookMs, 200) : 0
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

  /** Ends every watch, as a server that shuts down. */
  close(): void {
    this.flush()
    for (const [watcher, { leave }] of Array.from(this.#watchers)) {
      leave()
      watcher.end()
    }
  }

  /** The clock that watchers time their lag by. */
  get clock(): Clock {
    return this.#clock
  }
}
