/**
 * One pass over names: desired and observed RRsets → plan → executor → Events, conditions, observedGeneration.
 *
 * Place in the flow: sync.ts decides when a pass runs and over which names. State that lasts from pass to pass is here:
 * the index of the sources, the held changes, the zones that could not be read.
 * Guarantees: errors of a provider or an invalid object affect only the names concerned, which are passed again; while
 * the kill switch is on nothing is written, neither DNS nor Kubernetes; a process that never saw a source deletes nothing.
 */
import { type Clock, type Context, type Informer, type Logger, messageOf, type PassResult } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import { DNSEndpoint } from '../../api/dns-endpoint.ts'
import type { Reason } from '../../reasons.ts'
import { createDriftSweep } from './drift-sweep.ts'
import { requestedBy, sourceOf } from './sources/dns-endpoint-source.ts'
import type { SyncReports } from './events.ts'
import { heldRecordOf } from './endpoint-status.ts'
import { writeStatuses } from './endpoint-status-writes.ts'
import type { Engine, Planned, Unread } from '../engine.ts'
import { ProviderError } from '../../rrset/error.ts'
import type { Approvals } from '../../safety/annotated-approvals.ts'
import type { HeldRecords } from '../../safety/held-records.ts'
import { DEFAULT_MASS_LIMITS, type MassLimits } from '../../safety/mass-limits.ts'
import { Releases } from '../state/releases.ts'
import { breakerChanges } from './breaker-change.ts'
import { type Held, HeldChanges } from './held-changes.ts'
import type { GuardStore } from '../state/guard-state.ts'
import type { KillSwitch } from '../../process/kill-switch.ts'
import { deferChanges, PASS_NAMES, takeFairShare } from './tenants/fair-share.ts'
import { heldMessage, isCounting, isProcessWide, namesToReview } from '../plan/held-set.ts'
import { failuresOf, type PlanOutcome } from '../execute/result.ts'
import type { Plan } from '../plan/plan.ts'
import { adoptedNames, isOutage, unconfirmedNames } from './pass-result.ts'
import { isWithin } from '../../rrset/rrset.ts'
import { type Endpoint, type Names, SourceIndex } from './sources/source-index.ts'
import type { TenantRules } from './tenants/tenant-rules.ts'
import { checkSources } from './sources/source-check.ts'
import type { Switches } from '../../process/switches.ts'

/** Callbacks for each pass; for metrics. */
export interface SyncObserver {
  planned(plan: Plan): void
  applied(outcome: PlanOutcome): void
  /** Whether a zone was read and every change is in place or held by a guard. */
  synced(zone: Pick<Held, 'provider' | 'zone'>, isStale: boolean): void
  /** The same, and neither the mode nor the kill switch of the process holds a change. */
  written?(zone: Pick<Held, 'provider' | 'zone'>): void
  held(all: () => Iterable<Held>): void
}

export interface RecordsPassOptions {
  readonly informer: Informer<DNSEndpoint>
  readonly killSwitch: KillSwitch
  readonly defaultTtl: number
  /** What the namespace of a DNSEndpoint may request. */
  readonly rules: TenantRules
  /** Whether the filters select an object. */
  readonly isServed: (object: Endpoint) => boolean
  /** The only namespace that may be listed. @default all */
  readonly namespace?: string
  readonly switches: Pick<Switches, 'releasedNames'>
  readonly approvals: Approvals
  /** @default DEFAULT_MASS_LIMITS */
  readonly massLimits?: MassLimits
  readonly log: Logger
  readonly clock: Clock
  readonly observer?: SyncObserver
  readonly isWriting: boolean
  /** For the reports of publish. */
  readonly heldRecords?: HeldRecords
  /** Names of one pass. @default PASS_NAMES */
  readonly passNames?: number
}

/** What one pass works with. */
export interface PassTools {
  readonly engine: Engine
  /** Where approvals are recorded. */
  readonly store: GuardStore
  readonly client: Context['client']
  readonly signal: AbortSignal
  readonly reports: SyncReports
  /** Whether the schema of DNSEndpoint has conditions. */
  readonly hasConditions: boolean
}

/** A short delay, so that decisions about the same changes are made together. */
const REVIEW_MS = 200
/** Until the watch is live again, usually a few seconds. */
const UNCONFIRMED_MS = 15_000
const BREAKER_MESSAGES = {
  opened: 'breaker opened',
  changed: 'breaker holds other changes',
  closed: 'breaker closed',
} as const
/** As which records joins the approvals by annotation. */
export const APPROVALS_PART = 'records'

interface NextNames {
  readonly names: Names
  readonly later: ReadonlySet<string>
  readonly frozen: ReadonlySet<string>
}

