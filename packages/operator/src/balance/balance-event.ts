import type { Reason } from '../reasons.ts'

/** An Event on a load balancer. */
export interface BalanceEvent {
  readonly type: 'Normal' | 'Warning'
  /** @default `sync`, as the original has it */
  readonly reason?: Reason
  readonly message: string
}

export function warning(message: string): BalanceEvent {
  return { type: 'Warning', message }
}
