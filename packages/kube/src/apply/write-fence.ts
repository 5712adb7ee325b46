/**
 * The fence of writes: checked immediately before each write, so that a process that lost its lease sends nothing.
 */
import { KubeError } from '../errors.ts'

/** This process no longer leads, or cannot confirm that it does. Nothing was sent. */
export class LeadershipLost extends KubeError {
  constructor(lease: string, why: string) {
    super('LEADERSHIP_LOST', `lease ${lease}: ${why}; nothing is written until this process leads again`)
  }
}

/** Always open without leader election. */
export interface WriteFence {
  /** Throws `LeadershipLost` once `renewDeadlineMs` have passed since the last renewal. */
  check(): void
}

export const openFence: WriteFence = { check: () => undefined }
