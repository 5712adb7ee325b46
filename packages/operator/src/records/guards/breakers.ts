/**
 * Guards about how much changes at once (INV-3): breakers for sources and targets, the delete budget, quarantine.
 *
 * Baselines come from the markers in the zone when the whole zone is in view, else from what was persisted; spent budget
 * comes from what was persisted. A name that was already counted in this window is not counted again, so a plan that was
 * cut short can be finished.
 */
import type { Candidate, Objection } from '../plan/candidates.ts'
import { addStamps, type GuardState, withinWindow } from '../state/guard-state.ts'
import type { Limits } from '../plan/limits.ts'
import { ADOPTED } from '../../rrset/marker.ts'
import type { PlanInput } from '../plan/plan.ts'
import { setKey } from '../../rrset/rrset.ts'
import type { ZoneView } from '../plan/zone-view.ts'
import { isReleased, type PlanGuard } from './guard.ts'

const NONE: ReadonlyMap<Candidate, Objection> = new Map()

/** Deletes that make a name or set disappear; a change of type is none. */
function isDeletion(candidate: Candidate): boolean {
  return candidate.isRemoval === true && candidate.switchesType !== true && candidate.change.from !== undefined
}

interface Baseline {
  readonly names: number
  readonly sources: number
}

/** Counted once per plan: four guards ask for it. */
const baselines = new WeakMap<PlanInput, Baseline>()

function baselineOf(input: PlanInput): Baseline {
  const known = baselines.get(input)
  if (known !== undefined) return known
  const baseline = countOwned(input)
  baselines.set(input, baseline)
  return baseline
}

function countOwned(input: PlanInput): Baseline {
  const { state, limits, now, view, owner } = input
  const sources = new Set(withinWindow(state.gone, now, limits.windowMs).map(({ key }) => key))
  let names = 0
  for (const { key } of withinWindow(state.deleted, now, limits.windowMs)) if (!isMarked(view, key)) names++
  let last: string | undefined
  // Markers of one name come one after the other.
  view.eachMarker((marker, name) => {
    if (marker.owner !== owner.id) return
    sources.add(marker.source)
    if (name !== last) names++
    last = name
  })
  // The whole zone says how much there is; some names do not.
  if (input.scope === 'all') return { names, sources: sources.size }
  return { names: Math.max(names, state.ownedNames), sources: Math.max(sources.size, state.ownedSources) }
}

function isTooMany(count: number, of: number, limits: Limits): boolean {
  return count > limits.breakerFloor && count > of * limits.breakerShare
}

/** Sources that are gone, or from which nothing is wanted any more although they own records. */
function vanishedSources(left: readonly Candidate[], input: PlanInput): Set<string> {
  const deleted = left.filter(isDeletion).map(({ change }) => change.source)
  if (deleted.length === 0) return new Set()
  const { gone } = input.sources
  // A plan about some names does not see what else a source wants.
  if (input.scope !== 'all') return new Set(deleted.filter((source) => gone.has(source)))
  const wanting = new Set(input.desired.map((desired) => desired.source.uid))
  return new Set(deleted.filter((source) => gone.has(source) || !wanting.has(source)))
}

export const shrinkBreaker: PlanGuard = (left, input) => {
  const held = left.filter((candidate) => isDeletion(candidate) && !isReleased(candidate, input))
  if (held.length === 0) return NONE
  const before = withinWindow(input.state.gone, input.now, input.limits.windowMs).map(({ key }) => key)
  const gone = new Set([...before, ...vanishedSources(held, input)])
  const { sources } = baselineOf(input)
  if (!isTooMany(gone.size, sources, input.limits)) return NONE
  const why = `${gone.size} of ${sources} sources are gone within ${input.limits.windowMs / 60_000} min; release the zone if that is right`
  return new Map(held.map((candidate) => [candidate, { code: 'ShrinkBreakerOpen', why }]))
}

/** Other values, or another type with other values, for a source that did not change. */
function isUnexplainedRetarget({ effect, marker, replacedMarker, replaces, desired, isRemoval }: Candidate): boolean {
  const isRetarget = effect === 'retarget' || effect === 'shrink' || replaces !== undefined
  if (isRemoval === true || !isRetarget || desired === undefined) return false
  if (desired.policy?.isHealthDriven === true) return false
  const before = marker ?? replacedMarker
  const isSameSource = before === undefined || before.source === desired.source.uid || before.source === ADOPTED
  const { revision, placedRevision } = desired.source
  const isExplained =
    isNewer(revision, before?.revision) && (placedRevision === undefined || isNewer(revision, placedRevision))
  return isSameSource && !isExplained
}

/**
 * Only a newer revision explains a new target: newer than the marker says and, because a marker may have been changed by
 * who can write the zone, than the source itself remembers. A marker that names none proves nothing, and neither does a source that
 * went back: a cluster restored from an old backup changes many targets at once.
 */
