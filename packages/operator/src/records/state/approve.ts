/**
 * Records approvals of held changes in the guard store: for `seamark approve` and for the annotations that the manager
 * reads. The next plan about the names concerned lets the approved changes pass.
 */
import { type ApprovalAnswer, type ApprovalResult, approveHeld, approveHeldNames, forgetReleases } from './approval.ts'
import type { GuardState, GuardStore, HeldChange } from './guard-state.ts'

export interface ApprovalReport {
  /** The id, or the names of the deprecated annotation. */
  readonly id: string
  readonly result: ApprovalResult
  readonly covered: readonly HeldChange[]
}

/** Approves one id, in the zone where it is held. */
export async function approveInStore(
  store: GuardStore,
  id: string,
  now: number,
  options: { readonly mayRepeat: boolean },
): Promise<ApprovalReport> {
  let report: ApprovalReport = { id, result: 'unknown', covered: [] }
  for (const zone of (await store.list()).keys()) {
    const { result, covered } = await answerIn(store, zone, (state) => approveHeld(state, id, now, options))
    if (result === 'approved' || result === 'active') return { id, result, covered }
    if (result !== 'unknown') report = { id, result, covered }
  }
  return report
}

/**
 * The deprecated annotation: approves what is currently held for names or whole zones, once per value. Undefined: this
 * value was used before.
 */
export async function approveReleasesInStore(
  store: GuardStore,
  names: ReadonlySet<string>,
  now: number,
): Promise<ApprovalReport | undefined> {
  const covered: HeldChange[] = []
  let isNew = false
  for (const [zone, state] of await store.list()) {
    if (forgetReleases(state, names) !== state) await store.update(zone, (current) => forgetReleases(current, names))
    if (names.size === 0) continue
    const zoneName = state.decided?.zone ?? ''
    const answer = await answerIn(store, zone, (current) => approveHeldNames(current, zoneName, names, now))
    if (answer.result !== 'approved') continue
    isNew = true
    covered.push(...answer.covered)
  }
  return isNew ? { id: [...names].join(','), result: 'approved', covered } : undefined
}

async function answerIn(
  store: GuardStore,
  zone: string,
  decide: (state: GuardState) => ApprovalAnswer,
): Promise<ApprovalAnswer> {
  let answer = decide(await store.load(zone))
  if (answer.result !== 'approved') return answer
  await store.update(zone, (state) => {
    answer = decide(state)
    return answer.state
  })
  return answer
}
