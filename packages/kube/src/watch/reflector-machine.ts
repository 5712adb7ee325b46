/**
 * The decisions of a reflector as a pure function: `step(state, input, context)` returns the next state and the
 * effects. The driver (reflector.ts) performs the effects and reports the results; this module does no I/O and reads no
 * clock.
 *
 *   stream ──end bookmark──▶ watch ──410, too large RV, relist due──▶ stream        (stream: WatchList)
 *     │ unsupported, denied,   ▲  │
 *     │ stalled                │  └─429, 5xx, reset, ended──▶ wait ──▶ watch from the last version
 *     ▼                        │
 *    list ──last page──────────┘         404 anywhere ──▶ probe ──not served──▶ absent ──▶ stream
 *
 * Guarantees: the version never advances on synthetic events, nor before the event was applied (effects precede the
 * state); a watch starts at the version of its list; an unfinished list is never committed; a list that would remove a
 * large part of the cached objects is read a second time first; failures are retried with jittered back-off, without a
 * limit of attempts.
 */
import { isMassChange, type MassLimits } from '../mass-limits.ts'
import { spreadWaitMs } from '../requested-wait.ts'

export type Failure =
  | 'expired' // 410: the version or continue token is too old
  | 'too-large' // the server's cache is behind the requested version
  | 'unsupported' // the request itself is rejected: no WatchList
  | 'denied' // 401, 403
  | 'absent' // 404
  | 'internal' // 500
  | 'busy' // 429, 503, 504: retry later
  | 'over-limit' // the server sends more than the cache may hold (cache-limits.ts)
  | 'broken' // reset, truncated frame, timeout: no response or part of one

type State =
  | { readonly at: 'stream' }
  | { readonly at: 'list'; readonly isUnpaged: boolean }
  | { readonly at: 'watch'; readonly since: number; readonly events: number }
  | { readonly at: 'probe' }
  | { readonly at: 'wait'; readonly next: 'sync' | 'list' | 'watch' | 'probe' }
  | { readonly at: 'absent'; readonly polls: number }

export interface Reflection {
  readonly state: State
  /** The last version applied; a watch resumes here. */
  readonly version: string | undefined
  readonly canStream: boolean
  /** Consecutive failures; determines the wait. */
  readonly failures: number
  /** Time of the last complete sync, ms. */
  readonly syncedAt: number
  /** The current set is read to confirm the previous one, which would have removed too many objects. */
  readonly isConfirming: boolean
}

export type Input =
  | { readonly type: 'start' }
  | { readonly type: 'object'; readonly version: string }
  | {
      readonly type: 'bookmark'
      readonly version: string
      readonly isInitialEnd: boolean
      readonly removals: Removals
    }
  | {
      readonly type: 'page'
      readonly version: string
      readonly continueToken: string | undefined
      readonly removals: Removals
    }
  /** The end of the initial events did not arrive in time. */
  | { readonly type: 'stalled' }
  | { readonly type: 'ended' }
  | { readonly type: 'failed'; readonly failure: Failure; readonly retryAfterMs?: number | undefined }
  | { readonly type: 'probed'; readonly isServed: boolean }
  | { readonly type: 'waited' }
  /** A hint that the next attempt may succeed: a new CRD, or the server answers again after an outage. */
  | { readonly type: 'kicked' }

interface Removals {
  readonly known: number
  readonly removed: number
}

export type Effect =
  | { readonly do: 'stage' } // stage the current object
  | { readonly do: 'apply' } // apply the current object to the cache
  | { readonly do: 'advance'; readonly version: string }
  | { readonly do: 'commit'; readonly version: string }
  | { readonly do: 'discard' }
  | { readonly do: 'clear' }
  | { readonly do: 'open-stream' }
  | { readonly do: 'read-page'; readonly continueToken: string | undefined; readonly isUnpaged: boolean }
  | { readonly do: 'open-watch'; readonly version: string }
  | { readonly do: 'probe' }
  | { readonly do: 'wait'; readonly ms: number }

export interface StepContext {
  readonly now: number
  /** In [0, 1). */
  readonly random: number
  /** Interval of complete syncs. */
  readonly relistMs: number
  /** A set that would remove more objects is read a second time first. */
  readonly removalLimits: MassLimits
}

export const initialReflection: Reflection = {
  state: { at: 'wait', next: 'sync' },
  version: undefined,
  canStream: true,
  failures: 0,
  syncedAt: 0,
  isConfirming: false,
}

/** As in client-go: 0.8 s doubling to 30 s, reset after two minutes without failures. */
const FIRST_WAIT_MS = 800
const MAX_WAIT_MS = 30_000
const HEALTHY_MS = 120_000
/**
 * A watch that ends sooner than this counts as a failure. One that delivered events is reopened at once the first time;
 * a server that ends every watch after an event is retried with increasing delays.
 */
const TOO_SHORT_MS = 1000
const FIRST_POLL_MS = 250
/** All watches of all processes are tried again when their server answers again. */
const KICK_SPREAD_MS = 1000

export interface Step {
  readonly next: Reflection
  readonly effects: readonly Effect[]
}

