/**
 * Leader election with a Lease, and the write fence that makes it safe.
 *
 * Place in the flow: the manager runs one election; controllers start when it is won. Every write of a controller first
 * calls `fence.check()`.
 *
 * Flow: try every `candidatePeriodMs` (jittered), and at the moment when its duration is over, to acquire the Lease: it is
 * free, or its record has not changed for its whole duration *as observed locally*, so clocks of two machines are never
 * compared. The leader renews every `retryPeriodMs`.
 * Guarantees: at most one leader. Leadership is measured on the monotonic clock from *before* the last successful
 * renewal was sent; `renewDeadlineMs` later the fence is closed by comparing times only, so a process that was stalled
 * for longer finds it closed before any of its timers has run. Other candidates wait `durationMs`, which is longer.
 * An election that was lost is never won again: the manager has one for each term, so that each has a fence of its own.
 * Caveats: a request sent before the fence closed may still arrive; it has `durationMs - renewDeadlineMs` to do so.
 */
import { type Clock, sleep, systemClock } from '../clock.ts'
import type { Client } from '../client/client.ts'
import { LeadershipLost, type WriteFence } from '../apply/write-fence.ts'
import { microTimestamp } from '../object/conditions.ts'
import { KubeError, messageOf } from '../errors.ts'
import { Lease } from '../object/kinds.ts'
import type { Logger } from '../log.ts'
import type { Key } from '../object/object.ts'

export interface LeaseOptions {
  /** Name of the Lease. */
  lease: string
  namespace: string
  /** Unique per process. @default host name and a random part */
  identity?: string
  /** Time that candidates wait before they take over, ms. @default 15_000 */
  durationMs?: number
  /** Time for which the leader tries to renew before it stops leading, ms. @default 10_000 */
  renewDeadlineMs?: number
  /** @default 2_000 */
  retryPeriodMs?: number
  /**
   * Shortest time between two reads of a Lease that another process holds, ms; the longest is 2.2 times as long. The Lease is
   * taken over up to the longest after its duration. @default `retryPeriodMs`
   */
  candidatePeriodMs?: number
  /** Written with each renewal: what readers of the Lease want to know of its holder. @default none */
  annotations?: () => Readonly<Record<string, string>>
}

export interface Election {
  readonly fence: WriteFence
  readonly isLeading: boolean
  /** The last observed holder of the Lease; undefined if unknown or free. */
  readonly holder: string | undefined
  /** Resolves when the Lease is acquired, or when the signal aborts: callers check `isLeading`. */
  acquire(signal: AbortSignal): Promise<void>
  /**
   * Reads the Lease without acquiring it, until the signal aborts: an `acquire` after that need not observe for the whole
   * duration again that the holder does not renew it.
   */
  follow(signal: AbortSignal): Promise<void>
  /** Renews until the signal aborts (then it resolves) or leadership is lost (then it rejects). Call after `acquire`. */
  hold(signal: AbortSignal): Promise<void>
  /**
   * Clears the holder, so that another candidate need not wait. Call only after every writer has stopped. Never
   * rejects.
   */
  release(): Promise<void>
}

export interface ElectionDeps {
  client: Client
  log: Logger
  identity: string
  clock?: Clock
  /** In [0, 1). @default Math.random */
  random?: () => number
  onChange?: (isLeading: boolean) => void
  /** `acquire` waits because another process holds the Lease: called at the first attempt, and when the holder changes. */
  onWait?: (holder: string) => void
}

/** As in client-go: retries are spread over 1 to 2.2 periods. */
const JITTER = 1.2
/** While the API server is away, an error that repeats is logged this often. */
const REPEAT_LOG_MS = 60_000

