/**
 * Kinds that this process needs and cannot read: with the kind, the verbs and what to do, the same in /readyz, in Events and in
 * conditions.
 */
import { CustomResourceDefinition, type Informer, type Informers, type Manager } from '@seamark/kube'
import type { Kind, Obj } from '@seamark/kube/object'
import { type Finding, warning } from '../../finding.ts'

export interface KindFault {
  readonly kind: Kind
  readonly finding: Finding
}

/** Denied kinds, and those of `needed` that no CRD serves. */
export function findKindFaults(informers: Pick<Informers, 'all'>, needed: ReadonlySet<Kind>): KindFault[] {
  return informers.all().flatMap((informer): KindFault[] => {
    const { kind, failure, state } = informer
    const resource = resourceOf(kind)
    if (isDenied(informer))
      return [{ kind, finding: warning('WatchForbidden', deniedText(resource, failure?.message ?? '')) }]
    if (state !== 'absent' || !needed.has(kind)) return []
    const text = `${kind.kind} (${resource}) is not installed, so that it can be neither watched nor written; install its CRD, kubectl get crd ${resource} shows it then`
    return [{ kind, finding: warning('CRDNotInstalled', text) }]
  })
}

function deniedText(resource: string, message: string): string {
  return `${resource} cannot be listed and watched; allow list and watch of ${resource} in the ClusterRole of the manager: ${message}`
}

/** Definitions are watched only to detect early that a kind is served; without the right they are polled. */
export function isDenied({ kind, failure }: Informer<Obj>): boolean {
  return failure?.reason === 'denied' && kind !== CustomResourceDefinition
}

export function resourceOf({ plural, group }: Kind): string {
  return group === '' ? plural : `${plural}.${group}`
}

/**
 * The entry `kinds` of /readyz: what this process needs and has never been able to read. A kind that becomes unreadable later
 * takes no process out of service: what it serves does not depend on it.
 */
export function checkKinds(manager: Manager, needed: ReadonlySet<Kind>): void {
  const { informers } = manager.cluster
  const served = new Set<Kind>()
  manager.check('readyz', 'kinds', () => {
    for (const { kind, state } of informers.all()) if (state === 'live') served.add(kind)
    const faults = findKindFaults(informers, needed).filter(({ kind }) => !served.has(kind))
    return faults.length === 0
      ? undefined
      : faults.map(({ finding: { reason, message } }) => `${reason}: ${message}`).join('; ')
  })
}
