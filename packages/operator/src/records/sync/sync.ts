/**
 * Keeps zones in the state that DNSEndpoints request. Level-triggered: events only determine which names to pass again.
 *
 * Flow: a DNSEndpoint changes → its old and new names are dirty → after a short delay one pass over those names
 * (records-pass.ts). Every minute a part of all names is verified, and held changes that are due are planned again
 * (INV-23); whole zones are planned at the start, once a day, after a pause and on demand.
 * Guarantee: a failed pass is repeated with its names.
 */
import { isDeepStrictEqual } from 'node:util'
import { type Context, type Immutable, type Manager, NotSynced } from '@seamark/kube'
import { DNSEndpoint } from '../../api/dns-endpoint.ts'
import { DNSLoadBalancer } from '../../api/dns-load-balancer.ts'
import { holderOf, nameOfBalancer } from './tenants/balanced-names.ts'
import type { TenantRules } from './tenants/tenant-rules.ts'
import { supportsConditions } from '../../api/condition-support.ts'
import type { Switches } from '../../process/switches.ts'
import type { EngineLifetime } from './engine-lifetime.ts'
import type { SyncReports } from './events.ts'
import { isObjectScope } from '../../safety/object-store.ts'
import { APPROVALS_PART, RecordsPass, type RecordsPassOptions } from './records-pass.ts'
import { untilInstalled } from './sources/installed-kind.ts'
import type { Endpoint } from './sources/source-index.ts'

export interface SyncOptions extends Omit<RecordsPassOptions, 'log' | 'clock' | 'informer'> {
  readonly engine: EngineLifetime
  /** Of the watch of DNSEndpoints; shared with publish and wildcard. */
  readonly endpointScope: { readonly namespace?: string }
  readonly switches: Pick<Switches, 'releasedNames' | 'subscribe'>
  readonly clock: RecordsPassOptions['clock']
  readonly reports: (context: Context) => SyncReports
  /** Settles once it is known whether anything may be written: what a pass reports before that would be lost. */
  readonly untilMayWrite?: (running: { readonly signal: AbortSignal }) => Promise<unknown> | undefined
}

/** reportingController of the Events. */
const EVENT_SOURCE = 'seamark-records'
const DEBOUNCE = '200ms'
const SWEEP = '1m'
const WHOLE = '24h'
/** A provider that does not answer is asked again at a constant rate; its own limiter and breaker bound the requests. */
const RETRY = '15s'
/** Of one pass: a provider with a low rate needs long for a whole zone. Each request has a timeout of its own. */
const TIMEOUT = '2h'

export function setUpSync(manager: Manager, options: SyncOptions): void {
  const { engine, endpointScope, killSwitch, switches, reports, untilMayWrite, ...rest } = options
  const informer = manager.cluster.informers.informer(DNSEndpoint, endpointScope)
  const adoptsForBalancers = rest.rules.adoptedByLoadBalancers !== undefined
  const rules = adoptsForBalancers ? { ...rest.rules, nameOfLoadBalancer: lookUpName(manager, rest.rules) } : rest.rules
  const pass = new RecordsPass({ ...rest, rules, killSwitch, switches, informer, log: manager.log })
  options.approvals.join(APPROVALS_PART)
  let hasConditions: boolean | undefined
  let isInstalled = false
  const aggregator = manager
    .keyedAggregator('records', {
      debounce: DEBOUNCE,
      timeout: TIMEOUT,
      backoff: { base: RETRY, limit: RETRY },
      reportingController: EVENT_SOURCE,
    })
    .watches(
      DNSEndpoint,
      (change) => {
        const names = pass.noteSource(change.object, change.type === 'deleted')
        return change.type !== 'updated' || isRelevantChange(change.old, change.object) ? names : []
      },
      { optional: true, ...endpointScope },
    )
  if (adoptsForBalancers)
    aggregator.watches(
      DNSLoadBalancer,
      // Whoever else asks for its name, or for the one that it had, may have it from now on, or no longer.
      (change) => [...namesOf(change.object), ...(change.type === 'updated' ? namesOf(change.old) : [])],
      { optional: true },
    )
  aggregator
    .triggers((mark) => killSwitch.subscribe(() => mark('all')))
    .triggers((mark) =>
      switches.subscribe(() => {
        pass.noteAnnotations()
        engine.retryNow()
        mark('all')
      }),
    )
    .triggers((mark) =>
      options.approvals.subscribe(({ scope, covered }) => {
        if (!isObjectScope(scope)) mark(new Set(covered.map(({ name }) => name)))
      }),
    )
    .every(SWEEP, () => pass.sweepNames())
    .every(WHOLE, () => 'all')
    .pass(async (names, context) => {
      const { client } = context
      await untilMayWrite?.(context)
      hasConditions ??= await supportsConditions(client, DNSEndpoint, context.signal).catch(() => undefined)
      isInstalled ||= await untilInstalled(client, rest.clock, context.signal).catch(() => false)
      return engine.use(context.signal, async (opened, signal) =>
        pass.run(names, {
          ...opened,
          client,
          signal,
          reports: reports(context),
          hasConditions: hasConditions ?? false,
        }),
      )
    })
}

/** Of the cache: a load balancer that is not known yet adopts nothing, and its names are passed again when it is. */
function lookUpName(manager: Manager, { findNameFault }: TenantRules): NonNullable<TenantRules['nameOfLoadBalancer']> {
  const { informers } = manager.cluster
  const byName = manager.index(DNSLoadBalancer, 'requestedName', namesOf)
  return (key, uid) => {
    try {
      const found = informers.get(DNSLoadBalancer, key)
      const name = found?.metadata.uid === uid ? nameOfBalancer(found) : undefined
      if (name === undefined) return undefined
      const holder = holderOf(name, informers.by(byName, name), findNameFault)
      return holder?.metadata.uid === uid ? name : undefined
    } catch (error) {
      if (error instanceof NotSynced) return undefined
      throw error
    }
  }
}

function namesOf(object: Immutable<DNSLoadBalancer>): string[] {
  const name = nameOfBalancer(object)
  return name === undefined ? [] : [name]
}

/** Changes of the status only are ignored: we write it. */
function isRelevantChange(old: Endpoint, object: Endpoint): boolean {
  const [before, after] = [old.metadata, object.metadata]
  if (before.generation === undefined || before.generation !== after.generation) return true
  return !isDeepStrictEqual([before.labels, before.annotations], [after.labels, after.annotations])
}
