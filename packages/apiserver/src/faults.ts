/**
 * Fault injection for tests. Available only in the process that created the server.
 *
 * A method adds a rule and returns the function that removes it; rules match requests by resource, verb, name and other
 * attributes, and may be limited to a number of uses. Watches can be frozen, delayed or cut; their events dropped,
 * duplicated or reordered; lists shortened; responses replaced by errors, delayed, or dropped after the write.
 */
import type { Call } from './handlers/call.ts'
import { ApiError, statusError } from './exchange/status.ts'
import type { Page } from './store/collection.ts'
import type { Store } from './store/store.ts'
import type { Watcher, WatchEvent, WatchFaults, WatchInfo } from './store/watch-hub.ts'

/** Undefined members match everything. */
export interface RequestMatch {
  readonly verb?: string | readonly string[]
  readonly group?: string
  readonly resource?: string
  readonly subresource?: string
  readonly namespace?: string
  readonly name?: string
  readonly user?: string
  readonly userAgent?: RegExp
}

export type WatchMatch = Pick<RequestMatch, 'group' | 'resource' | 'namespace' | 'user' | 'userAgent'>

export interface ErrorFault {
  /** @default 500 */
  readonly status?: number
  readonly reason?: string
  readonly message?: string
  readonly retryAfterSeconds?: number
  /** Number of requests that fail. @default until removed */
  readonly times?: number
  /** Fraction of the requests that fail. @default 1 */
  readonly probability?: number
  /** Performs the request and drops the response: the client sees a broken connection. */
  readonly afterwards?: boolean
}

export type Remove = () => void

interface Rule<T> {
  readonly match: RequestMatch
  readonly what: T
  left: number
}

const reasons: Record<number, string> = {
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
  409: 'Conflict',
}

/** The transport aborts the connection instead of responding. */
export class DroppedResponse extends Error {
  readonly code = 'LOST_ANSWER'
}

export class Faults implements WatchFaults {
  readonly #random: () => number
  readonly #errors: Rule<ErrorFault>[] = []
  readonly #delays: Rule<number>[] = []
  readonly #conflicts: Rule<true>[] = []
  readonly #lists: Rule<(count: number) => number>[] = []
  readonly #frozen: WatchMatch[] = []
  readonly #lags: { match: WatchMatch; ms: number }[] = []
  readonly #copies: { match: WatchMatch; count: (event: WatchEvent, watch: WatchInfo) => number }[] = []
  readonly #orders: { match: WatchMatch; order: (events: readonly WatchEvent[]) => readonly WatchEvent[] }[] = []
  readonly #watchers = new Set<Watcher>()
  readonly #store: Store

  constructor(store: Store, random: () => number) {
    this.#store = store
    this.#random = random
  }

