/**
 * The only caller of `Provider.apply`. One executor per provider account and zone: one queue, one writer, one breaker.
 *
 * Flow, per plan: reserve in the guard store (fence, budget) → read again what the plan touches → drop what is already
 * so, refuse what moved → pack into batches → per batch: kill switch, rate limit, apply → on doubt read, on refusal
 * bisect, on throttling wait.
 * Guarantees: nothing is written that was not read as expected just before; an older plan never overwrites a newer one
 * (INV-12); one refused record never holds back the others; nothing here throws for what a service says, and the
 * process never ends for it (INV-13).
 * Caveats: a batch already sent when the kill switch is pulled is not recalled; nothing is sent after it.
 */
import { type Clock, sleep, systemClock } from '@seamark/kube'
import type { Provider, ProviderZone } from '../providers/provider.ts'
import type { Reason } from '../reasons.ts'
import { type Group, groupChanges, isolate, packGroups } from './batch.ts'
import { type Breaker, type BreakerStatus, createBreaker } from './breaker.ts'
import { ProviderError } from './error.ts'
import type { GuardStore } from './guard-state.ts'
import type { KillSwitch } from './kill-switch.ts'
import type { Limiter } from './limiter.ts'
import { DEFAULT_LIMITS, type Limits } from './limits.ts'
import { readMarker, markedSet } from './marker.ts'
import { baseOf, type Change, type Plan, type SetChange, touchedNames } from './plan.ts'
import { type ObservedSet, sameSet, setKey } from './record-set.ts'
import { reserve } from './reservation.ts'
import { createZoneView, type ZoneView } from './zone-view.ts'

export interface ChangeResult {
  readonly change: Change
  /** `applied`: written now; `already`: the zone held it; `refused`: not written, see `code`. */
  readonly result: 'applied' | 'already' | 'refused'
  readonly code?: Reason
  readonly why?: string
}

export interface Outcome {
  readonly plan: Plan
  readonly results: readonly ChangeResult[]
  /** Calls of `apply`. */
  readonly calls: number
}

export interface ExecutorOptions {
  readonly provider: Provider
  readonly zone: ProviderZone
  readonly store: GuardStore
  /** Shared by everything that uses the same account. */
  readonly limiter: Limiter
  readonly killSwitch: KillSwitch
  readonly limits?: Limits
  readonly clock?: Clock
  /** A call that takes longer counts as `unknown`. @default 30 s */
  readonly callTimeoutMs?: number
}

export interface Executor {
  /** Plans are done one after the other. `hasBase`: refuse the whole plan when its base moved. */
  submit(plan: Plan, signal: AbortSignal, options?: { hasBase?: boolean }): Promise<Outcome>
  /** A read with the same limiter, breaker and time-out as the writes. Throws ProviderError. */
  read(names: ReadonlySet<string> | 'all', signal: AbortSignal): Promise<readonly ObservedSet[]>
  readonly status: BreakerStatus
  readonly waitMs: number
}

/** How often one batch is tried when the service says `later` or says nothing. */
const ATTEMPTS = 5

/** Key of the guard state: an account's zones are independent, and so are same-named zones with different ids. */
export function stateKey(provider: string, zone: ProviderZone): string {
  return `${provider}/${zone.name}${zone.id === zone.name ? '' : `@${zone.id}`}`
}

