/** Verdicts of probes that a scenario sets, instead of a prober. */
import type { Clock } from '@seamark/kube'
import type { BalanceOptions } from '@seamark/operator'

type StartThread = NonNullable<BalanceOptions['startThread']>
type Verdict = 'healthy' | 'unhealthy' | 'unknown'

/** Verdicts by host; they survive the process, as the health of a backend does. */
export class HealthTable {
  readonly #verdicts = new Map<string, Verdict>()
  readonly #listeners = new Set<() => void>()

  set(host: string, verdict: Verdict): void {
    this.#verdicts.set(host, verdict)
    for (const listener of this.#listeners) listener()
  }

  /** A prober that reports the table. */
  thread(clock: Clock): StartThread {
    return (settings, { onReports }) => {
      const hosts = new Map<string, string>()
      const beats = new Int32Array(settings.heartbeat)
      let isStopped = false
      const report = (keys: Iterable<string>): void => {
        const reports = [...keys].flatMap((key) => {
          const verdict = this.#verdicts.get(hosts.get(key) ?? '')
          return verdict === undefined
            ? []
            : [{ key, verdict, sinceMs: clock.now(), code: 'Passed' as never, detail: verdict }]
        })
        if (!isStopped && reports.length > 0) onReports(reports)
      }
      const listener = (): void => report(hosts.keys())
      this.#listeners.add(listener)
      const beat = (): void => {
        if (isStopped) return
        Atomics.add(beats, 0, 1)
        clock.after(500, beat)
      }
      beat()
      return {
        send: ({ upsert, remove }) => {
          for (const key of remove) hosts.delete(key)
          for (const { key, target } of upsert) hosts.set(key, target.request.host)
          clock.after(1, () => report(upsert.map(({ key }) => key)))
        },
        terminate: async () => {
          isStopped = true
          this.#listeners.delete(listener)
        },
      }
    }
  }
}
