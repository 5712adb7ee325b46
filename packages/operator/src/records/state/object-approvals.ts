/**
 * Approvals of held objects (held-objects.ts) in a running manager: the ids of `seamark.io/approve-held`, and the deprecated
 * `seamark.io/release`. Every approval is reported once, also one that has no effect.
 */
import type { Clock } from '@seamark/kube'
import type { Reason } from '../../reasons.ts'
import { REASONS } from '../../reasons.ts'
import type { Notify } from '../../process/reports/notices.ts'
import type { Switches } from '../../process/switches.ts'
import type { ApprovalReport } from './approve.ts'
import type { HeldObjects, HeldObjectStore } from './held-objects.ts'

export interface ObjectApprovalDeps {
  readonly store: HeldObjectStore
  readonly switches: Pick<Switches, 'approvedIds'>
  readonly clock: Clock
  readonly notify: Notify
  /** Whether an id is one of a held set of objects. */
  readonly isOurs: (id: string) => boolean
}

export interface ObjectApprovals {
  exchange(held: HeldObjects, made: ReadonlySet<string>): Promise<ReadonlySet<string>>
  readonly hasNews: boolean
  takeApprovals(release: string): Promise<void>
}

const CODES = {
  approved: 'HeldChangesApproved',
  used: 'ApprovalUsed',
  expired: 'ApprovalExpired',
  unknown: 'ApprovalUnknown',
} as const satisfies Record<Exclude<ApprovalReport['result'], 'active'>, Reason>

export function createObjectApprovals({ store, switches, clock, notify, isOurs }: ObjectApprovalDeps): ObjectApprovals {
  /** Results that were reported: an annotation stays on its object. */
  const reported = new Map<string, ApprovalReport['result']>()

  let processed: ReadonlySet<string> | undefined

  async function takeId(id: string): Promise<void> {
    const { result, covered } = await store.approve(id, clock.now())
    if (result === 'active' || reported.get(id) !== undefined) return
    reported.set(id, result)
    const isApproved = result === 'approved'
    const effect = isApproved
      ? `${covered.length} held changes are approved for one hour`
      : `${REASONS[CODES[result]]}; \`seamark approve\` lists what is held`
    notify({
      reason: CODES[result],
      severity: isApproved ? 'Normal' : 'Warning',
      message: `seamark.io/approve-held: ${id}: ${effect}`,
      fields: { id, changes: covered.length },
    })
  }

  return {
    exchange: async (held, made) => store.exchange(held, made, clock.now()),
    get hasNews() {
      return processed !== switches.approvedIds
    },
    async takeApprovals(release) {
      const ids = switches.approvedIds
      for (const id of ids) if (isOurs(id)) await takeId(id)
      // After they were recorded: what failed is taken again.
      processed = ids
      if (release === '') return
      const report = await store.approveAll(release, clock.now())
      if (report === undefined) return
      notify({
        reason: 'ReleaseDeprecated',
        severity: 'Warning',
        message: `seamark.io/release: ${release} on ConfigMap seamark-publish: ${report.covered.length} held changes are approved for one hour; later ones are not. The annotation is deprecated: use seamark approve ID, or seamark.io/approve-held: ID on ConfigMap seamark`,
        fields: { changes: report.covered.length },
      })
    },
  }
}
