/**
 * Keeps zones in the state that DNSEndpoints request. Level-triggered: events only determine which names to plan again.
 *
 * Flow: a DNSEndpoint changes → its old and new names are dirty → after a short delay one plan over those names →
 * executor → Events, conditions, observedGeneration. Every minute a part of all names is verified, and held changes
 * that are due are planned again (INV-23); whole zones are planned at the start, once a day, after a pause and on demand.
 * Guarantees: errors of a provider or an invalid object never end the loop; a failed pass is repeated with its names;
 * while the kill switch is on nothing is written, neither DNS nor Kubernetes; a process that never saw a source deletes
 * nothing.
 */
import { isDeepStrictEqual } from 'node:util'
import { type Client, type Clock, type Informer, type Logger, messageOf, sleep, systemClock } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import { DNSEndpoint } from '../../api/dns-endpoint.ts'
import type { Reason } from '../../reasons.ts'
import { createDriftSweep } from './drift-sweep.ts'
import { sourceOf } from './dns-endpoint-source.ts'
import { supportsConditions } from '../../api/condition-room.ts'
import { statusChange } from './endpoint-status.ts'
import type { Engine, Planned, Unread } from '../engine.ts'
import { ProviderError } from '../../rrset/error.ts'
import { type Held, HeldChanges } from './held-changes.ts'
import { type ApprovalReport, approveInStore, approveReleasesInStore } from '../state/approve.ts'
import type { GuardStore } from '../state/guard-state.ts'
import type { KillSwitch } from '../../process/kill-switch.ts'
import { heldMessage, namesToReview } from '../plan/held-set.ts'
import { failuresOf, type PlanOutcome } from '../execute/result.ts'
import type { Plan } from '../plan/plan.ts'
import { isWithin } from '../../rrset/rrset.ts'
import { type Endpoint, type Names, SourceIndex } from './source-index.ts'
import type { TenantRules } from './tenant-rules.ts'
import { checkSources } from './source-check.ts'
import type { Switches } from '../../process/switches.ts'

/** Callbacks for each pass; for metrics. */
export interface SyncObserver {
  planned(plan: Plan): void
  applied(outcome: PlanOutcome): void
  /** Whether a zone was read and every change is in place or held by a guard. */
  synced(zone: Pick<Held, 'provider' | 'zone'>, isStale: boolean): void
  held(all: () => Iterable<Held>): void
}

export interface SyncLoopOptions {
  readonly client: Client
  readonly informer: Informer<DNSEndpoint>
  readonly engine: Engine
  readonly killSwitch: KillSwitch
  readonly defaultTtl: number
  /** What the namespace of a DNSEndpoint may request. */
  readonly rules: TenantRules
  /** Whether the filters select an object. */
  readonly isServed: (object: Endpoint) => boolean
  /** The only namespace that may be listed. @default all */
  readonly namespace?: string
  readonly switches?: Pick<Switches, 'approvedIds' | 'releasedNames' | 'subscribe'>
  /** Store of approvals; without it annotations approve nothing. */
  readonly store?: GuardStore
  /** The result of an approval by annotation. */
  readonly onApproval?: (report: ApprovalReport, isDeprecatedForm: boolean) => void
  readonly log: Logger
  readonly clock?: Clock
  /** Called once per set and code that changed; `object` is undefined when the source is gone. */
  readonly onHeld?: (held: Held, object: Endpoint | undefined) => void
  /** A zone that cannot be read, once per code. */
  readonly onUnread?: (unread: Unread) => void
  /** A breaker of a zone opened or closed. */
  readonly onBreaker?: (report: BreakerReport & { readonly isOpen: boolean }) => void
  readonly observer?: SyncObserver
  readonly isWriting: boolean
}

export interface BreakerReport {
  readonly provider: string
  readonly zone: string
  readonly code: Reason
  readonly why: string
  /** Number of changes that it holds. */
  readonly changes: number
}

const BREAKERS: ReadonlySet<Reason> = new Set(['ShrinkBreakerOpen', 'RetargetBreakerOpen', 'OwnerInOtherCluster'])

function openBreakers(all: Iterable<Held>): Map<string, BreakerReport> {
  const open = new Map<string, BreakerReport>()
  for (const held of all) {
    const { provider, zone, code } = held
    if (!BREAKERS.has(code)) continue
    const key = `${provider} ${zone} ${code}`
    const changes = (open.get(key)?.changes ?? 0) + 1
    open.set(key, { provider, zone, code, why: heldMessage(held), changes })
  }
  return open
}

