/**
 * Providers, zones and executors of one installation, with the two operations on them: plan and apply.
 * The controller, `seamark plan` and `seamark apply` are three callers of the same code (INV-16).
 *
 * Guarantees: a zone that cannot be read is reported as unread and gets no plan; a name is planned in the zone with the
 * longest matching name, at every provider that serves it; zones are listed again every five minutes, so added and
 * removed zones are noticed, and a removed zone is never treated as an empty one.
 */
import { isDeepStrictEqual } from 'node:util'
import { type AdaptiveLimiter, type Clock, createLimiter, systemClock } from '@seamark/kube'
import { planZone } from './plan-zone.ts'
import type { Provider, ProviderZone } from '../providers/provider.ts'
import type { Reason } from '../reasons.ts'
import { ProviderError } from '../rrset/error.ts'
import { createExecutor, type Executor, stateKey } from './execute/executor.ts'
import { countMarked } from './guards/breakers.ts'
import { mergeHeld } from './plan/held-set.ts'
import { EMPTY_STATE, type GuardState, type GuardStore } from './state/guard-state.ts'
import type { KillSwitch } from '../process/kill-switch.ts'
import { DEFAULT_LIMITS, type Limits } from './plan/limits.ts'
import type { PlanOutcome } from './execute/result.ts'
import type { Owner } from './plan/ownership.ts'
import type { PlanStore } from './stores/plan-store.ts'
import {
  type Desired,
  nextPlanNumber,
  type Plan,
  type RecordSource,
  type SourceView,
  type Unusable,
  type ZoneId,
} from './plan/plan.ts'
import { type CallObserver, createProviderCalls, type ProviderCalls } from './execute/provider-calls.ts'
import type { RegistryOptions } from '../rrset/external-dns-registry.ts'
import { POLICY_SET_TYPE } from '../rrset/answer-policy.ts'
import { isName, isWithin, type ObservedRRset } from '../rrset/rrset.ts'
import { createZoneView, namesToRead, type ZoneView } from './plan/zone-view.ts'

export interface EngineOptions {
  readonly providers: readonly Provider[]
  readonly owner: Owner
  readonly store: GuardStore
  readonly killSwitch: KillSwitch
  readonly mode: 'enforce' | 'observe'
  readonly types: readonly string[]
  /** Absent: ExternalDNS' TXT registry is not read. */
  readonly registry?: RegistryOptions
  readonly limits?: Limits
  /** Restricts the engine to these zones, by canonical name. @default every zone of the providers */
  readonly zones?: ReadonlySet<string>
  /** Stores plans before they are applied, so that each can be undone. @default none is stored */
  readonly plans?: PlanStore
  readonly observer?: CallObserver
  readonly clock?: Clock
  /** In [0, 1): spreads the calls of providers. @default Math.random */
  readonly random?: () => number
}

export interface Target {
  /** `aws`, or `aws@Z123` where a zone has an id of its own: the label of the target in plans. */
  readonly label: string
  readonly provider: Provider
  readonly zone: ProviderZone
  readonly executor: Executor
}

export interface Unread {
  readonly provider: string
  readonly zone: string
  readonly code: Reason
  readonly why: string
}

export interface PlanRequest {
  readonly desired: readonly Desired[]
  readonly unusable: readonly Unusable[]
  /** The state of the sources, or a function that determines it for the sources that own records in a zone. */
  readonly sources: SourceView | ((owned: ReadonlyMap<string, number>) => Promise<SourceView>)
  /** The oldest source that claims a name, also outside the scope of the plan. @default computed from `desired` */
  readonly claimant?: (name: string) => RecordSource | undefined
  /** Ids of held sets that are approved for this plan only. */
  readonly approved?: ReadonlySet<string>
}

export interface Planned {
  readonly plans: readonly Plan[]
  readonly unread: readonly Unread[]
  /** Desired RRsets that belong to no zone. */
  readonly withoutZone: readonly Unusable[]
  /** Zones without stored guard state: their plans do not account for budgets, held changes or approvals. */
  readonly withoutState: readonly ZoneId[]
}

