/** Which circuit breakers of zones opened and closed between two passes, from the changes that they hold. Pure. */
import type { Reason } from '../../reasons.ts'
import { heldMessage } from '../plan/held-set.ts'
import type { Held } from './held-changes.ts'

export interface BreakerChange {
  readonly provider: string
  readonly zone: string
  readonly code: Reason
  readonly why: string
  /** Number of changes that it holds, or held before it closed. */
  readonly changes: number
  readonly isOpen: boolean
}

const BREAKERS: ReadonlySet<Reason> = new Set(['ShrinkBreakerOpen', 'RetargetBreakerOpen', 'OwnerInOtherCluster'])

export function breakerChanges(before: Iterable<Held>, after: Iterable<Held>): BreakerChange[] {
  const [old, now] = [openBreakers(before), openBreakers(after)]
  const opened = [...now].filter(([key]) => !old.has(key)).map(([, breaker]) => breaker)
  const closed = [...old].filter(([key]) => !now.has(key)).map(([, breaker]) => ({ ...breaker, isOpen: false }))
  return [...opened, ...closed]
}

function openBreakers(all: Iterable<Held>): Map<string, BreakerChange> {
  const open = new Map<string, BreakerChange>()
  for (const held of all) {
    const { provider, zone, code } = held
    if (!BREAKERS.has(code)) continue
    const key = `${provider} ${zone} ${code}`
    const changes = (open.get(key)?.changes ?? 0) + 1
    open.set(key, { provider, zone, code, why: heldMessage(held), changes, isOpen: true })
  }
  return open
}
