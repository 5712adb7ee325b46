/**
 * Deletes objects on a member that have our labels and no LeafIngress, as after a cluster returned from a long absence.
 *
 * Place in the flow: called by the syncer of a member every ten minutes.
 * Guarantees: nothing is deleted while the caches of the hub are not synced; an object is deleted only after the API server of
 * the hub confirmed that its leaf is gone, because a cache may come from a list that was short; more than decideSweep allows
 * is reported and not deleted.
 */
import type { Client, Context } from '@seamark/kube'
import type { Immutable, Key } from '@seamark/kube/object'
import type { LeafIngress } from '../../api/leaf-ingress.ts'
import { decideSweep, isOurs } from '../decide/sync.ts'
import { LEAF_ANNOTATION } from '../names.ts'
import { ROOT_KINDS } from '../roots/root-kinds.ts'
import { deleteExactly } from './exact-delete.ts'

export interface SweepDeps {
  readonly hubId: string
  /** Whether every LeafIngress of the hub was read. */
  readonly isHubSynced: boolean
  /** From the cache of the hub. */
  readonly findLeaf: (key: Key) => Immutable<LeafIngress> | undefined
  /** From the API server of the hub. */
  readonly readLeaf: (key: Key) => Promise<Immutable<LeafIngress> | undefined>
}

/** `ctx`: of the member. */
export async function sweepMember(
  { hubId, isHubSynced, findLeaf, readLeaf }: SweepDeps,
  ctx: Pick<Context, 'cluster' | 'list' | 'log'> & { readonly client: Pick<Client, 'delete'> },
): Promise<void> {
  if (!isHubSynced) return
  for (const { kind } of ROOT_KINDS) {
    const ours = ctx.list(kind).filter((object) => isOurs(object, hubId))
    const { deletable, refused } = decideSweep(
      ours,
      (object) => findLeaf(leafKeyOf(object))?.spec.cluster !== ctx.cluster,
    )
    if (refused !== undefined) ctx.log.error({ reason: refused.reason, kind: kind.kind }, refused.message)
    for (const object of deletable) {
      const leaf = await readLeaf(leafKeyOf(object))
      if (leaf?.spec.cluster !== ctx.cluster) await deleteExactly(ctx.client, kind, object)
    }
  }
}

function leafKeyOf({
  metadata: { namespace, annotations },
}: {
  readonly metadata: { readonly namespace?: string; readonly annotations?: Readonly<Record<string, string>> }
}): Key {
  return `${namespace}/${annotations?.[LEAF_ANNOTATION] ?? ''}`
}
