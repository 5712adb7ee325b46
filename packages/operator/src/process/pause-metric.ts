import { Gauge, type Registry } from 'prom-client'
import type { KillSwitch } from './kill-switch.ts'

/** 1 while the kill switch is pulled. */
export function showPause(registry: Registry, killSwitch: KillSwitch): void {
  const gauge = new Gauge({
    name: 'seamark_paused',
    help: '1 while writing is paused: nothing is written, neither DNS nor Kubernetes',
    registers: [registry],
    collect() {
      this.set(killSwitch.isPaused ? 1 : 0)
    },
  })
  gauge.set(killSwitch.isPaused ? 1 : 0)
}
