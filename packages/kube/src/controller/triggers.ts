/**
 * Sources of keys for a controller or keyed aggregator besides its watched kinds: subscriptions of the program (a
 * switch, a probe result) and timers.
 *
 * Place in the flow: declared by the builders, started once the caches are synced, stopped with the controller.
 * Guarantee: if the function of a trigger throws, the error is logged and the trigger stays active; its controller and
 * the other triggers continue.
 */
import type { Clock } from '../clock.ts'
import type { Logger } from '../log.ts'

/**
 * Starts a subscription and returns the function that ends it. `mark` may be called at any time until then. Called once
 * for each cluster that the controller runs on, with its name.
 */
export type Trigger<K> = (mark: (keys: K) => void, cluster: string) => (() => void) | undefined

interface Timer<K> {
  readonly everyMs: number
  /** Called at each interval; returns the keys to process. */
  readonly keys: () => K
}

export interface TriggerSet<K> {
  readonly triggers: Trigger<K>[]
  readonly timers: Timer<K>[]
}

/** Returns the function that stops all triggers. */
export function startTriggers<K>(
  { triggers, timers }: TriggerSet<K>,
  { clock, log, cluster }: { clock: Clock; log: Logger; cluster: string },
  mark: (keys: K) => void,
): () => void {
  let isStopped = false
  const stops: (() => void)[] = []
  const markWhileRunning = (keys: K): void => {
    if (!isStopped) mark(keys)
  }
  for (const trigger of triggers) {
    try {
      const stop = trigger(markWhileRunning, cluster)
      if (stop !== undefined) stops.push(stop)
    } catch (error) {
      log.error({ err: error }, 'trigger did not start')
    }
  }
  for (const timer of timers) {
    let cancel: () => void = () => undefined
    const arm = (): void => {
      cancel = clock.after(timer.everyMs, () => {
        if (isStopped) return
        arm()
        try {
          mark(timer.keys())
        } catch (error) {
          log.error({ err: error }, 'timer failed')
        }
      })
    }
    arm()
    stops.push(() => cancel())
  }
  return () => {
    isStopped = true
    for (const stop of stops) stop()
  }
}
