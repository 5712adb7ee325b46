/**
 * The execution of one plan, from the reservation to the last batch.
 *
 * Flow: reserve in the guard store (fence, budget) → read again every set the plan touches → skip what is already in
 * place, refuse what changed since → pack into batches → per batch: apply; after an unknown outcome read, after a
 * refusal bisect, after throttling wait.
 * Guarantees: nothing is written that was not read as expected just before; an older plan never overwrites a newer one
 * (INV-12); one refused record does not block the others; errors of a service are results, not exceptions.
 */
import { Backoff, type Clock, retry } from '@seamark/kube'
import type { Provider, ProviderZone } from '../../providers/provider.ts'
import type { Reason } from '../../reasons.ts'
import { type Group, groupChanges, isolate, packGroups } from './batch.ts'
import { ProviderError } from '../../rrset/error.ts'
import type { GuardStore } from '../state/guard-state.ts'
import type { KillSwitch } from '../../process/kill-switch.ts'
import type { Limits } from '../plan/limits.ts'
import type { ChangeResult, PlanOutcome } from './result.ts'
import { baseOf, type Change, type Plan, touchedNames } from '../plan/plan.ts'
import type { SetChange } from '../../rrset/set-change.ts'
import { asProviderError, type ProviderCalls } from './provider-calls.ts'
import { consumeApprovals } from '../../safety/approval.ts'
import { changeKey } from '../plan/held-set.ts'
import { type Reservation, reserve } from './reservation.ts'
import { newestPlan, pendingWrites } from './change-progress.ts'
import { createZoneView, type ZoneView } from '../plan/zone-view.ts'

export interface PlanRunOptions {
  readonly provider: Provider
  readonly zone: ProviderZone
  readonly calls: ProviderCalls
  readonly store: GuardStore
  /** Key of this zone in the guard store. */
  readonly stateKey: string
  readonly killSwitch: KillSwitch
  readonly limits: Limits
  readonly clock: Clock
}

/** Attempts for one batch when the service answers `later` or does not answer. */
const ATTEMPTS = 5
/** The first wait between two attempts. */
const RETRY_BASE_MS = 500

/** The run of one plan; holds the result of each change. */
export class PlanRun {
  readonly #options: PlanRunOptions
  readonly #plan: Plan
  readonly #signal: AbortSignal
  readonly #results = new Map<Change, ChangeResult>()
  #calls = 0
  /** The last error of the service for a change. */
  readonly #errors = new Map<Change, ProviderError>()

  constructor(options: PlanRunOptions, plan: Plan, signal: AbortSignal) {
    this.#options = options
    this.#plan = plan
    this.#signal = signal
  }

