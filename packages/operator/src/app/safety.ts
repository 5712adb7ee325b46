/** What all capabilities share against mistakes: the limits of changes at once, what is held, and the approvals of it. */
import type { Clock, Manager } from '@seamark/kube'
import type { Notify } from '../process/reports/notices.ts'
import type { Switches } from '../process/switches.ts'
import { Approvals, approvalNotice } from '../safety/annotated-approvals.ts'
import { massLimits } from '../safety/config.ts'
import { HeldObjects } from '../safety/held-objects.ts'
import { joinStores, observedStore } from '../safety/held-store.ts'
import { DEFAULT_MASS_LIMITS } from '../safety/mass-limits.ts'
import { isObjectScope, openObjectStore } from '../safety/object-store.ts'
import type { GuardStore } from '../records/state/guard-state.ts'
import type { AppOptions } from './options.ts'

interface SafetyDeps {
  readonly switches: Switches
  readonly clock: Clock
  readonly notify: Notify
  readonly isWriting: () => boolean
  /** Undefined: no records are written. */
  readonly records: GuardStore | undefined
  /** Call when what guards hold was stored. */
  readonly onHeld: () => void
}

export function setUpSafety(
  mgr: Manager,
  { namespace, safety }: AppOptions,
  { switches, clock, notify, isWriting, records, onHeld }: SafetyDeps,
) {
  const objects = observedStore(openObjectStore(mgr.client, namespace), onHeld)
  const approvals = new Approvals({
    store: joinStores(records, objects, isObjectScope),
    switches,
    clock,
    report(report) {
      const notice = approvalNotice(report)
      if (notice !== undefined) notify(notice)
    },
  })
  return {
    approvals,
    heldObjects: new HeldObjects({ store: objects, approvals, isWriting, clock }),
    massLimits: safety === undefined ? DEFAULT_MASS_LIMITS : massLimits(safety),
  }
}
