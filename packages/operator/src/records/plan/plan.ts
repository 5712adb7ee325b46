/**
 * The plan: what would be written to one zone, and what is refused, each with its reason. Pure: no clock, no I/O.
 *
 * Flow: desired sets + a view of the zone → candidates (candidates.ts) → guards (guards/list.ts) → Plan → executor.
 * Guarantees: applying it gives the desired state; a second plan is then empty; a set that is not ours is in no change;
 * the order is stable (adds, retargets, shrinks, deletes; then by name and type), so equal inputs give equal bytes.
 * Caveats: a plan over some names judges the breakers by the baseline of the last whole-zone plan.
 */
import type { Reason } from '../../reasons.ts'
import { type Candidate, collectCandidates } from './candidates.ts'
import { judge } from '../guards/list.ts'
import { approveHeld } from '../state/approval.ts'
import type { GuardState } from '../state/guard-state.ts'
import { heldAfter } from './held-set.ts'
import type { Limits } from './limits.ts'
import type { Owner } from './ownership.ts'
import { compareText, digestOf, type RRset, setKey } from '../../rrset/rrset.ts'
import type { SetChange } from '../../rrset/set-change.ts'
import type { ZoneView } from './zone-view.ts'

export interface RecordSource {
  readonly uid: string
  /** For people: `DNSEndpoint web/shop`. */
  readonly label: string
  /** The tenant: of two namespaces only one may have a name. */
  readonly namespace?: string
  /** Changes when the object's specification changes (its generation), not when a status does. */
  readonly revision?: string
  /**
   * The revision that was last in place whole, as the object itself remembers. Nobody who can only write the zone can
   * change it, unlike a marker without a signature.
   */
  readonly placedRevision?: string
  /** ms since the epoch: of two sources that want one name, the older has it. */
  readonly createdAt?: number
}

export interface Policy {
  /** INV-7: the exact old values, or `external-dns/OWNER`, that may be taken over. */
  readonly adopt?: string
  /** Several owners each add their values to the set. */
  readonly isShared?: boolean
  /** Delete the set when no target is left, instead of keeping the last one. */
  readonly removeWhenEmpty?: boolean
  /** Somebody agreed to a change at the apex, of a wildcard or of a delegation. */
  readonly isApproved?: boolean
  /** The values follow health verdicts: a change of target is no sign of a broken source. */
  readonly isHealthDriven?: boolean
  /** The source asks for an adoption or approves itself, and its namespace may not. */
  readonly isUntrusted?: boolean
}

export interface Desired {
  /** Canonical; an empty list of values: wanted, but no target is known. */
  readonly set: RRset
  readonly source: RecordSource
  readonly policy?: Policy
}

/** A wish that could not be made a record set; what is published under its name stays. */
export interface Unusable {
  readonly name: string
  readonly type: string
  readonly source: RecordSource
  readonly code: Reason
  readonly message: string
}

/** Sources by UID. */
export type Sources = Pick<ReadonlySet<string>, 'has'>

export interface SourceView {
  /** Sources that exist and were read completely: what they do not want any more may go. */
  readonly present: Sources
  /** Sources whose absence was confirmed by a live read. Being in neither set means: not known, nothing is deleted. */
  readonly gone: Sources
  /** Sources that ask for any record at all. @default those of the desired records, when the plan is about the whole zone */
  readonly wanting?: Sources
}

export interface ZoneId {
  /** Name of the configured provider. */
  readonly provider: string
  /** Canonical name of the zone. */
  readonly zone: string
}

export interface PlanInput extends ZoneId {
  readonly owner: Owner
  readonly view: ZoneView
  /** Names this plan is about. */
  readonly scope: 'all' | ReadonlySet<string>
  readonly desired: readonly Desired[]
  readonly unusable?: readonly Unusable[]
  /** The oldest source that asks for a name, with any type. @default of the desired records of this plan */
  readonly claimant?: (name: string) => RecordSource | undefined
  readonly sources: SourceView
  readonly state: GuardState
  readonly limits: Limits
  /** `create, update and delete in one transaction`: without it a change of type is refused. */
  readonly isAtomic: boolean
  readonly types: readonly string[]
  readonly mode: 'enforce' | 'observe'
  readonly isPaused: boolean
  /** Ids of held sets that are approved for this plan alone, beside the approvals in the state. */
  readonly approved?: ReadonlySet<string>
  readonly number: number
  /** ms since the epoch. */
  readonly now: number
}

