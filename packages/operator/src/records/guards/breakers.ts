/**
 * Guards about how much changes at once (INV-3): breakers for sources and targets, the delete budget, quarantine.
 *
 * Baselines come from the markers in the zone when the whole zone was read, else from the persisted state; the spent
 * budget comes from the persisted state. A name that was already counted in this window is not counted again, so an
 * interrupted plan can be completed.
 */
import type { Candidate, Objection } from '../plan/candidates.ts'
import type { Reason } from '../../reasons.ts'
import { approvedKeys } from '../../safety/approval.ts'
import type { HeldChange } from '../../safety/held-change.ts'
import { isMassChange } from '../../safety/mass-limits.ts'
import { addStamps, type GuardState, withinWindow } from '../state/guard-state.ts'
import type { Limits } from '../plan/limits.ts'
import { ADOPTED } from '../../rrset/marker.ts'
import type { Change, PlanInput, Sources } from '../plan/plan.ts'
import { setKey } from '../../rrset/rrset.ts'
import type { ZoneView } from '../plan/zone-view.ts'
import { isApproved, type PlanGuard } from './guard.ts'

const NONE: ReadonlyMap<Candidate, Objection> = new Map()

/** Deletes that remove a name or set; a change of type is not a deletion. */
function isDeletion(candidate: Candidate): boolean {
  return candidate.isRemoval === true && candidate.switchesType !== true && candidate.change.from !== undefined
}

interface Owned {
  readonly names: number
  readonly sources: number
}

/** What was owned when the window began; `owned` is what is owned now. */
interface Baseline extends Owned {
  readonly owned: Owned
}

/** Computed once per plan: four guards use it. */
const baselines = new WeakMap<PlanInput, Baseline>()

function baselineOf(input: PlanInput): Baseline {
  const known = baselines.get(input)
  if (known !== undefined) return known
  const baseline = countOwned(input)
  baselines.set(input, baseline)
  return baseline
}

/** Names with our marker, and the sources in those markers. */
export function countMarked(view: ZoneView, owner: string): { names: number; sources: Set<string> } {
  const sources = new Set<string>()
  let names = 0
  let last: string | undefined
  // The markers of one name are consecutive.
  view.eachMarker((marker, name) => {
    if (marker.owner !== owner) return
    // An adopted RRset has no source yet: each name counts as a source, else a zone full of them would count as one.
    sources.add(marker.source === ADOPTED ? `${ADOPTED} ${name}` : marker.source)
    if (name !== last) names++
    last = name
  })
  return { names, sources }
}

function countOwned(input: PlanInput): Baseline {
  const { state, limits, now, view, owner } = input
  const marked = countMarked(view, owner.id)
  const isWhole = input.scope === 'all'
  // Only a whole-zone read gives the number of owned names.
  const owned: Owned = isWhole
    ? { names: marked.names, sources: marked.sources.size }
    : {
        names: Math.max(marked.names, state.ownedNames),
        sources: Math.max(marked.sources.size, state.ownedSources),
      }
  // What was deleted within the window was owned when the window began.
  const gone = withinWindow(state.gone, now, limits.windowMs).filter(({ key }) => !marked.sources.has(key))
  const deleted = withinWindow(state.deleted, now, limits.windowMs).filter(({ key }) => !isMarked(view, key))
  return { names: owned.names + deleted.length, sources: owned.sources + gone.length, owned }
}

/** Sources that are gone, or that own records and no longer request any. */
function vanishedSources(left: readonly Candidate[], input: PlanInput): Set<string> {
  const deleted = left.filter(isDeletion).map(({ change }) => change.source)
  if (deleted.length === 0) return new Set()
  const { gone, requesting = requestingSources(input) } = input.sources
  // A plan over some names does not contain what else a source requests.
  if (requesting === undefined) return new Set(deleted.filter((source) => gone.has(source)))
  return new Set(deleted.filter((source) => gone.has(source) || !requesting.has(source)))
}

function requestingSources({ scope, desired }: PlanInput): Sources | undefined {
  return scope === 'all' ? new Set(desired.map(({ source }) => source.uid)) : undefined
}

/**
 * Changes held outside the scope of a plan count too. Otherwise each pass over a few names would find few changes and
 * let them pass, and together the passes would make every change that one pass over the whole zone holds.
 */
function heldOutside({ scope, state, now }: PlanInput, codes: ReadonlySet<Reason>): HeldChange[] {
  if (scope === 'all' || state.held.length === 0) return []
  const approved = approvedKeys(state, now)
  return state.held.filter(({ name, code, key }) => codes.has(code) && !scope.has(name) && !approved.has(key))
}

const HELD_DELETIONS: ReadonlySet<Reason> = new Set(['ShrinkBreakerOpen', 'Quarantined', 'DeleteBudgetSpent'])
const HELD_RETARGETS: ReadonlySet<Reason> = new Set(['RetargetBreakerOpen'])

export const shrinkBreaker: PlanGuard = (left, input) => {
  const held = left.filter((candidate) => isDeletion(candidate) && !isApproved(candidate, input))
  if (held.length === 0) return NONE
  const before = withinWindow(input.state.gone, input.now, input.limits.windowMs).map(({ key }) => key)
  const outside = heldOutside(input, HELD_DELETIONS).map(({ source }) => source)
  const gone = new Set([...before, ...outside, ...vanishedSources(held, input)])
  const { sources } = baselineOf(input)
  if (!isMassChange(gone.size, sources, input.limits.mass)) return NONE
  const why = `${gone.size} of ${sources} sources with records in zone ${input.zone} disappeared within ${input.limits.windowMs / 60_000} min`
  return new Map(held.map((candidate) => [candidate, { code: 'ShrinkBreakerOpen', why, isApprovable: true }]))
}

