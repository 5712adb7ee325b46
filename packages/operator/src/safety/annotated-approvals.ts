/**
 * Approvals given as an annotation of the manager's configuration object (`seamark.io/approve-held`): recorded in the store,
 * once per change of the annotation, whatever is held by which capability.
 *
 * Place in the flow: each part of the process that persists held changes joins, and calls `take` after it has persisted them,
 * so that an approval never refers to what is not stored yet. An id is unknown when every part has taken it.
 * Guarantees: every approval is reported once, also one that has no effect; what could not be recorded is taken again.
 */
import type { Clock } from '@seamark/kube'
import { type Reason, REASONS } from '../reasons.ts'
import type { Notice } from '../process/reports/notices.ts'
import type { Switches } from '../process/switches.ts'
import { type ApprovalReport, approveInStore } from './approve.ts'
import type { HeldStore } from './held-store.ts'

export interface ApprovalDeps {
  readonly store: HeldStore
  readonly switches: Pick<Switches, 'approvedIds' | 'subscribe'>
  readonly clock: Pick<Clock, 'now'>
  readonly report: (report: ApprovalReport) => void
}

export class Approvals {
  readonly #deps: ApprovalDeps
  readonly #parts = new Set<string>()
  /** Parts that have not taken the annotation as it is. */
  readonly #waiting = new Set<string>()
  /** Ids about which everything is known until the annotation changes. */
  readonly #settled = new Set<string>()
  readonly #reported = new Map<string, ApprovalReport['result']>()
  readonly #listeners = new Set<(report: ApprovalReport) => void>()
  #tail: Promise<unknown> = Promise.resolve()

  constructor(deps: ApprovalDeps) {
    this.#deps = deps
    deps.switches.subscribe(() => {
      this.#settled.clear()
      for (const part of this.#parts) this.#waiting.add(part)
    })
  }

  join(part: string): void {
    this.#parts.add(part)
    // An annotation may have been set before the start.
    this.#waiting.add(part)
  }

  /** An id was annotated that is not recorded. */
  get hasNews(): boolean {
    return [...this.#deps.switches.approvedIds].some((id) => !this.#settled.has(id))
  }

  /** Called when changes were approved. Returns the unsubscribe function. */
  subscribe(listener: (report: ApprovalReport) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** The part has persisted what it holds. True when changes were approved. */
  async take(part: string): Promise<boolean> {
    const turn = this.#tail.then(async () => this.#take(part))
    this.#tail = turn.catch(() => undefined)
    return turn
  }

  async #take(part: string): Promise<boolean> {
    const { store, switches, clock } = this.#deps
    this.#waiting.delete(part)
    const ids = switches.approvedIds
    for (const id of this.#reported.keys()) if (!ids.has(id)) this.#reported.delete(id)
    let isApproved = false
    for (const id of ids) {
      if (this.#settled.has(id)) continue
      const report = await approveInStore(store, id, clock.now(), { mayRepeat: false })
      const { result } = report
      if (result === 'unknown' && this.#waiting.size > 0) continue
      this.#settled.add(id)
      if (result === 'active' || this.#reported.get(id) === result) continue
      this.#reported.set(id, result)
      this.#deps.report(report)
      if (result !== 'approved') continue
      isApproved = true
      for (const listener of this.#listeners) listener(report)
    }
    return isApproved
  }
}

const CODES = {
  approved: 'HeldChangesApproved',
  used: 'ApprovalUsed',
  expired: 'ApprovalExpired',
  unknown: 'ApprovalUnknown',
} as const satisfies Record<Exclude<ApprovalReport['result'], 'active'>, Reason>

/** Undefined: there is nothing to say. */
export function approvalNotice({ id, result, covered }: ApprovalReport): Notice | undefined {
  if (result === 'active') return undefined
  const isApproved = result === 'approved'
  const effect = isApproved
    ? `${covered.length} held changes are approved for one hour`
    : `${REASONS[CODES[result]]}; \`seamark approve\` lists what is held`
  return {
    reason: CODES[result],
    severity: isApproved ? 'Normal' : 'Warning',
    message: `seamark.io/approve-held: ${id}: ${effect}`,
    fields: { id, changes: covered.length },
  }
}

/** For the deprecated `seamark.io/release`, which approves what is held when it is set; `where` names the objects. */
export function releaseNotice(
  { id, covered }: ApprovalReport,
  { where, form }: { readonly where: string; readonly form: string },
): Notice {
  return {
    reason: 'ReleaseDeprecated',
    severity: 'Warning',
    message: `seamark.io/release: ${id}${where}: ${covered.length} held changes are approved for one hour; later ones are not. The annotation is deprecated: use seamark approve ID, or ${form}`,
    fields: { changes: covered.length },
  }
}
