/**
 * Metrics that are read from counters and states kept elsewhere when they are scraped: what is counted costs no look-up of a series.
 */
import { Counter, Gauge, type Registry } from 'prom-client'

export interface ReadMetric<Label extends string> {
  readonly name: string
  readonly help: string
  /** @default none */
  readonly labelNames?: readonly Label[]
  /** The series now. A total of a counter since the start of the process. */
  readonly read: () => Iterable<readonly [labels: Readonly<Record<Label, string>>, value: number]>
}

/** Series that `read` no longer returns are gone. */
export function addReadMetric<Label extends string = never>(
  registry: Registry,
  type: 'counter' | 'gauge',
  { name, help, labelNames = [], read }: ReadMetric<Label>,
): void {
  const config = { name, help, labelNames: [...labelNames], registers: [] }
  const collect = (metric: Counter<Label> | Gauge<Label>): void => {
    metric.reset()
    // After a reset a metric without labels is 0, also where there is nothing to read.
    if (labelNames.length === 0) metric.remove()
    for (const [labels, value] of read()) metric.inc(labels, value)
  }
  registry.registerMetric(
    type === 'counter'
      ? new Counter({
          ...config,
          collect() {
            collect(this)
          },
        })
      : new Gauge({
          ...config,
          collect() {
            collect(this)
          },
        }),
  )
}