export function createElection(options: LeaseOptions, deps: ElectionDeps): Election {
  const { durationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2_000 } = options
  const { candidatePeriodMs = retryPeriodMs } = options
  const { client, log, identity, clock = systemClock, random = Math.random, onChange, onWait } = deps
  if (!(durationMs > renewDeadlineMs && renewDeadlineMs > retryPeriodMs * JITTER && retryPeriodMs > 0)) {
    const given = `${durationMs} / ${renewDeadlineMs} / ${retryPeriodMs} ms`
    throw new KubeError(
      'LEASE_TIMES',
      `lease times ${given}: need duration > renew deadline > ${JITTER} × retry period`,
    )
  }
  const key: Key = `${options.namespace}/${options.lease}`
  const attemptMs = Math.max(1_000, renewDeadlineMs / 2)

  /** The last observed record, and the monotonic time since which it is unchanged. */
  let seen: { lease: Lease; since: number } | undefined
  /** False after a failed write: the known record may be outdated, so the next attempt reads first. */
  let isCurrent = false
  /** Monotonic time before the last successful renewal was sent; undefined before the first. */
  let renewedAt: number | undefined
  let isLost = false
  /** The holder that `onWait` was called with. */
  let waitedFor: string | undefined
  let logged: { readonly error: string; readonly at: number } | undefined

  const isLeading = () => {
    return !isLost && renewedAt !== undefined && clock.monotonic() - renewedAt < renewDeadlineMs
  }

  function observe(lease: Lease): void {
    const before = seen?.lease.metadata
    const isSame = before?.uid === lease.metadata.uid && before?.resourceVersion === lease.metadata.resourceVersion
    if (seen === undefined || !isSame) seen = { lease, since: clock.monotonic() }
    isCurrent = true
  }

  /** When the Lease is free: now, or once its holder has not renewed it for its duration. */
  function freeInMs({ lease: { spec }, since }: { lease: Lease; since: number }): number {
    const holder = spec?.holderIdentity ?? ''
    if (holder === '' || holder === identity) return 0
    return Math.max(0, since + (spec?.leaseDurationSeconds ?? durationMs / 1_000) * 1_000 - clock.monotonic())
  }

  function mayAcquire(observed: { lease: Lease; since: number }): boolean {
    return freeInMs(observed) === 0
  }

  /** One attempt, as leader or candidate. True if this process holds the Lease, measured from before the request. */
  async function attempt(signal: AbortSignal): Promise<boolean> {
    const startedAt = clock.monotonic()
    if (!isCurrent) {
      const found = await client.find(Lease, key, { signal, lane: 'lease' })
      if (found === undefined) {
        const annotations = options.annotations?.()
        const metadata = { name: options.lease, namespace: options.namespace, ...(annotations && { annotations }) }
        observe(await client.create(Lease, { metadata, spec: claim(undefined) }, { signal, lane: 'lease' }))
        renewed(startedAt)
        return true
      }
      observe(found)
    }
    if (seen === undefined || !mayAcquire(seen)) {
      isCurrent = false
      return false
    }
    isCurrent = false
    observe(await client.update(Lease, renewal(seen.lease), { signal, lane: 'lease' }))
    renewed(startedAt)
    return true
  }

  /** A response may arrive after its attempt timed out, and after a later one: the time never decreases. */
  function renewed(at: number): void {
    renewedAt = Math.max(renewedAt ?? at, at)
  }

  function claim(before: Lease['spec']): NonNullable<Lease['spec']> {
    const now = microTimestamp(clock.now())
    const isRenewal = before?.holderIdentity === identity
    return {
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(durationMs / 1_000),
      acquireTime: isRenewal ? (before.acquireTime ?? now) : now,
      renewTime: now,
      leaseTransitions: (before?.leaseTransitions ?? 0) + (isRenewal || before === undefined ? 0 : 1),
    }
  }

  function renewal({ metadata, ...lease }: Lease): Lease {
    const annotations = { ...metadata.annotations, ...options.annotations?.() }
    const isAnnotated = Object.keys(annotations).length > 0
    return { ...lease, metadata: { ...metadata, ...(isAnnotated && { annotations }) }, spec: claim(lease.spec) }
  }

  async function look(signal: AbortSignal): Promise<boolean> {
    const found = await client.find(Lease, key, { signal, lane: 'lease' })
    if (found === undefined) seen = undefined
    else observe(found)
    isCurrent = false
    return false
  }

  /** Until the next attempt of a candidate: at the latest when the Lease is free. */
  function candidateMs(): number {
    const spread = 1 + random() * JITTER
    // Nothing is known of the holder after a failed attempt, and a free Lease was lost to another candidate.
    const freeMs = seen === undefined ? 0 : freeInMs(seen)
    return freeMs > 0 ? Math.min(candidatePeriodMs * spread, freeMs) : retryPeriodMs * spread
  }

  function reportWait(): void {
    const holder = seen === undefined || mayAcquire(seen) ? undefined : seen.lease.spec?.holderIdentity
    if (holder === undefined || holder === waitedFor) return
    waitedFor = holder
    onWait?.(holder)
  }

  async function tryOnce(signal: AbortSignal, run = attempt): Promise<boolean> {
    try {
      return await withDeadline(clock, attemptMs, signal, run)
    } catch (error) {
      if (!signal.aborted) logFailure(messageOf(error))
      return false
    }
  }

  function logFailure(error: string): void {
    const at = clock.monotonic()
    if (logged?.error === error && at - logged.at < REPEAT_LOG_MS) return
    logged = { error, at }
    log.warn({ lease: key, error }, 'lease attempt failed')
  }

  return {
    fence: {
      check() {
        if (!isLeading()) throw new LeadershipLost(key, 'it was not renewed in time')
      },
    },
    get isLeading() {
      return isLeading()
    },
    get holder() {
      const holder = seen?.lease.spec?.holderIdentity
      return holder === '' ? undefined : holder
    },
    async acquire(signal) {
      while (!signal.aborted) {
        if (await tryOnce(signal)) {
          waitedFor = undefined
          log.info({ lease: key, identity }, 'leading')
          onChange?.(true)
          return
        }
        if (!signal.aborted) reportWait()
        await sleep(clock, candidateMs(), signal)
      }
    },
    async follow(signal) {
      while (!signal.aborted) {
        await tryOnce(signal, look)
        await sleep(clock, candidatePeriodMs * (1 + random() * JITTER), signal)
      }
    },
    async hold(signal) {
      while (!signal.aborted) {
        await sleep(clock, retryPeriodMs, signal)
        if (signal.aborted || (isLeading() && (await tryOnce(signal)))) continue
        const isTaken = !isCurrent && seen !== undefined && !mayAcquire(seen)
        if (isLeading() && !isTaken) continue
        isLost = true
        onChange?.(false)
        throw new LeadershipLost(key, isTaken ? 'another process has taken it' : 'it was not renewed in time')
      }
    },
    async release() {
      if (!isLeading() || seen === undefined) return
      isLost = true
      onChange?.(false)
      const { lease } = seen
      const spec = { ...claim(lease.spec), holderIdentity: '', leaseDurationSeconds: 1 }
      try {
        await withDeadline(clock, attemptMs, undefined, async (signal) => {
          await client.update(Lease, { ...lease, spec }, { signal, lane: 'lease' })
        })
        log.info({ lease: key, identity }, 'lease released')
      } catch (error) {
        log.warn({ lease: key, error: messageOf(error) }, 'lease not released; another process waits until it runs out')
      }
    },
  }
}

/** Rejects at the deadline even if the awaited operation ignores its signal. */
async function withDeadline<T>(
  clock: Clock,
  ms: number,
  parent: AbortSignal | undefined,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const stop = () => controller.abort(parent?.reason)
  parent?.addEventListener('abort', stop, { once: true })
  if (parent?.aborted === true) stop()
  const expired = new Promise<never>((_resolve, reject) => {
    controller.signal.addEventListener('abort', () => reject(toError(controller.signal.reason)), { once: true })
  })
  const cancel = clock.after(ms, () => controller.abort(new KubeError('DEADLINE', `no answer within ${ms} ms`)))
  try {
    return await Promise.race([run(controller.signal), expired])
  } finally {
    cancel()
    parent?.removeEventListener('abort', stop)
  }
}

function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new KubeError('ABORTED', messageOf(reason))
}