export function step(now: Reflection, input: Input, context: StepContext): Step {
  const { state } = now
  switch (state.at) {
    case 'stream':
      return stepStream(now, input, context)
    case 'list':
      return stepList(now, state, input, context)
    case 'watch':
      return stepWatch(now, state, input, context)
    case 'probe':
      return stepProbe(now, input, context)
    case 'wait':
      return stepWait(now, state.next, input, context)
    case 'absent':
      return stepAbsent(now, state.polls, input)
  }
}

function stepStream(now: Reflection, input: Input, context: StepContext): Step {
  switch (input.type) {
    case 'object':
      return { next: now, effects: [{ do: 'stage' }] }
    case 'bookmark':
      if (!input.isInitialEnd) return { next: now, effects: [] }
      return settle(now, input.version, input.removals, context, [])
    case 'stalled':
      // The server ignores sendInitialEvents; this does not change while it runs.
      return list({ ...now, canStream: false }, [{ do: 'discard' }])
    case 'ended':
      return wait(now, 'sync', context, [{ do: 'discard' }])
    case 'failed':
      if (input.failure === 'unsupported') return list({ ...now, canStream: false }, [{ do: 'discard' }])
      // Listing may be allowed where watching is denied, and possible where the watch cache is not fresh in time.
      if (input.failure === 'denied' || input.failure === 'too-large' || input.failure === 'expired') {
        return list(now, [{ do: 'discard' }])
      }
      if (input.failure === 'absent') return probe(now, [{ do: 'discard' }])
      // The stream itself may be the cause of repeated failures: the next attempt is a list.
      return wait(now, now.failures >= 2 ? 'list' : 'sync', context, [{ do: 'discard' }], input.retryAfterMs)
    case 'start':
    case 'page':
    case 'probed':
    case 'waited':
    case 'kicked':
      return { next: now, effects: [] }
  }
}

function stepList(now: Reflection, state: { isUnpaged: boolean }, input: Input, context: StepContext): Step {
  switch (input.type) {
    case 'object':
      return { next: now, effects: [{ do: 'stage' }] }
    case 'page':
      if (input.continueToken !== undefined) {
        return { next: now, effects: [{ do: 'read-page', continueToken: input.continueToken, isUnpaged: false }] }
      }
      return settle(now, input.version, input.removals, context, [{ do: 'open-watch', version: input.version }])
    case 'failed':
      if (input.failure === 'absent') return probe(now, [{ do: 'discard' }])
      // The continue token is older than the server's history: list without paging.
      if (input.failure === 'expired' && !state.isUnpaged) {
        return {
          next: { ...now, state: { at: 'list', isUnpaged: true } },
          effects: [{ do: 'discard' }, { do: 'read-page', continueToken: undefined, isUnpaged: true }],
        }
      }
      return wait(
        now,
        now.canStream && input.failure !== 'denied' ? 'sync' : 'list',
        context,
        [{ do: 'discard' }],
        input.retryAfterMs,
      )
    case 'start':
    case 'bookmark':
    case 'stalled':
    case 'ended':
    case 'probed':
    case 'waited':
    case 'kicked':
      return { next: now, effects: [] }
  }
}

function stepWatch(
  now: Reflection,
  state: { since: number; events: number },
  input: Input,
  context: StepContext,
): Step {
  switch (input.type) {
    case 'object': {
      const next = {
        ...now,
        version: input.version,
        state: { at: 'watch' as const, since: state.since, events: state.events + 1 },
      }
      return { next, effects: APPLY }
    }
    case 'bookmark':
      return { next: { ...now, version: input.version }, effects: [{ do: 'advance', version: input.version }] }
    case 'ended':
    case 'failed':
      return stepWatchEnded(now, state, input, context)
    case 'start':
    case 'page':
    case 'stalled':
    case 'probed':
    case 'waited':
    case 'kicked':
      return { next: now, effects: [] }
  }
}

/** Shared, to avoid an allocation per event. */
const APPLY: readonly Effect[] = [{ do: 'apply' }]

function stepWatchEnded(
  before: Reflection,
  state: { since: number; events: number },
  input: Extract<Input, { type: 'ended' | 'failed' }>,
  context: StepContext,
): Step {
  const lastedMs = context.now - state.since
  const now = lastedMs >= HEALTHY_MS ? { ...before, failures: 0 } : before
  if (input.type === 'failed') {
    switch (input.failure) {
      case 'expired':
      case 'too-large':
        // At once the first time; with back-off if the server repeats the response.
        return now.failures === 0 ? sync({ ...now, failures: 1 }, []) : wait(now, 'sync', context, [])
      case 'absent':
        return probe(now, [])
      case 'denied':
        // Periodic lists keep the cache up to date while watching is denied.
        return wait(now, 'list', context, [])
      case 'unsupported':
        // The server rejects the version itself.
        return wait(now, 'sync', context, [])
      case 'internal':
        // Some failures are tied to the version (for example an event partly compacted in etcd): resuming there would
        // fail forever.
        return wait(now, now.failures >= 3 ? 'sync' : 'watch', context, [], input.retryAfterMs)
      case 'over-limit':
        // The cache is no longer complete: only a complete list within the limits makes it so again.
        return wait(now, 'sync', context, [], input.retryAfterMs)
      case 'busy':
      case 'broken':
        return wait(now, 'watch', context, [], input.retryAfterMs)
    }
  }
  if (context.now - now.syncedAt >= context.relistMs) return sync(now, [])
  if (lastedMs >= TOO_SHORT_MS) return watch(now, context, [])
  return state.events > 0 && now.failures === 0
    ? watch({ ...now, failures: 1 }, context, [])
    : wait(now, 'watch', context, [])
}

