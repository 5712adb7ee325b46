/**
 * Changes of Kubernetes objects that a guard of another capability holds (publish's guard against mass changes), persisted
 * and approved like those of records: the same ids, the same approvals, the same commands.
 *
 * Place in the flow: publish's guard → `exchange` → `seamark approve`, `seamark.io/approve-held` → `exchange` → the guard.
 * Guarantee: nothing is written while the held set is the persisted one and no approved change was made.
 */
import type { Reason } from '../../reasons.ts'
import { approvedKeys, approveHeld, consumeApprovals, withApproval } from './approval.ts'
import type { ApprovalReport } from './approve.ts'
import type { GuardState, GuardStore, HeldChange } from './guard-state.ts'

/** ConfigMap in the manager's namespace. */
export const HELD_OBJECTS_STORE = 'seamark-held-objects'

export interface HeldObjects {
  /** Of the set; empty when nothing is held. */
  readonly id: string
  readonly code: Reason
  readonly message: string
  readonly objects: readonly {
    readonly op: 'update' | 'delete'
    readonly kind: string
    readonly name: string
    readonly key: string
  }[]
}

export interface HeldObjectStore {
  /** Persists what is held and which approved changes were made. Returns the keys of approved changes. */
  exchange(held: HeldObjects, made: ReadonlySet<string>, now: number): Promise<ReadonlySet<string>>
  /** An approval by annotation: it counts once. */
  approve(id: string, now: number): Promise<ApprovalReport>
  /** The deprecated form: approves everything that is persisted as held, once per value. Undefined: it was used before. */
  approveAll(value: string, now: number): Promise<ApprovalReport | undefined>
}

const ZONE = 'publish'

export function heldObjectStore(store: GuardStore): HeldObjectStore {
  return {
    async exchange(held, made, now) {
      const before = await store.load(ZONE)
      const isSame = idOf(before) === held.id
      const isConsumed = before.approvals.some(({ keys }) => keys.some((key) => made.has(key)))
      if (isSame && !isConsumed) return approvedKeys(before, now)
      const after = await store.update(ZONE, (state) => {
        const since = new Map(state.held.map((item) => [item.key, item.since]))
        return {
          ...consumeApprovals(state, made),
          held: held.objects.map((object) => toChange(held, object, since.get(object.key) ?? now)),
          decided: { key: ZONE, provider: '', zone: '', plan: now, mode: 'enforce' },
        }
      })
      return approvedKeys(after, now)
    },
    async approve(id, now) {
      let answer = approveHeld(await store.load(ZONE), id, now, { mayRepeat: false })
      if (answer.result === 'approved')
        await store.update(ZONE, (state) => {
          answer = approveHeld(state, id, now, { mayRepeat: false })
          return answer.state
        })
      return { id, result: answer.result, covered: answer.covered }
    },
    async approveAll(value, now) {
      const id = `release:${value}`
      const isUsed = (state: GuardState): boolean => state.approvals.some((approval) => approval.id === id)
      const before = await store.load(ZONE)
      if (isUsed(before) || before.held.length === 0) return undefined
      const { held } = await store.update(ZONE, (state) =>
        isUsed(state) ? state : withApproval(state, id, state.held, now),
      )
      return { id: value, result: 'approved', covered: held }
    },
  }
}

function idOf({ held }: GuardState): string {
  return held[0]?.set ?? ''
}

function toChange(
  { id, code, message }: HeldObjects,
  { op, kind, name, key }: HeldObjects['objects'][number],
  since: number,
): HeldChange {
  return { name, type: kind, op, code, why: message, source: '', key, since, isApprovable: true, set: id }
}
