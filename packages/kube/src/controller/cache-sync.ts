/**
 * Waits for caches: a controller starts only when every kind it reads is synced.
 *
 * Guarantees: a served kind that does not sync within the timeout is an error that names the kind. A required kind whose
 * CRD is not installed, a kind that the server denies (401, 403), and one that it fails to list or does not answer for are
 * waited for without a timeout and without failing other controllers.
 */
import { sleep } from '../clock.ts'
import type { Environment } from './context.ts'
import { KubeError } from '../errors.ts'
import type { Informer } from '../cache/informer.ts'
import { kindName, type Obj } from '../object/object.ts'

export interface SyncWait {
  /** Name of the waiting controller, for messages. */
  name: string
  informer: Informer<Obj>
  /** If true, a missing CRD is not waited for. */
  isOptional: boolean
  /** Return as soon as the server denies the list or watch. @default false: wait until it is allowed */
  skipsDenied?: boolean
  stop: AbortSignal
  /** @default 120_000 */
  timeoutMs?: number | undefined
}

const ABSENT_POLL_MS = 1_000

/** Returns early when the signal aborts: callers check the signal afterwards. */
export async function waitForSync({ clock, log, cluster }: Environment, wait: SyncWait): Promise<void> {
  const { name, informer, isOptional, skipsDenied = false, stop, timeoutMs = 120_000 } = wait
  const kind = kindName(informer.kind)
  const controller = new AbortController()
  const forwardAbort = () => controller.abort(stop.reason)
  stop.addEventListener('abort', forwardAbort, { once: true })
  if (stop.aborted) forwardAbort()
  const isDenied = () => informer.failure?.reason === 'denied'
  let isSkipped = false
  let hasWarned = false
  let isFailing = false
  /** When the last failure ended, on the monotonic clock. */
  let failedUntil = -Infinity
  const checkHealth = (): void => {
    if (isFailing || informer.failure !== undefined) failedUntil = clock.monotonic()
    isFailing = informer.failure !== undefined
    if (!isDenied() || hasWarned || informer.hasSynced) return
    hasWarned = true
    isSkipped = skipsDenied
    if (isSkipped) controller.abort()
    else
      log.warn({ controller: name, cluster: cluster.name, kind }, 'the server denies the watch; waiting for the right')
  }
  const unsubscribe = cluster.informers.onHealthChange(checkHealth)
  checkHealth()
  let cancel: () => void = () => undefined
  const arm = (): void => {
    cancel = clock.after(timeoutMs, () => {
      if (isDenied()) return arm()
      const { failure } = informer
      if (failure !== undefined) {
        const about = { controller: name, cluster: cluster.name, kind, error: failure.message }
        log.warn(about, 'kind cannot be listed; waiting for the server')
      }
      // A server that is back gets the whole time.
      if (failure !== undefined || clock.monotonic() - failedUntil < timeoutMs) return arm()
      const message = `${name}: ${kind} did not sync within ${timeoutMs} ms in cluster ${cluster.name}; check that the process may list and watch it`
      return controller.abort(new KubeError('SYNC_TIMEOUT', message))
    })
  }
  arm()
  try {
    await informer.synced(controller.signal)
  } catch (error) {
    if (!stop.aborted && !isSkipped) throw error
  } finally {
    cancel()
    unsubscribe()
    stop.removeEventListener('abort', forwardAbort)
  }
  if (isSkipped) return
  if (stop.aborted || isOptional || informer.state !== 'absent') return
  log.warn({ controller: name, cluster: cluster.name, kind }, 'kind is not served; waiting for its CRD')
  const isLive = () => informer.state === 'live'
  while (!stop.aborted && !isLive()) await sleep(clock, ABSENT_POLL_MS, stop)
}
