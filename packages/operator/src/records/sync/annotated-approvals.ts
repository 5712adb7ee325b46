/**
 * Approvals given as annotations of the manager's configuration object: recorded in the guard store, once per change of
 * the annotations.
 */
import type { Logger } from '@seamark/kube'
import type { Switches } from '../../process/switches.ts'
import { type ApprovalReport, approveInStore, approveReleasesInStore } from '../state/approve.ts'
import type { GuardStore } from '../state/guard-state.ts'

export interface AnnotatedApproval {
  readonly report: ApprovalReport
  /** Given by `seamark.io/release`. */
  readonly isDeprecatedForm: boolean
}

export class AnnotatedApprovals {
  readonly #store: GuardStore
  readonly #switches: Pick<Switches, 'approvedIds' | 'releasedNames'>
  /** An annotation may have been set before the start. */
  #isChanged = true

  constructor(store: GuardStore, switches: Pick<Switches, 'approvedIds' | 'releasedNames'>) {
    this.#store = store
    this.#switches = switches
  }

  noteChange(): void {
    this.#isChanged = true
  }

  /** Called after a pass, so that the held changes are persisted before an approval refers to them. */
  async take(now: number, log: Logger): Promise<AnnotatedApproval[]> {
    if (!this.#isChanged) return []
    this.#isChanged = false
    try {
      return await this.#record(now, log)
    } catch (error) {
      // Not recorded: the annotations count as changed until they are.
      this.#isChanged = true
      throw error
    }
  }

  async #record(now: number, log: Logger): Promise<AnnotatedApproval[]> {
    const { approvedIds, releasedNames } = this.#switches
    const approvals: AnnotatedApproval[] = []
    const release = await approveReleasesInStore(this.#store, releasedNames, now)
    if (release !== undefined) approvals.push({ report: release, isDeprecatedForm: true })
    for (const id of approvedIds) {
      const report = await approveInStore(this.#store, id, now, { mayRepeat: false })
      if (report.result !== 'active') approvals.push({ report, isDeprecatedForm: false })
    }
    for (const { report } of approvals) {
      const { id, result, covered } = report
      if (result === 'approved') log.info({ id, changes: covered.length }, 'held changes approved')
      else log.warn({ id, result, held: await this.#heldIds() }, 'approval has no effect')
    }
    return approvals
  }

  async #heldIds(): Promise<string[]> {
    const states = [...(await this.#store.list()).values()]
    return [...new Set(states.flatMap(({ held }) => held.flatMap(({ set }) => set ?? [])))]
  }
}
