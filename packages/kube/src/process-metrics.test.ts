import { Registry } from 'prom-client'
import { expect, it } from 'vitest'
import { registerProcessMetrics } from './process-metrics.ts'

async function scrape(registry: Registry): Promise<Map<string, number>> {
  const lines = (await registry.metrics()).split('\n').filter((line) => line.startsWith('process_'))
  return new Map(lines.map((line) => [line.split(' ')[0] ?? '', Number(line.split(' ')[1])]))
}

it('every metric of the process has a value, and CPU time never decreases', async () => {
  const registry = new Registry()
  registerProcessMetrics(registry)
  const first = await scrape(registry)
  expect([...first.keys()]).toEqual(
    expect.arrayContaining([
      'process_cpu_seconds_total',
      'process_resident_memory_bytes',
      'process_start_time_seconds',
    ]),
  )
  for (const [name, value] of first) expect(value, name).toBeGreaterThan(0)
  const second = await scrape(registry)
  expect(second.get('process_cpu_seconds_total')).toBeGreaterThanOrEqual(first.get('process_cpu_seconds_total') ?? 0)
  expect(second.get('process_start_time_seconds')).toBe(first.get('process_start_time_seconds'))
})
