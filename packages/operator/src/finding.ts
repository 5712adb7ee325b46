/** A report about a source: one reason code and one sentence. `Warning`: a user has to act. */
import type { Reason } from './reasons.ts'

export interface Finding {
  readonly reason: Reason
  readonly severity: 'Normal' | 'Warning'
  readonly message: string
}

export function warning(reason: Reason, message: string): Finding {
  return { reason, severity: 'Warning', message }
}

export function note(reason: Reason, message: string): Finding {
  return { reason, severity: 'Normal', message }
}
