/**
 * One reconcile of a DNSLoadBalancer: observe, decide (decide.ts), publish, report.
 *
 * Order of writes: records, status of the load balancer, statuses of its endpoints, deletions of expired endpoints. A crash
 * in between leaves a state from which the same decision continues.
 */
import { Conflict, type Context, type Immutable, type Index, messageOf, type Next, requeue } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import { DNSLoadBalancerEndpoint } from '../api/dns-load-balancer-endpoint.ts'
import type { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import type { HealthMonitor } from '../health/monitor.ts'
import { isWithin } from '../rrset/rrset.ts'
import { claimNames } from './decide/claims.ts'
import { hasLostRecords, isDeleted } from './deleted-balancer.ts'
import { type BalanceDecision, type BalanceReport, decide } from './decide/decide.ts'
import { targetOf } from './decide/endpoints.ts'
import { type ReadBalancer, readLoadBalancer } from './load-balancer.ts'
import type { LoadBalancerControllerOptions } from './load-balancer-options.ts'
import { LoadBalancerReporter } from './report/load-balancer-report.ts'
import { aliasesIn, nameAddresses } from './name-answers.ts'
import type { NameLookup } from './name-lookup.ts'
import { deleteOrphanedEndpoints } from './orphaned-endpoints.ts'
import { findProbeFault } from './probe-rules.ts'
import { type MonitoredTargets, NAME_ID, probeTargetsOf } from './probe-targets.ts'
import { RecentChanges } from './recent.ts'
import { recordsObjectName, recordsObjectNameOf } from './write/records-object.ts'
import type { HeldRemoval } from './write/mass-removal.ts'
import { dnsEndpointPublisher, type PublishedFact, type RecordPublisher } from './write/record-publisher.ts'

type Balancer = Immutable<DNSLoadBalancer>
type Endpoints = readonly Immutable<DNSLoadBalancerEndpoint>[]

const MIN_REQUEUE_MS = 1_000
/** While nothing may be written, load balancers are decided again this often, so that the end of the cause is noticed. */
const IDLE_RETRY_MS = 10_000

export interface BalanceIndexes {
  readonly byName: Index<DNSLoadBalancer>
  readonly byBalancer: Index<DNSLoadBalancerEndpoint>
}

const NO_TARGETS: MonitoredTargets = new Map()
const NOTHING_PUBLISHED: PublishedFact = { published: [], provider: { state: 'ready' } }

export class LoadBalancerReconciler {
  readonly byName: Index<DNSLoadBalancer>
  readonly #byBalancer: Index<DNSLoadBalancerEndpoint>
  readonly #options: LoadBalancerControllerOptions
  readonly #monitor: HealthMonitor
  readonly #lookup: NameLookup
  readonly #answers: NameLookup | undefined
  readonly #publisher: RecordPublisher
  readonly #reporter: LoadBalancerReporter
  readonly #changes = new RecentChanges()
  #startedMs: number | undefined

  constructor(
    options: LoadBalancerControllerOptions,
    monitor: HealthMonitor,
    lookups: { readonly names: NameLookup; readonly answers: NameLookup | undefined },
    indexes: BalanceIndexes,
  ) {
    this.#options = options
    this.#monitor = monitor
    this.#lookup = lookups.names
    this.#answers = lookups.answers
    this.#publisher =
      options.publisher ?? dnsEndpointPublisher({ ownZones: options.ownZones, guard: options.secondWriter })
    this.#reporter = new LoadBalancerReporter(options.metrics, options.secondWriter)
    this.byName = indexes.byName
    this.#byBalancer = indexes.byBalancer
  }

  /** The load balancer does not exist: its records and, after the start-up grace, endpoints that no source renews go. */
  async forget(key: string, ctx: Context): Promise<Next> {
    this.#monitor.setTargets(key, new Map())
    this.#lookup.setNames(key, [])
    this.#answers?.setNames(key, [])
    this.#reporter.forget(key)
    this.#changes.forget(key)
    this.#options.massRemoval?.withdraw(recordsObjectNameOf(key))
    const endpoints = ctx.by(this.#byBalancer, key)
    if (!(this.#options.isWriting?.() ?? true)) return endpoints.length > 0 ? requeue(IDLE_RETRY_MS) : undefined
    await this.#publisher.forget(key, ctx)
    this.#startedMs ??= ctx.clock.now()
    const afterMs = await deleteOrphanedEndpoints(key, endpoints, this.#startedMs, ctx)
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
    const fact = 'settings' in read ? await this.#publisher.observe(object, read.settings, ctx) : NOTHING_PUBLISHED
    this.#lookup.setNames(ctx.key, [...hostNamesOf(endpoints), ...aliasesIn(fact)])
    const nameAddresses = this.#addressesOf(read, fact, ctx)
    const probeFault = this.#probeFaultOf(object, read)
    this.#monitor.setTargets(
      ctx.key,
      probeFault === undefined ? probeTargetsOf(object, endpoints, defaults, nameAddresses) : NO_TARGETS,
    )
    const decision = decide({
      nowMs: ctx.clock.now(),
      startedMs: this.#startedMs,
      defaults,
      loadBalancer: object,
      endpoints,
      lookup: (name) => this.#lookup.addressesOf(name),
      holder: this.#holderOf(read, ctx),
      nameFault: this.#nameFaultOf(read),
      holding: this.#options.hostSources?.holdingOf(object),
      probeFault,
      verdictOf: (key) => this.#monitor.healthOf(ctx.key, key).verdict,
      healthOf: (key) => this.#monitor.healthOf(ctx.key, key),
      nameVerdict: this.#monitor.healthOf(ctx.key, NAME_ID).verdict,
      ...fact,
      changesMs: this.#changes.of(ctx.key),
    })
    if (!(this.#options.isWriting?.() ?? true)) return requeue(IDLE_RETRY_MS)
    if (decision.records.kind === 'publish' && hasLostRecords(object, fact) && (await isDeleted(object, ctx)))
      return requeue(IDLE_RETRY_MS)
    const stoppedMs = await this.#act(object, endpoints, read, decision, ctx)
    for (const { key } of decision.deletions) {
      const expired = endpoints.find((endpoint) => keyOf(endpoint) === key)
      if (expired !== undefined) await ctx.delete(DNSLoadBalancerEndpoint, expired)
    }
    onReconciled?.(ctx.key, this.#isEveryVerdictKnown(ctx.key, endpoints))
    const againMs = Math.min(decision.againAfterMs ?? Infinity, stoppedMs ?? Infinity)
    return againMs === Infinity ? undefined : requeue(Math.max(MIN_REQUEUE_MS, againMs))
  }

  /** Of the DNS name, as its zone answers. */
  #addressesOf(read: ReadBalancer, fact: PublishedFact, ctx: Context): readonly string[] | undefined {
    if (!('settings' in read)) return undefined
    const { recordName } = read.settings
    this.#answers?.setNames(ctx.key, fact.readFrom === 'server' ? [] : [recordName])
    return nameAddresses(fact, this.#answers?.addressesOf(recordName), (name) => this.#lookup.addressesOf(name))
  }

  #probeFaultOf(object: Balancer, read: ReadBalancer): string | undefined {
    const { probeRules } = this.#options
    if (probeRules === undefined || !('settings' in read)) return undefined
    return findProbeFault(object, read.settings.dnsName, probeRules)
  }

  #holderOf(read: ReadBalancer, ctx: Context): string | undefined {
    if (!('settings' in read)) return undefined
    const { recordName } = read.settings
    const { defaults, hostSources, findNameFault } = this.#options
    const isHeldBack = (object: Balancer): boolean => hostSources?.holdingOf(object) !== undefined
    const rules = { isHeldBack, ...(findNameFault !== undefined && { findNameFault }) }
    return claimNames(ctx.by(this.byName, recordName), defaults, rules).get(recordName)
  }

  #nameFaultOf(read: ReadBalancer): string | undefined {
    if (!('settings' in read)) return undefined
    return this.#options.findNameFault?.(read.settings.namespace, read.settings.recordName)
  }

  #isEveryVerdictKnown(key: string, endpoints: Endpoints): boolean {
    return endpoints.every(
      (endpoint) =>
        targetOf(endpoint) === undefined || this.#monitor.healthOf(key, keyOf(endpoint)).verdict !== 'unknown',
    )
  }

  /** Endpoints that fail their health checks are no mistake, and a name that another source has stays answered. */
  #heldRemoval(object: Balancer, read: ReadBalancer, decision: BalanceDecision): HeldRemoval | undefined {
    const { massRemoval, ownZones = [] } = this.#options
    const { records, reason } = decision
    // Records holds the names that it writes itself.
    const isOwn = 'settings' in read && ownZones.some((zone) => isWithin(read.settings.recordName, zone))
    if (isOwn) return undefined
    if (records.kind === 'remove' && records.isChange && reason === 'NoEndpoints')
      return massRemoval?.ask(recordsObjectName(object))
    massRemoval?.withdraw(recordsObjectName(object))
    return undefined
  }

  /** Returns after how many ms a stopped write is tried again; undefined: none is stopped. */
  async #act(object: Balancer, endpoints: Endpoints, read: ReadBalancer, decision: BalanceDecision, ctx: Context) {
    const { records, whenApplied, whenRejected } = decision
    const report = async (what: BalanceReport) => this.#reporter.report(object, endpoints, what, ctx)
    const held = this.#heldRemoval(object, read, decision)
    if (held !== undefined) {
      if (held.message !== undefined) await report(whenRejected(held.message, 'GuardTripped'))
      return held.afterMs
    }
    if (records.kind === 'hold' || !records.isChange || !('settings' in read)) return report(whenApplied)
    const { sets, cnames } = records.kind === 'publish' ? records : { sets: [], cnames: [] }
    try {
      const request = { loadBalancer: object, settings: read.settings, sets, cnames, reason: decision.reason }
      const outcome = await this.#publisher.publish(request, ctx)
      // A dry run reports no change of records.
      if (outcome === 'skipped') return undefined
      if (outcome !== 'published') {
        const { finding, afterMs } = outcome
        await report(whenRejected(finding.message, 'SecondWriter'))
        return afterMs
      }
    } catch (error) {
      // The cache is older than the server and may contain a load balancer that is deleted: decided again with a newer one.
      if (error instanceof Conflict) return IDLE_RETRY_MS
      await report(whenRejected(messageOf(error)))
      throw error
    }
    this.#changes.add(ctx.key, ctx.clock.now())
    this.#answers?.touch(read.settings.recordName)
    return report(whenApplied)
  }
}

function hostNamesOf(endpoints: Endpoints): string[] {
  return endpoints.flatMap(({ spec }) => (spec.cname === undefined || spec.cname === '' ? [] : [spec.cname]))
}
