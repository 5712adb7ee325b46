/**
 * Writes what was decided about a load balancer where users see it: statuses of the load balancer and its endpoints, Events,
 * metrics. An Event equal to the last one of its object is not repeated.
 */
import type { Context, Immutable } from '@seamark/kube'
import { apiVersionOf, keyOf } from '@seamark/kube/object'
import { DNSLoadBalancerEndpoint } from '../../api/dns-load-balancer-endpoint.ts'
import { DNSLoadBalancer } from '../../api/dns-load-balancer.ts'
import { type BalanceMetrics, NO_BALANCE_METRICS } from './balance-metrics.ts'
import type { BalanceReport } from '../decide/decide.ts'
import { type WriteGuard, writeStatus } from '../write/guarded-write.ts'
import { RecentEvents } from '../recent.ts'

/** Reason of the Events that the original has. */
const EVENT_REASON = 'sync'

export class LoadBalancerReporter {
  readonly #metrics: BalanceMetrics
  readonly #guard: WriteGuard | undefined
  readonly #events = new RecentEvents()

  constructor(metrics: BalanceMetrics = NO_BALANCE_METRICS, guard?: WriteGuard) {
    this.#metrics = metrics
    this.#guard = guard
  }

  forget(key: string): void {
    this.#metrics.forget(key)
    this.#events.forget(key)
  }

  /** Returns after how many ms statuses that another client undoes are written again; undefined: none is stopped. */
  async report(
    object: Immutable<DNSLoadBalancer>,
    endpoints: readonly Immutable<DNSLoadBalancerEndpoint>[],
    { status, events, toHolder, endpointStatuses }: BalanceReport,
    ctx: Context,
  ): Promise<number | undefined> {
    const loadBalancer = ctx.key
    const waits = [await writeStatus(this.#guard, object, { kind: DNSLoadBalancer, status, loadBalancer }, ctx)]
    for (const endpoint of endpoints) {
      const next = endpointStatuses.get(keyOf(endpoint))
      const write = { kind: DNSLoadBalancerEndpoint, status: next ?? {}, loadBalancer }
      if (next !== undefined) waits.push(await writeStatus(this.#guard, endpoint, write, ctx))
    }
    this.#metrics.observe(object, endpoints, status, endpointStatuses)
    for (const { type, reason = EVENT_REASON, message } of events)
      if (this.#events.isNew(loadBalancer, `${type} ${message}`)) ctx.event(object, type, reason, message)
    const holder = toHolder === undefined ? undefined : ctx.get(toHolder.kind, toHolder.holder)
    if (toHolder !== undefined && holder !== undefined) {
      const about = { apiVersion: apiVersionOf(toHolder.kind), kind: toHolder.kind.kind, ...holder }
      ctx.event(about, 'Warning', 'HostShared', toHolder.message)
    }
    return earliest(waits)
  }
}

function earliest(waits: readonly (number | undefined)[]): number | undefined {
  const known = waits.filter((wait) => wait !== undefined)
  return known.length === 0 ? undefined : Math.min(...known)
}
