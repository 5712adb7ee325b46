/**
 * The retries of one request: which outcomes of an attempt are tried again, how often, within the circuit breaker of the
 * cluster; and the body, which is read before the first attempt so that it can be sent again.
 */
import type { Retry } from '../../ir/model.ts'
import { joinSmall, type StreamedBody, type UpstreamBody } from './body.ts'
import type { ClusterState } from './clusters.ts'
import type { ReplayShare } from './replay-budget.ts'

/** A status; `connect`: there was no connection; `reset`: the attempt ended without a response. */
export type Outcome = number | 'connect' | 'reset'

/** Larger bodies are streamed and not sent again. */
const MAX_REPLAYED_BYTES = 1_048_576
/** Envoy's wait before a retry: a random part of 25 ms, of 75 ms, of 175 ms, then of 250 ms. */
const BACK_OFF_MS = 25
const MAX_BACK_OFF_MS = 250
/** Attempts on connections that were kept and closed; the next one opens a connection. */
const MAX_STALE_ATTEMPTS = 3

export class Retries {
  readonly #policy: Retry | undefined
  readonly #findState: () => ClusterState | undefined
  #attempts = 0
  /** On kept connections that were closed. Retries are for what happens on a new connection. */
  #staleAttempts = 0
  /** Set from the first retry to the end of the request. */
  #counted: ClusterState | undefined

  constructor(policy: Retry | undefined, findState: () => ClusterState | undefined) {
    this.#policy = policy
    this.#findState = findState
  }

  get perTryTimeoutMs(): number | undefined {
    return this.#policy?.perTryTimeoutMs
  }

  /** Takes another attempt after this outcome; false if it is not retriable, none is left, or the body is gone. */
  take(outcome: Outcome, method: string, body: UpstreamBody | undefined): boolean {
    const policy = this.#policy
    if (policy === undefined || !isRetriable(policy, outcome, method)) return false
    if (this.#attempts >= policy.count || !isReplayable(body)) return false
    if (!this.#count()) return false
    this.#attempts++
    return true
  }

  /** Before the attempt that was taken: a backend that fails at once would else be asked without a pause. @param random below 1 */
  backOffMs(random: number): number {
    return random * Math.min(BACK_OFF_MS * (2 ** Math.min(this.#attempts, 10) - 1), MAX_BACK_OFF_MS)
  }

  /** Takes another attempt after the backend closed a kept connection when it was used: the request was not processed. */
  takeStale(method: string, body: UpstreamBody | undefined): boolean {
    if (!isReplayable(body) || !isIdempotent(method) || this.#staleAttempts >= MAX_STALE_ATTEMPTS) return false
    this.#staleAttempts++
    return true
  }

  /** The request has ended. */
  end(): void {
    if (this.#counted !== undefined) this.#counted.retrying--
    this.#counted = undefined
  }

  /** A request counts once, however often it is retried; false if too many requests are retried at this time. */
  #count(): boolean {
    if (this.#counted !== undefined) return true
    const state = this.#findState()
    if (state === undefined) return true
    const { maxRetries } = state.cluster.circuitBreakers ?? {}
    if (maxRetries !== undefined && state.retrying >= maxRetries) return false
    state.retrying++
    this.#counted = state
    return true
  }
}

function isRetriable({ on, statusCodes }: Retry, outcome: Outcome, method: string): boolean {
  const isWithoutResponse = typeof outcome === 'string'
  return on.some((condition) => {
    switch (condition) {
      case '5xx':
        return isWithoutResponse || (outcome >= 500 && outcome < 600)
      case 'gateway-error':
        return isWithoutResponse || outcome === 502 || outcome === 503 || outcome === 504
      case 'reset':
        return isWithoutResponse
      // The backend has not processed the request. After a reset it may have, which matters unless it is idempotent.
      case 'connect-failure':
      case 'reset-before-request':
      case 'refused-stream':
        return outcome === 'connect' || (outcome === 'reset' && isIdempotent(method))
      case 'retriable-4xx':
        return outcome === 409
      case 'retriable-status-codes':
        return !isWithoutResponse && statusCodes.includes(outcome)
      default:
        return false
    }
  })
}

function isReplayable(body: UpstreamBody | undefined): boolean {
  return body === undefined || Buffer.isBuffer(body)
}

function isIdempotent(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS' || method === 'PUT' || method === 'DELETE'
}

export function outcomeOf(error: Error): Outcome {
  return 'syscall' in error && error.syscall === 'connect' ? 'connect' : 'reset'
}

/**
 * Reads a body that may have to be sent again; undefined for one that is too large, or for which there is no room, and which is
 * to be passed on as a stream. Nothing is called for a body that its client does not complete.
 */
export function collectBody(
  { stream, length, isWhole }: StreamedBody,
  share: ReplayShare,
  then: (body: Buffer | undefined) => void,
): void {
  if (length !== undefined && length > MAX_REPLAYED_BYTES) return then(undefined)
  const chunks: Buffer[] = []
  let size = 0
  const joined = joinSmall((chunk) => void chunks.push(chunk))
  const onData = (chunk: Buffer) => {
    joined.add(chunk)
    size += chunk.length
    if (size <= MAX_REPLAYED_BYTES && share.take(chunk.length)) return
    stream.off('data', onData)
    stream.off('end', onEnd)
    stream.pause()
    joined.flush()
    stream.unshift(Buffer.concat(chunks))
    then(undefined)
  }
  const onEnd = () => {
    joined.flush()
    if (isWhole() && (length === undefined || size === length)) then(Buffer.concat(chunks))
  }
  stream.on('data', onData)
  stream.on('end', onEnd)
}
