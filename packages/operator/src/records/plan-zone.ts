/**
 * Computes the plan of a zone. Pure: no clock, no I/O.
 *
 * Flow: desired sets + a view of the zone → candidates (plan/candidates.ts) → guards (guards/list.ts) → Plan → executor.
 * Guarantees: applying it produces the desired state; a second plan is then empty; a set that is not ours is in no change;
 * the order is stable (adds, retargets, shrinks, deletes; then by name and type), so equal inputs give equal bytes.
 * Caveats: a plan over some names evaluates the breakers with the baseline of the last whole-zone plan.
 */
import { compareText, setKey } from '../rrset/rrset.ts'
import { judge } from './guards/list.ts'
import { type Candidate, collectCandidates } from './plan/candidates.ts'
import { heldAfter } from './plan/held-set.ts'
import { baseOf, type Plan, type PlanInput, type Refusal } from './plan/plan.ts'
import { approveHeld } from '../safety/approval.ts'
import type { GuardState } from './state/guard-state.ts'

const RANK: Record<Candidate['effect'], number> = { create: 0, marker: 1, retarget: 2, shrink: 3, delete: 4 }

export function planZone(given: PlanInput): Plan {
  const candidates = collectCandidates(given)
  // The id of an approved set is computed as if the set were not approved.
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
