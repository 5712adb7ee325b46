/**
 * The selected DNSEndpoints of the watch cache, indexed by the names they request. The loop looks up the names that a
 * change affects and the desired records of some names, at a cost proportional to their number.
 */
import type { Immutable } from '@seamark/kube/object'
import type { DNSEndpoint } from '../../api/dns-endpoint.ts'
import { sourceOf, type DesiredRecords, desiredOf, requestedBy } from './dns-endpoint-source.ts'
import { oldestSource } from '../plan/desired-table.ts'
import type { RecordSource, Sources } from '../plan/plan.ts'
import type { TenantRules } from './tenant-rules.ts'

export type Endpoint = Immutable<DNSEndpoint>

export type Names = ReadonlySet<string> | 'all'

export class SourceIndex {
  readonly #isServed: (object: Endpoint) => boolean
  readonly #defaultTtl: number
  readonly #rules: TenantRules
  /** By source UID, as in markers. */
  readonly #objects = new Map<string, Endpoint>()
  readonly #byName = new Map<string, Set<string>>()
  readonly #known = new Set<string>()
  /** The sequence number at which each source was added. */
  readonly #arrivals = new Map<string, number>()
  #lastArrival = 0

  constructor(isServed: (object: Endpoint) => boolean, defaultTtl: number, rules: TenantRules) {
    this.#rules = rules
    this.#isServed = isServed
    this.#defaultTtl = defaultTtl
  }

  /** Every name that the object requests, or requested before. `isGone`: it was deleted. */
  note(object: Endpoint, isGone: boolean): Set<string> {
    const { uid } = sourceOf(object)
    const kept = !isGone && this.#isServed(object) ? requestedBy(object) : undefined
    const names = new Set([...requestedBy(this.#objects.get(uid)), ...requestedBy(object)])
    if (kept === undefined) {
      this.#objects.delete(uid)
      this.#arrivals.delete(uid)
    } else {
      if (!this.#objects.has(uid)) this.#arrivals.set(uid, ++this.#lastArrival)
      this.#objects.set(uid, object)
      this.#addKnown(uid)
    }
    for (const name of names) {
      const uids = this.#byName.get(name) ?? new Set()
      if (kept?.has(name) === true) uids.add(uid)
      else uids.delete(uid)
      if (uids.size > 0) this.#byName.set(name, uids)
      else this.#byName.delete(name)
    }
    return names
  }

  /** Bounds the memory; a source that is missing here is only harder to confirm as gone. */
  #addKnown(uid: string): void {
    if (this.#known.size > 2 * this.#objects.size + 10_000) this.#known.clear()
    this.#known.add(uid)
  }

  find(uid: string): Endpoint | undefined {
    return this.#objects.get(uid)
  }

  /** Sources present at this time, without those added later. Not a copy: the cost does not depend on their number. */
  get present(): Sources {
    const last = this.#lastArrival
    return { has: (uid) => (this.#arrivals.get(uid) ?? Infinity) <= last }
  }

  /** Sources that request at least one name. */
  get requesting(): Sources {
    return { has: (uid) => requestedBy(this.#objects.get(uid)).size > 0 }
  }

  /** Sources that this process has ever had in its cache. */
  get known(): ReadonlySet<string> {
    return this.#known
  }

  names(): Iterable<string> {
    return this.#byName.keys()
  }

  objects(names: Names): Endpoint[] {
    if (names === 'all') return [...this.#objects.values()]
    const uids = new Set([...names].flatMap((name) => [...(this.#byName.get(name) ?? [])]))
    return [...uids].flatMap((uid) => this.#objects.get(uid) ?? [])
  }

  /** The oldest source that requests a name, with any type, and may use it. */
  claimant(name: string): RecordSource | undefined {
    return oldestSource(this.desired(new Set([name])).desired)
  }

  desired(names: Names): DesiredRecords {
    const { desired, unusable } = desiredOf(this.objects(names), this.#defaultTtl, this.#rules)
    if (names === 'all') return { desired, unusable }
    return {
      desired: desired.filter(({ set }) => names.has(set.name)),
      unusable: unusable.filter(({ name }) => names.has(name)),
    }
  }
}
