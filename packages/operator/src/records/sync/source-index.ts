/**
 * The DNSEndpoints we serve, as the watch says, indexed by the names they ask for. The loop asks it which names a change
 * is about and what is wanted for some names, at a cost in proportion to them.
 */
import type { Immutable } from '@seamark/kube/object'
import type { DNSEndpoint } from '../../api/dns-endpoint.ts'
import { sourceOf, type DesiredRecords, desiredOf } from './dns-endpoint-source.ts'
import { oldestSource } from '../plan/desired-table.ts'
import type { RecordSource, Sources } from '../plan/plan.ts'
import type { TenantRules } from './tenant-rules.ts'
import { canonicalName, isInvalid, shown } from '../../rrset/rrset.ts'

export type Endpoint = Immutable<DNSEndpoint>

export type Names = ReadonlySet<string> | 'all'

export class SourceIndex {
  readonly #isServed: (object: Endpoint) => boolean
  readonly #defaultTtl: number
  readonly #rules: TenantRules
  /** By source UID, as markers have it. */
  readonly #objects = new Map<string, Endpoint>()
  readonly #byName = new Map<string, Set<string>>()
  readonly #known = new Set<string>()
  /** The number of the arrival of each source in sight. */
  readonly #arrivals = new Map<string, number>()
  #lastArrival = 0

  constructor(isServed: (object: Endpoint) => boolean, defaultTtl: number, rules: TenantRules) {
    this.#rules = rules
    this.#isServed = isServed
    this.#defaultTtl = defaultTtl
  }

  /** Every name that the object asks for, or asked for before. `isGone`: it was deleted. */
  note(object: Endpoint, isGone: boolean): Set<string> {
    const { uid } = sourceOf(object)
    const kept = !isGone && this.#isServed(object) ? namesOf(object) : undefined
    const names = new Set([...namesOf(this.#objects.get(uid)), ...namesOf(object)])
    if (kept === undefined) {
      this.#objects.delete(uid)
      this.#arrivals.delete(uid)
    } else {
      if (!this.#objects.has(uid)) this.#arrivals.set(uid, ++this.#lastArrival)
      this.#objects.set(uid, object)
      this.#remember(uid)
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

  /** What is forgotten here is only harder to delete. */
  #remember(uid: string): void {
    if (this.#known.size > 2 * this.#objects.size + 10_000) this.#known.clear()
    this.#known.add(uid)
  }

  find(uid: string): Endpoint | undefined {
    return this.#objects.get(uid)
  }

  /** Sources in sight at this moment, and not those that come later. No copy: a change costs the same in any crowd. */
  get present(): Sources {
    const last = this.#lastArrival
    return { has: (uid) => (this.#arrivals.get(uid) ?? Infinity) <= last }
  }

  /** Sources that ask for at least one name. */
  get wanting(): Sources {
    return { has: (uid) => namesOf(this.#objects.get(uid)).size > 0 }
  }

  /** Sources that this process ever had in sight. */
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

  /** The oldest source that asks for a name and may have it, with any type. */
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

/** Canonical names, and what is none as it is shown: its refusal is worth a look too. */
function namesOf(object: Endpoint | undefined): Set<string> {
  const names = new Set<string>()
  const endpoints: readonly unknown[] = Array.isArray(object?.spec?.endpoints) ? object.spec.endpoints : []
  for (const endpoint of endpoints) {
    const dnsName = (endpoint as { dnsName?: unknown } | null)?.dnsName
    const text = typeof dnsName === 'string' ? dnsName : ''
    const name = canonicalName(text)
    names.add(isInvalid(name) ? shown(text) : name)
  }
  return names
}
