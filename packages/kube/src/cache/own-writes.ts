/**
 * Tells the watch's reports of our own writes from the changes of others, so that a controller which ignores its own
 * writes does not reconcile once more for each of them.
 *
 * Flow: the client calls `begin` before it sends a write and `end` with the version it made. A report that comes after the
 * answer is recognised by the store (`Change.isOwnWrite`); one that comes while a write of the object is under way cannot
 * be judged yet and is set aside until the answer is there.
 * Guarantees: a report is ours by its resourceVersion alone. What was set aside and is not ours is resumed when the last
 * write of the object under way ends, also when that write fails: no change of somebody else is lost.
 */
import type { Key } from '../object/object.ts'

interface UnderWay {
  count: number
  /** Versions that our writes made. */
  readonly made: string[]
  readonly aside: { readonly resourceVersion: string; readonly resume: () => void }[]
}

/** Of one kind. */
export class OwnWrites {
  readonly #underWay = new Map<Key, UnderWay>()
  /** Before somebody ignores own writes of the kind, they are not tracked at all. */
  #isWanted = false

  begin(key: Key): void {
    if (!this.#isWanted) return
    const known = this.#underWay.get(key)
    if (known === undefined) this.#underWay.set(key, { count: 1, made: [], aside: [] })
    else known.count++
  }

  /** @param resourceVersion that the write made; undefined when it failed or nothing is known of it */
  end(key: Key, resourceVersion: string | undefined): void {
    const known = this.#underWay.get(key)
    if (known === undefined) return
    if (resourceVersion !== undefined) known.made.push(resourceVersion)
    known.count--
    if (known.count > 0) return
    this.#underWay.delete(key)
    for (const { resourceVersion: reported, resume } of known.aside) if (!known.made.includes(reported)) resume()
  }

  /** True when the report was set aside: `resume` is called if it turns out not to be ours. */
  setAside(key: Key, resourceVersion: string, resume: () => void): boolean {
    const known = this.#underWay.get(key)
    known?.aside.push({ resourceVersion, resume })
    return known !== undefined
  }

  /** Writes are tracked from now on. */
  track(): void {
    this.#isWanted = true
  }
}
