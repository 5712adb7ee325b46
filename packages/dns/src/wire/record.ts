/**
 * Records in two forms: `Resource`, one record as on the wire (wire data, case kept), and `RRset`, the form to compare by:
 * canonical name, type mnemonic, canonical presentation texts. Two RRsets are equal exactly when their fields are, in any
 * order of values.
 */
import { className, typeCode, typeName } from './codes.ts'
import { type Fqdn, fqdn } from './name.ts'
import { canonicalRdata, rdataFromText, rdataToText } from './rdata/grammar.ts'

export interface Resource {
  /** Absolute presentation text, case as received. */
  readonly name: string
  readonly type: number
  readonly class: number
  /** Seconds. */
  readonly ttl: number
  /** Wire octets without compression. */
  readonly data: Uint8Array
}

export interface RRset {
  readonly name: Fqdn
  /** Mnemonic, or TYPE123. */
  readonly type: string
  /** Seconds. */
  readonly ttl: number
  /** Canonical presentation, without duplicates. */
  readonly values: readonly string[]
}

/** Data of one record as canonical text: names in lower case. */
export const canonicalText = (type: number, data: Uint8Array): string => rdataToText(type, canonicalRdata(type, data))

/** An RRset in canonical form; throws DnsError with the value that is wrong. */
export function createRRset(name: string, type: string, ttl: number, values: readonly string[]): RRset {
  const code = typeCode(type)
  const canonical = values.map((value) => canonicalText(code, rdataFromText(code, value)))
  return { name: fqdn(name), type: typeName(code), ttl, values: [...new Set(canonical)] }
}

/** Groups records by name and type, in the order of first appearance; the TTL of a set is the lowest of its records. */
export function groupRecords(records: Iterable<Resource>): RRset[] {
  const sets = new Map<string, { name: Fqdn; type: number; ttl: number; values: Set<string> }>()
  for (const record of records) {
    const name = fqdn(record.name)
    const key = `${name} ${record.type}`
    const set = sets.get(key) ?? { name, type: record.type, ttl: record.ttl, values: new Set<string>() }
    set.ttl = Math.min(set.ttl, record.ttl)
    set.values.add(canonicalText(record.type, record.data))
    sets.set(key, set)
  }
  return Array.from(sets.values(), (set) => ({ ...set, type: typeName(set.type), values: [...set.values] }))
}

/** One line as dig prints it. */
export const recordText = (record: Resource): string =>
  `${record.name}\t${record.ttl}\t${className(record.class)}\t${typeName(record.type)}\t${rdataToText(record.type, record.data)}`
