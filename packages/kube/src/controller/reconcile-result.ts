/**
 * Results of a reconcile, and the single place that maps them to queue action, metric label and log line.
 */
import { type Duration, durationMs } from '../duration.ts'
import { ApiError, Conflict, KubeError, messageOf, NotSynced, TransportError } from '../errors.ts'
import { LeadershipLost } from '../apply/write-fence.ts'
import type { Logger } from '../log.ts'
import type { ControllerMetrics } from '../metrics.ts'
import type { Key } from '../object/object.ts'
import type { Queue } from './queue.ts'

/**
 * The return value of a reconciler: nothing to wait for the next change, or the time after which to reconcile again at
 * the latest.
 */
export type Next = void | { readonly after: number }

/** Reconcile again after this time, even without a change. */
export function requeue(after: Duration): { readonly after: number } {
  return { after: durationMs(after) }
}

/** A retry cannot succeed, for example because of an invalid object. The key is not reconciled until a change. */
export class Terminal extends KubeError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('TERMINAL', message, options)
  }
}

export class ReconcileTimeout extends KubeError {
  constructor(timeoutMs: number) {
    super('RECONCILE_TIMEOUT', `the reconcile was stopped after ${timeoutMs} ms; pass ctx.signal to what it waits for`)
  }
}

export type ReconcileResult =
  | { readonly type: 'done' }
  | { readonly type: 'later'; readonly afterMs: number }
  | { readonly type: 'failed'; readonly error: unknown }
  | { readonly type: 'terminal'; readonly error: Terminal }
  | { readonly type: 'timeout'; readonly error: ReconcileTimeout }
  /** Stopped from outside: the next leader reconciles from the objects. */
  | { readonly type: 'stopped' }

export function resultOf(next: Next): ReconcileResult {
  return typeof next === 'object' ? { type: 'later', afterMs: next.after } : { type: 'done' }
}

/** @param reason abort reason of the reconcile's signal, if it has aborted */
export function resultOfError(error: unknown, reason: unknown): ReconcileResult {
  if (reason instanceof ReconcileTimeout) return { type: 'timeout', error: reason }
  if (reason !== undefined || error instanceof LeadershipLost) return { type: 'stopped' }
  return error instanceof Terminal ? { type: 'terminal', error } : { type: 'failed', error }
}

export interface ResultSinks {
  queue: Queue
  metrics: ControllerMetrics
  /** Called only when a line is logged. */
  log: () => Logger
}

export function settle(key: Key, result: ReconcileResult, seconds: number, { queue, metrics, log }: ResultSinks): void {
  switch (result.type) {
    case 'done':
      queue.forget(key)
      metrics.reconciled('success', seconds)
      break
    case 'later':
      queue.forget(key)
      queue.requeue(key, result.afterMs)
      metrics.reconciled('requeue_after', seconds)
      break
    case 'failed': {
      const { error } = result
      const retryMs = queue.retry(key)
      metrics.reconciled('error', seconds)
      if (isProgrammingError(error)) {
        metrics.panicked()
        log().error({ err: error, retryMs }, 'reconciler is broken')
      } else if (error instanceof Conflict || error instanceof NotSynced) {
        log().debug({ error: messageOf(error), retryMs }, 'reconcile will be tried again')
      } else {
        log().error({ err: error, retryMs }, 'reconcile failed')
      }
      break
    }
    case 'terminal':
      queue.forget(key)
      metrics.reconciled('error', seconds)
      metrics.terminalError()
      log().error({ err: result.error }, 'reconcile failed for good')
      break
    case 'timeout': {
      const retryMs = queue.retry(key)
      metrics.reconciled('error', seconds)
      metrics.timedOut()
      log().error({ error: result.error.message, retryMs }, 'reconcile timed out')
      break
    }
    case 'stopped':
      queue.forget(key)
      break
  }
  queue.done(key)
}

/**
 * An error thrown by the language itself, not by the API, the network or the reconciler; the equivalent of a Go panic.
 */
function isProgrammingError(error: unknown): boolean {
  if (error instanceof ApiError || error instanceof TransportError || error instanceof KubeError) return false
  return (
    !(error instanceof Error) ||
    [TypeError, RangeError, ReferenceError, SyntaxError].some((type) => error instanceof type)
  )
}
