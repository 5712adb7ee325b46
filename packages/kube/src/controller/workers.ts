/**
 * Runs the reconciles of one controller in one cluster: takes keys, limits the time of each run, and processes its
 * result.
 *
 * Guarantees: at most `concurrency` reconciles at once, never two for one key; exceptions of a reconciler do not
 * propagate; one that does not return is aborted at its timeout and abandoned after `ABANDON_AFTER_MS`, and its context
 * no longer writes. After `stop` no key is taken and running reconciles may end; `kill` aborts their signals.
 */
import { tracingChannel } from 'node:diagnostics_channel'
import { untilAborted } from '../stop-signal.ts'
import { createContext, type Context, type ContextOwner, type Environment } from './context.ts'
import { KubeError, messageOf } from '../errors.ts'
import type { ControllerMetrics } from '../metrics.ts'
import type { Key } from '../object/object.ts'
import {
  resultOf,
  resultOfError,
  ReconcileTimeout,
  settle,
  type Next,
  type ReconcileResult,
} from './reconcile-result.ts'
import { createQueue, type Queue } from './queue.ts'
import { Stop } from '../stop-signal.ts'

export interface Work extends ContextOwner {
  readonly concurrency: number
  readonly timeoutMs: number
  readonly run: (context: Context) => Promise<Next>
}

export interface Signals {
  /** No new work is started; running reconciles may end. */
  stop: AbortSignal
  /** Running reconciles are aborted. */
  kill: AbortSignal
}

export interface Workers {
  readonly queue: Queue
  /** Resolves when `stop` has aborted and every reconcile has ended. */
  run(signals: Signals): Promise<void>
}

/** Time between the abort of a reconciler and its abandonment. */
const ABANDON_AFTER_MS = 5_000

/** Shared: every reconcile ends with an abort, and creating an error is expensive. */
const RECONCILE_ENDED_ERROR = new KubeError(
  'RECONCILE_ENDED',
  'the reconcile has ended; nothing it left behind may write',
)

/** Subscribe with node:diagnostics_channel to trace reconciles; messages are `{ controller, cluster, key, reconcileId }`. */
const trace = tracingChannel('seamark:kube:reconcile')

export function createWorkers(work: Work, environment: Environment): Workers {
  const { clock, cluster } = environment
  const metrics: ControllerMetrics = environment.metrics.controller(work.name, work.concurrency)
  /**
   * One slot per concurrent reconcile instead of a Set: the backing stores of a frequently changed Set keep each other
   * alive until a full garbage collection, and with them every context they contained.
   */
  const running = Array.from<Stop | undefined>({ length: work.concurrency })
  let runningCount = 0
  const queue = createQueue({ clock, observer: metrics.queue, onReady: schedule })
  let isOpen = false
  let isScheduled = false
  let onIdle: () => void = () => undefined

  /** Asynchronously: reconcilers never run inside the watch callback that queued them, and never starve it. */
  function schedule(): void {
    if (isScheduled || !isOpen) return
    isScheduled = true
    setImmediate(() => {
      isScheduled = false
      if (isOpen) startReady()
    })
  }

  function startReady(): void {
    while (runningCount < work.concurrency) {
      const key = queue.take()
      if (key === undefined) return
      reconcile(key)
    }
  }

  function reconcile(key: Key): void {
    const stop = new Stop()
    const slot = running.indexOf(undefined)
    running[slot] = stop
    runningCount++
    metrics.workers(1)
    const startedAt = clock.monotonic()
    const context = createContext(environment, work, key, stop)
    runWithTimeout(stop, context, (result) => {
      const seconds = (clock.monotonic() - startedAt) / 1_000
      settle(key, result, seconds, { queue, metrics, log: () => context.log })
      metrics.workers(-1)
      running[slot] = undefined
      runningCount--
      if (runningCount === 0) onIdle()
      schedule()
    })
  }

  /** Settles exactly once: when the reconciler returns, or `ABANDON_AFTER_MS` after its abort. */
  function runWithTimeout(stop: Stop, context: Context, onEnd: (result: ReconcileResult) => void): void {
    let hasSettled = false
    let cancelAbandon: (() => void) | undefined
    const cancelTimeout = clock.after(work.timeoutMs, () => stop.abort(new ReconcileTimeout(work.timeoutMs)))
    const end = (result: ReconcileResult): void => {
      if (hasSettled) return
      hasSettled = true
      cancelTimeout()
      cancelAbandon?.()
      stop.abort(RECONCILE_ENDED_ERROR)
      onEnd(result)
    }
    stop.addEventListener('abort', () => {
      if (hasSettled) return
      cancelAbandon = clock.after(ABANDON_AFTER_MS, () => {
        context.log.error(
          { error: messageOf(stop.reason) },
          'reconciler did not end when it was stopped, and is abandoned',
        )
        end(resultOfError(stop.reason, stop.reason))
      })
    })
    void runToResult(stop, context).then(end)
  }

  async function runToResult(stop: Stop, context: Context): Promise<ReconcileResult> {
    try {
      const next = await traced(context)
      return stop.aborted ? resultOfError(undefined, stop.reason) : resultOf(next)
    } catch (error) {
      return resultOfError(error, stop.aborted ? stop.reason : undefined)
    }
  }

  function traced(context: Context): Promise<Next> {
    if (!trace.start.hasSubscribers) return work.run(context)
    const { key, reconcileId } = context
    const message = { controller: work.name, cluster: cluster.name, key, reconcileId }
    return trace.tracePromise(async () => work.run(context), message)
  }

  return {
    queue,
    async run({ stop: drain, kill }) {
      const forgetQueue = metrics.watchQueue(queue)
      const stopAll = () => {
        for (const stop of running) stop?.abort(kill.reason)
      }
      kill.addEventListener('abort', stopAll)
      isOpen = true
      schedule()
      await untilAborted(drain)
      isOpen = false
      queue.close()
      if (kill.aborted) stopAll()
      if (runningCount > 0) await new Promise<void>((resolve) => (onIdle = resolve))
      kill.removeEventListener('abort', stopAll)
      forgetQueue()
    },
  }
}
