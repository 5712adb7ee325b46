/** An Event on a load balancer. */
export interface BalanceEvent {
  readonly type: 'Normal' | 'Warning'
  readonly message: string
}

export function warning(message: string): BalanceEvent {
  return { type: 'Warning', message }
}
