/** Metrics of records: plans, changes, zones and calls of DNS services. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { CallObserver } from '../execute/provider-calls.ts'
import type { SyncObserver } from './records-pass.ts'

export type RecordsMetrics = CallObserver & SyncObserver

/** Seconds: from a local server to a service that throttles. */
const callBuckets = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30]

export function createRecordsMetrics(registry: Registry, now: () => number): RecordsMetrics {
  const registers = [registry]
  const planned = new Gauge({
    name: 'seamark_records_plan_changes',
    help: 'Changes in the last plan of a zone',
    labelNames: ['provider', 'zone', 'op'] as const,
    registers,
  })
  const changes = new Counter({
    name: 'seamark_records_changes_total',
    help: 'Changes sent to a zone, by result; the reason is empty unless they were refused',
    labelNames: ['provider', 'zone', 'op', 'result', 'reason'] as const,
    registers,
  })
  const stale = new Gauge({
    name: 'seamark_records_zone_stale',
    help: '1 while a zone cannot be read or written; published records are unchanged. Zone * : the zones cannot be listed',
    labelNames: ['provider', 'zone'] as const,
    registers,
  })
  const lastSync = new Gauge({
    name: 'seamark_records_last_sync_timestamp_seconds',
    help: 'When a zone was last read and everything in it was as desired, or held by a guard',
    labelNames: ['provider', 'zone'] as const,
    registers,
  })
  const calls = new Counter({
    name: 'seamark_provider_calls_total',
    help: 'Calls of DNS services; the reason is empty when they succeeded',
    labelNames: ['provider', 'call', 'reason'] as const,
    registers,
  })
  const seconds = new Histogram({
    name: 'seamark_provider_call_duration_seconds',
    help: 'Duration of calls of DNS services',
    labelNames: ['provider', 'call'] as const,
    buckets: callBuckets,
    registers,
  })
  const waits = new Counter({
    name: 'seamark_provider_limiter_wait_seconds_total',
    help: 'Time that calls waited for the rate limit of their account',
    labelNames: ['provider'] as const,
    registers,
  })
  return {
    planned({ provider, zone, changes: list }) {
      for (const op of ['create', 'update', 'delete'] as const)
        planned.set({ provider, zone, op }, list.filter((change) => change.op === op).length)
    },
    applied({ plan: { provider, zone }, results }) {
      for (const { change, result, code = '' } of results)
        changes.inc({ provider, zone, op: change.op, result, reason: code })
    },
    synced({ provider, zone }, isStale) {
      stale.set({ provider, zone }, isStale ? 1 : 0)
      if (!isStale && zone !== '*') lastSync.set({ provider, zone }, now() / 1000)
    },
    held(all) {
      const gauge = new Gauge({
        name: 'seamark_records_held',
        help: 'RRsets whose change is held, by the code of the guard; Quarantined: deletions that wait',
        labelNames: ['provider', 'zone', 'reason'] as const,
        registers,
        collect() {
          this.reset()
          this.set({ provider: '', zone: '', reason: 'Quarantined' }, 0)
          for (const { provider, zone, code } of all()) this.inc({ provider, zone, reason: code })
        },
      })
      gauge.reset()
    },
    called(provider, call, code, durationMs) {
      calls.inc({ provider, call, reason: code ?? '' })
      seconds.observe({ provider, call }, durationMs / 1000)
    },
    waited: (provider, durationMs) => waits.inc({ provider }, durationMs / 1000),
  }
}
