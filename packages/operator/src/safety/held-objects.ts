/**
 * Exchanges held changes and approvals between the mass guards of the capabilities that write objects and the store, as a
 * controller of the manager with one key per capability.
 *
 * Place in the flow: mass guard → exchange → `seamark approve`, `seamark.io/approve-held` → exchange → mass guard.
 * Guarantees: nothing is written while the held sets are the persisted ones and no approved change was made; what a previous
 * process held stays persisted until this one has decided about it; a failed exchange is repeated.
 */
import { type Clock, type Manager, requeue } from '@seamark/kube'
import { approvedKeys, consumeApprovals, releaseHeld, releaseId } from './approval.ts'
import { type ApprovalReport, answerIn } from './approve.ts'
import type { Approvals } from './annotated-approvals.ts'
import type { HeldChange } from './held-change.ts'
import type { HeldStore } from './held-store.ts'
import type { HeldGroup, MassGuard } from './mass-guard.ts'
import type { ObjectScope, ObjectState } from './object-store.ts'

const POLL_MS = 2_000
/** What a scope persists; an approval covers these, and the others are held again as another set. */
const MAX_HELD_OBJECTS = 5_000

export interface HeldObjectsDeps {
  readonly store: HeldStore<ObjectState>
  readonly approvals: Approvals
  readonly isWriting: () => boolean
  readonly clock: Clock
}

interface Part {
  readonly guard: MassGuard
  /** Held changes were approved. */
  readonly onApproved: () => void
  /** Keys of approved changes that were made, until they are persisted. */
  readonly made: Set<string>
  isRestored: boolean
  /** The store has held changes. */
  isHolding: boolean
}

export class HeldObjects {
  readonly #deps: HeldObjectsDeps
  readonly #parts = new Map<ObjectScope, Part>()
  #tail: Promise<unknown> = Promise.resolve()

  constructor(deps: HeldObjectsDeps) {
    this.#deps = deps
  }

  /** Called when a capability is set up. */
  add(scope: ObjectScope, guard: MassGuard, onApproved: () => void = () => undefined): void {
    this.#parts.set(scope, { guard, onApproved, made: new Set(), isRestored: false, isHolding: false })
    this.#deps.approvals.join(scope)
  }

  /** After all capabilities. */
  start(manager: Pick<Manager, 'keyedController'>): void {
    const parts = this.#parts
    if (parts.size === 0) return
    manager
      .keyedController('held-objects', { concurrency: 1 })
      .triggers((mark) => {
        mark([...parts.keys()])
        return undefined
      })
      .reconcile(async (key) => {
        const { isWriting, approvals } = this.#deps
        const scope = key as ObjectScope
        const part = parts.get(scope)
        if (part === undefined) return
        if (isWriting()) {
          const { hasNews } = approvals
          await this.#exchange(scope, part, hasNews)
          if (hasNews && (await approvals.take(scope))) await this.#exchange(scope, part, true)
        }
        return requeue(POLL_MS)
      })
  }

  /**
   * The deprecated `seamark.io/release` of a capability: approves everything that it holds, once per value. Undefined: nothing
   * is held, or the value was used before.
   */
  async release(scope: ObjectScope, value: string): Promise<ApprovalReport | undefined> {
    const part = this.#parts.get(scope)
    if (part === undefined) return undefined
    await this.#exchange(scope, part, false)
    const { store, clock } = this.#deps
    if ((await store.load(scope)).held.length === 0) return undefined
    const { result, covered } = await answerIn(store, scope, (state) =>
      releaseHeld(state, releaseId(value), state.held, clock.now()),
    )
    if (result !== 'approved') return undefined
    await this.#exchange(scope, part, true)
    return { id: value, result, covered, scope }
  }

  /** One after the other: a change that is made meanwhile belongs to the next exchange. */
  async #exchange(scope: ObjectScope, part: Part, isForced: boolean): Promise<void> {
    const turn = this.#tail.then(async () => this.#exchangeNow(scope, part, isForced))
    this.#tail = turn.catch(() => undefined)
    return turn
  }

  async #exchangeNow(scope: ObjectScope, part: Part, isForced: boolean): Promise<void> {
    const { store, clock } = this.#deps
    const { guard, made } = part
    if (!part.isRestored) {
      const { held } = await store.load(scope)
      guard.restore(held)
      part.isHolding = held.length > 0
      part.isRestored = true
    }
    for (const key of guard.takePassed()) made.add(key)
    const groups = guard.heldGroups
    if (groups.length === 0 && made.size === 0 && !part.isHolding && !isForced) return
    const approved = await persist(store, scope, groups, made, clock.now())
    made.clear()
    part.isHolding = groups.length > 0
    if (guard.approve(approved) > 0) part.onApproved()
  }
}

/** Persists what is held and which approved changes were made. Returns the keys of approved changes. */
async function persist(
  store: HeldStore<ObjectState>,
  scope: ObjectScope,
  groups: readonly HeldGroup[],
  made: ReadonlySet<string>,
  now: number,
): Promise<ReadonlySet<string>> {
  const before = await store.load(scope)
  const isSame = idsOf(before.held) === idsOf(changesOf(groups, before, now))
  const isConsumed = before.approvals.some(({ keys }) => keys.some((key) => made.has(key)))
  if (isSame && !isConsumed) return approvedKeys(before, now)
  const after = await store.update(scope, (state) => ({
    ...consumeApprovals(state, made),
    held: changesOf(groups, state, now),
    scope,
  }))
  return approvedKeys(after, now)
}

/** What is persisted of them; each change keeps the time since when it is held. */
function changesOf(groups: readonly HeldGroup[], { held }: ObjectState, now: number): HeldChange[] {
  const since = new Map(held.map((item) => [item.key, item.since]))
  return groups.flatMap((group) => toChanges(group, (key) => since.get(key) ?? now)).slice(0, MAX_HELD_OBJECTS)
}

function idsOf(held: readonly HeldChange[]): string {
  return JSON.stringify([...new Set(held.map(({ set = '' }) => set))].toSorted())
}

function toChanges({ id, code, message, objects }: HeldGroup, since: (key: string) => number): HeldChange[] {
  return objects.map(({ op, kind, name, key }) => ({
    name,
    type: kind,
    op,
    code,
    why: message,
    source: '',
    key,
    since: since(key),
    isApprovable: true,
    set: id,
  }))
}