export interface Engine {
  targets(signal: AbortSignal): Promise<{ targets: readonly Target[]; unread: readonly Unread[] }>
  view(target: Target, names: ReadonlySet<string> | 'all', signal: AbortSignal): Promise<ZoneView>
  /** With names: a plan restricted to those names, at a cost proportional to their number. */
  plan(request: PlanRequest, names: ReadonlySet<string> | 'all', signal: AbortSignal): Promise<Planned>
  number(target: Target, view: ZoneView): Promise<number>
  /** Reads one name at every provider that is known to serve it, without reading the whole zone where possible. */
  isReadByName(name: string): boolean
  /**
   * Persists the decisions of a plan without changes: what is held and since when and, for a whole-zone plan, how much
   * is owned. Applying a plan with changes persists the same. Writes only when something differs.
   */
  record(plan: Plan): Promise<void>
  /** Persists how much is owned, from a read of the whole zone; used after a plan that no guard evaluated wrote markers. */
  recount(target: Target, signal: AbortSignal): Promise<void>
  /** Throws ProviderError ZoneNotFound when no target has the label of the plan. */
  apply(plan: Plan, signal: AbortSignal, options?: { requiresBase?: boolean }): Promise<PlanOutcome>
  /** An operator requested a verification: providers whose circuit breaker is open are asked by the next plan. */
  retryNow(): void
  close(): Promise<void>
}

const ZONES_MS = 300_000
const ZONES_RETRY_MS = 60_000

