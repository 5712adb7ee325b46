/**
 * The selected DNSEndpoints of the watch cache, indexed by the names they request. The loop looks up the names that a
 * change affects and the desired records of some names, at a cost proportional to their number.
 */
import type { Immutable } from '@seamark/kube/object'
import type { DNSEndpoint } from '../../../api/dns-endpoint.ts'
import {
  countEndpoints,
  countOf,
  type DesiredRecords,
  desiredOf,
  requestedBy,
  sourceOf,
} from './dns-endpoint-source.ts'
import { EndpointCounts, type OverLimitChange } from './endpoint-counts.ts'
import { claimantsIn, oldestSource } from '../../plan/desired-table.ts'
import type { Desired, RecordSource, Sources } from '../../plan/plan.ts'
import type { TenantRules } from '../tenants/tenant-rules.ts'

export type Endpoint = Immutable<DNSEndpoint>

export type Names = ReadonlySet<string> | 'all'

/** What the sources of some names request. */
export interface RequestedRecords extends DesiredRecords {
  /** The oldest source that requests a name, with any type, and may use it; also for names outside of the request. */
  claimant(name: string): RecordSource | undefined
}

export class SourceIndex {
  readonly #isServed: (object: Endpoint) => boolean
  readonly #defaultTtl: number
  readonly #rules: TenantRules
  /** By source UID, as in markers. */
  readonly #objects = new Map<string, Endpoint>()
  readonly #byName = new Map<string, Set<string>>()
  /** Namespaces by UID, also of sources that are gone. */
  readonly #known = new Map<string, string>()
  readonly #counts: EndpointCounts
  /** The sequence number at which each source was added. */
  readonly #arrivals = new Map<string, number>()
  #lastArrival = 0

  constructor(isServed: (object: Endpoint) => boolean, defaultTtl: number, rules: TenantRules) {
    this.#rules = rules
    this.#counts = new EndpointCounts(rules.limits, rules.unlimited)
    this.#isServed = isServed
    this.#defaultTtl = defaultTtl
  }

  /** Every name that the object requests, or requested before. `isGone`: it was deleted. */
  note(object: Endpoint, isGone: boolean): Set<string> {
    const { uid, namespace = '' } = sourceOf(object)
    const requested = requestedBy(object)
    const kept = !isGone && this.#isServed(object) ? requested : undefined
    const before = this.#objects.get(uid)
    const names = before === undefined ? requested : new Set([...requestedBy(before), ...requested])
    if (kept === undefined) {
      this.#objects.delete(uid)
      this.#arrivals.delete(uid)
      this.#counts.delete(namespace, uid)
    } else {
      this.#counts.set(namespace, countOf(object))
      if (!this.#objects.has(uid)) this.#arrivals.set(uid, ++this.#lastArrival)
      this.#objects.set(uid, object)
      this.#addKnown(uid, namespace)
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
  #addKnown(uid: string, namespace: string): void {
    if (this.#known.size > 2 * this.#objects.size + 10_000) this.#known.clear()
    this.#known.set(uid, namespace)
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
    return { has: (uid) => countEndpoints(this.#objects.get(uid)) > 0 }
  }

  /** Sources that this process has ever had in its cache, with their namespaces. */
  get known(): ReadonlyMap<string, string> {
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

  /** Sources that are beyond a limit; `updateLimits` computes them. */
  get overLimit(): Sources {
    return this.#counts.over
  }

  updateLimits(): OverLimitChange {
    return this.#counts.update()
  }

  /** The namespaces that request a name. */
  tenantsOf(name: string): string[] {
    const namespaces = new Set<string>()
    for (const uid of this.#byName.get(name) ?? []) namespaces.add(this.#objects.get(uid)?.metadata.namespace ?? '')
    return [...namespaces]
  }

  /** Whether only sources beyond a limit request the name: what is published for it stays as it is. */
  isFrozen(name: string): boolean {
    const uids = this.#byName.get(name)
    if (uids === undefined) return false
    for (const uid of uids) if (!this.#counts.over.has(uid)) return false
    return true
  }

  /** Each object is read once, however many of its names are requested. Objects beyond a limit only keep their claims. */
  desired(names: Names): RequestedRecords {
    const { over } = this.#counts
    const served = this.objects(names).filter((object) => !over.has(sourceOf(object).uid))
    const all = desiredOf(served, this.#defaultTtl, this.#rules)
    const claims = claimantsIn(all.desired)
    const isAsked = (name: string): boolean => names === 'all' || names.has(name)
    const parsed = new Map<string, readonly Desired[]>()
    const desiredBy = (uid: string, name: string): readonly Desired[] => {
      const object = this.#objects.get(uid)
      if (!parsed.has(uid) && object !== undefined)
        parsed.set(uid, desiredOf([object], this.#defaultTtl, this.#rules).desired)
      return (parsed.get(uid) ?? []).filter(({ set }) => set.name === name)
    }
    return {
      desired: all.desired.filter(({ set }) => isAsked(set.name)),
      unusable: all.unusable.filter(({ name }) => isAsked(name)),
      claimant: (name) => {
        const own = isAsked(name) ? claims(name) : undefined
        const uids = [...(this.#byName.get(name) ?? [])].filter((uid) => !isAsked(name) || over.has(uid))
        if (uids.length === 0) return own
        const others = uids.flatMap((uid) => desiredBy(uid, name)).map(({ source }) => source)
        return oldestSource(own === undefined ? others : [own, ...others])
      },
    }
  }
}
