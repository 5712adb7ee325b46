/**
 * Every call to a DNS service passes here: circuit breaker, rate limit, time-out, kill switch and metrics.
 *
 * One per provider account and zone, so a failing zone does not affect others (INV-13); the rate limiter is shared by
 * the whole account. Throttling slows the account, an outage opens the breaker, a refusal does neither.
 * Guarantees: every failure is a ProviderError; nothing is written while the kill switch is on, however long the call
 * waited for the rate limiter.
 * Caveats: a batch that was already sent when the kill switch is turned on is not recalled.
 */
import { parseName } from '@seamark/dns'
import { type AdaptiveLimiter, type Clock, systemClock } from '@seamark/kube'
import type { Provider, ProviderZone, Turn } from '../../providers/provider.ts'
import type { Reason } from '../../reasons.ts'
import { type Breaker, type BreakerStatus, createBreaker } from './circuit-breaker.ts'
import { isAboutRecords, ProviderError, rejected } from '../../rrset/error.ts'
import type { KillSwitch } from '../../process/kill-switch.ts'
import type { ObservedRRset } from '../../rrset/rrset.ts'
import type { SetChange } from '../../rrset/set-change.ts'

type CallName = 'zones' | 'read' | 'apply'

/** Callbacks for each call; for metrics. */
export interface CallObserver {
  /** `code` is undefined when the call succeeded. */
  called(provider: string, call: CallName, code: Reason | undefined, durationMs: number): void
  /** A call waited for the rate limit of its account. */
  waited(provider: string, durationMs: number): void
}

export interface ProviderCallsOptions {
  readonly provider: Provider
  /** Shared by everything that uses the same account. */
  readonly limiter: AdaptiveLimiter
  readonly killSwitch: KillSwitch
  readonly clock?: Clock
  /** A call that takes longer has the outcome `unknown`. @default 30 s */
  readonly callTimeoutMs?: number
  readonly observer?: CallObserver
}

export interface ProviderCalls {
  zones(signal: AbortSignal): Promise<readonly ProviderZone[]>
  read(zone: ProviderZone, names: ReadonlySet<string> | 'all', signal: AbortSignal): Promise<readonly ObservedRRset[]>
  /** `onSend` is called when the request is actually sent. */
  apply(zone: ProviderZone, batch: readonly SetChange[], signal: AbortSignal, onSend?: () => void): Promise<void>
  /** Sends the next request although the breaker is open. */
  retryNow(): void
  readonly status: BreakerStatus
  /** ms until the next request may be sent. */
  readonly waitMs: number
}

export function createProviderCalls(options: ProviderCallsOptions): ProviderCalls {
  const { provider, limiter, killSwitch, observer, clock = systemClock, callTimeoutMs = 30_000 } = options
  const breaker = createBreaker(clock)

  async function call<T>(
    name: CallName,
    signal: AbortSignal,
    perform: (signal: AbortSignal, turn: Turn) => Promise<T>,
  ): Promise<T> {
    if (!breaker.allows()) throw openBreakerError(breaker)
    const askedAt = clock.monotonic()
    await limiter.acquire(signal)
    const startedAt = clock.monotonic()
    observer?.waited(provider.name, startedAt - askedAt)
    if (signal.aborted) throw new ProviderError('OutcomeUnknown', 'later', 'stopped before it was sent')
    if (name === 'apply' && killSwitch.isPaused) throw new ProviderError('Paused', 'later', 'writing is paused')
    try {
      const result = await withTimeout(perform, limiter, callTimeoutMs, signal, clock)
      breaker.succeeded()
      limiter.succeeded()
      observer?.called(provider.name, name, undefined, clock.monotonic() - startedAt)
      return result
    } catch (cause) {
      const error = asProviderError(cause)
      observer?.called(provider.name, name, error.code, clock.monotonic() - startedAt)
      throw recordFailure(error, breaker, limiter)
    }
  }

  return {
    zones: async (signal) => call('zones', signal, async (inner, turn) => provider.zones(inner, turn)),
    read: async (zone, names, signal) =>
      call('read', signal, async (inner, turn) => provider.read(zone, possible(names), inner, turn)),
    apply: async (zone, batch, signal, onSend) =>
      call('apply', signal, async (inner) => {
        onSend?.()
        await provider.apply(zone, batch, inner)
      }),
    retryNow: () => breaker.retryNow(),
    get status() {
      return breaker.status
    },
    get waitMs() {
      return breaker.waitMs
    },
  }
}

/** What is no name is in no zone. A service answers such a question with an error, as if it could not be read. */
function possible(names: ReadonlySet<string> | 'all'): ReadonlySet<string> | 'all' {
  if (names === 'all') return names
  const left = [...names].filter((name) => !(parseName(name) instanceof Error))
  return left.length === names.size ? names : new Set(left)
}

/** The message is constant while the breaker is open: it is part of conditions, and each new text would cause a write. */
function openBreakerError(breaker: Breaker): ProviderError {
  const { code = 'ProviderUnavailable', message = '' } = breaker.status
  return new ProviderError('Stale', 'later', `asked at most once a minute until it answers: ${code}: ${message}`)
}

/** Reports a failure to the circuit breaker or to the rate limiter. */
function recordFailure(error: ProviderError, breaker: Breaker, limiter: AdaptiveLimiter): ProviderError {
  if (error.code === 'Throttled') limiter.throttled(error.retryAfterMs)
  else if (error.outcome === 'rejected' || error.outcome === 'moved' || error.code === 'ZoneQuotaExceeded')
    breaker.succeeded()
  else {
    const { isOpen } = breaker.status
    breaker.failed(error.code, error.message)
    // The probe that an open breaker lets through once a minute gets the same error as the calls that it blocks.
    if (isOpen && error.outcome === 'later') return openBreakerError(breaker)
  }
  return error
}

export function asProviderError(cause: unknown): ProviderError {
  if (cause instanceof ProviderError) return cause
  if (isAboutRecords(cause)) return rejected(cause)
  const text = cause instanceof Error ? cause.message : String(cause)
  return new ProviderError('OutcomeUnknown', 'unknown', text, { cause })
}

/** The time-out applies to one request: a call with further requests restarts it with each. */
async function withTimeout<T>(
  perform: (signal: AbortSignal, turn: Turn) => Promise<T>,
  limiter: AdaptiveLimiter,
  timeoutMs: number,
  signal: AbortSignal,
  clock: Clock,
): Promise<T> {
  const controller = new AbortController()
  const stop = () => controller.abort()
  signal.addEventListener('abort', stop, { once: true })
  let cancel = () => {}
  let expire: (error: ProviderError) => void = () => {}
  const late = new Promise<never>((_resolve, reject) => (expire = reject))
  const start = () => {
    cancel = clock.after(timeoutMs, () => {
      controller.abort()
      expire(new ProviderError('OutcomeUnknown', 'unknown', `no answer within ${timeoutMs / 1000} s`))
    })
  }
  const turn: Turn = async (throttled) => {
    cancel()
    if (throttled === undefined) limiter.succeeded()
    else limiter.throttled(throttled.retryAfterMs)
    await limiter.acquire(controller.signal)
    if (controller.signal.aborted) throw new ProviderError('OutcomeUnknown', 'later', 'stopped between two requests')
    start()
  }
  start()
  try {
    return await Promise.race([perform(controller.signal, turn), late])
  } finally {
    cancel()
    signal.removeEventListener('abort', stop)
  }
}