export function createEngine(options: EngineOptions): Engine {
  const { providers, owner, store, killSwitch, types, registry, limits = DEFAULT_LIMITS, clock = systemClock } = options
  const { random } = options
  const observed = options.observer === undefined ? {} : { observer: options.observer }
  const limiters = new Map<string, AdaptiveLimiter>()
  const listings = new Map<Provider, ProviderCalls>()
  const known = new Map<string, Target>()
  /** Of the last read of the whole zone. */
  const hosts = new WeakMap<Target, ReadonlySet<string>>()
  const listed = new Map<Provider, { at: number; zones: readonly ProviderZone[] }>()

  const limiterOf = (provider: Provider): AdaptiveLimiter => {
    let limiter = limiters.get(provider.account)
    if (limiter === undefined) {
      const perSecond = provider.capabilities.requestsPerSecond
      limiter = createLimiter({ perSecond, clock, ...(random !== undefined && { random }) })
      limiters.set(provider.account, limiter)
    }
    return limiter
  }
  const targetOf = (provider: Provider, zone: ProviderZone): Target => {
    const label = zone.id === zone.name ? provider.name : `${provider.name}@${zone.id}`
    const key = `${label} ${zone.name}`
    let target = known.get(key)
    if (target === undefined) {
      const executor = createExecutor({
        provider,
        zone,
        store,
        limiter: limiterOf(provider),
        killSwitch,
        limits,
        clock,
        ...observed,
      })
      target = { label, provider, zone, executor }
      known.set(key, target)
    }
    return target
  }
  const zonesOf = async (provider: Provider, signal: AbortSignal): Promise<readonly ProviderZone[]> => {
    const before = listed.get(provider)
    if (before !== undefined && clock.monotonic() - before.at < ZONES_MS) return before.zones
    const calls =
      listings.get(provider) ??
      createProviderCalls({ provider, limiter: limiterOf(provider), killSwitch, clock, ...observed })
    listings.set(provider, calls)
    try {
      const zones = (await calls.zones(signal)).filter(({ name }) => options.zones?.has(name) ?? true)
      listed.set(provider, { at: clock.monotonic(), zones })
      return zones
    } catch (cause) {
      if (before === undefined) throw cause
      // A failed list is no information about the zones: those of the last successful list stay in use.
      listed.set(provider, { at: clock.monotonic() - ZONES_MS + ZONES_RETRY_MS, zones: before.zones })
      return before.zones
    }
  }

  /** Only a server that answers by policies gets their records. */
  const typesOf = ({ provider }: Target): readonly string[] =>
    provider.capabilities.answersByPolicy === true ? [...types, POLICY_SET_TYPE] : types
  const isWritable = (target: Target, type: string): boolean =>
    type !== POLICY_SET_TYPE || target.provider.capabilities.answersByPolicy === true

  const targets: Engine['targets'] = async (signal) => {
    const found: Target[] = []
    const unread: Unread[] = []
    for (const provider of providers) {
      try {
        for (const zone of await zonesOf(provider, signal)) found.push(targetOf(provider, zone))
      } catch (cause) {
        unread.push({ provider: provider.name, zone: '*', ...reasonOf(cause) })
      }
    }
    return { targets: found, unread }
  }
  const view: Engine['view'] = async (target, names, signal) => {
    // An invalid name is in no zone; it is refused as an unusable desired RRset.
    const asked =
      names === 'all'
        ? names
        : new Set(
            [...names]
              .filter(isName)
              .flatMap((name) => namesToRead(name, typesOf(target), registry, target.zone.name))
              // The name of a registry entry is longer: what exceeds the limits of DNS is in no zone.
              .filter(isName),
          )
    const sets: readonly ObservedRRset[] = await target.executor.read(asked, signal)
    const seen = createZoneView(sets, {
      origin: target.zone.name,
      knownHosts: names === 'all' ? undefined : hosts.get(target),
      ...(owner.key !== undefined && { markerKey: owner.key }),
      ...(registry !== undefined && { registry }),
    })
    if (names === 'all') hosts.set(target, seen.hosts)
    return seen
  }
  const number: Engine['number'] = async (target, seen) => {
    const state = await store.load(stateKey(target.provider.name, target.zone))
    return nextPlanNumber(clock.now(), state.fence, seen)
  }

  const stateless = new WeakSet<Plan>()
  const planTarget = async (
    target: Target,
    request: PlanRequest,
    names: ReadonlySet<string> | 'all',
    all: readonly Target[],
    signal: AbortSignal,
  ): Promise<Plan> => {
    const isInTarget = (name: string) => zoneFor(name, all) === target.zone.name
    const scope = names === 'all' ? names : new Set([...names].filter(isInTarget))
    const isInScope = (name: string) => isInTarget(name) && (scope === 'all' || scope.has(name))
    const seen = await view(target, scope, signal)
    const state = await store.load(stateKey(target.provider.name, target.zone))
    const plan = planZone({
      provider: target.label,
      zone: target.zone.name,
      owner,
      view: seen,
      scope,
      desired: request.desired.filter(({ set }) => isInScope(set.name) && isWritable(target, set.type)),
      unusable: request.unusable.filter(({ name }) => isInScope(name)),
      sources:
        typeof request.sources === 'function' ? await request.sources(ownedSources(seen, owner)) : request.sources,
      state,
      limits,
      isAtomic: target.provider.capabilities.isAtomic,
      types: typesOf(target),
      mode: options.mode,
      isPaused: killSwitch.isPaused,
      ...(request.claimant !== undefined && { claimant: request.claimant }),
      ...(request.approved !== undefined && { approved: request.approved }),
      number: nextPlanNumber(clock.now(), state.fence, seen),
      now: clock.now(),
    })
    if (state === EMPTY_STATE) stateless.add(plan)
    return plan
  }

  return {
    targets,
    view,
    number,
    isReadByName(name) {
      const all = [...known.values()]
      const zone = zoneFor(name, all)
      return all.every((target) => target.zone.name !== zone || target.provider.capabilities.readsByName)
    },
    async plan(request, names, signal) {
      const { targets: all, unread } = await targets(signal)
      const failed = [...unread]
      const concerned = all.filter(
        (target) => names === 'all' || [...names].some((name) => zoneFor(name, all) === target.zone.name),
      )
      const plans = await Promise.all(
        concerned.map(async (target) =>
          planTarget(target, request, names, all, signal).catch((cause: unknown) => {
            failed.push({ provider: target.label, zone: target.zone.name, ...reasonOf(cause) })
            return undefined
          }),
        ),
      )
      // A provider whose zones could not be listed may serve these names: they wait, and are not withoutZone.
      const unplaced = unread.length > 0 ? [] : request.desired
      const withoutZone = [
        ...unplaced
          .filter(({ set }) => zoneFor(set.name, all) === undefined)
          .map(({ set, source }): Unusable => ({
            ...set,
            source,
            code: 'NoMatchingZone',
            message: `no provider serves a zone for ${set.name}`,
          })),
        ...request.unusable.filter(({ name }) => zoneFor(name, all) === undefined),
      ]
      const made = plans.filter((plan) => plan !== undefined)
      return { plans: made, unread: failed, withoutZone, withoutState: made.filter((plan) => stateless.has(plan)) }
    },
    async record(plan) {
      const target = [...known.values()].find(({ label, zone }) => label === plan.provider && zone.name === plan.zone)
      if (target === undefined) return
      const key = stateKey(target.provider.name, target.zone)
      const before = await store.load(key)
      if (isDeepStrictEqual(recorded(before, plan, key, options.mode), before)) return
      await store.update(key, (state) => recorded(state, plan, key, options.mode))
    },
    async recount(target, signal) {
      const { names: ownedNames, sources } = countMarked(await view(target, 'all', signal), owner.id)
      const key = stateKey(target.provider.name, target.zone)
      await store.update(key, (state) => ({ ...state, ownedNames, ownedSources: sources.size }))
    },
    async apply(plan, signal, applyOptions) {
      const { targets: all, unread } = await targets(signal)
      const target = all.find(({ label, zone }) => label === plan.provider && zone.name === plan.zone)
      if (target === undefined) {
        const why = unread.map((item) => `${item.provider}: ${item.code}: ${item.why}`).join('; ')
        throw new ProviderError(
          'ZoneNotFound',
          'later',
          `${plan.provider} does not serve ${plan.zone}${why === '' ? '' : ` (${why})`}`,
        )
      }
      if (plan.changes.length === 0 || killSwitch.isPaused) return target.executor.submit(plan, signal, applyOptions)
      // Stored before the first batch, so that changes of a process that was killed can be undone too.
      await options.plans?.save(plan)
      const outcome = await target.executor.submit(plan, signal, applyOptions)
      if (outcome.calls === 0) await options.plans?.remove(plan)
      return outcome
    },
    retryNow() {
      for (const { executor } of known.values()) executor.retryNow()
      for (const calls of listings.values()) calls.retryNow()
    },
    async close() {
      await Promise.all(providers.map(async (provider) => provider.close?.()))
    },
  }
}

