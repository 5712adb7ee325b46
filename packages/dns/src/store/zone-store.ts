/** Where the content of one zone is kept over restarts: in a folder (folder-store.ts), or elsewhere by the same interface. */
import type { ZoneDelta } from '../zone/zone-delta.ts'
import type { Zone } from '../zone/zone-table.ts'

export interface StoredZone {
  readonly zone: Zone
  /** The changes that lead to it, for IXFR; may be empty. */
  readonly deltas: readonly ZoneDelta[]
}

export interface ZoneStore {
  /** Undefined when nothing is stored. Throws DnsError STORE_CORRUPT, STORE_VERSION or STORE_WRITE. */
  load(): Promise<StoredZone | undefined>
  /**
   * Appends a change that leads to `zone`. Durable when it resolves; when it rejects (STORE_WRITE, STORE_TAKEN) the change
   * does not count, and the next call may succeed. Calls do not overlap.
   */
  append(delta: ZoneDelta, zone: Zone): Promise<void>
  /** Replaces all that is stored. Durable when it resolves. Does not overlap with `append`. */
  replace(zone: Zone): Promise<void>
  /** Waits for what is being written. */
  close(): Promise<void>
}