function stepProbe(now: Reflection, input: Input, context: StepContext): Step {
  if (input.type === 'probed') {
    if (input.isServed) return wait(now, 'sync', context, [])
    const next: Reflection = {
      ...now,
      version: undefined,
      failures: 0,
      isConfirming: false,
      state: { at: 'absent', polls: 0 },
    }
    return { next, effects: [{ do: 'clear' }, { do: 'wait', ms: FIRST_POLL_MS }] }
  }
  if (input.type === 'failed') return wait(now, 'probe', context, [], input.retryAfterMs)
  return { next: now, effects: [] }
}

function stepAbsent(now: Reflection, polls: number, input: Input): Step {
  const again = (count: number): Step => {
    const ms = Math.min(MAX_WAIT_MS, FIRST_POLL_MS * 2 ** Math.min(count, 10))
    return { next: { ...now, state: { at: 'absent', polls: count + 1 } }, effects: [{ do: 'wait', ms }] }
  }
  switch (input.type) {
    case 'waited':
      return { next: now, effects: [{ do: 'probe' }] }
    case 'kicked':
      return { next: { ...now, state: { at: 'absent', polls: 0 } }, effects: [{ do: 'probe' }] }
    case 'probed':
      return input.isServed ? sync(now, []) : again(polls)
    case 'failed':
      return again(polls)
    case 'start':
    case 'object':
    case 'bookmark':
    case 'page':
    case 'stalled':
    case 'ended':
      return { next: now, effects: [] }
  }
}

function stepWait(
  now: Reflection,
  then: 'sync' | 'list' | 'watch' | 'probe',
  input: Input,
  context: StepContext,
): Step {
  if (input.type === 'kicked' && now.failures > 0) {
    // What failed before says nothing any more: the next failure is the first one.
    return { next: { ...now, failures: 0 }, effects: [{ do: 'wait', ms: context.random * KICK_SPREAD_MS }] }
  }
  if (input.type !== 'waited' && input.type !== 'start') return { next: now, effects: [] }
  switch (then) {
    case 'sync':
      return sync(now, [])
    case 'list':
      return list(now, [])
    case 'watch':
      return watch(now, context, [])
    case 'probe':
      return probe(now, [])
  }
}

/** A complete set is staged: commit it, or read it again if it would remove too many objects. */
function settle(
  now: Reflection,
  version: string,
  { known, removed }: Removals,
  context: StepContext,
  then: readonly Effect[],
): Step {
  const isSuspicious = isMassChange(removed, known, context.removalLimits)
  if (isSuspicious && !now.isConfirming) return list({ ...now, isConfirming: true }, [{ do: 'discard' }])
  const next: Reflection = {
    ...now,
    version,
    isConfirming: false,
    syncedAt: context.now,
    state: { at: 'watch', since: context.now, events: 0 },
  }
  return { next, effects: [{ do: 'commit', version }, ...then] }
}

function sync(now: Reflection, before: readonly Effect[]): Step {
  if (!now.canStream || now.isConfirming) return list(now, before)
  return { next: { ...now, state: { at: 'stream' } }, effects: [...before, { do: 'open-stream' }] }
}

function list(now: Reflection, before: readonly Effect[]): Step {
  const read: Effect = { do: 'read-page', continueToken: undefined, isUnpaged: false }
  return { next: { ...now, state: { at: 'list', isUnpaged: false } }, effects: [...before, read] }
}

function watch(now: Reflection, context: StepContext, before: readonly Effect[]): Step {
  if (now.version === undefined) return sync(now, before)
  const next: Reflection = { ...now, state: { at: 'watch', since: context.now, events: 0 } }
  return { next, effects: [...before, { do: 'open-watch', version: now.version }] }
}

function probe(now: Reflection, before: readonly Effect[]): Step {
  return { next: { ...now, state: { at: 'probe' } }, effects: [...before, { do: 'probe' }] }
}

function wait(
  now: Reflection,
  then: 'sync' | 'list' | 'watch' | 'probe',
  { random }: StepContext,
  before: readonly Effect[],
  retryAfterMs = 0,
): Step {
  const fullMs = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(now.failures, 10))
  const ms = Math.max(spreadWaitMs(retryAfterMs, random), fullMs / 2 + (random * fullMs) / 2)
  const next: Reflection = { ...now, failures: now.failures + 1, state: { at: 'wait', next: then } }
  return { next, effects: [...before, { do: 'wait', ms }] }
}
