/** One RRset replaced by another: what providers apply. `from` undefined creates, `to` undefined deletes. */
import type { RecordSet } from './rrset.ts'

export interface SetChange {
  readonly from: RecordSet | undefined
  readonly to: RecordSet | undefined
}
