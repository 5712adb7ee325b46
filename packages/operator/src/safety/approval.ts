/**
 * Approvals of held changes, as part of the state of a scope. Pure.
 *
 * A guard that holds changes gives their set an id, which is a hash of its content. An approval names that id and covers
 * exactly the changes of the set: each of them once, within an hour. A set with other content has another id and needs another
 * approval.
 *
 * Guarantees: the changes that an approval covers are fixed when it is recorded; a change that was written is removed from
 * it; an annotation that stays on an object approves nothing a second time.
 */
import type { HeldChange, HeldState } from './held-change.ts'

export interface Approval {
  readonly id: string
  /** ms since the epoch. */
  readonly at: number
  readonly until: number
  /** Keys of the changes that are covered and not written yet. */
  readonly keys: readonly string[]
}

const APPROVAL_MS = 3_600_000
/** Approvals are kept after their use, so that a used id can be distinguished from an unknown one. */
const KEPT_APPROVALS = 100

export type ApprovalResult = 'approved' | 'active' | 'used' | 'expired' | 'unknown'

export interface ApprovalAnswer<S extends HeldState> {
  readonly result: ApprovalResult
  /** Unchanged unless the result is `approved`. */
  readonly state: S
  /** The changes that the approval covers now. */
  readonly covered: readonly HeldChange[]
}

/** Keys of all changes that are approved at this time. */
export function approvedKeys(state: Pick<HeldState, 'approvals'>, now: number): Set<string> {
  return new Set(state.approvals.filter(({ until }) => now < until).flatMap(({ keys }) => keys))
}

/**
 * `mayRepeat`: a person requests it now, so a set with the content of an earlier one is approved again. An annotation has
 * no time of writing, and counts once.
 */
export function approveHeld<S extends HeldState>(
  state: S,
  id: string,
  now: number,
  { mayRepeat }: { readonly mayRepeat: boolean },
): ApprovalAnswer<S> {
  const covered = state.held.filter(({ set }) => set === id)
  const known = state.approvals.find((approval) => approval.id === id)
  if (known !== undefined && now < known.until && known.keys.length > 0) return { result: 'active', state, covered }
  if (covered.length > 0 && (known === undefined || mayRepeat))
    return { result: 'approved', covered, state: withApproval(state, id, covered, now) }
  if (known === undefined) return { result: 'unknown', state, covered: [] }
  return { result: known.keys.length === 0 ? 'used' : 'expired', state, covered: [] }
}

/** The changes with these keys were written. */
export function consumeApprovals<S extends HeldState>(state: S, keys: ReadonlySet<string>): S {
  if (!state.approvals.some((approval) => approval.keys.some((key) => keys.has(key)))) return state
  const approvals = state.approvals.map((approval) => ({
    ...approval,
    keys: approval.keys.filter((key) => !keys.has(key)),
  }))
  return { ...state, approvals }
}

/**
 * The deprecated `seamark.io/release`: approves what is held when it is set, once per value. `id` is of that value
 * (`releaseId`); a value that was used has no effect.
 */
export function releaseHeld<S extends HeldState>(
  state: S,
  id: string,
  covered: readonly HeldChange[],
  now: number,
): ApprovalAnswer<S> {
  if (state.approvals.some((approval) => approval.id === id)) return { result: 'used', state, covered: [] }
  return { result: 'approved', covered, state: withApproval(state, id, covered, now) }
}

const RELEASE_PREFIX = 'release:'

export function releaseId(value: string): string {
  return `${RELEASE_PREFIX}${value}`
}

/** The deprecated annotation was removed or changed: the same value counts again when it is set again. */
export function forgetReleases<S extends HeldState>(state: S, current: string): S {
  const approvals = state.approvals.filter(({ id }) => !id.startsWith(RELEASE_PREFIX) || id === current)
  return approvals.length === state.approvals.length ? state : { ...state, approvals }
}

/** Records an approval of these changes. */
export function withApproval<S extends HeldState>(
  state: S,
  id: string,
  covered: readonly HeldChange[],
  now: number,
): S {
  const approval: Approval = { id, at: now, until: now + APPROVAL_MS, keys: covered.map(({ key }) => key) }
  const others = state.approvals.filter((other) => other.id !== id)
  return { ...state, approvals: [approval, ...others].slice(0, KEPT_APPROVALS) }
}

/** Throws on invalid content. */
export function readApprovals(list: unknown): Approval[] {
  if (!Array.isArray(list)) throw new TypeError('not a list')
  return list.map((item: Partial<Approval>) => {
    const { id, at, until, keys } = item
    if (typeof id !== 'string' || typeof at !== 'number' || typeof until !== 'number' || !Array.isArray(keys))
      throw new TypeError('not an approval')
    return { id, at, until, keys }
  })
}
