/**
 * One reconcile of a DNSLoadBalancer: observe, decide (decide.ts), publish, report.
 *
 * Order of writes: records, status of the load balancer, statuses of its endpoints, deletions of expired endpoints. A crash
 * in between leaves a state from which the same decision goes on.
 */
import { type Context, type Immutable, type Index, messageOf, type Next, requeue } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import { DNSLoadBalancerEndpoint } from '../api/dns-load-balancer-endpoint.ts'
import type { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import type { HealthMonitor } from '../health/monitor.ts'
import { type BalanceMetrics, NO_BALANCE_METRICS } from './balance-metrics.ts'
import { claimNames } from './claims.ts'
import { type BalanceDecision, type BalanceReport, decide } from './decide.ts'
import { targetOf } from './endpoints.ts'
import { type ReadBalancer, readLoadBalancer } from './load-balancer.ts'
import type { LoadBalancerControllerOptions } from './load-balancer-options.ts'
import type { NameLookup } from './name-lookup.ts'
import { deleteOrphanedEndpoints } from './orphaned-endpoints.ts'
import { NAME_ID, probeTargetsOf } from './probe-targets.ts'
import { RecentChanges, RecentEvents } from './recent.ts'
import { dnsEndpointPublisher, type PublishedFact, type RecordPublisher } from './record-publisher.ts'

type Balancer = Immutable<DNSLoadBalancer>
type Endpoints = readonly Immutable<DNSLoadBalancerEndpoint>[]

/** Reason of every Event, as the original has it. */
const EVENT_REASON = 'sync'
const MIN_REQUEUE_MS = 1_000
/** While nothing may be written, load balancers are decided again this often, so that the end of a pause is noticed. */
const IDLE_RETRY_MS = 10_000

export interface BalanceIndexes {
  readonly byName: Index<DNSLoadBalancer>
  readonly byBalancer: Index<DNSLoadBalancerEndpoint>
}

const NOTHING_PUBLISHED: PublishedFact = { published: [], provider: { state: 'ready' } }

export class LoadBalancerReconciler {
  readonly byName: Index<DNSLoadBalancer>
  readonly #byBalancer: Index<DNSLoadBalancerEndpoint>
  readonly #options: LoadBalancerControllerOptions
  readonly #monitor: HealthMonitor
  readonly #lookup: NameLookup
  readonly #publisher: RecordPublisher
  readonly #metrics: BalanceMetrics
  readonly #changes = new RecentChanges()
  readonly #events = new RecentEvents()
  #startedMs: number | undefined

  constructor(
    options: LoadBalancerControllerOptions,
    monitor: HealthMonitor,
    lookup: NameLookup,
    indexes: BalanceIndexes,
  ) {
    this.#options = options
    this.#monitor = monitor
    this.#lookup = lookup
    this.#publisher = options.publisher ?? dnsEndpointPublisher(options.ownZones)
    this.#metrics = options.metrics ?? NO_BALANCE_METRICS
    this.byName = indexes.byName
    this.#byBalancer = indexes.byBalancer
  }

  /** The load balancer does not exist: its records and, after the start-up grace, endpoints that no source renews go. */
  async forget(key: string, ctx: Context): Promise<Next> {
    this.#monitor.setTargets(key, new Map())
    this.#lookup.setNames(key, [])
    this.#metrics.forget(key)
    this.#changes.forget(key)
    this.#events.forget(key)
    if (!(this.#options.isWriting?.() ?? true)) return
    await this.#publisher.forget(key, ctx)
    this.#startedMs ??= ctx.clock.now()
    const afterMs = await deleteOrphanedEndpoints(key, ctx.by(this.#byBalancer, key), this.#startedMs, ctx)
    return afterMs === undefined ? undefined : requeue(Math.max(MIN_REQUEUE_MS, afterMs))
  }

  async reconcile(object: Balancer, ctx: Context): Promise<Next> {
    await this.#options.untilMayWrite?.(ctx)
    if (object.metadata.deletionTimestamp !== undefined) return this.forget(ctx.key, ctx)
    if (this.#publisher.isReady?.() === false) return requeue(MIN_REQUEUE_MS)
    this.#startedMs ??= ctx.clock.now()
    const { defaults, onReconciled } = this.#options
    const endpoints = ctx.by(this.#byBalancer, ctx.key)
    const read = readLoadBalancer(object, defaults)
    this.#monitor.setTargets(ctx.key, probeTargetsOf(object, endpoints, defaults))
    this.#lookup.setNames(ctx.key, hostNamesOf(endpoints))
    const decision = decide({
      nowMs: ctx.clock.now(),
      startedMs: this.#startedMs,
      defaults,
      loadBalancer: object,
      endpoints,
      lookup: (name) => this.#lookup.addressesOf(name),
      holder: this.#holderOf(read, ctx),
      verdictOf: (key) => this.#monitor.healthOf(ctx.key, key).verdict,
      healthOf: (key) => this.#monitor.healthOf(ctx.key, key),
      nameVerdict: this.#monitor.healthOf(ctx.key, NAME_ID).verdict,
      ...('settings' in read ? await this.#publisher.observe(object, read.settings, ctx) : NOTHING_PUBLISHED),
      changesMs: this.#changes.of(ctx.key),
    })
    if (!(this.#options.isWriting?.() ?? true)) return requeue(IDLE_RETRY_MS)
    const report = await this.#publish(object, read, decision, ctx)
    if (report !== undefined) await this.#report(object, endpoints, report, ctx)
    for (const { key } of decision.deletions) {
      const expired = endpoints.find((endpoint) => keyOf(endpoint) === key)
      if (expired !== undefined) await ctx.delete(DNSLoadBalancerEndpoint, expired)
    }
    onReconciled?.(ctx.key, this.#isEveryVerdictKnown(ctx.key, endpoints))
    if (decision.againAfterMs !== undefined) return requeue(Math.max(MIN_REQUEUE_MS, decision.againAfterMs))
  }

  #holderOf(read: ReadBalancer, ctx: Context): string | undefined {
    if (!('settings' in read)) return undefined
    const { recordName } = read.settings
    return claimNames(ctx.by(this.byName, recordName), this.#options.defaults).get(recordName)
  }

  #isEveryVerdictKnown(key: string, endpoints: Endpoints): boolean {
    return endpoints.every(
      (endpoint) =>
        targetOf(endpoint) === undefined || this.#monitor.healthOf(key, keyOf(endpoint)).verdict !== 'unknown',
    )
  }

  /** Undefined: a dry run, which reports no change of records. */
  async #publish(
    object: Balancer,
    read: ReadBalancer,
    { records, whenApplied, whenRejected }: BalanceDecision,
    ctx: Context,
  ): Promise<BalanceReport | undefined> {
    if (records.kind === 'hold' || !records.isChange || !('settings' in read)) return whenApplied
    const { sets, cnames } = records.kind === 'publish' ? records : { sets: [], cnames: [] }
    try {
      const request = { loadBalancer: object, settings: read.settings, sets, cnames }
      if ((await this.#publisher.publish(request, ctx)) === 'skipped') return undefined
    } catch (error) {
      await this.#report(object, ctx.by(this.#byBalancer, ctx.key), whenRejected(messageOf(error)), ctx)
      throw error
    }
    this.#changes.add(ctx.key, ctx.clock.now())
    return whenApplied
  }

  async #report(
    object: Balancer,
    endpoints: Endpoints,
    { status, events, endpointStatuses }: BalanceReport,
    ctx: Context,
  ): Promise<void> {
    await ctx.status(object, status)
    for (const endpoint of endpoints) {
      const next = endpointStatuses.get(keyOf(endpoint))
      if (next !== undefined) await ctx.status(endpoint, next)
    }
    this.#metrics.observe(object, endpoints, status, endpointStatuses)
    for (const { type, message } of events)
      if (this.#events.isNew(ctx.key, `${type} ${message}`)) ctx.event(object, type, EVENT_REASON, message)
  }
}

function hostNamesOf(endpoints: Endpoints): string[] {
  return endpoints.flatMap(({ spec }) => (spec.cname === undefined || spec.cname === '' ? [] : [spec.cname]))
}