export function createExecutor(options: ExecutorOptions): Executor {
  const { provider, zone, limiter, clock = systemClock, callTimeoutMs = 30_000 } = options
  const breaker = createBreaker(clock)
  let tail: Promise<unknown> = Promise.resolve()

  const call = async <T>(signal: AbortSignal, perform: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    if (!breaker.allows()) {
      const { code = 'ProviderUnavailable', message = '' } = breaker.status
      throw new ProviderError(
        'Stale',
        'later',
        `not asked again for ${Math.ceil(breaker.waitMs / 1000)} s: ${code}: ${message}`,
      )
    }
    await limiter.acquire(signal)
    if (signal.aborted) throw new ProviderError('OutcomeUnknown', 'later', 'stopped before it was sent')
    try {
      const result = await withTimeout(perform, callTimeoutMs, signal, clock)
      breaker.succeeded()
      limiter.succeeded()
      return result
    } catch (cause) {
      throw settle(asProviderError(cause), breaker, limiter)
    }
  }
  const read: Executor['read'] = async (names, signal) =>
    call(signal, async (inner) => provider.read(zone, names, inner))

  return {
    read,
    submit(plan, signal, { hasBase = false } = {}) {
      const run = new Run(options, call, read, plan, signal)
      const turn = tail.then(async () => run.perform(hasBase))
      tail = turn.catch(() => undefined)
      return turn
    },
    get status() {
      return breaker.status
    },
    get waitMs() {
      return breaker.waitMs
    },
  }
}

/** Books a failure where it belongs: throttling slows the account, an outage opens the breaker, a refusal is neither. */
function settle(error: ProviderError, breaker: Breaker, limiter: Limiter): ProviderError {
  if (error.code === 'Throttled') limiter.throttled(error.retryAfterMs)
  else if (error.outcome === 'rejected' || error.outcome === 'moved' || error.code === 'ZoneQuotaExceeded')
    breaker.succeeded()
  else breaker.failed(error.code, error.message)
  return error
}

function asProviderError(cause: unknown): ProviderError {
  if (cause instanceof ProviderError) return cause
  const text = cause instanceof Error ? cause.message : String(cause)
  return new ProviderError('OutcomeUnknown', 'unknown', text, { cause })
}

async function withTimeout<T>(
  perform: (signal: AbortSignal) => Promise<T>,
  timeoutMs: number,
  signal: AbortSignal,
  clock: Clock,
): Promise<T> {
  const controller = new AbortController()
  const stop = () => controller.abort()
  signal.addEventListener('abort', stop, { once: true })
  let cancel = () => {}
  const late = new Promise<never>((_resolve, reject) => {
    cancel = clock.after(timeoutMs, () => {
      controller.abort()
      reject(new ProviderError('OutcomeUnknown', 'unknown', `no answer within ${timeoutMs / 1000} s`))
    })
  })
  try {
    return await Promise.race([perform(controller.signal), late])
  } finally {
    cancel()
    signal.removeEventListener('abort', stop)
  }
}

type Call = <T>(signal: AbortSignal, perform: (signal: AbortSignal) => Promise<T>) => Promise<T>

/** One plan on its way; holds what became of each change. */
class Run {
  readonly #options: ExecutorOptions
  readonly #call: Call
  readonly #read: Executor['read']
  readonly #plan: Plan
  readonly #signal: AbortSignal
  readonly #results = new Map<Change, ChangeResult>()
  #calls = 0
  #lastError: ProviderError | undefined

  constructor(options: ExecutorOptions, call: Call, read: Executor['read'], plan: Plan, signal: AbortSignal) {
    this.#options = options
    this.#call = call
    this.#read = read
    this.#plan = plan
    this.#signal = signal
  }

