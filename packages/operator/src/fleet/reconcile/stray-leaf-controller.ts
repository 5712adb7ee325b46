/**
 * Controller of LeafIngresses that belong to no root: somebody else wrote them. They are reported, and the syncers apply
 * nothing of them. Those of a root are reported by its reconcile.
 */
import { type Context, findCondition, type Manager, requeue, setCondition } from '@seamark/kube'
import type { Immutable, Obj } from '@seamark/kube/object'
import { LeafIngress } from '../../api/leaf-ingress.ts'
import { refusedLeaf } from '../decide/leaf-status.ts'
import { leafName, ROOT_ANNOTATION, ROOT_KIND_LABEL, rootKey } from '../names.ts'
import { ROOT_UID_LABEL } from '../../hosts/root.ts'
import type { RootIndexes } from '../roots/root-indexes.ts'
import { ROOT_KINDS } from '../roots/root-kinds.ts'

export interface StrayLeafOptions {
  readonly indexes: Pick<RootIndexes, 'globalByRoot'>
  readonly isWriting: () => boolean
  readonly untilMayWrite: (running: { readonly signal: AbortSignal }) => Promise<unknown> | undefined
}

/** While writing is paused. */
const IDLE_RETRY = '10s'
const MESSAGE =
  'it belongs to no root of its namespace; nothing of it is applied. Delete it: only the manager writes LeafIngresses'

export function setUpStrayLeaves(manager: Manager, { indexes, isWriting, untilMayWrite }: StrayLeafOptions): void {
  manager.controller('fleet-stray-leaf', LeafIngress, { timeout: '1m' }).reconcile(async (leaf, ctx) => {
    if (await hasRoot(leaf, indexes, ctx)) return
    const before = findCondition(leaf.status?.conditions, 'Accepted')
    if (before?.status === 'False' && before.message === MESSAGE) return
    await untilMayWrite(ctx)
    if (!isWriting()) return requeue(IDLE_RETRY)
    const condition = { ...refusedLeaf(MESSAGE), observedGeneration: leaf.metadata.generation ?? 0 }
    const conditions = setCondition(leaf.status?.conditions, condition, ctx.clock.now())
    ctx.event(leaf, 'Warning', 'LeafNotPlanned', MESSAGE)
    await ctx.status(leaf, {
      reason: 'LeafNotPlanned',
      conditions,
    })
  })
}

async function hasRoot(
  { metadata, spec }: Immutable<LeafIngress>,
  { globalByRoot }: StrayLeafOptions['indexes'],
  ctx: Context,
): Promise<boolean> {
  const { namespace, name, labels, annotations } = metadata
  const kind = ROOT_KINDS.find((each) => each.kind.kind === labels?.[ROOT_KIND_LABEL])
  const rootName = annotations?.[ROOT_ANNOTATION]
  const uid = labels?.[ROOT_UID_LABEL]
  if (kind === undefined || rootName === undefined || uid === undefined) return false
  if (name !== leafName(kind.kind.kind, rootName, spec.cluster)) return false
  // A root that is gone is torn down, and its leaves with it.
  if (ctx.by(globalByRoot, rootKey({ namespace, uid })).length > 0) return true
  const isSame = (root: Immutable<Obj> | undefined): boolean => root?.metadata.uid === uid
  const key = `${namespace}/${rootName}`
  // The cache may be behind: only the server knows that there is no such root.
  return isSame(ctx.get(kind.kind, key)) || isSame(await ctx.client.find(kind.kind, key))
}
