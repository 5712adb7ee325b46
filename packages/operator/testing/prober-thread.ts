/**
 * The prober in this thread, on real sockets, with its time running `speed` times faster: tests wait neither for probe
 * intervals nor for the 30 s that a target stays out after it fell.
 */
import { addressGuard, type Clock, systemClock } from '@seamark/kube'
import { systemConnect, systemResolver } from '../src/health/connection.ts'
import type { HealthMonitorDeps } from '../src/health/monitor.ts'
import { createProbeClient } from '../src/health/probe.ts'
import { createProber } from '../src/health/prober.ts'

export function proberInThisThread(speed: number): NonNullable<HealthMonitorDeps['startThread']> {
  const started = systemClock.monotonic()
  const clock: Clock = {
    now: () => systemClock.now(),
    monotonic: () => started + (systemClock.monotonic() - started) * speed,
    after: (ms, run) => systemClock.after(ms / speed, run),
  }
  return (settings, { onReports }) => {
    const beats = new Int32Array(settings.heartbeat)
    let isStopped = false
    let cancel: () => void = () => undefined
    const beat = (): void => {
      Atomics.add(beats, 0, 1)
      if (!isStopped) cancel = systemClock.after(500, beat)
    }
    beat()
    // Answers of real sockets take real time: their deadlines are not shortened.
    const client = createProbeClient({
      clock: systemClock,
      resolve: systemResolver(settings.resolver),
      connect: systemConnect,
      guard: addressGuard(settings.guard),
    })
    const prober = createProber({ clock, random: Math.random, client, onReport: (report) => onReports([report]) })
    return {
      send: ({ upsert, remove }) => prober.update(upsert, remove),
      terminate: async () => {
        isStopped = true
        cancel()
        prober.stop()
      },
    }
  }
}