  async perform(hasBase: boolean): Promise<Outcome> {
    const { changes } = this.#plan
    if (changes.length === 0) return this.#outcome()
    if (this.#options.killSwitch.isPaused) return this.#refuseAll(changes, 'Paused', 'writing is paused')
    try {
      const pending = await this.#prepare(hasBase)
      const deferred: Group[] = []
      for (const batch of packGroups(pending, this.#options.provider)) deferred.push(...(await this.#send(batch)))
      // A full zone has room again after the deletes of this plan, which come last.
      for (const batch of packGroups(deferred, this.#options.provider)) this.#refuseFull(await this.#send(batch))
    } catch (cause) {
      const error = asProviderError(cause)
      this.#refuseRest(error.code, error.message)
    }
    this.#refuseRest('OutcomeUnknown', 'it was not sent')
    return this.#outcome()
  }

  /** Fence and budget first, then a fresh look at every set the plan touches. */
  async #prepare(hasBase: boolean): Promise<Group[]> {
    const { store, zone, clock = systemClock, limits = DEFAULT_LIMITS, provider } = this.#options
    const plan = this.#plan
    let reservation = reserve(await store.load(stateKey(provider.name, zone)), plan, limits, clock.now())
    if (reservation.kind === 'granted') {
      await store.update(stateKey(provider.name, zone), (state) => {
        reservation = reserve(state, plan, limits, clock.now())
        return reservation.kind === 'granted' ? reservation.state : state
      })
    }
    if (reservation.kind === 'superseded') {
      this.#refuseRest('Superseded', `plan ${reservation.fence} was begun after this one was made`)
      return []
    }
    for (const change of reservation.overBudget) {
      this.#set(change, 'refused', 'DeleteBudgetSpent', 'the zone has lost as many names as it may for now')
    }
    const view = await this.#look(plan.changes)
    if (hasBase && plan.base !== '' && baseOf(plan.changes, view) !== plan.base) {
      this.#refuseRest('BaseMoved', 'what the plan was made from has changed; make it again')
      return []
    }
    return this.#sift(plan.changes, view)
  }

  async #look(changes: readonly Change[]): Promise<ZoneView> {
    const sets = await this.#read(touchedNames(changes), this.#signal)
    return createZoneView(sets, { origin: this.#options.zone.name })
  }

  /** What is still to be written: neither done, nor refused, nor moved. Of a change cut in half, the other half. */
  #sift(changes: readonly Change[], view: ZoneView): Group[] {
    const pending: Change[] = []
    for (const change of changes) {
      if (this.#results.has(change)) continue
      const states = writes(change).map((write) => standing(write, view))
      if (states.every((state) => state === 'to')) this.#set(change, 'already')
      else if (!states.includes('else')) pending.push(change)
      else this.#refuseMoved(change, view)
    }
    return groupChanges(this.#dropBrokenGroups(pending)).map((group) => ({
      ...group,
      writes: group.writes.filter((write) => standing(write, view) === 'from'),
    }))
  }

  /** A group with a refused member is not sent at all: half a change of type would be a gap. */
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

  /** One batch, until it is written, refused, or given up. Returns what found no room in the zone. */
  async #send(batch: readonly Group[]): Promise<Group[]> {
    const result = await this.#attempt(batch)
    if (result === 'full') {
      const leaving = batch.filter(isLeaving)
      if (leaving.length > 0 && leaving.length < batch.length) await this.#send(leaving)
      return batch.filter((group) => !isLeaving(group))
    }
    if (result !== 'refused') return []
    const full: Group[] = []
    const { bad } = await isolate(batch, async (groups) => {
      const again = await this.#attempt(groups)
      if (again === 'full') full.push(...groups)
      return again === 'full' ? 'stop' : again
    })
    for (const change of bad.flatMap((group) => group.changes)) {
      const code = batch.length > 1 ? 'PoisonRecordIsolated' : (this.#lastError?.code ?? 'RecordRejected')
      if (!this.#results.has(change)) this.#set(change, 'refused', code, this.#lastError?.message)
    }
    return full
  }

  #refuseFull(groups: readonly Group[]): void {
    this.#giveUp(
      groups.flatMap((group) => group.changes),
      'ZoneQuotaExceeded',
      this.#lastError?.message ?? 'the zone is full',
    )
  }

  async #attempt(batch: readonly Group[]): Promise<'written' | 'refused' | 'full' | 'stop'> {
    let groups = batch
    for (let attempt = 1; ; attempt++) {
      const changes = groups.flatMap((group) => group.changes)
      try {
        await this.#apply(groups)
        for (const change of changes) this.#set(change, 'applied')
        return 'written'
      } catch (cause) {
        const error = asProviderError(cause)
        this.#lastError = error
        if (error.outcome === 'rejected') return 'refused'
        if (error.code === 'ZoneQuotaExceeded') return 'full'
        if (error.code === 'Paused') return this.#giveUp(changes, 'Paused', error.message)
        if (this.#signal.aborted || attempt >= ATTEMPTS || error.code === 'Stale') {
          return this.#giveUp(changes, error.code, error.message)
        }
        if (error.code !== 'Throttled')
          await sleep(this.#options.clock ?? systemClock, 250 * 2 ** attempt, this.#signal)
      }
      // Whatever was said, the zone knows: what is done is done, what moved is refused, the rest is sent again.
      const left = this.#sift(changes, await this.#lookOrGiveUp(changes))
      if (left.length === 0) return 'written'
      groups = left
    }
  }

  async #lookOrGiveUp(changes: readonly Change[]): Promise<ZoneView> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#look(changes)
      } catch (cause) {
        const error = asProviderError(cause)
        if (this.#signal.aborted || attempt >= ATTEMPTS || error.code === 'Stale') throw error
        await sleep(this.#options.clock ?? systemClock, 250 * 2 ** attempt, this.#signal)
      }
    }
  }

  async #apply(groups: readonly Group[]): Promise<void> {
    const { provider, zone, killSwitch } = this.#options
    const batch = groups.flatMap((group) => group.writes)
    await this.#call(this.#signal, async (signal) => {
      // The wait for the rate limit may have been long.
      if (killSwitch.isPaused) throw new ProviderError('Paused', 'later', 'writing is paused')
      this.#calls++
      await provider.apply(zone, batch, signal)
    })
  }

  #giveUp(changes: readonly Change[], code: Reason, why: string): 'stop' {
    for (const change of changes) if (!this.#results.has(change)) this.#set(change, 'refused', code, why)
    return 'stop'
  }

  #refuseAll(changes: readonly Change[], code: Reason, why: string): Outcome {
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

  #outcome(): Outcome {
    const results = this.#plan.changes.flatMap((change) => this.#results.get(change) ?? [])
    return { plan: this.#plan, results, calls: this.#calls }
  }
}

