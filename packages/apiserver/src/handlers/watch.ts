/**
 * Watch requests: start, initial events, bookmarks and end.
 *
 * Flow: the initial state or the missed changes are sent first, then the watcher joins the hub synchronously, so that
 * no change is lost in between. Bookmarks are sent about every minute and shortly before the timeout.
 */
import type { Timer } from '../clock.ts'
import { type Call, readView, warningHeaders } from './call.ts'
import { encodeBookmark, encodeEvent, encodeFrame, type View } from '../codec/encode.ts'
import type { ApiResponse, WatchSink } from '../exchange/exchange.ts'
import { representationKey } from '../exchange/negotiate.ts'
import { type ListOptions, parseRevision, readListOptions } from './read.ts'
import { badRequest, expired, tooLargeResourceVersion, unclassified } from '../exchange/status.ts'
import type { Stored } from '../store/stored-object.ts'
import { type ChannelRequest, selectEvent, type WatchEventType, Watcher } from '../store/watch-hub.ts'

const bookmarkEveryMs = 60_000
const bookmarkBeforeEndMs = 2_000
const bufferLimit = 16 * 1024 * 1024

export function watchObjects(call: Call): ApiResponse {
  const { resource, backend } = call
  const view = readView(call)
  if (view.representation.format === 'yaml') throw badRequest('watch is not supported in YAML')
  const options = readListOptions(call, true)
  const { revision, problem } = parseRevision(options.resourceVersion)
  if (problem !== undefined) throw unclassified(problem)
  const current = backend.store.revision
  if (revision !== undefined && revision > current && options.sendInitialEvents === true) {
    throw tooLargeResourceVersion(revision, current)
  }
  return {
    kind: 'stream',
    status: 200,
    headers: { 'content-type': 'application/json', ...warningHeaders(call) },
    start: (sink) => new WatchSession(call, view, options, revision, sink).start(resource.collection.compactedRevision),
  }
}

class WatchSession {
  readonly #call: Call
  readonly #view: View
  readonly #options: ListOptions
  readonly #since: number | undefined
  readonly #watcher: Watcher
  readonly #request: ChannelRequest
  readonly #timers: Timer[] = []
  #bookmarkTimer: Timer | undefined
  /** A Table contains its column definitions once. */
  #isFirst = true

