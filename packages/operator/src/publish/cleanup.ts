/**
 * `seamark cleanup`: removes what would remain when publish is uninstalled. A finalizer without its controller blocks the
 * deletion of its source forever; children are deleted only on request, because this deletes their records.
 */
import { type Client, Forbidden, NotFound, removeFinalizer } from '@seamark/kube'
import { type Immutable, keyOf, type Kind, type Obj } from '@seamark/kube/object'
import { FINALIZER } from './annotation-keys.ts'
import { FIELD_MANAGER } from '../process/field-manager.ts'
import { findOwner } from './decide/child.ts'
import { childKinds } from './child-kinds.ts'
import { CHILD_KINDS, SOURCE_KINDS } from './config.ts'
import { sourceKindToken } from './sources/source-reader.ts'

export interface CleanupOptions {
  /** Delete the children as well. */
  readonly children: boolean
  /** Report, and write nothing. */
  readonly dryRun: boolean
  readonly signal: AbortSignal
  readonly onStep: (what: string) => void
}

export interface CleanupReport {
  readonly finalizers: number
  readonly children: number
  /** Kinds that may not be listed: whether they have objects of ours is not known. */
  readonly unread: readonly { readonly kind: string; readonly error: Forbidden }[]
}

export async function cleanUp(client: Client, options: CleanupOptions): Promise<CleanupReport> {
  const unread = new Map<string, Forbidden>()
  const list = <T extends Obj>(kind: Kind<T>) => listAll(client, kind, options.signal, unread)
  let children = 0
  // Children first: the finalizers of their owners are the only reference to children in other namespaces.
  if (options.children)
    for (const kind of childKinds({ children: CHILD_KINDS }))
      children += await removeChildren({ client, list }, kind, options)
  let finalizers = 0
  for (const kind of SOURCE_KINDS)
    finalizers += await removeFinalizers({ client, list }, sourceKindToken(kind), options)
  return { finalizers, children, unread: [...unread].map(([kind, error]) => ({ kind, error })) }
}

interface Access {
  readonly client: Client
  readonly list: <T extends Obj>(kind: Kind<T>) => AsyncGenerator<T>
}

async function removeFinalizers(
  { client, list }: Access,
  kind: Kind,
  { dryRun, onStep }: CleanupOptions,
): Promise<number> {
  let count = 0
  for await (const object of list(kind)) {
    if (object.metadata.finalizers?.includes(FINALIZER) !== true) continue
    onStep(`finalizer of ${kind.kind} ${keyOf(object)}`)
    if (!dryRun) await removeFinalizer(client, kind, object as Immutable<Obj>, FINALIZER)
    count++
  }
  return count
}

async function removeChildren<T extends Obj>(
  { client, list }: Access,
  kind: Kind<T>,
  { dryRun, signal, onStep }: CleanupOptions,
): Promise<number> {
  let count = 0
  for await (const object of list(kind)) {
    const isOurs =
      object.metadata.managedFields?.some((entry) => entry.manager === FIELD_MANAGER && entry.operation === 'Apply') ??
      false
    if (!isOurs || findOwner(object) === undefined) continue
    onStep(`${kind.kind} ${keyOf(object)}`)
    count++
    if (dryRun) continue
    const { uid, resourceVersion } = object.metadata
    const precondition = {
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
    }
    await client.delete(kind, keyOf(object), { precondition, signal }).catch((error: unknown) => {
      if (!(error instanceof NotFound)) throw error
    })
  }
  return count
}

/** Page by page. A kind that is not installed has no objects of ours; one that we may not list may have some. */
async function* listAll<T extends Obj>(
  client: Client,
  kind: Kind<T>,
  signal: AbortSignal,
  unread: Map<string, Forbidden>,
): AsyncGenerator<T> {
  let token: string | undefined
  do {
    const page = await client
      .list(kind, { limit: 500, signal, ...(token !== undefined && { continue: token }) })
      .catch((error: unknown) => {
        if (error instanceof Forbidden) unread.set(kind.kind, error)
        else if (!(error instanceof NotFound)) throw error
        return undefined
      })
    if (page === undefined) return
    yield* page.items
    token = page.metadata.continue === '' ? undefined : page.metadata.continue
  } while (token !== undefined)
}
