/**
 * Which circuit breakers of zones opened, closed, or hold other changes than before a pass, from the changes that they hold. Pure.
 *
 * What one pass adds is planned once more together with what was held before: until then the breaker has two counts, and is not
 * reported as changed.
 */
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
  readonly state: 'opened' | 'changed' | 'closed'
}

interface OpenBreaker extends BreakerChange {
  readonly isAgreed: boolean
}

const BREAKERS: ReadonlySet<Reason> = new Set(['ShrinkBreakerOpen', 'RetargetBreakerOpen', 'OwnerInOtherCluster'])

export function breakerChanges(before: Iterable<Held>, after: Iterable<Held>): BreakerChange[] {
  const [old, now] = [openBreakers(before), openBreakers(after)]
  const reported = [...now].flatMap(([key, breaker]): OpenBreaker[] => {
    const known = old.get(key)
    if (known === undefined) return [breaker]
    const isOther = known.why !== breaker.why || !known.isAgreed
    return isOther && breaker.isAgreed ? [{ ...breaker, state: 'changed' }] : []
  })
  const closed = [...old].flatMap(([key, breaker]): OpenBreaker[] =>
    now.has(key) ? [] : [{ ...breaker, state: 'closed' }],
  )
  return [...reported, ...closed].map(({ isAgreed: _isAgreed, ...change }) => change)
}

function openBreakers(all: Iterable<Held>): Map<string, OpenBreaker> {
  const open = new Map<string, OpenBreaker>()
  for (const held of all) {
    const { provider, zone, code } = held
    if (!BREAKERS.has(code)) continue
    const key = `${provider} ${zone} ${code}`
    const before = open.get(key)
    const why = heldMessage(held)
    const isAgreed = before === undefined || (before.isAgreed && before.why === why)
    open.set(key, { provider, zone, code, why, changes: (before?.changes ?? 0) + 1, state: 'opened', isAgreed })
  }
  return open
}
