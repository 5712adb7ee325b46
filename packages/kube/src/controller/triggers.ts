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
export type Trigger<K, How = never> = (mark: Mark<K, How>, cluster: string) => (() => void) | undefined

/** `How`: options of a mark, for users that have some. */
type Mark<K, How> = (keys: K, how?: How) => void

interface Timer<K> {
  readonly everyMs: number
  /** Called at each interval; returns the keys to process. */
  readonly keys: () => K
}

export interface TriggerSet<K, How = never> {
  readonly triggers: Trigger<K, How>[]
  readonly timers: Timer<K>[]
}

/** Returns the function that stops all triggers. */
export function startTriggers<K, How = never>(
  { triggers, timers }: TriggerSet<K, How>,
  { clock, log, cluster }: { clock: Clock; log: Logger; cluster: string },
  mark: Mark<K, How>,
): () => void {
  let isStopped = false
  const stops: (() => void)[] = []
  const markWhileRunning: Mark<K, How> = (keys, how) => {
    if (!isStopped) mark(keys, how)
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
