/**
 * Recognises the echo of our own applies in the watch, so that it does not look like somebody else's change: ten thousand
 * updates would otherwise cause ten thousand reconciles that find nothing to do.
 *
 * Flow: every apply runs inside `during`; the predicate of the child watches asks `isOurs`.
 * Guarantees: an echo is ours by its version alone. One that comes before the answer of its write is put aside, and judged
 * when the answer is there; if it was another's, the caller is told to look again, so that no foreign change is lost.
 * Caveats: an entry lives until its echo; a relist that swallows the echo leaves it until the next write of the same child.
 */
import { type Immutable, keyOf, type Kind, type Obj } from '@seamark/kube/object'

interface OwnWrite<T> {
  readonly object: T
  /** Somebody else changed the child while we wrote. */
  readonly isDisturbed: boolean
}

export interface OwnWrites {
  /** Runs a write of this child; never two at once for one child. */
  during<T extends Immutable<Obj>>(kind: Kind, key: string, write: () => Promise<T>): Promise<OwnWrite<T>>
  /** True once for each version we made, and for what comes while a write is under way. */
  isOurs(kind: Kind, object: Immutable<Obj>): boolean
}

export function createOwnWrites(findVersion: (kind: Kind, key: string) => string | undefined): OwnWrites {
  /** Versions we made whose echo has not come. */
  const awaited = new Map<string, string>()
  /** Versions that came while a write of their child was under way. */
  const early = new Map<string, string[]>()
  return {
    async during(kind, key, write) {
      const id = idOf(kind, key)
      const before = findVersion(kind, key)
      const seen: string[] = []
      early.set(id, seen)
      try {
        const object = await write()
        const { resourceVersion = '', generation } = object.metadata
        // A first version's echo is a creation, which nobody waits for; an apply that changed nothing has none.
        const hasEcho = resourceVersion !== before && generation !== 1
        if (hasEcho && !seen.includes(resourceVersion)) awaited.set(id, resourceVersion)
        return { object, isDisturbed: seen.some((version) => version !== resourceVersion) }
      } finally {
        early.delete(id)
      }
    },
    isOurs(kind, object) {
      const id = idOf(kind, keyOf(object))
      const { resourceVersion = '' } = object.metadata
      const seen = early.get(id)
      if (seen !== undefined) {
        seen.push(resourceVersion)
        return true
      }
      if (awaited.get(id) !== resourceVersion) return false
      awaited.delete(id)
      return true
    },
  }
}

function idOf(kind: Kind, key: string): string {
  return `${kind.plural} ${key}`
}
