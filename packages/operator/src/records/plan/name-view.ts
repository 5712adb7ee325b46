/**
 * The view of one name of a zone: its RRsets, and the markers of those sets, which are stored at names of their own. Most
 * names have one set and one marker, and a zone has many names, so no list is allocated for a single element.
 */
import type { MarkerReader, MarkerReading } from '../../rrset/marker.ts'
import type { ObservedRRset, RRset } from '../../rrset/rrset.ts'

export interface NameView {
  readonly name: string
  /** Position among the name views of the zone view; -1 for a name without any set or marker. */
  readonly index: number
  /** The plain set of a type; the first one when a provider stores several for routing policies. */
  find(type: string): ObservedRRset | undefined
  isOpaque(type: string): boolean
  sets(): readonly ObservedRRset[]
  marked(type: string): MarkedSet | undefined
  /** The first marked set; each one links to the next. */
  readonly firstMarked: MarkedSet | undefined
}

/** A set with a marker, and the content of the marker. */
export interface MarkedSet {
  readonly name: string
  readonly type: string
  /** The RRset of the marker itself. */
  readonly set: RRset
  readonly readings: readonly MarkerReading[]
  /** The next marked type of the same name. */
  readonly next: MarkedSet | undefined
}

/** A name view under construction. */
export class NameViewBuilder implements NameView {
  readonly name: string
  readonly index: number
  firstMarked: MarkedSet | undefined
  #sets: ObservedRRset | ObservedRRset[] | undefined

  constructor(name: string, index: number) {
    this.name = name
    this.index = index
  }

  add(set: ObservedRRset): void {
    if (this.#sets === undefined) this.#sets = set
    else if (Array.isArray(this.#sets)) this.#sets.push(set)
    else this.#sets = [this.#sets, set]
  }

  /** Returns the newest plan number in the marker, or 0. */
  mark(type: string, set: RRset, read: MarkerReader): number {
    const marked = new Marked(this.name, type, set, read, this.firstMarked)
    this.firstMarked = marked
    let newest = 0
    for (const reading of marked.readings)
      if (reading.kind === 'marker' && reading.marker.plan > newest) newest = reading.marker.plan
    return newest
  }

  find(type: string): ObservedRRset | undefined {
    if (Array.isArray(this.#sets)) return this.#sets.find((set) => set.type === type)
    return this.#sets?.type === type ? this.#sets : undefined
  }

  isOpaque(type: string): boolean {
    if (!Array.isArray(this.#sets)) return this.#sets?.type === type && this.#sets.opaque !== undefined
    const same = this.#sets.filter((set) => set.type === type)
    return same.length > 1 || same[0]?.opaque !== undefined
  }

  sets(): readonly ObservedRRset[] {
    if (this.#sets === undefined) return []
    return Array.isArray(this.#sets) ? this.#sets : [this.#sets]
  }

  marked(type: string): MarkedSet | undefined {
    let marked = this.firstMarked
    while (marked !== undefined && marked.type !== type) marked = marked.next
    return marked
  }
}

class Marked implements MarkedSet {
  readonly name: string
  readonly type: string
  readonly set: RRset
  readonly next: MarkedSet | undefined
  readonly readings: readonly MarkerReading[]

  constructor(name: string, type: string, set: RRset, read: MarkerReader, next: MarkedSet | undefined) {
    this.name = name
    this.type = type
    this.set = set
    this.next = next
    const [only] = set.values
    this.readings =
      only !== undefined && set.values.length === 1 ? [read(this, only)] : set.values.map((value) => read(this, value))
  }
}

export const EMPTY_NAME_VIEW: NameView = new NameViewBuilder('', -1)
