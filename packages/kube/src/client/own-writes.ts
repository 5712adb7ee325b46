/**
 * Separates watch events caused by own writes from changes by other clients, so that a controller that ignores its own
 * writes is not reconciled again for each of them.
 *
 * Flow: the client calls `begin` before it sends a write and `end` with the resulting version. An event after the
 * response is recognised by the store (`Change.isOwnWrite`); an event while a write of the object is in flight cannot
 * be classified yet and is deferred until the response arrives.
 * Guarantees: an event is an own write by its resourceVersion alone. A deferred event that is not an own write is
 * resumed when the last in-flight write of the object ends, also if that write fails: no change by another client is
 * lost.
 */
import type { Key } from '../object/object.ts'

interface InFlightWrites {
  count: number
  /** resourceVersions that own writes produced. */
  readonly versions: string[]
  readonly deferred: { readonly resourceVersion: string; readonly resume: () => void }[]
}

/** Own writes of one kind. */
export class OwnWrites {
  readonly #inFlight = new Map<Key, InFlightWrites>()
  /** Writes are tracked only after a controller that ignores own writes of the kind calls `track`. */
  #isTracking = false

  begin(key: Key): void {
    if (!this.#isTracking) return
    const known = this.#inFlight.get(key)
    if (known === undefined) this.#inFlight.set(key, { count: 1, versions: [], deferred: [] })
    else known.count++
  }

  /** @param resourceVersion the version that the write produced; undefined if it failed or the version is unknown */
  end(key: Key, resourceVersion: string | undefined): void {
    const known = this.#inFlight.get(key)
    if (known === undefined) return
    if (resourceVersion !== undefined) known.versions.push(resourceVersion)
    known.count--
    if (known.count > 0) return
    this.#inFlight.delete(key)
    for (const { resourceVersion: reported, resume } of known.deferred) if (!known.versions.includes(reported)) resume()
  }

  /** True if the event was deferred; `resume` is called if it is not an own write. */
  defer(key: Key, resourceVersion: string, resume: () => void): boolean {
    const known = this.#inFlight.get(key)
    known?.deferred.push({ resourceVersion, resume })
    return known !== undefined
  }

  /** Starts tracking writes. */
  track(): void {
    this.#isTracking = true
  }
}
