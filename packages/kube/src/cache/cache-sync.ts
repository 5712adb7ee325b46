/**
 * Waiting for caches: a controller reads only kinds that are synced.
 *
 * Guarantees: a kind that is served and does not sync within the limit is an error that says so; a required kind whose CRD
 * is not there is waited for as long as it takes, without failing anything else.
 */
import { sleep } from '../clock.ts'
import type { Environment } from '../controller/context.ts'
import { KubeError } from '../errors.ts'
import type { Informer } from './informer.ts'
import { kindName, type Obj } from '../object/object.ts'

export interface SyncWait {
  /** Who waits, for messages. */
  name: string
  informer: Informer<Obj>
  /** Do not wait for a missing CRD. */
  isOptional: boolean
  stop: AbortSignal
  /** @default 120_000 */
  timeoutMs?: number | undefined
}

const absentPollMs = 1_000

/** Returns early when stopped: look at the signal afterwards. */
export async function waitForSync({ clock, log, cluster }: Environment, wait: SyncWait): Promise<void> {
  const { name, informer, isOptional, stop, timeoutMs = 120_000 } = wait
  const kind = kindName(informer.kind)
  const controller = new AbortController()
  const link = () => controller.abort(stop.reason)
  stop.addEventListener('abort', link, { once: true })
  if (stop.aborted) link()
  const cancel = clock.after(timeoutMs, () => {
    const message = `${name}: ${kind} did not sync within ${timeoutMs} ms in cluster ${cluster.name}; check that the process may list and watch it`
    controller.abort(new KubeError('SYNC_TIMEOUT', message))
  })
  try {
    await informer.synced(controller.signal)
  } catch (error) {
    if (!stop.aborted) throw error
  } finally {
    cancel()
    stop.removeEventListener('abort', link)
  }
  if (stop.aborted || isOptional || informer.state !== 'absent') return
  log.warn({ controller: name, cluster: cluster.name, kind }, 'kind is not served; waiting for its CRD')
  const isLive = () => informer.state === 'live'
  while (!stop.aborted && !isLive()) await sleep(clock, absentPollMs, stop)
}