  async perform(requiresBase: boolean): Promise<PlanOutcome> {
    const { changes } = this.#plan
    if (changes.length === 0) return this.#outcome()
    if (this.#options.killSwitch.isPaused) return this.#refuseAll(changes, 'Paused', 'writing is paused')
    try {
      const pending = await this.#prepare(requiresBase)
      const deferred: Group[] = []
      for (const batch of packGroups(pending, this.#options.provider)) deferred.push(...(await this.#send(batch)))
      // A full zone is below its quota again after the deletes of this plan, which are sent last.
      for (const batch of packGroups(deferred, this.#options.provider)) this.#refuseFull(await this.#send(batch))
    } catch (cause) {
      const error = asProviderError(cause)
      this.#refuseRest(error.code, error.message)
    }
    this.#refuseRest('OutcomeUnknown', 'it was not sent')
    await this.#consumeApprovals()
    return this.#outcome()
  }

  /** Reserves fence and budget, then reads every set the plan touches again. */
  async #prepare(requiresBase: boolean): Promise<Group[]> {
    const { store, stateKey, clock, limits } = this.#options
    const plan = this.#plan
    let reservation: Reservation | undefined
    // One access to the store: a state that is returned as it was is not written.
    await store.update(stateKey, (state) => {
      reservation = reserve(state, plan, limits, clock.now(), stateKey)
      return reservation.kind === 'granted' ? reservation.state : state
    })
    if (reservation === undefined) throw new Error('the guard store did not run the update')
    if (reservation.kind === 'superseded') {
      this.#refuseRest('Superseded', `plan ${reservation.fence} was begun after this one was made`)
      return []
    }
    for (const change of reservation.overBudget) {
      this.#set(change, 'refused', 'DeleteBudgetSpent', 'the zone has lost as many names as it may for now')
    }
    const view = await this.#readTouched(plan.changes)
    if (requiresBase && plan.base !== '' && baseOf(plan.changes, view) !== plan.base) {
      this.#refuseRest('BaseMoved', 'what the plan was made from has changed; make it again')
      return []
    }
    return this.#pendingGroups(plan.changes, view)
  }

  /**
   * An approval counts once. It is consumed when the change is in the zone and not before, so that a change which the
   * service refused temporarily is still approved when it is retried.
   */
  async #consumeApprovals(): Promise<void> {
    const { store, stateKey } = this.#options
    const written = [...this.#results.values()].filter(
      ({ change, result }) => change.isApproved && result !== 'refused',
    )
    if (written.length === 0) return
    const keys = new Set(written.map(({ change }) => changeKey(change)))
    const state = await store.load(stateKey)
    if (consumeApprovals(state, keys) !== state) await store.update(stateKey, (now) => consumeApprovals(now, keys))
  }

  async #readTouched(changes: readonly Change[]): Promise<ZoneView> {
    const sets = await this.#options.calls.read(this.#options.zone, touchedNames(changes), this.#signal)
    return createZoneView(sets, { origin: this.#options.zone.name })
  }

  /** The changes still to be written: neither done, nor refused, nor changed since. Of a partly applied change, the remainder. */
  #pendingGroups(changes: readonly Change[], view: ZoneView): Group[] {
    const pending: Change[] = []
    const left = new Map<Change, readonly SetChange[]>()
    for (const change of changes) {
      if (this.#results.has(change)) continue
      const open = pendingWrites(change, view)
      if (open === undefined) this.#refuseMoved(change, view)
      else if (open.length === 0) this.#set(change, 'already')
      else {
        pending.push(change)
        left.set(change, open)
      }
    }
    return groupChanges(this.#dropBrokenGroups(pending), (change) => left.get(change) ?? [])
  }

  /** A group with a refused member is not sent at all: half of a change of type would leave a gap. */
  #dropBrokenGroups(pending: Change[]): Change[] {
    const broken = new Map<string, ChangeResult>()
    for (const result of this.#results.values())
      if (result.result === 'refused') broken.set(result.change.group, result)
    return pending.filter((change) => {
      const because = broken.get(change.group)
      if (because?.code === undefined) return true
      this.#set(change, 'refused', because.code, because.why ?? '')
      return false
    })
  }

  #refuseMoved(change: Change, view: ZoneView): void {
    const newer = newestPlan(change, view)
    if (newer !== undefined && newer >= this.#plan.number) {
      this.#set(change, 'refused', 'Superseded', `plan ${newer} wrote it after this one was made`)
    } else {
      this.#set(change, 'refused', 'BaseMoved', 'the zone does not hold what the plan was made from')
    }
  }

  /** Sends one batch until it is written, refused, or abandoned. Returns the groups that exceeded the quota of the zone. */
  async #send(batch: readonly Group[]): Promise<Group[]> {
    const result = await this.#attempt(batch)
    if (result === 'full') {
      const deletions = batch.filter(isDeletion)
      if (deletions.length > 0 && deletions.length < batch.length) await this.#send(deletions)
      return batch.filter((group) => !isDeletion(group))
    }
    if (result !== 'refused') return []
    const full: Group[] = []
    const { bad } = await isolate(batch, async (groups) => {
      const again = await this.#attempt(groups)
      if (again === 'full') full.push(...groups)
      return again === 'full' ? 'stop' : again
    })
    for (const change of bad.flatMap((group) => group.changes)) {
      const error = this.#errors.get(change)
      const code = batch.length > 1 ? 'PoisonRecordIsolated' : (error?.code ?? 'RecordRejected')
      if (!this.#results.has(change)) this.#set(change, 'refused', code, error?.message)
    }
    return full
  }

  #refuseFull(groups: readonly Group[]): void {
    for (const change of groups.flatMap((group) => group.changes))
      this.#giveUp([change], 'ZoneQuotaExceeded', this.#errors.get(change)?.message ?? 'the zone is full')
  }

  async #attempt(batch: readonly Group[]): Promise<'written' | 'refused' | 'full' | 'stop'> {
    let groups = batch
    const backoff = new Backoff(this.#backoff())
    for (let attempt = 1; ; attempt++) {
      const changes = groups.flatMap((group) => group.changes)
      try {
        await this.#apply(groups)
        for (const change of changes) this.#set(change, 'applied')
        return 'written'
      } catch (cause) {
        const error = asProviderError(cause)
        for (const change of changes) this.#errors.set(change, error)
        if (error.outcome === 'rejected') return 'refused'
        if (error.code === 'ZoneQuotaExceeded') return 'full'
        if (error.code === 'Paused') return this.#giveUp(changes, 'Paused', error.message)
        if (this.#signal.aborted || attempt >= ATTEMPTS || error.code === 'Stale') {
          return this.#giveUp(changes, error.code, error.message)
        }
        if (error.code !== 'Throttled') await backoff.wait()
      }
      // Whatever the response, the zone decides: written changes are done, changed sets are refused, the rest is sent again.
      const left = this.#pendingGroups(changes, await this.#readWithRetry(changes))
      if (left.length === 0) return 'written'
      groups = left
    }
  }

  #backoff() {
    return { clock: this.#options.clock, baseMs: RETRY_BASE_MS, signal: this.#signal }
  }

  async #readWithRetry(changes: readonly Change[]): Promise<ZoneView> {
    return retry(
      async () => {
        try {
          return await this.#readTouched(changes)
        } catch (cause) {
          throw asProviderError(cause)
        }
      },
      {
        ...this.#backoff(),
        isFinal: (error, attempts) => attempts >= ATTEMPTS || (error as ProviderError).code === 'Stale',
      },
    )
  }

  async #apply(groups: readonly Group[]): Promise<void> {
    const { calls, zone } = this.#options
    await calls.apply(
      zone,
      groups.flatMap((group) => group.writes),
      this.#signal,
      () => this.#calls++,
    )
  }

  #giveUp(changes: readonly Change[], code: Reason, why: string): 'stop' {
    for (const change of changes) if (!this.#results.has(change)) this.#set(change, 'refused', code, why)
    return 'stop'
  }

  #refuseAll(changes: readonly Change[], code: Reason, why: string): PlanOutcome {
    for (const change of changes) this.#set(change, 'refused', code, why)
    return this.#outcome()
  }

  #refuseRest(code: Reason, why: string): void {
    for (const change of this.#plan.changes) if (!this.#results.has(change)) this.#set(change, 'refused', code, why)
  }

  #set(change: Change, result: ChangeResult['result'], code?: Reason, why?: string): void {
    const reason = code === undefined ? {} : { code, why: why ?? '' }
    this.#results.set(change, { change, result, ...reason })
  }

  #outcome(): PlanOutcome {
    const results = this.#plan.changes.flatMap((change) => this.#results.get(change) ?? [])
    return { plan: this.#plan, results, calls: this.#calls }
  }
}

/** True when the group adds nothing to the zone. */
function isDeletion(group: Group): boolean {
  return group.changes.every((change) => change.op === 'delete')
}
