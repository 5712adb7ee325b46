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

/** Starts a subscription and returns the function that ends it. `mark` may be called at any time until then. */
export type Trigger<K> = (mark: (keys: K) => void) => (() => void) | undefined

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
  { clock, log }: { clock: Clock; log: Logger },
  mark: (keys: K) => void,
): () => void {
  let isStopped = false
  const stops: (() => void)[] = []
  const markWhileRunning = (keys: K): void => {
    if (!isStopped) mark(keys)
  }
  for (const trigger of triggers) {
    try {
      const stop = trigger(markWhileRunning)
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
