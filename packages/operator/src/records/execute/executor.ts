/**
 * One executor per provider account and zone: one queue, one writer, one circuit breaker. Plans run sequentially.
 *
 * Place in the flow: plan → executor → plan-run.ts (what to send) → provider-calls.ts (how it is sent) → provider.
 * Guarantees: errors of a service are results, never exceptions that end the process (INV-13).
 */
import { systemClock } from '@seamark/kube'
import type { ProviderZone } from '../../providers/provider.ts'
import type { BreakerStatus } from './circuit-breaker.ts'
import type { GuardStore } from '../state/guard-state.ts'
import { DEFAULT_LIMITS, type Limits } from '../plan/limits.ts'
import type { PlanOutcome } from './result.ts'
import { PlanRun } from './plan-run.ts'
import type { Plan } from '../plan/plan.ts'
import { createProviderCalls, type ProviderCallsOptions } from './provider-calls.ts'
import type { ObservedRRset } from '../../rrset/rrset.ts'

export interface ExecutorOptions extends ProviderCallsOptions {
  readonly zone: ProviderZone
  readonly store: GuardStore
  readonly limits?: Limits
}

export interface Executor {
  /** Plans run one after the other. `requiresBase`: refuse the whole plan when its base changed. */
  submit(plan: Plan, signal: AbortSignal, options?: { requiresBase?: boolean }): Promise<PlanOutcome>
  /** A read with the same rate limiter, circuit breaker and time-out as the writes. Throws ProviderError. */
  read(names: ReadonlySet<string> | 'all', signal: AbortSignal): Promise<readonly ObservedRRset[]>
  /** Sends the next request although the breaker is open. */
  retryNow(): void
  readonly status: BreakerStatus
  readonly waitMs: number
}

/** Key of the guard state. Includes the zone id, so that zones with the same name are independent. */
export function stateKey(provider: string, zone: ProviderZone): string {
  return `${provider}/${zone.name}${zone.id === zone.name ? '' : `@${zone.id}`}`
}

export function createExecutor(options: ExecutorOptions): Executor {
  const { provider, zone, store, killSwitch, limits = DEFAULT_LIMITS, clock = systemClock } = options
  const calls = createProviderCalls(options)
  const key = stateKey(provider.name, zone)
  let tail: Promise<unknown> = Promise.resolve()
  return {
    read: async (names, signal) => calls.read(zone, names, signal),
    submit(plan, signal, { requiresBase = false } = {}) {
      const run = new PlanRun({ provider, zone, calls, store, stateKey: key, killSwitch, limits, clock }, plan, signal)
      const turn = tail.then(async () => run.perform(requiresBase))
      tail = turn.catch(() => undefined)
      return turn
    },
    retryNow: () => calls.retryNow(),
    get status() {
      return calls.status
    },
    get waitMs() {
      return calls.waitMs
    },
  }
}