export type Op = 'create' | 'update' | 'delete'
export type Risk = 'low' | 'medium' | 'high'

export interface Change extends SetChange {
  readonly op: Op
  readonly name: string
  readonly type: string
  /** Sets that travel with it in the same batch: markers, registry entries. */
  readonly markers: readonly SetChange[]
  readonly reason: Reason
  readonly message: string
  readonly owner: string
  readonly source: string
  readonly risk: Risk
  /** Seconds for which a resolver may go on giving the old answer. */
  readonly ttlEffect: number
  /** Changes of one group are sent together or not at all. */
  readonly group: string
  /** Somebody approved it, or nothing is lost by it: it is not measured against the delete budget. */
  readonly isApproved?: boolean
}

export interface Refusal extends Omit<Change, 'markers' | 'group'> {
  /** Why it is not done. */
  readonly code: Reason
  readonly why: string
  /** ms since the epoch, when it will be done by itself. */
  readonly until?: number
  /** An approval lets it pass. */
  readonly isApprovable?: boolean
  /** Id of the held set it is approved with. */
  readonly set?: string
  /** ms since the epoch, when it was first held for this code. */
  readonly since?: number
}

export interface Plan extends ZoneId {
  readonly number: number
  readonly owner: string
  /** Digest of what stood at every name the plan touches: when it moved, the plan is void. */
  readonly base: string
  readonly scope: 'all' | readonly string[]
  readonly changes: readonly Change[]
  readonly refused: readonly Refusal[]
  /** What the guards remember once this plan was begun. */
  readonly state: GuardState
}

const RANK: Record<Candidate['effect'], number> = { create: 0, marker: 1, retarget: 2, shrink: 3, delete: 4 }

export function planZone(given: PlanInput): Plan {
  const candidates = collectCandidates(given)
  // A set that is approved for this plan is first found as it is held without the approval.
  const input = given.approved === undefined ? given : approveFor(candidates, given, given.approved)
  const judged = judge(candidates, input)
  const held = heldAfter(judged.refused, input)
  const heldByKey = new Map(held.map((item) => [`${setKey(item)} ${item.source}`, item]))
  const refused = judged.refused.map((refusal): Refusal => {
    const { set, since } = heldByKey.get(`${setKey(refusal)} ${refusal.source}`) ?? {}
    return { ...refusal, ...(set !== undefined && { set }), ...(since !== undefined && { since }) }
  })
  const passed = judged.passed.toSorted(
    (a, b) =>
      RANK[a.effect] - RANK[b.effect] ||
      compareText(a.change.name, b.change.name) ||
      compareText(a.change.type, b.change.type),
  )
  const changes = passed.map(({ change }) => change)
  return {
    provider: input.provider,
    zone: input.zone,
    number: input.number,
    owner: input.owner.id,
    base: baseOf(changes, input.view),
    scope: input.scope === 'all' ? 'all' : [...input.scope].sort(compareText),
    changes,
    refused: refused.toSorted((a, b) => compareText(a.name, b.name) || compareText(a.type, b.type)),
    state: { ...judged.state, held },
  }
}

function approveFor(candidates: readonly Candidate[], input: PlanInput, ids: ReadonlySet<string>): PlanInput {
  const held = heldAfter(judge(candidates, input).refused, input)
  let state: GuardState = { ...input.state, held }
  for (const id of ids) ({ state } = approveHeld(state, id, input.now, { mayRepeat: true }))
  return { ...input, state: { ...input.state, approvals: state.approvals } }
}

/**
 * Numbers grow with time, so plans of different processes are ordered without asking each other; a clock that went back
 * is overruled by the newest number in sight.
 */
export function nextPlanNumber(now: number, fence: number, view: ZoneView): number {
  return Math.max(Math.floor(now), Math.max(fence, view.newestPlan) + 1)
}

export function touchedNames(changes: readonly Change[]): Set<string> {
  const names = new Set<string>()
  for (const change of changes) {
    // The group is the name the change is about, also when it writes only a marker.
    names.add(change.name).add(change.group)
    for (const { from, to } of change.markers) names.add((from ?? to)?.name ?? change.name)
  }
  return names
}

export function baseOf(changes: readonly Change[], view: ZoneView): string {
  return digestOf([...touchedNames(changes)].flatMap((name) => view.typesAt(name)))
}