  /** Responds to matching requests with an error. */
  fail(match: RequestMatch, fault: ErrorFault = {}): Remove {
    return add(this.#errors, { match, what: fault, left: fault.times ?? Infinity })
  }

  /** Delays matching requests. */
  delay(match: RequestMatch, ms: number): Remove {
    return add(this.#delays, { match, what: ms, left: Infinity })
  }

  /** Updates and patches fail with 409 as if another client had written first. */
  conflict(match: RequestMatch, times = 1): Remove {
    return add(this.#conflicts, { match, what: true, left: times })
  }

  /** Lists return 200 with fewer items: `keep` of the count (0 returns none). */
  shorten(match: RequestMatch, keep: number | ((count: number) => number) = 0, times = Infinity): Remove {
    return add(this.#lists, { match, what: typeof keep === 'number' ? () => keep : keep, left: times })
  }

  /** Watches deliver nothing until removed, then all buffered events. */
  freeze(match: WatchMatch = {}): Remove {
    const remove = add(this.#frozen, match)
    return () => {
      remove()
      for (const watcher of this.#watchers) if (!this.isFrozen(watcher.info)) watcher.thaw()
    }
  }

  /** Watches deliver with a delay, in order. */
  lag(match: WatchMatch, ms: number): Remove {
    return add(this.#lags, { match, ms })
  }

  /** Events for which `isHit` returns true are never delivered. */
  drop(match: WatchMatch, isHit: (event: WatchEvent, watch: WatchInfo) => boolean = () => true): Remove {
    return add(this.#copies, { match, count: (event, watch) => (isHit(event, watch) ? 0 : 1) })
  }

  /** Events for which `isHit` returns true are delivered twice. */
  duplicate(match: WatchMatch, isHit: (event: WatchEvent, watch: WatchInfo) => boolean = () => true): Remove {
    return add(this.#copies, { match, count: (event, watch) => (isHit(event, watch) ? 2 : 1) })
  }

  /** Changes the order of events that are delivered together. @default reversed */
  reorder(
    match: WatchMatch,
    order: (events: readonly WatchEvent[]) => readonly WatchEvent[] = (events) => [...events].reverse(),
  ): Remove {
    return add(this.#orders, { match, order })
  }

  /** Ends open watches, by a regular end or by aborting the connection. Returns their number. */
  cut(match: WatchMatch = {}, how: 'end' | 'break' = 'end'): number {
    const hit = [...this.#watchers].filter((watcher) => isWatchMatch(match, watcher.info))
    for (const watcher of hit) {
      if (how === 'end') watcher.end()
      else watcher.abort()
    }
    return hit.length
  }

  /** Compacts the history: older resourceVersions get 410 from now on. */
  compact(revision?: number): void {
    this.#store.compact(revision)
  }

  /** Removes every rule and unfreezes every watch. */
  clear(): void {
    for (const list of [
      this.#errors,
      this.#delays,
      this.#conflicts,
      this.#lists,
      this.#frozen,
      this.#lags,
      this.#copies,
      this.#orders,
    ]) {
      list.length = 0
    }
    for (const watcher of this.#watchers) watcher.thaw()
  }

  get openWatches(): readonly WatchInfo[] {
    return [...this.#watchers].map((watcher) => watcher.info)
  }

  // Called by the server.

  delayMs(call: Call): number {
    return this.#delays.length === 0 ? 0 : (take(this.#delays, call) ?? 0)
  }

  /** Throws when the request is to fail; returns whether its response is to be dropped afterwards. */
  checkRequest(call: Call): boolean {
    if (this.#errors.length === 0) return false
    const fault = take(this.#errors, call, (candidate) => this.#random() < (candidate.probability ?? 1))
    if (fault === undefined) return false
    if (fault.afterwards === true) return true
    const status = fault.status ?? 500
    if (status === 0) throw new DroppedResponse('the connection is broken by a fault rule')
    throw describeFault(fault, status)
  }

  forcesConflict(call: Call): boolean {
    return this.#conflicts.length > 0 && take(this.#conflicts, call) === true
  }

  shortenList(call: Call, page: Page): Page {
    if (this.#lists.length === 0) return page
    const keep = take(this.#lists, call)
    return keep === undefined ? page : { items: page.items.slice(0, keep(page.items.length)), remaining: 0 }
  }

  get hasEventRules(): boolean {
    return this.#copies.length > 0 || this.#orders.length > 0
  }

  copies(watch: WatchInfo, event: WatchEvent): number {
    return this.#copies
      .filter((rule) => isWatchMatch(rule.match, watch))
      .reduce((count, rule) => count * rule.count(event, watch), 1)
  }

  isFrozen(watch: WatchInfo): boolean {
    return this.#frozen.some((match) => isWatchMatch(match, watch))
  }

  lagMs(watch: WatchInfo): number {
    return Math.max(0, ...this.#lags.filter((rule) => isWatchMatch(rule.match, watch)).map((rule) => rule.ms))
  }

  registerWatch(watcher: Watcher): void {
    this.#watchers.add(watcher)
  }

  forgetWatch(watcher: Watcher): void {
    this.#watchers.delete(watcher)
  }

  /** See `WatchFaults.reorder`; rules take events, the hub takes frames. */
  reorderFrames<T extends { event: WatchEvent }>(watch: WatchInfo, batch: T[]): T[] {
    let frames = batch
    for (const rule of this.#orders) {
      if (!isWatchMatch(rule.match, watch)) continue
      const byEvent = new Map(frames.map((frame) => [frame.event, frame]))
      frames = rule.order(frames.map((frame) => frame.event)).flatMap((event) => byEvent.get(event) ?? [])
    }
    return frames
  }
}

function describeFault(fault: ErrorFault, status: number): ApiError {
  const reason = fault.reason ?? reasons[status] ?? 'InternalError'
  const message =
    fault.message ?? (status === 429 ? 'too many requests, please try again later' : `fault injected: ${reason}`)
  return statusError(status, reason, message, fault.retryAfterSeconds)
}

function add<T>(list: T[], item: T): Remove {
  list.push(item)
  return () => {
    const at = list.indexOf(item)
    if (at >= 0) list.splice(at, 1)
  }
}

/** The first rule that matches and has uses left. */
function take<T>(rules: Rule<T>[], call: Call, isHit: (what: T) => boolean = () => true): T | undefined {
  for (const rule of rules) {
    if (rule.left <= 0 || !isMatch(rule.match, call) || !isHit(rule.what)) continue
    rule.left -= 1
    return rule.what
  }
  return undefined
}

function isMatch(match: RequestMatch, call: Call): boolean {
  const { info, user, request } = call
  const verbs = typeof match.verb === 'string' ? [match.verb] : match.verb
  return (
    (verbs === undefined || verbs.includes(info.verb)) &&
    (match.group === undefined || match.group === info.group) &&
    (match.resource === undefined || match.resource === info.resource) &&
    (match.subresource === undefined || match.subresource === info.subresource) &&
    (match.namespace === undefined || match.namespace === info.namespace) &&
    (match.name === undefined || match.name === info.name) &&
    (match.user === undefined || match.user === user.name) &&
    (match.userAgent === undefined || match.userAgent.test(request.headers['user-agent'] ?? ''))
  )
}

function isWatchMatch(match: WatchMatch, watch: WatchInfo): boolean {
  return (
    (match.group === undefined || match.group === watch.group) &&
    (match.resource === undefined || match.resource === watch.resource) &&
    (match.namespace === undefined || match.namespace === watch.namespace) &&
    (match.user === undefined || match.user === watch.user) &&
    (match.userAgent === undefined || match.userAgent.test(watch.userAgent))
  )
}
