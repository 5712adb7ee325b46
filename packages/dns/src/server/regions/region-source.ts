/**
 * Where clients are: a table of address ranges (region-table.ts) or an MMDB file (region-database.ts). Each thread that answers
 * has its own source, built from the same message.
 */
import { RegionDatabase } from './region-database.ts'
import { parseRegionTable } from './region-table.ts'

export interface ClientLocation {
  /** The most specific first; the first one that has records of its own counts. */
  readonly regions: readonly string[]
  /** Length of the prefix of the address for which this holds. */
  readonly prefix: number
}

export interface RegionSource {
  locate(address: string): ClientLocation
  /** What `readRegionSource` makes a copy from, in another thread. */
  toMessage(): RegionMessage
}

export type RegionMessage =
  | { readonly kind: 'table'; readonly text: string }
  /** Shared, not copied: a database has up to 100 MB. */
  | { readonly kind: 'database'; readonly bytes: SharedArrayBuffer; readonly fields: readonly string[] }

export function readRegionSource(message: RegionMessage): RegionSource {
  switch (message.kind) {
    case 'table':
      return parseRegionTable(message.text)
    case 'database':
      return new RegionDatabase(message.bytes, message.fields)
  }
}
