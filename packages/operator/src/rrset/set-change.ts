/** One RRset replaced by another: the unit that providers apply. `from` undefined creates, `to` undefined deletes. */
import type { RRset } from './rrset.ts'

export interface SetChange {
  readonly from: RRset | undefined
  readonly to: RRset | undefined
}