/** The sources named in our own markers, each with the number of the newest plan that wrote for it. */
export function ownedSources(view: ZoneView, owner: Owner): Map<string, number> {
  const sources = new Map<string, number>()
  view.eachMarker(({ owner: id, cluster, source, plan }) => {
    if (id === owner.id && cluster === owner.cluster) sources.set(source, Math.max(plan, sources.get(source) ?? 0))
  })
  return sources
}

/** The state with the decisions of a plan; equal in content when it contains them already. */
function recorded(state: GuardState, plan: Plan, key: string, mode: 'enforce' | 'observe'): GuardState {
  const { ownedNames, ownedSources } = plan.scope === 'all' ? plan.state : state
  const held = mergeHeld(state.held, plan.state.held, plan.scope, plan)
  const next: GuardState = { ...state, ownedNames, ownedSources, held, waiting: plan.state.waiting }
  const isChanged = !isDeepStrictEqual(next.held, state.held) || (state.decided === undefined && held.length > 0)
  const { provider, zone, number } = plan
  return isChanged ? { ...next, decided: { key, provider, zone, plan: number, mode } } : next
}

/** The longest zone name that contains the name. */
function zoneFor(name: string, targets: readonly Target[]): string | undefined {
  let best: string | undefined
  for (const { zone } of targets) {
    if (isWithin(name, zone.name) && (best === undefined || zone.name.length > best.length)) best = zone.name
  }
  return best
}

function reasonOf(cause: unknown): { code: Reason; why: string } {
  if (cause instanceof ProviderError) return { code: cause.code, why: cause.message }
  return { code: 'ProviderUnavailable', why: cause instanceof Error ? cause.message : String(cause) }
}
