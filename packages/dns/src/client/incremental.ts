/**
 * The client's side of IXFR (RFC 1995 §4): turns the records of the answer, in their order, into what they mean.
 *
 * The first SOA is that of the new version. When the second record is a SOA too, differences follow, each of the old SOA, the
 * removed records, the new SOA and the added records; when it is another record, the whole zone follows; when there is none,
 * the client is up to date. Pure; the end of the stream is the caller's to detect with `isComplete`.
 */
import { TYPE } from '../wire/codes.ts'
import { DnsError } from '../error.ts'
import { type Fqdn, fqdn } from '../wire/name.ts'
import type { Resource } from '../wire/record.ts'
import { WireReader } from '../wire/wire.ts'

export interface Difference {
  readonly before: Resource
  readonly after: Resource
  readonly removed: readonly Resource[]
  readonly added: readonly Resource[]
}

export type TransferResult =
  /** The server has no newer version. */
  | { readonly kind: 'current'; readonly serial: number }
  /** The SOA first, and not again at the end. */
  | { readonly kind: 'zone'; readonly records: readonly Resource[] }
  | { readonly kind: 'changes'; readonly differences: readonly Difference[] }

export const serialOf = ({ data }: Resource): number => new WireReader(data, data.length - 20).u32()

type MutableDifference = { before: Resource; after?: Resource; removed: Resource[]; added: Resource[] }

const wrong = (why: string) => new DnsError('TRANSFER', `the transfer is malformed: ${why}`)

export class TransferReader {
  readonly #zone: Fqdn
  readonly #isIncremental: boolean
  #first: Resource | undefined
  #kind: 'unknown' | 'zone' | 'changes' = 'unknown'
  #isComplete = false
  readonly #records: Resource[] = []
  readonly #differences: MutableDifference[] = []

  constructor(zone: Fqdn, isIncremental: boolean) {
    this.#zone = zone
    this.#isIncremental = isIncremental
  }

  /** The last SOA was read. An answer of one SOA (up to date) is complete with its message: see `soaSerial`. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  /** The serial while the SOA is the only record so far. */
  get soaSerial(): number | undefined {
    return this.#first === undefined || this.#kind !== 'unknown' ? undefined : serialOf(this.#first)
  }

  take(record: Resource): void {
    if (this.#isComplete) throw wrong('records follow the last SOA')
    const isSoa = record.type === TYPE.SOA && fqdn(record.name) === this.#zone
    if (this.#first === undefined) {
      if (!isSoa) throw wrong('the first record is not the SOA')
      this.#first = record
      return
    }
    if (this.#kind === 'unknown') {
      // An empty zone in the form of AXFR is its SOA twice; a difference starts with an older SOA.
      const isDifference = isSoa && this.#isIncremental && serialOf(record) !== serialOf(this.#first)
      this.#kind = isDifference ? 'changes' : 'zone'
      if (this.#kind === 'zone') this.#records.push(this.#first)
    }
    if (this.#kind === 'zone') {
      if (isSoa) this.#isComplete = true
      else this.#records.push(record)
    } else this.#takeChange(record, isSoa)
  }

  #takeChange(record: Resource, isSoa: boolean): void {
    const current = this.#differences.at(-1)
    if (current === undefined) {
      this.#differences.push({ before: record, removed: [], added: [] })
      return
    }
    if (!isSoa) {
      const list = current.after === undefined ? current.removed : current.added
      list.push(record)
      return
    }
    if (current.after === undefined) {
      current.after = record
      return
    }
    if (serialOf(current.after) === serialOf(this.#first!)) {
      if (serialOf(record) !== serialOf(this.#first!)) throw wrong('a difference follows the last one')
      this.#isComplete = true
      return
    }
    if (serialOf(record) !== serialOf(current.after)) throw wrong('the differences are not a chain')
    this.#differences.push({ before: record, removed: [], added: [] })
  }

  result(): TransferResult {
    const serial = this.soaSerial
    if (serial !== undefined) return { kind: 'current', serial }
    if (!this.#isComplete) throw wrong('it ends before the last SOA')
    if (this.#kind === 'zone') return { kind: 'zone', records: this.#records }
    return { kind: 'changes', differences: this.#differences as Difference[] }
  }
}