/** Other values, or another type with other values, although the source did not change. */
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
 * Only a newer revision explains a new target: newer than the one in the marker and, because anyone who can write to
 * the zone can change a marker, newer than the one in the source's status. A marker without a revision proves nothing,
 * and neither does an older revision: a cluster restored from an old backup changes many targets at once.
 */
function isNewer(revision: string | undefined, before: string | undefined): boolean {
  if (revision === undefined || before === undefined) return false
  const isNumbered = /^\d+$/.test(revision) && /^\d+$/.test(before)
  return isNumbered ? BigInt(revision) > BigInt(before) : revision !== before
}

export const retargetBreaker: PlanGuard = (left, input) => {
  const unexplained = left.filter((candidate) => isUnexplainedRetarget(candidate) && !isApproved(candidate, input))
  if (unexplained.length === 0) return NONE
  const before = withinWindow(input.state.retargeted, input.now, input.limits.windowMs).map(({ key }) => key)
  const outside = heldOutside(input, HELD_RETARGETS).map(({ name }) => name)
  const names = new Set([...before, ...outside, ...unexplained.map(({ change }) => change.name)])
  const baseline = baselineOf(input)
  if (!isMassChange(names.size, baseline.names, input.limits.mass)) return NONE
  const why = `${names.size} of ${baseline.names} names in zone ${input.zone} would change target, and their sources did not change`
  return new Map(unexplained.map((candidate) => [candidate, { code: 'RetargetBreakerOpen', why, isApprovable: true }]))
}

/** A change in quarantine stays there for the whole period, even when the budget is available again. */
export const quarantine: PlanGuard = (left, input) => {
  const held = new Map<Candidate, Objection>()
  for (const candidate of left) {
    if (!isDeletion(candidate) || isApproved(candidate, input)) continue
    const since = input.state.waiting.get(setKey(candidate.change))
    if (since === undefined) continue
    const until = since + input.limits.quarantineMs
    if (input.now < until)
      held.set(candidate, {
        code: 'Quarantined',
        why: `the deletion of ${candidate.change.name} waits until ${new Date(until).toISOString()}`,
        until,
        isApprovable: true,
      })
  }
  return held
}

export function deleteAllowance(owned: number, limits: Limits): number {
  return Math.max(limits.deleteFloor, Math.floor(owned * limits.deleteShare))
}

/** The first names in order are deleted; the others enter quarantine, or wait for budget when they have been there. */
export const deleteBudget: PlanGuard = (left, input) => {
  const deletions = left.filter((candidate) => isDeletion(candidate) && !isApproved(candidate, input))
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
    const why = `zone ${input.zone} may lose ${allowance} of ${names} names per ${input.limits.windowMs / 60_000} min, and this number is reached`
    held.set(
      candidate,
      hasWaited
        ? { code: 'DeleteBudgetSpent', why, isApprovable: true }
        : { code: 'Quarantined', why, until: input.now + input.limits.quarantineMs, isApprovable: true },
    )
  }
  return held
}

function isMarked(view: ZoneView, name: string): boolean {
  return view.at(name).firstMarked !== undefined
}

/** Changes of names that get their first marker. */
function newlyMarked(passed: readonly Candidate[], { view }: PlanInput): Change[] {
  return passed.flatMap(({ effect, change }) =>
    (effect === 'create' || change.reason === 'Adopted') && !isMarked(view, change.group) ? [change] : [],
  )
}

/**
 * Number of sources that get their first marker: not those that request another name and have one there already. A plan over
 * the names that a source requests sees both.
 */
function countNewSources(fresh: readonly Change[], { view, owner }: PlanInput): number {
  if (fresh.length === 0) return 0
  const { sources } = countMarked(view, owner.id)
  return new Set(fresh.flatMap(({ source }) => (sources.has(source) ? [] : [source]))).size
}

/** Number of names that keep no record of ours. */
function countLost(deletions: readonly Candidate[], { view, owner }: PlanInput): number {
  const types = new Map<string, number>()
  for (const { change } of deletions) types.set(change.name, (types.get(change.name) ?? 0) + 1)
  let lost = 0
  for (const [name, count] of types) if (markedTypes(view, name, owner.id) <= count) lost++
  return lost
}

function markedTypes(view: ZoneView, name: string, owner: string): number {
  let count = 0
  for (let marked = view.at(name).firstMarked; marked !== undefined; marked = marked.next)
    if (marked.readings.some((reading) => reading.kind === 'marker' && reading.marker.owner === owner)) count++
  return count
}

/** The guard state once this plan has begun. */
export function stateAfter(
  passed: readonly Candidate[],
  objections: ReadonlyMap<Candidate, Objection>,
  input: PlanInput,
): GuardState {
  const { state, limits, now } = input
  const deletions = passed.filter(isDeletion)
  const { owned } = baselineOf(input)
  const fresh = newlyMarked(passed, input)
  const waiting = new Map<string, number>()
  for (const [{ change }, { code }] of objections) {
    // All other entries are removed: a source that reappears starts anew.
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
    ownedNames: Math.max(0, owned.names + new Set(fresh.map(({ group }) => group)).size - countLost(deletions, input)),
    ownedSources: Math.max(0, owned.sources + countNewSources(fresh, input) - vanishedSources(deletions, input).size),
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
    held: state.held,
    approvals: state.approvals,
    ...(state.decided !== undefined && { decided: state.decided }),
  }
}