/** Nothing of it is added to the zone. */
function isLeaving(group: Group): boolean {
  return group.changes.every((change) => change.op === 'delete')
}

function writes(change: Change): SetChange[] {
  return [change, ...change.markers].filter(({ from, to }) => from !== undefined || to !== undefined)
}

/** Where a set stands between what it was and what it is to be. */
function standing({ from, to }: SetChange, view: ZoneView): 'from' | 'to' | 'else' {
  const subject = to ?? from
  if (subject === undefined) return 'to'
  if (view.isOpaque(subject.name, subject.type)) return 'else'
  const present = view.find(subject.name, subject.type)
  if (sameSet(present, to)) return 'to'
  return sameSet(present, from) ? 'from' : 'else'
}

function newestPlan(change: Change, view: ZoneView): number | undefined {
  let newest: number | undefined
  for (const { from, to } of [change, ...change.markers]) {
    const subject = markedSet((to ?? from)?.name ?? '')
    if (subject === undefined) continue
    for (const value of view.marked(subject.name, subject.type)?.set.values ?? []) {
      const reading = readMarker(subject, value)
      if (reading.kind === 'marker' && reading.marker.owner === change.owner)
        newest = Math.max(newest ?? 0, reading.marker.plan)
    }
  }
  return newest
}

export function failuresOf(outcome: Outcome): readonly ChangeResult[] {
  return outcome.results.filter(({ result }) => result === 'refused')
}

/** One line per set and code, for logs and Events. */
export function describeResult({ change, result, code, why }: ChangeResult): string {
  return `${setKey(change)} ${change.op} ${result}${code === undefined ? '' : ` ${code}: ${why ?? ''}`}`
}
