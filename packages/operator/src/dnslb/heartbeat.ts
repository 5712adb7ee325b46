/**
 * `/healthz` of the original: one line for each key, `<key>: <time>`, and an error when one is too old. A key is ticked by a
 * reconcile of its controller at fixed intervals, so it does not depend on whether there is work.
 */
import { type Clock, type Manager, timestamp } from '@seamark/kube'
import { compareText } from '../rrset/rrset.ts'

export class Heartbeat {
  readonly #clock: Clock
  readonly #timeoutMs: number
  readonly #ticks = new Map<string, { readonly nowMs: number; readonly monotonicMs: number }>()

  constructor(clock: Clock, timeoutMs: number) {
    this.#clock = clock
    this.#timeoutMs = timeoutMs
  }

  tick(key: string): void {
    this.#ticks.set(key, { nowMs: this.#clock.now(), monotonicMs: this.#clock.monotonic() })
  }

  read(): { readonly isHealthy: boolean; readonly text: string } {
    const lines: string[] = []
    for (const [key, { nowMs, monotonicMs }] of [...this.#ticks].sort(([a], [b]) => compareText(a, b))) {
      lines.push(`${key}: ${timestamp(nowMs)}\n`)
      if (this.#clock.monotonic() - monotonicMs > this.#timeoutMs) return { isHealthy: false, text: lines.join('') }
    }
    return { isHealthy: true, text: lines.join('') }
  }
}

const HEARTBEAT_INTERVAL = '10s'

export function addHeartbeat(
  mgr: Manager,
  heartbeat: Heartbeat,
  key: string,
  clusters: 'local' | 'fleet' = 'local',
): void {
  mgr
    .keyedController(`heartbeat-${key}`, { clusters })
    .triggers((mark) => {
      mark([key])
      return () => undefined
    })
    .every(HEARTBEAT_INTERVAL, () => [key])
    .reconcile(async () => heartbeat.tick(key))
}
