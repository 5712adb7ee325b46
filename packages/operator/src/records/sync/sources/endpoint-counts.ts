/**
 * The number of endpoints of each object, by namespace, and the objects that are beyond a limit. Limits are computed when
 * they are asked for, and only for namespaces that changed, so a burst of changes costs one computation.
 */
import { type EndpointCount, type EndpointLimits, findOverLimit } from '../tenants/tenant-limits.ts'

export interface OverLimitChange {
  /** By UID, with what to do. */
  readonly added: ReadonlyMap<string, string>
  readonly removed: ReadonlySet<string>
}

export class EndpointCounts {
  readonly #limits: EndpointLimits
  readonly #exempt: ReadonlySet<string>
  readonly #byNamespace = new Map<string, Map<string, EndpointCount>>()
  readonly #over = new Map<string, Map<string, string>>()
  readonly #changed = new Set<string>()
  readonly #all = new Set<string>()

  /** `exempt`: namespaces without a limit. */
  constructor(limits: EndpointLimits, exempt: ReadonlySet<string>) {
    this.#limits = limits
    this.#exempt = exempt
  }

  set(namespace: string, count: EndpointCount): void {
    if (this.#exempt.has(namespace)) return
    const counts = this.#byNamespace.get(namespace) ?? new Map<string, EndpointCount>()
    if (counts.get(count.uid)?.endpoints === count.endpoints) return
    this.#byNamespace.set(namespace, counts.set(count.uid, count))
    this.#changed.add(namespace)
  }

  delete(namespace: string, uid: string): void {
    const counts = this.#byNamespace.get(namespace)
    if (counts?.delete(uid) !== true) return
    if (counts.size === 0) this.#byNamespace.delete(namespace)
    this.#changed.add(namespace)
  }

  /** Objects that are beyond a limit, as of the last `update`. */
  get over(): Pick<ReadonlySet<string>, 'has'> {
    return this.#all
  }

  /** Computes the limits of the namespaces that changed; returns the difference, also where only the message changed. */
  update(): OverLimitChange {
    const added = new Map<string, string>()
    const removed = new Set<string>()
    for (const namespace of this.#changed) {
      const before = this.#over.get(namespace) ?? new Map<string, string>()
      const after = findOverLimit(this.#byNamespace.get(namespace)?.values() ?? [], this.#limits)
      for (const [uid, why] of after) if (before.get(uid) !== why) added.set(uid, why)
      for (const uid of before.keys()) if (!after.has(uid)) removed.add(uid)
      if (after.size > 0) this.#over.set(namespace, after)
      else this.#over.delete(namespace)
    }
    this.#changed.clear()
    for (const uid of removed) this.#all.delete(uid)
    for (const uid of added.keys()) this.#all.add(uid)
    return { added, removed }
  }
}