export class RecordsPass {
  readonly #options: RecordsPassOptions
  readonly #clock: Clock
  readonly #index: SourceIndex
  readonly #held = new HeldChanges()
  readonly #sweep = createDriftSweep()
  readonly #unread = new Map<string, Reason>()
  #releases: Releases | undefined
  #engine: Engine | undefined

  constructor(options: RecordsPassOptions) {
    this.#options = options
    this.#clock = options.clock
    this.#index = new SourceIndex(options.isServed, options.defaultTtl, options.rules)
    options.observer?.held(() => this.#held.all())
  }

  /** Updates the index; returns the names that the object requests, or requested before. */
  noteSource(object: Endpoint, isGone: boolean): ReadonlySet<string> {
    if (isGone) this.#options.heldRecords?.forget(object)
    return this.#index.note(object, isGone)
  }

  noteAnnotations(): void {
    this.#releases?.noteChange()
  }

  /** The names to verify next, and those whose held changes are due. */
  sweepNames(): ReadonlySet<string> {
    const engine = this.#engine
    if (engine === undefined) return new Set()
    const part = this.#sweep.next(
      () => this.#index.names(),
      (name) => engine.isReadByName(name),
    )
    // Planned alone, a deletion that a breaker holds as one of many would look like a single one, and pass.
    const unheld = [...part].filter((name) => !this.#held.isHeld(name))
    return new Set([...unheld, ...this.#held.takeDue(this.#clock.now())])
  }

  async run(dirty: Names, tools: PassTools): Promise<PassResult> {
    const { isWriting, killSwitch } = this.#options
    this.#engine = tools.engine
    const limits = this.#updateLimits(tools.reports)
    const { names, later, frozen } = this.#nextNames(dirty, limits.released)
    const { planned: whole, hasWatch } = await this.#plan(names, tools)
    const { planned, deferred } = this.#defer(whole)
    const waiting = new Set([...later, ...deferred])
    const before = [...this.#held.all()]
    this.#notePlanned(planned, names, tools.reports)
    this.#reportBreakers(before, tools.reports)
    const outcomes = await Promise.all(planned.plans.map(async (plan) => this.#apply(plan, tools)))
    this.#noteSynced(planned, outcomes)
    for (const name of adoptedNames(outcomes)) waiting.add(name)
    if (isWriting && !killSwitch.isPaused)
      await this.#writeStatuses(
        [names, frozen].flatMap((some) => this.#index.objects(some)).concat(limits.objects),
        waiting,
        tools,
      )
    if (names === 'all') this.#options.heldRecords?.setKnown()
    const isOpen = outcomes.some((outcome) => outcome === undefined || failuresOf(outcome).length > 0)
    const approved = await this.#takeApprovals(tools)
    const review = new Set([...namesToReview(before, this.#held.all()), ...approved])
    const unconfirmed = hasWatch ? [] : unconfirmedNames(planned)
    return {
      ...((planned.unread.length > 0 || isOpen) && { failed: names }),
      requeue: [
        { keys: waiting, after: 0 },
        { keys: review, after: REVIEW_MS },
        // All together: a breaker counts them.
        { keys: unconfirmed, after: UNCONFIRMED_MS },
        ...this.#untilDue(planned),
      ],
    }
  }

  /** The names of changes that are held until a time, each at its time: it was said to users. */
  #untilDue({ plans }: Planned): { readonly keys: ReadonlySet<string>; readonly after: number }[] {
    const due = new Map<number, Set<string>>()
    for (const { name, until } of plans.flatMap(({ refused }) => refused))
      if (until !== undefined) due.set(until, (due.get(until) ?? new Set()).add(name))
    const now = this.#clock.now()
    return Array.from(due, ([until, keys]) => ({ keys, after: Math.max(0, until - now) }))
  }

  /**
   * A fair share of the dirty names; see fair-share.ts. Names that a breaker counts are passed together. `frozen`: names
   * that need no plan, because only sources beyond a limit request them.
   */
  #nextNames(dirty: Names, released: ReadonlySet<string>): NextNames {
    if (dirty === 'all') return { names: dirty, later: new Set(), frozen: new Set() }
    const open = new Set<string>()
    const frozen = new Set<string>()
    for (const some of [dirty, released])
      for (const name of some) (this.#index.isFrozen(name) ? frozen : open).add(name)
    const { now, later } = takeFairShare(
      open,
      (name) => (this.#held.isHeldFor(name, isCounting) ? [] : this.#index.tenantsOf(name)),
      this.#options.passNames ?? PASS_NAMES,
    )
    return { names: now, later, frozen }
  }

  /** Plans with the share of their changes that is written now, and the names of the others. */
  #defer(planned: Planned): { planned: Planned; deferred: ReadonlySet<string> } {
    const deferred = new Set<string>()
    const tenantOf = (source: string): string | undefined => this.#index.find(source)?.metadata.namespace
    const plans = planned.plans.map((whole) => {
      const { plan, later } = deferChanges(whole, tenantOf, this.#options.passNames ?? PASS_NAMES)
      for (const name of later) deferred.add(name)
      return plan
    })
    return { planned: { ...planned, plans }, deferred }
  }

  /** Reports objects that are beyond a limit; `released`: the names of those that are not any more. */
  #updateLimits(reports: SyncReports): { released: ReadonlySet<string>; objects: readonly Endpoint[] } {
    const { added, removed } = this.#index.updateLimits()
    const released = new Set<string>()
    const objects: Endpoint[] = []
    for (const [uid, why] of added) {
      const object = this.#index.find(uid)
      if (object === undefined) continue
      objects.push(object)
      const about = { provider: '', zone: '*', name: keyOf(object), type: DNSEndpoint.kind, source: uid }
      this.#addHeld({ ...about, code: 'EndpointLimitExceeded', why }, reports)
    }
    for (const uid of removed) {
      this.#held.removeSource(uid, 'EndpointLimitExceeded')
      for (const name of requestedBy(this.#index.find(uid))) released.add(name)
    }
    return { released, objects }
  }

  /** One log line and one report per zone when a breaker opens, holds others, or closes; each held record is reported on its own source. */
  #reportBreakers(before: readonly Held[], reports: SyncReports): void {
    for (const change of breakerChanges(before, this.#held.all())) {
      const { state, ...about } = change
      this.#options.log.warn(about, BREAKER_MESSAGES[state])
      reports.breaker(change)
    }
  }

  /** The names whose held changes were approved by the deprecated annotation. */
  async #takeApprovals({ store, reports }: PassTools): Promise<string[]> {
    const { switches, approvals, killSwitch, isWriting } = this.#options
    this.#releases ??= new Releases(store, switches)
    if (!isWriting || killSwitch.isPaused) return []
    const released = await this.#releases.take(this.#clock.now())
    if (released !== undefined) reports.released(released)
    // Approved names are planned again by the subscription of sync.ts.
    await approvals.take(APPROVALS_PART)
    return released?.covered.map(({ name }) => name) ?? []
  }

  /** `hasWatch`: the watch was live when sources were judged. */
  async #plan(
    names: Names,
    { engine, client, signal }: PassTools,
  ): Promise<{ readonly planned: Planned; readonly hasWatch: boolean }> {
    const { informer, namespace, isServed, massLimits = DEFAULT_MASS_LIMITS } = this.#options
    // Both are read together: a source without its desired records would look as if it requested nothing.
    const { present, known, requesting } = this.#index
    const { overLimit } = this.#index
    let hasWatch = true
    const planned = await engine.plan(
      {
        ...this.#index.desired(names),
        // Without a live watch, or before the first source, it is unknown which sources are gone.
        sources: async (owned) => {
          const isLive = informer.state === 'live'
          if (!isLive) hasWatch = false
          if (!isLive || known.size === 0) return { present, gone: new Set(), overLimit, namespaces: known }
          const question = {
            owned,
            present,
            known,
            isServed,
            now: this.#clock.now(),
            massLimits,
            ...(namespace !== undefined && { namespace }),
          }
          return { requesting, overLimit, namespaces: known, ...(await checkSources(client, question, signal)) }
        },
      },
      names,
      signal,
    )
    return { planned, hasWatch }
  }

  async #apply(plan: Plan, { engine, signal, reports }: PassTools): Promise<PlanOutcome | undefined> {
    const { log, observer } = this.#options
    const { provider, zone } = plan
    try {
      if (this.#options.isWriting && !this.#options.killSwitch.isPaused && plan.changes.length === 0)
        await engine.record(plan)
      const outcome = await engine.apply(plan, signal)
      observer?.applied(outcome)
      for (const { change, result, code, why = '' } of outcome.results) {
        const { name, type, source, op, reason, from, to } = change
        if (code !== undefined) this.#addHeld({ provider, zone, name, type, code, why, source }, reports)
        else if (result === 'applied')
          log.info(
            {
              zone,
              provider,
              host: name,
              type,
              op,
              reason,
              plan: plan.number,
              ...(from !== undefined && { from: from.values }),
              ...(to !== undefined && { to: to.values }),
            },
            'record written',
          )
      }
      return outcome
    } catch (error) {
      const code = error instanceof ProviderError ? error.code : 'OutcomeUnknown'
      log.warn({ zone, provider, code, why: messageOf(error) }, 'plan not applied')
      for (const { name, type, source } of plan.changes)
        this.#addHeld({ provider, zone, name, type, code, why: messageOf(error), source }, reports)
      return undefined
    }
  }

  #notePlanned({ plans, unread, withoutZone }: Planned, names: Names, reports: SyncReports): void {
    const now = this.#clock.now()
    for (const plan of plans) {
      const { provider, zone } = plan
      this.#options.observer?.planned(plan)
      const held = plan.refused.map(({ name, type, code, why, source, until, set, holder }) => ({
        provider,
        zone,
        name,
        type,
        code,
        why,
        source,
        ...(until !== undefined && { until }),
        ...(set !== undefined && { set }),
        ...(holder !== undefined && { holder }),
      }))
      for (const item of this.#held.replace({ provider, zone }, names, held, now)) this.#report(item, reports)
      // The zones of these names are known again.
      this.#held.replace({ provider: accountOf(provider), zone: '*' }, names, [], now)
    }
    const nowhere = withoutZone.map(({ name, type, code, message, source }) => ({
      provider: '',
      zone: '',
      name,
      type,
      code,
      why: message,
      source: source.uid,
    }))
    for (const item of this.#held.replace({ provider: '', zone: '' }, names, nowhere, now)) this.#report(item, reports)
    for (const item of unread) this.#noteUnread(item, names, reports)
  }

  /** Changes that wait for the zone are reported; RRsets that are in place are not. */
  #noteUnread(unread: Unread, names: Names, reports: SyncReports): void {
    const { provider, zone, code, why } = unread
    const key = `${provider} ${zone}`
    if (this.#unread.get(key) !== code) {
      this.#options.log.warn({ zone, provider, code, why }, 'zone unread')
      reports.unread(unread)
    }
    this.#unread.set(key, code)
    const desired = this.#index.desired(names)
    for (const { set, source } of desired.desired) {
      const isInZone = zone === '*' || isWithin(set.name, zone)
      const object = this.#index.find(source.uid)
      const isWaiting = object?.status?.observedGeneration !== object?.metadata.generation
      if (isInZone && isWaiting)
        this.#addHeld({ provider, zone, name: set.name, type: set.type, code, why, source: source.uid }, reports)
    }
  }

  #noteSynced({ plans, unread }: Planned, outcomes: readonly (PlanOutcome | undefined)[]): void {
    const { observer } = this.#options
    for (const { provider, zone } of unread) observer?.synced({ provider, zone }, true)
    for (const [index, { provider, zone, refused }] of plans.entries()) {
      const account = accountOf(provider)
      this.#unread.delete(`${provider} ${zone}`)
      if (this.#unread.delete(`${account} *`)) observer?.synced({ provider: account, zone: '*' }, false)
      const outcome = outcomes[index]
      const failures = outcome === undefined ? undefined : failuresOf(outcome)
      const isStale = failures === undefined || failures.some(({ code }) => isOutage(code))
      observer?.synced({ provider, zone }, isStale)
      if (!isStale && ![...refused, ...failures].some(isProcessWide)) observer?.written?.({ provider, zone })
    }
  }

  #addHeld(held: Held, reports: SyncReports): void {
    if (this.#held.add(held, this.#clock.now())) this.#report(held, reports)
  }

  #report(held: Held, reports: SyncReports): void {
    const { until, holder, ...rest } = held
    const time = until === undefined ? {} : { until: new Date(until).toISOString() }
    this.#options.log.info({ ...rest, ...time, why: heldMessage(held) }, 'record held')
    const object = this.#index.find(held.source)
    reports.held(held, object)
    const having = holder === undefined ? undefined : this.#index.find(holder)
    if (object !== undefined && having !== undefined) reports.shared(held, object, having)
  }

  /** Objects with names that wait for a later pass are not complete yet. */
  async #writeStatuses(of: readonly Endpoint[], waiting: ReadonlySet<string>, tools: PassTools): Promise<void> {
    const { log, killSwitch } = this.#options
    const { client, signal, hasConditions } = tools
    const incomplete = new Set(this.#index.objects(waiting))
    const complete = of.filter((object) => !incomplete.has(object))
    for (const object of complete)
      this.#options.heldRecords?.note(object, heldRecordOf(this.#held.of(sourceOf(object).uid)))
    await writeStatuses(complete, {
      client,
      signal,
      hasConditions,
      held: this.#held,
      killSwitch,
      clock: this.#clock,
      log,
    })
  }
}

/** The label of a plan contains the zone id where there is one: `aws@Z123`. */
function accountOf(label: string): string {
  return label.split('@', 1)[0] ?? label
}
