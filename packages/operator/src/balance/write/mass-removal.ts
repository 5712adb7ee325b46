/**
 * Load balancers that would remove all of their records at once, because their endpoints are gone: held above the limits until
 * the endpoints are back or the removal is approved.
 *
 * For records that others serve, such as ExternalDNS, which deletes what a DNSEndpoint no longer has. The records capability of
 * this process counts its deletions itself, and one approval is enough.
 */
import type { Clock } from '@seamark/kube'
import { DNSEndpoint } from '../../api/dns-endpoint.ts'
import type { HeldObjects } from '../../safety/held-objects.ts'
import { createMassGuard, type MassGuard, type MassRequest } from '../../safety/mass-guard.ts'
import type { MassLimits } from '../../safety/mass-limits.ts'

/** An approval marks what it covers; this is the interval at which the others are counted again. */
const HELD_RETRY_MS = 60_000

export interface MassRemovalDeps {
  readonly clock: Clock
  readonly massLimits: MassLimits
  readonly heldObjects: Pick<HeldObjects, 'add'>
  /** Number of load balancers with records. */
  readonly countPublished: () => number
}

export interface HeldRemoval {
  readonly afterMs: number
  /** Undefined: the removal waits for others to be counted. */
  readonly message?: string
}

export class MassRemoval {
  /** What is held was approved. */
  onApproved: () => void = () => undefined
  readonly #guard: MassGuard

  constructor({ clock, massLimits, heldObjects, countPublished }: MassRemovalDeps) {
    this.#guard = createMassGuard({
      clock,
      limits: massLimits,
      countPublished,
      idPrefix: 'b',
      cause: 'bring the endpoints of the load balancers back',
      noun: () => 'load balancers',
    })
    heldObjects.add('balance', this.#guard, () => this.onApproved())
  }

  /** `name`: of the DNSEndpoint. Undefined: it may be deleted. */
  ask(name: string): HeldRemoval | undefined {
    const answer = this.#guard.ask(removalOf(name))
    if (answer.state === 'go') return undefined
    return answer.state === 'wait' ? { afterMs: answer.afterMs } : { afterMs: HELD_RETRY_MS, message: answer.message }
  }

  /** The load balancer has endpoints again, or is deleted itself. */
  withdraw(name: string): void {
    this.#guard.withdraw(removalOf(name))
  }
}

function removalOf(name: string): MassRequest {
  return { change: 'prune', kind: DNSEndpoint.kind, name }
}
