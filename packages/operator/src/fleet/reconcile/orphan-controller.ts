/** Controller of GlobalIngresses whose root lost its finalizer by force: they are torn down all the same. */
import { type Manager, requeue } from '@seamark/kube'
import { apiVersionOf } from '@seamark/kube/object'
import { GlobalIngress } from '../../api/global-ingress.ts'
import { ROOT_KINDS } from '../roots/root-kinds.ts'
import type { Teardown } from './teardown.ts'

export interface OrphanControllerOptions {
  readonly teardown: Pick<Teardown, 'global'>
  readonly isWriting: () => boolean
  readonly untilMayWrite: (running: { readonly signal: AbortSignal }) => Promise<unknown> | undefined
}

/** While writing is paused. */
const IDLE_RETRY = '10s'

export function setUpOrphans(manager: Manager, { teardown, isWriting, untilMayWrite }: OrphanControllerOptions): void {
  manager.controller('fleet-orphan', GlobalIngress, { timeout: '1m' }).reconcile(async (global, ctx) => {
    await untilMayWrite(ctx)
    const { rootRef } = global.spec
    const kind = ROOT_KINDS.find(
      (each) => each.kind.kind === rootRef.kind && apiVersionOf(each.kind) === rootRef.apiVersion,
    )
    if (kind === undefined) return
    const key = `${global.metadata.namespace}/${rootRef.name}`
    if (ctx.get(kind.kind, key)?.metadata.uid === rootRef.uid) return
    if (!isWriting()) return requeue(IDLE_RETRY)
    // The cache may be behind: only the server knows that the root is gone.
    const live = await ctx.client.find(kind.kind, key)
    if (live?.metadata.uid === rootRef.uid) return
    return teardown.global(rootRef.uid, global, { isForced: false, isImmediate: false }, ctx)
  })
}
