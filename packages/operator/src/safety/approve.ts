/**
 * Records approvals of held changes in the store, of records and of objects alike: for `seamark approve` and for the
 * annotations that the manager reads. The next decision about what is held lets the approved changes pass.
 */
import { type ApprovalAnswer, type ApprovalResult, approveHeld } from './approval.ts'
import type { HeldChange, HeldState } from './held-change.ts'
import type { HeldStore } from './held-store.ts'

export interface ApprovalReport {
  readonly id: string
  readonly result: ApprovalResult
  readonly covered: readonly HeldChange[]
  /** Where it is held, or was; undefined when it is unknown. */
  readonly scope?: string
}

/** Approves one id, in the scope where it is held. */
export async function approveInStore(
  store: HeldStore,
  id: string,
  now: number,
  options: { readonly mayRepeat: boolean },
): Promise<ApprovalReport> {
  let report: ApprovalReport = { id, result: 'unknown', covered: [] }
  for (const scope of (await store.list()).keys()) {
    const { result, covered } = await answerIn(store, scope, (state) => approveHeld(state, id, now, options))
    if (result === 'approved' || result === 'active') return { id, result, covered, scope }
    if (result !== 'unknown') report = { id, result, covered, scope }
  }
  return report
}

/** Records an answer that approves; nothing is written for another one. */
export async function answerIn(
  store: HeldStore,
  scope: string,
  decide: (state: HeldState) => ApprovalAnswer<HeldState>,
): Promise<ApprovalAnswer<HeldState>> {
  let answer = decide(await store.load(scope))
  if (answer.result !== 'approved') return answer
  await store.update(scope, (state) => {
    answer = decide(state)
    return answer.state
  })
  return answer
}

export interface HeldSet {
  readonly id: string
  readonly changes: readonly HeldChange[]
}

/** All sets that an approval would let pass. */
export async function heldSets(store: Pick<HeldStore, 'list'>): Promise<HeldSet[]> {
  const sets = new Map<string, HeldChange[]>()
  for (const { held } of (await store.list()).values())
    for (const item of held) if (item.set !== undefined) sets.set(item.set, [...(sets.get(item.set) ?? []), item])
  return [...sets].map(([id, changes]) => ({ id, changes }))
}
