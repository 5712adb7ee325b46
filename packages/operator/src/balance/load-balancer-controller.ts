/**
 * Controller of DNSLoadBalancers: observes endpoints, verdicts and what is published, decides (decide.ts), and writes.
 *
 * Place in the flow: publishes through a DNSEndpoint that the load balancer owns; the records capability (or ExternalDNS)
 * takes it from there, with its guards. What is published is read back from that DNSEndpoint, so stickiness and the last
 * answer survive a restart.
 *
 * Steady state writes nothing: equal applies and statuses are not sent, and an Event equal to the last one of its object
 * is not repeated.
 */
import {
  type Context,
  type Immutable,
  type Index,
  type Manager,
  messageOf,
  type Next,
  requeue,
  withController,
} from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import { DNSLoadBalancerEndpoint } from '../api/dns-load-balancer-endpoint.ts'
import { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import type { HealthMonitor, MonitoredTarget } from '../health/monitor.ts'
import type { Verdict } from '../health/verdict.ts'
import { claimNames } from './claims.ts'
import { type BalanceDecision, type BalanceFacts, type BalanceReport, decide } from './decide.ts'
import { CLUSTER_ANNOTATION } from './decide-source.ts'
import { candidateOf } from './endpoints.ts'
import { type BalanceDefaults, probeOf, readLoadBalancer } from './load-balancer.ts'
import { publishedIn, recordsObject, recordsObjectName } from './records-object.ts'
import type { Lookup } from './record-sets.ts'

export interface LoadBalancerControllerOptions {
  readonly defaults: BalanceDefaults
  /** Starts probing; `onChange` gets the keys of load balancers whose health changed. */
  readonly monitor: (onChange: (keys: readonly string[]) => void) => HealthMonitor
  readonly lookup: Lookup
}

/** Reason of every Event, as the original has it. */
const EVENT_REASON = 'sync'
/** The id of the DNS name itself among the targets of a load balancer; no endpoint can have it. */
const NAME_ID = ''
const MIN_REQUEUE_MS = 1_000

/** Returns the monitor, which the caller stops after the manager. */
export function setUpLoadBalancers(mgr: Manager, options: LoadBalancerControllerOptions): HealthMonitor {
  let enqueue: (keys: readonly string[]) => void = () => undefined
  const monitor = options.monitor((keys) => enqueue(keys))
  const shell = new LoadBalancerShell(options, monitor, {
    byName: mgr.index(DNSLoadBalancer, 'dnsName', (object) => namesOf(object, options.defaults)),
    byBalancer: mgr.index(DNSLoadBalancerEndpoint, 'loadbalancer', (object) => [balancerKey(object)]),
  })
  mgr
    .controller('balance', DNSLoadBalancer)
    .watches(DNSLoadBalancerEndpoint, (endpoint) => [balancerKey(endpoint)])
    .watches(DNSLoadBalancer, (object, cache) =>
      // Whoever shares the name may gain or lose it.
      namesOf(object, options.defaults).flatMap((name) => cache.by(shell.byName, name).map(keyOf)),
    )
    .owns(DNSEndpoint)
    .triggers((mark) => {
      enqueue = mark
      return () => {
        enqueue = () => undefined
      }
    })
    .gone(async (key) => shell.forget(key))
    .reconcile((object, ctx) => shell.reconcile(object, ctx))
  return monitor
}

function namesOf(object: Immutable<DNSLoadBalancer>, defaults: BalanceDefaults): string[] {
  const read = readLoadBalancer(object, defaults)
  return 'settings' in read ? [read.settings.recordName] : []
}

function balancerKey({ metadata, spec }: Immutable<DNSLoadBalancerEndpoint>): string {
  return `${metadata.namespace ?? ''}/${spec.loadbalancer}`
}

interface Indexes {
  readonly byName: Index<DNSLoadBalancer>
  readonly byBalancer: Index<DNSLoadBalancerEndpoint>
}

class LoadBalancerShell {
  readonly byName: Index<DNSLoadBalancer>
  readonly #byBalancer: Index<DNSLoadBalancerEndpoint>
  readonly #options: LoadBalancerControllerOptions
  readonly #monitor: HealthMonitor
  /** Lost with the process; then at most `MAX_CHANGES_PER_MINUTE` more changes are made. */
  readonly #changesMs = new Map<string, readonly number[]>()
  readonly #lastEvents = new Map<string, string>()
  #startedMs: number | undefined

  constructor(options: LoadBalancerControllerOptions, monitor: HealthMonitor, { byName, byBalancer }: Indexes) {
    this.#options = options
    this.#monitor = monitor
    this.byName = byName
    this.#byBalancer = byBalancer
  }

  forget(key: string): void {
    this.#monitor.setTargets(key, new Map())
    this.#changesMs.delete(key)
    this.#lastEvents.delete(key)
  }

  async reconcile(object: Immutable<DNSLoadBalancer>, ctx: Context): Promise<Next> {
    if (object.metadata.deletionTimestamp !== undefined) return this.forget(ctx.key)
    this.#startedMs ??= ctx.clock.now()
    const endpoints = ctx.by(this.#byBalancer, ctx.key)
    this.#monitor.setTargets(ctx.key, this.#targetsOf(object, endpoints))
    const decision = decide(this.#observe(object, endpoints, ctx, this.#startedMs))
    await this.#report(object, endpoints, await this.#publish(object, decision, ctx), ctx)
    for (const { key } of decision.deletions) {
      const expired = endpoints.find((endpoint) => keyOf(endpoint) === key)
      if (expired !== undefined) await ctx.delete(DNSLoadBalancerEndpoint, expired)
    }
    if (decision.againAfterMs !== undefined) return requeue(Math.max(MIN_REQUEUE_MS, decision.againAfterMs))
  }

  #targetsOf(
    object: Immutable<DNSLoadBalancer>,
    endpoints: readonly Immutable<DNSLoadBalancerEndpoint>[],
  ): ReadonlyMap<string, MonitoredTarget> {
    const targets = new Map<string, MonitoredTarget>()
    const read = readLoadBalancer(object, this.#options.defaults)
    if ('invalid' in read) return targets
    const { dnsName } = read.settings
    const seed = object.status?.state === 'healthy' ? 'healthy' : 'unknown'
    targets.set(NAME_ID, { target: probeOf(object, dnsName, dnsName.replace(/^\*\./, 'wildcard.'), ''), seed })
    for (const endpoint of endpoints) {
      const candidate = candidateOf(endpoint)
      if (candidate === undefined) continue
      const site = endpoint.metadata.annotations?.[CLUSTER_ANNOTATION] ?? candidate.host
      targets.set(candidate.key, { target: probeOf(object, dnsName, candidate.host, site), seed: seedOf(endpoint) })
    }
    return targets
  }

  #observe(
    loadBalancer: Immutable<DNSLoadBalancer>,
    endpoints: readonly Immutable<DNSLoadBalancerEndpoint>[],
    ctx: Context,
    startedMs: number,
  ): BalanceFacts {
    const { defaults, lookup } = this.#options
    const [name] = namesOf(loadBalancer, defaults)
    const published = publishedIn(ctx.get(DNSEndpoint, recordsObjectName(loadBalancer)), loadBalancer)
    return {
      nowMs: ctx.clock.now(),
      startedMs,
      defaults,
      loadBalancer,
      endpoints,
      lookup,
      holder: name === undefined ? undefined : claimNames(ctx.by(this.byName, name), defaults).get(name),
      verdictOf: (key) => this.#monitor.healthOf(ctx.key, key).verdict,
      nameVerdict: this.#monitor.healthOf(ctx.key, NAME_ID).verdict,
      // Records of an earlier name say nothing about this one.
      published: 'foreign' in published ? undefined : published.sets.filter((set) => set.name === name),
      provider: 'foreign' in published ? { state: 'unreadable', error: published.foreign } : { state: 'ready' },
      changesMs: this.#changesMs.get(ctx.key) ?? [],
    }
  }

  async #publish(object: Immutable<DNSLoadBalancer>, decision: BalanceDecision, ctx: Context): Promise<BalanceReport> {
    const { records } = decision
    if (records.kind === 'hold' || !records.isChange) return decision.whenApplied
    try {
      if (records.kind === 'publish') {
        await ctx.apply(DNSEndpoint, withController(recordsObject(object, records.sets), DNSLoadBalancer, object))
      } else {
        const existing = ctx.get(DNSEndpoint, recordsObjectName(object))
        if (existing !== undefined) await ctx.delete(DNSEndpoint, existing)
      }
    } catch (error) {
      await this.#report(object, ctx.by(this.#byBalancer, ctx.key), decision.whenRejected(messageOf(error)), ctx)
      throw error
    }
    const nowMs = ctx.clock.now()
    this.#changesMs.set(ctx.key, [
      ...(this.#changesMs.get(ctx.key) ?? []).filter((atMs) => nowMs - atMs < 60_000),
      nowMs,
    ])
    return decision.whenApplied
  }

  async #report(
    object: Immutable<DNSLoadBalancer>,
    endpoints: readonly Immutable<DNSLoadBalancerEndpoint>[],
    { status, events, endpointStatuses }: BalanceReport,
    ctx: Context,
  ): Promise<void> {
    await ctx.status(DNSLoadBalancer, object, status)
    for (const endpoint of endpoints) {
      const next = endpointStatuses.get(keyOf(endpoint))
      if (next !== undefined) await ctx.status(DNSLoadBalancerEndpoint, endpoint, next)
    }
    for (const { type, message } of events) {
      const text = `${type} ${message}`
      if (this.#lastEvents.get(ctx.key) === text) continue
      this.#lastEvents.set(ctx.key, text)
      ctx.event(object, type, EVENT_REASON, message)
    }
  }
}

function seedOf({ status }: Immutable<DNSLoadBalancerEndpoint>): Verdict {
  return status?.healthy === undefined ? 'unknown' : status.healthy ? 'healthy' : 'unhealthy'
}