function isNewer(revision: string | undefined, before: string | undefined): boolean {
  if (revision === undefined || before === undefined) return false
  const isNumbered = /^\d+$/.test(revision) && /^\d+$/.test(before)
  return isNumbered ? BigInt(revision) > BigInt(before) : revision !== before
}

export const retargetBreaker: PlanGuard = (left, input) => {
  const suspect = left.filter((candidate) => isUnexplainedRetarget(candidate) && !isReleased(candidate, input))
  if (suspect.length === 0) return NONE
  const before = withinWindow(input.state.retargeted, input.now, input.limits.windowMs).map(({ key }) => key)
  const names = new Set([...before, ...suspect.map(({ change }) => change.name)])
  const baseline = baselineOf(input)
  if (!isTooMany(names.size, baseline.names, input.limits)) return NONE
  const why = `${names.size} of ${baseline.names} names would change target although their sources did not change; release the zone if that is right`
  return new Map(suspect.map((candidate) => [candidate, { code: 'RetargetBreakerOpen', why }]))
}

/** What entered quarantine stays its time, even when the budget is whole again. */
export const quarantine: PlanGuard = (left, input) => {
  const held = new Map<Candidate, Objection>()
  for (const candidate of left) {
    if (!isDeletion(candidate) || isReleased(candidate, input)) continue
    const since = input.state.waiting.get(setKey(candidate.change))
    if (since === undefined) continue
    const until = since + input.limits.quarantineMs
    if (input.now < until)
      held.set(candidate, { code: 'Quarantined', why: `it waits since ${new Date(since).toISOString()}`, until })
  }
  return held
}

export function deleteAllowance(owned: number, limits: Limits): number {
  return Math.max(limits.deleteFloor, Math.floor(owned * limits.deleteShare))
}

/** The first names in order go; the others enter quarantine, or wait for budget when they have been there. */
export const deleteBudget: PlanGuard = (left, input) => {
  const deletions = left.filter((candidate) => isDeletion(candidate) && !isReleased(candidate, input))
  if (deletions.length === 0) return NONE
  const spent = new Set(withinWindow(input.state.deleted, input.now, input.limits.windowMs).map(({ key }) => key))
  const { names } = baselineOf(input)
  const allowance = deleteAllowance(names, input.limits)
  const held = new Map<Candidate, Objection>()
  for (const candidate of deletions.toSorted((a, b) => (setKey(a.change) < setKey(b.change) ? -1 : 1))) {
    const { name } = candidate.change
    if (spent.has(name)) continue
    if (spent.size < allowance) {
      spent.add(name)
      continue
    }
    const hasWaited = input.state.waiting.has(setKey(candidate.change))
    const why = `${allowance} of ${names} names may go per ${input.limits.windowMs / 60_000} min`
    held.set(
      candidate,
      hasWaited
        ? { code: 'DeleteBudgetSpent', why }
        : { code: 'Quarantined', why, until: input.now + input.limits.quarantineMs },
    )
  }
  return held
}

function isMarked(view: ZoneView, name: string): boolean {
  return view.at(name).firstMarked !== undefined
}

/** Of names that get their first marker. */
function countNew(passed: readonly Candidate[], { view }: PlanInput, pick: (candidate: Candidate) => string): number {
  const fresh = passed.filter(({ effect, change }) => effect === 'create' && !isMarked(view, change.name))
  return new Set(fresh.map(pick)).size
}

/** The state once this plan has begun. */
export function remember(
  passed: readonly Candidate[],
  objections: ReadonlyMap<Candidate, Objection>,
  input: PlanInput,
): GuardState {
  const { state, limits, now } = input
  const deletions = passed.filter(isDeletion)
  const baseline = baselineOf(input)
  const waiting = new Map<string, number>()
  for (const [{ change }, { code }] of objections) {
    // Everything else forgets that it waited: a source that came back starts anew.
    if (code !== 'Quarantined' && code !== 'DeleteBudgetSpent' && code !== 'ClaimPending') continue
    const key = setKey(change)
    waiting.set(key, state.waiting.get(key) ?? now)
  }
  if (input.scope !== 'all') {
    for (const [key, since] of state.waiting) {
      const name = key.slice(0, key.indexOf(' '))
      if (!input.scope.has(name)) waiting.set(key, since)
    }
  }
  const recent = (stamps: GuardState['deleted']) => withinWindow(stamps, now, limits.windowMs)
  return {
    version: 1,
    fence: Math.max(state.fence, passed.length > 0 ? input.number : 0),
    ownedNames: baseline.names + countNew(passed, input, ({ change }) => change.name),
    ownedSources: baseline.sources + countNew(passed, input, ({ change }) => change.source),
    deleted: recent(
      addStamps(
        state.deleted,
        deletions.map(({ change }) => change.name),
        now,
      ),
    ),
    gone: recent(addStamps(state.gone, vanishedSources(deletions, input), now)),
    retargeted: recent(
      addStamps(
        state.retargeted,
        passed.filter(isUnexplainedRetarget).map(({ change }) => change.name),
        now,
      ),
    ),
    waiting,
  }
}
