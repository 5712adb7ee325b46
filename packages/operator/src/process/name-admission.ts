/**
 * Admission of names: a DNSEndpoint or a source of publish that requests a name which its namespace may not use is refused
 * when it is written. The same function decides at publish and in the plan (grants.ts), which refuse the name as well: the
 * webhook only reports it earlier, so it may fail open (`failurePolicy: Ignore`).
 *
 * Guarantees: names that the object had before are not checked, so an object that was written before a grant was removed can
 * still be changed, released from finalizers and deleted; an object that cannot be read is admitted, and refused by the plan.
 */
import type { Manager } from '@seamark/kube'
import type { Immutable, Kind, Obj } from '@seamark/kube/object'
import { findGrantFault, type Grants } from '@seamark/dialects'

/** Most names that a refusal lists. */
const SHOWN_NAMES = 10

/** A kind whose objects request names. */
export interface JudgedKind {
  readonly kind: Kind
  readonly names: (object: Immutable<Obj>) => ReadonlySet<string>
}

export function setUpNameAdmission(
  manager: Pick<Manager, 'webhook'>,
  grants: () => Grants,
  kinds: readonly JudgedKind[],
): void {
  for (const { kind, names } of kinds) {
    manager.webhook(kind, {
      validate(now, old, { namespace = '' }) {
        if (now === undefined) return []
        return findNameFaults(grants(), namespace, names(now), old === undefined ? new Set() : names(old))
      },
    })
  }
}

/** What is wrong with the names that are new in an object, each with what to do; the first ones only. */
export function findNameFaults(
  grants: Grants,
  namespace: string,
  names: ReadonlySet<string>,
  before: ReadonlySet<string>,
): string[] {
  const faults: string[] = []
  for (const name of names) {
    const fault = before.has(name) ? undefined : findGrantFault(grants, namespace, name)
    if (fault !== undefined) faults.push(`${fault} (NameNotGranted)`)
  }
  if (faults.length <= SHOWN_NAMES) return faults
  return [...faults.slice(0, SHOWN_NAMES), `${faults.length - SHOWN_NAMES} more names are not granted to it`]
}