const DEBOUNCE_MS = 200
const SWEEP_MS = 60_000
const WHOLE_MS = 86_400_000
const RETRY_MS = 15_000
/** Concurrent status writes. */
const CONCURRENCY = 16

export async function runSyncLoop(options: SyncLoopOptions, signal: AbortSignal): Promise<void> {
  await new SyncLoop(options).run(signal)
}

class SyncLoop {
  readonly #options: SyncLoopOptions
  readonly #clock: Clock
  readonly #index: SourceIndex
  readonly #held = new HeldChanges()
  readonly #sweep = createDriftSweep()
  readonly #unread = new Map<string, Reason>()
  #dirty: Set<string> | 'all' = 'all'
  #wake: () => void = () => undefined
  #hasConditions = false
  /** An annotation may have been set before the start. */
  #mayHaveApprovals = true

  constructor(options: SyncLoopOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#index = new SourceIndex(options.isServed, options.defaultTtl, options.rules)
    options.observer?.held(() => this.#held.all())
  }

  async run(signal: AbortSignal): Promise<void> {
    const { informer, killSwitch, switches, client } = this.#options
    await informer.synced(signal).catch(() => undefined)
    if (signal.aborted) return
    this.#hasConditions = await supportsConditions(client, DNSEndpoint, signal).catch(() => false)
    const stops = [
      informer.subscribe((change) => {
        const names = this.#index.note(change.object, change.type === 'deleted')
        if (change.type !== 'updated' || isRelevantChange(change.old, change.object)) this.#mark(names)
      }),
      killSwitch.subscribe(() => this.#mark('all')),
      switches?.subscribe(() => {
        this.#mayHaveApprovals = true
        this.#mark('all')
      }),
    ]
    try {
      let sweepAt = this.#clock.monotonic() + SWEEP_MS
      let wholeAt = this.#clock.monotonic() + WHOLE_MS
      while (!signal.aborted) {
        if (this.#isDirty) {
          await sleep(this.#clock, DEBOUNCE_MS, signal)
          if (!signal.aborted) await this.#pass(signal)
        }
        const now = this.#clock.monotonic()
        if (now >= wholeAt) {
          wholeAt = now + WHOLE_MS
          this.#mark('all')
        }
        if (now >= sweepAt) {
          sweepAt = now + SWEEP_MS
          this.#mark(this.#sweepNames())
        }
        await this.#waitForWork(Math.min(sweepAt, wholeAt) - this.#clock.monotonic(), signal)
      }
    } finally {
      for (const stop of stops) stop?.()
    }
  }

  get #isDirty(): boolean {
    return this.#dirty === 'all' || this.#dirty.size > 0
  }

  #sweepNames(): Set<string> {
    const { engine } = this.#options
    const part = this.#sweep.next(
      () => this.#index.names(),
      (name) => engine.isReadByName(name),
    )
    // Planned alone, a deletion that a breaker holds as one of many would look like a single one, and pass.
    const unheld = [...part].filter((name) => !this.#held.isHeld(name))
    return new Set([...unheld, ...this.#held.takeDue(this.#clock.now())])
  }

  #mark(names: Names): void {
    if (names === 'all' || this.#dirty === 'all') this.#dirty = 'all'
    else for (const name of names) this.#dirty.add(name)
    if (this.#isDirty) this.#wake()
  }

  async #waitForWork(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#isDirty) return
    const woken = new AbortController()
    const wake = () => woken.abort()
    this.#wake = wake
    signal.addEventListener('abort', wake, { once: true })
    await sleep(this.#clock, Math.max(0, ms), woken.signal)
    signal.removeEventListener('abort', wake)
  }

  async #pass(signal: AbortSignal): Promise<void> {
    const names = this.#dirty
    this.#dirty = new Set()
    try {
      const planned = await this.#plan(names, signal)
      const before = [...this.#held.all()]
      this.#notePlanned(planned, names)
      this.#mark(namesToReview(before, this.#held.all()))
      this.#reportBreakers(before)
      const outcomes = await Promise.all(planned.plans.map(async (plan) => this.#apply(plan, signal)))
      this.#noteStanding(planned, outcomes)
      if (this.#options.isWriting && !this.#options.killSwitch.isPaused) await this.#writeStatuses(names, signal)
      const isOpen = outcomes.some((outcome) => outcome === undefined || failuresOf(outcome).length > 0)
      if (planned.unread.length > 0 || isOpen) this.#retry(names)
      await this.#takeApprovals()
    } catch (error) {
      this.#options.log.warn({ err: error }, 'records pass failed')
      this.#retry(names)
    }
  }

  /** One log line and one report per zone when a breaker opens or closes; each held record is reported on its own source. */
  #reportBreakers(before: readonly Held[]): void {
    const { log, onBreaker } = this.#options
    const [old, now] = [openBreakers(before), openBreakers(this.#held.all())]
    for (const [key, report] of now) {
      if (old.has(key)) continue
      log.warn({ ...report }, 'breaker opened')
      onBreaker?.({ ...report, isOpen: true })
    }
    for (const [key, report] of old) {
      if (now.has(key)) continue
      log.warn({ ...report }, 'breaker closed')
      onBreaker?.({ ...report, isOpen: false })
    }
  }

  /** After the pass, so that the held changes are persisted before an approval refers to them. */
  async #takeApprovals(): Promise<void> {
    const { store, switches, killSwitch, isWriting, onApproval, log } = this.#options
    if (!this.#mayHaveApprovals || store === undefined || switches === undefined) return
    if (!isWriting || killSwitch.isPaused) return
    this.#mayHaveApprovals = false
    const now = this.#clock.now()
    const release = await approveReleasesInStore(store, switches.releasedNames, now)
    const reports = release === undefined ? [] : [release]
    for (const id of switches.approvedIds) reports.push(await approveInStore(store, id, now, { mayRepeat: false }))
    for (const report of reports) {
      const { id, result, covered } = report
      if (result === 'approved') log.info({ id, changes: covered.length }, 'held changes approved')
      else if (result !== 'active') log.warn({ id, result, held: await this.#heldIds(store) }, 'approval has no effect')
      if (result !== 'active') onApproval?.(report, report === release)
      if (result === 'approved' && covered.length > 0) this.#mark(new Set(covered.map(({ name }) => name)))
    }
  }

  async #heldIds(store: GuardStore): Promise<string[]> {
    const states = [...(await store.list()).values()]
    return [...new Set(states.flatMap(({ held }) => held.flatMap(({ set }) => set ?? [])))]
  }

  #retry(names: Names): void {
    this.#clock.after(RETRY_MS, () => this.#mark(names))
  }

  async #plan(names: Names, signal: AbortSignal): Promise<Planned> {
    const { client, engine, informer, namespace, isServed } = this.#options
    // Both are read together: a source without its desired records would look as if it requested nothing.
    const { present, known, requesting } = this.#index
    const desired = this.#index.desired(names)
    return engine.plan(
      {
        ...desired,
        claimant: (name) => this.#index.claimant(name),
        // Without a live watch, or before the first source, it is unknown which sources are gone.
        sources: async (owned) =>
          informer.state !== 'live' || known.size === 0
            ? { present, gone: new Set() }
            : {
                requesting,
                ...(await checkSources(
                  client,
                  {
                    owned,
                    present,
                    known,
                    isServed,
                    now: this.#clock.now(),
                    ...(namespace !== undefined && { namespace }),
                  },
                  signal,
                )),
              },
      },
      names,
      signal,
    )
  }

  async #apply(plan: Plan, signal: AbortSignal): Promise<PlanOutcome | undefined> {
    const { engine, log, observer } = this.#options
    const { provider, zone } = plan
    try {
      if (this.#options.isWriting && !this.#options.killSwitch.isPaused && plan.changes.length === 0)
        await engine.record(plan)
      const outcome = await engine.apply(plan, signal)
      observer?.applied(outcome)
      for (const { change, result, code, why = '' } of outcome.results) {
        const { name, type, source, op, reason, from, to } = change
        if (code !== undefined) this.#addHeld({ provider, zone, name, type, code, why, source })
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
        this.#addHeld({ provider, zone, name, type, code, why: messageOf(error), source })
      return undefined
    }
  }

  #notePlanned({ plans, unread, withoutZone }: Planned, names: Names): void {
    const now = this.#clock.now()
    for (const plan of plans) {
      const { provider, zone } = plan
      this.#options.observer?.planned(plan)
      const held = plan.refused.map(({ name, type, code, why, source, until, set }) => ({
        provider,
        zone,
        name,
        type,
        code,
        why,
        source,
        ...(until !== undefined && { until }),
        ...(set !== undefined && { set }),
      }))
      for (const item of this.#held.replace({ provider, zone }, names, held, now)) this.#report(item)
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
    for (const item of this.#held.replace({ provider: '', zone: '' }, names, nowhere, now)) this.#report(item)
    for (const item of unread) this.#noteUnread(item, names)
  }

  /** Changes that wait for the zone are reported; RRsets that are in place are not. */
  #noteUnread(unread: Unread, names: Names): void {
    const { provider, zone, code, why } = unread
    const key = `${provider} ${zone}`
    if (this.#unread.get(key) !== code) {
      this.#options.log.warn({ zone, provider, code, why }, 'zone unread')
      this.#options.onUnread?.(unread)
    }
    this.#unread.set(key, code)
    const desired = this.#index.desired(names)
    for (const { set, source } of desired.desired) {
      const isInZone = zone === '*' || isWithin(set.name, zone)
      const object = this.#index.find(source.uid)
      const isWaiting = object?.status?.observedGeneration !== object?.metadata.generation
      if (isInZone && isWaiting)
        this.#addHeld({ provider, zone, name: set.name, type: set.type, code, why, source: source.uid })
    }
  }

  #noteStanding({ plans, unread }: Planned, outcomes: readonly (PlanOutcome | undefined)[]): void {
    const { observer } = this.#options
    for (const { provider, zone } of unread) observer?.synced({ provider, zone }, true)
    for (const [index, { provider, zone }] of plans.entries()) {
      const account = accountOf(provider)
      this.#unread.delete(`${provider} ${zone}`)
      if (this.#unread.delete(`${account} *`)) observer?.synced({ provider: account, zone: '*' }, false)
      const outcome = outcomes[index]
      observer?.synced(
        { provider, zone },
        outcome === undefined || failuresOf(outcome).some(({ code }) => isOutage(code)),
      )
    }
  }

  #addHeld(held: Held): void {
    if (this.#held.add(held, this.#clock.now())) this.#report(held)
  }

  #report(held: Held): void {
    const { until, ...rest } = held
    const time = until === undefined ? {} : { until: new Date(until).toISOString() }
    this.#options.log.info({ ...rest, ...time, why: heldMessage(held) }, 'record held')
    this.#options.onHeld?.(held, this.#index.find(held.source))
  }

  async #writeStatuses(names: Names, signal: AbortSignal): Promise<void> {
    const objects = this.#index.objects(names)
    const write = async (): Promise<void> => {
      for (let object = objects.pop(); object !== undefined && !signal.aborted; object = objects.pop())
        await this.#writeStatus(object, signal)
    }
    await Promise.all(Array.from({ length: CONCURRENCY }, write))
  }

  async #writeStatus(object: Endpoint, signal: AbortSignal): Promise<void> {
    const { client, log, killSwitch } = this.#options
    const held = this.#held.of(sourceOf(object).uid)
    const status = statusChange(object, held, { hasConditions: this.#hasConditions, nowMs: this.#clock.now() })
    if (status === undefined || killSwitch.isPaused) return
    const { resourceVersion } = object.metadata
    // Conditions are a list: a condition that another controller wrote meanwhile must not be lost.
    const metadata = status.conditions === undefined ? {} : { metadata: { resourceVersion } }
    await client
      .patch(DNSEndpoint, keyOf(object), 'merge', { ...metadata, status }, { subresource: 'status', signal })
      .catch((error: unknown) => log.debug({ reason: messageOf(error) }, 'status not written'))
  }
}

/** The label of a plan contains the zone id where there is one: `aws@Z123`. */
function accountOf(label: string): string {
  return label.split('@', 1)[0] ?? label
}

/** Changes of the status only are ignored: we write it. */
function isRelevantChange(old: Endpoint, object: Endpoint): boolean {
  const [before, after] = [old.metadata, object.metadata]
  if (before.generation === undefined || before.generation !== after.generation) return true
  return !isDeepStrictEqual([before.labels, before.annotations], [after.labels, after.annotations])
}

const OUTAGES: ReadonlySet<Reason> = new Set([
  'Stale',
  'ProviderUnavailable',
  'OutcomeUnknown',
  'ZoneNotFound',
  'ZoneNotStored',
])

/** True when the service, and not a guard or the record, is the reason that a change is not written. */
function isOutage(code: Reason | undefined): boolean {
  return code !== undefined && OUTAGES.has(code)
}
