/**
 * Regions by address from an MMDB file (MaxMind DB format 2.0), as GeoLite2, DB-IP and IPinfo publish them.
 *
 * A record has nested fields; `fields` are the paths whose texts are regions, the most specific first, in lower case:
 * `country.iso_code` gives `de`, `continent.code` gives `eu`. Texts that are no names of regions are skipped.
 */
import { Reader, type Response } from 'mmdb-lib'
import { DnsError } from '../../error.ts'
import type { ClientLocation, RegionMessage, RegionSource } from './region-source.ts'

/** The most specific first: a field of databases made for this purpose, then those of the country databases. */
export const REGION_FIELDS: readonly string[] = ['region', 'country.iso_code', 'continent.code']

/** Ends the file, before its metadata. */
const METADATA_MARKER = Buffer.from('abcdef4d61784d696e642e636f6d', 'hex')
const REGION = /^[a-z0-9][a-z0-9_-]{0,31}$/
/** Distinct records are few, e.g. one for each country; a record is decoded once. */
const MAX_CACHED = 10_000

export function isRegionDatabase(bytes: Buffer): boolean {
  return bytes.lastIndexOf(METADATA_MARKER) !== -1
}

export class RegionDatabase implements RegionSource {
  readonly #bytes: SharedArrayBuffer
  readonly #fields: readonly (readonly string[])[]
  readonly #reader: Reader<Response>
  /** By record: the reader returns the same object for equal records. */
  readonly #regions = new WeakMap<object, readonly string[]>()

  /** Throws BAD_ADDRESS when the bytes are no such database. */
  constructor(bytes: Uint8Array | SharedArrayBuffer, fields: readonly string[] = REGION_FIELDS) {
    this.#bytes = bytes instanceof SharedArrayBuffer ? bytes : shared(bytes)
    this.#fields = fields.map((path) => path.split('.'))
    try {
      this.#reader = new Reader<Response>(Buffer.from(this.#bytes), { cache: recordCache() })
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause)
      throw new DnsError('BAD_ADDRESS', `the region database cannot be read: ${why}`, { cause })
    }
  }

  locate(address: string): ClientLocation {
    try {
      const [record, prefix] = this.#reader.getWithPrefixLength(address)
      return { regions: record === null ? [] : this.#regionsOf(record), prefix }
    } catch {
      // A damaged record is no reason not to answer: as for an address that is not in the database, and for it alone.
      return { regions: [], prefix: address.includes(':') ? 128 : 32 }
    }
  }

  #regionsOf(record: object): readonly string[] {
    let regions = this.#regions.get(record)
    if (regions === undefined) {
      regions = this.#fields.flatMap((path) => {
        const text = textAt(record, path)?.toLowerCase()
        return text !== undefined && REGION.test(text) ? [text] : []
      })
      this.#regions.set(record, regions)
    }
    return regions
  }

  toMessage(): RegionMessage {
    return { kind: 'database', bytes: this.#bytes, fields: this.#fields.map((path) => path.join('.')) }
  }
}

function shared(bytes: Uint8Array): SharedArrayBuffer {
  const copy = new SharedArrayBuffer(bytes.length)
  new Uint8Array(copy).set(bytes)
  return copy
}

function textAt(record: unknown, path: readonly string[]): string | undefined {
  let value = record
  for (const name of path) {
    if (typeof value !== 'object' || value === null) return undefined
    value = (value as Record<string, unknown>)[name]
  }
  return typeof value === 'string' ? value : undefined
}

function recordCache() {
  const entries = new Map<string | number, unknown>()
  return {
    get: (key: string | number) => entries.get(key),
    set(key: string | number, value: unknown) {
      if (entries.size >= MAX_CACHED) entries.clear()
      entries.set(key, value)
    },
  }
}