  constructor(call: Call, view: View, options: ListOptions, since: number | undefined, sink: WatchSink) {
    const { backend, resource, info, request } = call
    this.#call = call
    this.#view = view
    this.#options = options
    this.#since = since
    const watch = {
      group: resource.group,
      resource: resource.plural,
      namespace: info.namespace,
      user: call.user.name,
      userAgent: request.headers['user-agent'] ?? '',
    }
    this.#watcher = new Watcher(watch, sink, backend.faults, backend.clock, bufferLimit)
    const isTable = view.representation.as === 'Table'
    this.#request = {
      collection: resource.collection,
      namespace: resource.namespaced ? info.namespace : '',
      labels: options.labels,
      fields: options.fields,
      encode: (type, stored) => this.#encode(type, stored),
      // Ages in a Table depend on the time, columns on the watcher: Tables are not shared.
      shareKey: isTable
        ? undefined
        : [
            resource.apiVersion,
            resource.plural,
            info.namespace,
            options.labelText,
            options.fieldText,
            representationKey(view.representation),
          ].join('\n'),
    }
  }

  #encode(type: WatchEventType, stored: Stored): Buffer | Promise<Buffer> {
    const isFirst = this.#isFirst
    this.#isFirst = false
    const view =
      this.#view.representation.as === 'Table' ? { ...this.#view, nowMs: this.#call.backend.clock.now() } : this.#view
    return encodeEvent(view, type, stored, isFirst)
  }

  start(compacted: number): () => void {
    const { backend } = this.#call
    if (this.#since !== undefined && this.#options.sendInitialEvents !== true && this.#since < compacted) {
      this.#watcher.send(
        encodeFrame('ERROR', expired(`too old resource version: ${this.#since} (${compacted})`).status),
      )
      this.#watcher.end()
      return () => undefined
    }
    const first = this.#firstFrames()
    const hasConversion = first.some((frame) => !Buffer.isBuffer(frame))
    const leave = hasConversion ? this.#joinAfter(first) : this.#joinNow(first as Buffer[])
    this.#scheduleEnd()
    this.#scheduleBookmark()
    backend.faults.registerWatch(this.#watcher)
    return () => {
      this.#watcher.forget()
      leave()
      this.#bookmarkTimer?.cancel()
      for (const timer of this.#timers) timer.cancel()
      backend.faults.forgetWatch(this.#watcher)
    }
  }

  #joinNow(first: readonly Buffer[]): () => void {
    const leave = this.#call.backend.hub.join(this.#watcher, this.#request)
    if (first.length > 0) this.#watcher.send(first.length === 1 ? (first[0] as Buffer) : Buffer.concat(first))
    return leave
  }

  /** Conversion is asynchronous: live changes are sent after the initial frames. */
  #joinAfter(first: readonly (Buffer | Promise<Buffer>)[]): () => void {
    const { shareKey: _shareKey, ...rest } = this.#request
    const waiting = Promise.all(first.map(async (frame) => await frame))
    const ready = waiting.then((frames) => {
      for (const frame of frames) this.#watcher.send(frame)
    })
    ready.catch(() => this.#watcher.abort())
    return this.#call.backend.hub.join(this.#watcher, {
      ...rest,
      shareKey: undefined,
      encode: async (type, stored) => {
        const frame = await this.#encode(type, stored)
        await ready
        return frame
      },
    })
  }

  #firstFrames(): (Buffer | Promise<Buffer>)[] {
    const { collection, namespace, labels, fields } = this.#request
    const { sendInitialEvents, allowBookmarks } = this.#options
    const frames: (Buffer | Promise<Buffer>)[] = []
    const isState = sendInitialEvents ?? this.#since === undefined
    if (isState) {
      for (const stored of collection.range({ namespace, limit: 0 }).items) {
        if ((labels.isEmpty || labels.matches(stored.labels)) && (fields.isEmpty || fields.matches(stored)))
          frames.push(this.#encode('ADDED', stored))
      }
      if (sendInitialEvents === true && allowBookmarks)
        frames.push(encodeBookmark(this.#view, this.#call.backend.store.revision, true))
    } else if (this.#since !== undefined) {
      for (const change of collection.changesSince(this.#since)) {
        const selected = selectEvent(change, this.#request)
        if (selected !== undefined) frames.push(this.#encode(selected.type, selected.stored))
      }
    }
    return frames
  }

  #scheduleEnd(): void {
    const { clock, random } = this.#call.backend
    const requestedSeconds = this.#options.timeoutSeconds
    const timeoutMs =
      requestedSeconds !== undefined && requestedSeconds > 0
        ? requestedSeconds * 1000
        : 1_800_000 + random() * 1_800_000
    this.#timers.push(clock.schedule(Math.min(timeoutMs, 2 ** 31 - 1), () => this.#watcher.end()))
    if (timeoutMs > bookmarkBeforeEndMs) {
      this.#timers.push(clock.schedule(Math.min(timeoutMs - bookmarkBeforeEndMs, 2 ** 31 - 1), () => this.#bookmark()))
    }
  }

  #scheduleBookmark(): void {
    if (!this.#options.allowBookmarks) return
    const { clock } = this.#call.backend
    this.#bookmarkTimer = clock.schedule(bookmarkEveryMs, () => {
      if (!this.#watcher.isOpen) return
      this.#bookmark()
      this.#scheduleBookmark()
    })
  }

  /** Sent only after everything up to its revision. */
  #bookmark(): void {
    if (!this.#options.allowBookmarks || !this.#watcher.isOpen) return
    const { hub, store } = this.#call.backend
    hub.flush()
    this.#watcher.send(encodeBookmark(this.#view, store.revision, false))
  }
}
