/**
 * Remembers the versions our own applies made, so that their echo in the watch does not look like somebody else's change: ten
 * thousand updates would otherwise cause ten thousand reconciles that find nothing to do.
 *
 * An echo that comes before the answer of its write is not recognised, and costs one reconcile. An entry lives until its echo.
 */
import { type Immutable, keyOf, type Kind, type Obj } from '@seamark/kube/object'

export interface OwnWrites {
  note(kind: Kind, object: Immutable<Obj>): void
  /** True once for each version noted. */
  isOurs(kind: Kind, object: Immutable<Obj>): boolean
}

export function createOwnWrites(): OwnWrites {
  const versions = new Map<string, string>()
  return {
    note(kind, object) {
      const { resourceVersion } = object.metadata
      // A first version's echo is a creation, which nobody waits for.
      if (resourceVersion !== undefined && object.metadata.generation !== 1)
        versions.set(`${kind.plural} ${keyOf(object)}`, resourceVersion)
    },
    isOurs(kind, object) {
      const id = `${kind.plural} ${keyOf(object)}`
      if (versions.get(id) !== object.metadata.resourceVersion) return false
      versions.delete(id)
      return true
    },
  }
}
