/**
 * Prometheus' standard metrics of a process (`process_*`), with the names of its client libraries, so that existing
 * dashboards work. Read at every scrape; nothing is sampled in between.
 */
import { readdirSync } from 'node:fs'
import { Counter, Gauge, type Registry } from 'prom-client'

export function registerProcessMetrics(registry: Registry): void {
  const gauge = (name: string, help: string, read: () => number | undefined): void => {
    registry.registerMetric(
      new Gauge({
        name,
        help,
        registers: [],
        collect() {
          const value = read()
          if (value !== undefined) this.set(value)
        },
      }),
    )
  }
  let counted = 0
  registry.registerMetric(
    new Counter({
      name: 'process_cpu_seconds_total',
      help: 'User and system CPU time of this process',
      registers: [],
      collect() {
        const { user, system } = process.cpuUsage()
        const seconds = (user + system) / 1e6
        this.inc(Math.max(0, seconds - counted))
        counted = seconds
      },
    }),
  )
  gauge('process_resident_memory_bytes', 'Resident memory', () => process.memoryUsage.rss())
  gauge('process_start_time_seconds', 'Start of this process, since the epoch', () => startSeconds)
  gauge('process_open_fds', 'Open file descriptors; Linux only', countOpenFiles)
}

const startSeconds = Math.round(Date.now() / 1_000 - process.uptime())

function countOpenFiles(): number | undefined {
  try {
    // The descriptor of the folder itself is one of them.
    return readdirSync('/proc/self/fd').length - 1
  } catch {
    return undefined
  }
}
