/**
 * What to do with one object of a leaf on its member. Pure.
 *
 * Guarantee: an object that is not ours is neither changed nor deleted, unless the root asks for its adoption.
 */
import { cleanText } from '@seamark/kube'
import type { Immutable, Obj } from '@seamark/kube/object'
import type { Reason } from '../../reasons.ts'
import { HASH_ANNOTATION, HUB_LABEL } from '../names.ts'
import { MANAGED_LABEL } from '../../hosts/root.ts'
import type { Manifest } from '../roots/root-kind.ts'

export type SyncStep =
  | { readonly step: 'none' }
  /** `drift`: another client changed what we applied. */
  | { readonly step: 'apply'; readonly why: 'absent' | 'changed' | 'drift' | 'adopted' }
  | { readonly step: 'refuse'; readonly message: string }

/** What a syncer reports about a leaf, where it cannot be observed. */
export interface SyncResult {
  readonly reason: Reason
  readonly message: string
  /** The remote objects were confirmed to be absent. */
  readonly isGone: boolean
}

export function decideSync(
  wanted: Immutable<Manifest>,
  live: Immutable<Obj> | undefined,
  { hubId, adopt }: { readonly hubId: string; readonly adopt: boolean },
): SyncStep {
  if (live === undefined) return { step: 'apply', why: 'absent' }
  const { labels, annotations, namespace, name } = live.metadata
  if (labels?.[MANAGED_LABEL] !== 'true' || labels[HUB_LABEL] !== hubId) {
    if (adopt) return { step: 'apply', why: 'adopted' }
    const what = `${wanted.kind} ${namespace}/${name} exists and belongs to`
    const adoption = 'set the annotation seamark.io/adopt: "true" on the root to take it over'
    return {
      step: 'refuse',
      message:
        labels?.[MANAGED_LABEL] === 'true'
          ? `${what} hub ${cleanText(String(labels[HUB_LABEL]), 63)}; remove the cluster from the placement of the root on one of the hubs, or ${adoption}`
          : `${what} another owner; delete it, or ${adoption}`,
    }
  }
  if (annotations?.[HASH_ANNOTATION] !== wanted.metadata.annotations?.[HASH_ANNOTATION])
    return { step: 'apply', why: 'changed' }
  return includes(live, wanted) ? { step: 'none' } : { step: 'apply', why: 'drift' }
}

/** Whether an object on a member is ours to delete. */
export function isOurs(live: Immutable<Obj>, hubId: string): boolean {
  const { labels } = live.metadata
  return labels?.[MANAGED_LABEL] === 'true' && labels[HUB_LABEL] === hubId
}

/** Every field that is wanted has its value. Further fields of objects are defaults or of another manager; lists are compared whole. */
export function includes(live: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted))
    return (
      Array.isArray(live) && live.length === wanted.length && wanted.every((item, index) => includes(live[index], item))
    )
  if (typeof wanted !== 'object' || wanted === null) return live === wanted
  if (typeof live !== 'object' || live === null) return Object.keys(wanted).length === 0
  return Object.entries(wanted).every(([key, value]) => includes((live as Record<string, unknown>)[key], value))
}
