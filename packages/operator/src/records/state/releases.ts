/**
 * The deprecated annotation `seamark.io/release` on the manager's configuration object: approves what is held for names or
 * whole zones when it is set, once per value.
 */
import { forgetReleases, releaseHeld, releaseId } from '../../safety/approval.ts'
import { type ApprovalReport, answerIn } from '../../safety/approve.ts'
import type { HeldChange, HeldState } from '../../safety/held-change.ts'
import type { Switches } from '../../process/switches.ts'
import type { GuardStore } from './guard-state.ts'

export class Releases {
  readonly #store: GuardStore
  readonly #switches: Pick<Switches, 'releasedNames'>
  /** The annotation may have been set before the start. */
  #isChanged = true

  constructor(store: GuardStore, switches: Pick<Switches, 'releasedNames'>) {
    this.#store = store
    this.#switches = switches
  }

  noteChange(): void {
    this.#isChanged = true
  }

  /** Called after a pass, so that the held changes are persisted before an approval refers to them. Undefined: nothing is new. */
  async take(now: number): Promise<ApprovalReport | undefined> {
    if (!this.#isChanged) return undefined
    this.#isChanged = false
    try {
      return await approveReleasesInStore(this.#store, this.#switches.releasedNames, now)
    } catch (error) {
      // Not recorded: the annotation counts as changed until it is.
      this.#isChanged = true
      throw error
    }
  }
}

/** Undefined: this value was used before. */
async function approveReleasesInStore(
  store: GuardStore,
  names: ReadonlySet<string>,
  now: number,
): Promise<ApprovalReport | undefined> {
  const covered: HeldChange[] = []
  const id = releaseId([...names].toSorted().join(','))
  let isNew = false
  for (const [zone, state] of await store.list()) {
    if (forgetReleases(state, id) !== state) await store.update(zone, (current) => forgetReleases(current, id))
    if (names.size === 0) continue
    const zoneName = state.decided?.zone ?? ''
    const isReleased = ({ set, name }: HeldChange): boolean =>
      set !== undefined && (names.has(zoneName) || names.has(name))
    const answer = await answerIn(store, zone, (current: HeldState) =>
      releaseHeld(current, id, current.held.filter(isReleased), now),
    )
    if (answer.result !== 'approved') continue
    isNew = true
    covered.push(...answer.covered)
  }
  return isNew ? { id: [...names].join(','), result: 'approved', covered } : undefined
}
