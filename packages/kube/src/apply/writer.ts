/**
 * The writes of a reconcile: server-side apply by default, checked against the write fence, and only if something would
 * change.
 *
 * Guarantees: nothing is sent once leadership is lost or the reconcile was stopped, even if its code resumes later; an
 * apply or status that would change nothing is not sent (apply.ts); a delete is decided on a live read and carries its
 * uid and resourceVersion, so a stale cache never deletes an object that was changed or recreated.
 */
import { decideApply, learnDefaults } from './apply.ts'
import type { Client, DeleteOptions } from '../client/client.ts'
import type { Cluster } from '../cache/cluster.ts'
import type { LearnedDefaults } from './learned-defaults.ts'
import { KubeError, NotFound, NotSynced } from '../errors.ts'
import type { Informers } from '../cache/informer.ts'
import type { WriteFence } from './write-fence.ts'
import { keyOf, type Immutable, type Key, type Kind, type Obj } from '../object/object.ts'
import type { StopSignal } from '../stop-signal.ts'

/** The argument of `ctx.status`; kinds without a typed status accept any. */
export type StatusOf<O> = O extends { readonly status?: infer S } ? NonNullable<S> : Readonly<Record<string, unknown>>

export interface Writer {
  /**
   * Server-side apply of the fields to own, and no others. Returns the resulting object.
   * @param options `force` takes fields over from other managers. @default true
   */
  apply<T extends Obj>(kind: Kind<T>, intent: T | Immutable<T>, options?: { force?: boolean }): Promise<Immutable<T>>
  /**
   * Server-side apply of the status of this object, read from a cache. Rejects with `Conflict` if it was recreated.
   */
  status<O extends Immutable<Obj>>(of: O, status: StatusOf<O>): Promise<O>
  /**
   * Deletes this object; no effect if it is already deleted, recreated, or being deleted.
   * @param options `when` is called with the live object and decides. @default always
   */
  delete<T extends Obj>(
    kind: Kind<T>,
    of: Immutable<T>,
    options?: {
      when?: (live: Immutable<T>) => boolean
      propagationPolicy?: NonNullable<DeleteOptions['propagationPolicy']>
    },
  ): Promise<void>
}

export interface WriterDeps {
  cluster: Cluster
  /**
   * Must be the same in every version of a program; otherwise a new version does not remove fields that an old one
   * applied.
   */
  fieldManager: string
  fence: WriteFence
  defaults: LearnedDefaults
  signal: StopSignal
}

export function createWriter(deps: WriterDeps): Writer {
  return new FencedWriter(deps, deps.signal)
}

/** A class instead of closures, because one is created per reconcile. */
export class FencedWriter implements Writer {
  readonly #deps: Omit<WriterDeps, 'signal'>
  readonly #signal: StopSignal

  constructor(deps: Omit<WriterDeps, 'signal'>, signal: StopSignal) {
    this.#deps = deps
    this.#signal = signal
  }

  apply<T extends Obj>(
    kind: Kind<T>,
    intent: T | Immutable<T>,
    { force = true }: { force?: boolean } = {},
  ): Promise<Immutable<T>> {
    return this.#applyIfChanged(kind, intent, force, undefined)
  }

  async status<O extends Immutable<Obj>>(of: O, status: StatusOf<O>): Promise<O> {
    const kind = this.findKind(of)
    if (kind === undefined)
      throw new KubeError(
        'KIND_UNKNOWN',
        `the status of ${of.kind ?? 'an object'} ${keyOf(of)} cannot be written: its kind is not watched, or the object has no apiVersion and kind`,
      )
    const { name, namespace, uid } = of.metadata
    const metadata = {
      name,
      ...(namespace !== undefined && { namespace }),
      ...(uid !== undefined && { uid }),
    }
    return (await this.#applyIfChanged(kind, { metadata, status } as never, true, 'status')) as unknown as O
  }

  /** The kind of an object from a cache. */
  protected findKind(object: Immutable<Obj>): Kind | undefined {
    return this.#deps.cluster.informers.findKind(object)
  }

  async delete<T extends Obj>(
    kind: Kind<T>,
    of: Immutable<T>,
    { when = () => true, propagationPolicy }: NonNullable<Parameters<Writer['delete']>[2]> = {},
  ): Promise<void> {
    const { cluster, fence } = this.#deps
    assertMayWrite(fence, this.#signal)
    const client = fencedClient(cluster.client, fence, this.#signal)
    const key = keyOf(of)
    const live = await client.find(kind, key)
    if (live === undefined || live.metadata.uid !== of.metadata.uid) return
    if (live.metadata.deletionTimestamp !== undefined || !when(live)) return
    const { uid, resourceVersion } = live.metadata
    const precondition = {
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
    }
    try {
      await client.delete(kind, key, {
        precondition,
        ...(propagationPolicy !== undefined && { propagationPolicy }),
      })
    } catch (error) {
      if (!(error instanceof NotFound)) throw error
    }
  }

  async #applyIfChanged<T extends Obj>(
    kind: Kind<T>,
    intent: T | Immutable<T>,
    force: boolean,
    subresource: string | undefined,
  ): Promise<Immutable<T>> {
    // No await between this check and the request.
    assertMayWrite(this.#deps.fence, this.#signal)
    const { cluster, fieldManager, defaults } = this.#deps
    const { informers } = cluster
    const want = withoutEmptyMaps(intent)
    const key = keyOf(want)
    const live = findCached(informers, kind, key)
    const fields = live === undefined ? undefined : informers.ownFields(kind, key, fieldManager, subresource)
    const decision = decideApply({ kind, fields, want, live, defaults })
    if (decision.noop && live !== undefined) return live
    const written = await cluster.client.apply(kind, want, {
      force,
      fieldManager,
      signal: this.#signal,
      isLean: true,
      subresource,
    })
    const owned = informers.ownFields(kind, key, fieldManager, subresource)
    const isSame = live !== undefined && live.metadata.resourceVersion === written.metadata.resourceVersion
    if (owned === undefined || isSame || defaults.isOpen(kind, owned))
      learnDefaults(defaults, kind, want, written, fieldManager, subresource, owned)
    return written as Immutable<T>
  }
}

function findCached<T extends Obj>(informers: Informers, kind: Kind<T>, key: Key): Immutable<T> | undefined {
  try {
    return informers.get(kind, key)
  } catch (error) {
    // The kind is not watched: the live state is unknown, so the server decides.
    if (error instanceof NotSynced) return undefined
    throw error
  }
}

function assertMayWrite(fence: WriteFence, signal: StopSignal): void {
  signal.throwIfAborted()
  fence.check()
}

/** The client of a reconcile: every call is aborted with the reconcile, every write checks the fence first. */
export function fencedClient(client: Client, fence: WriteFence, signal: StopSignal): Client {
  const guard = <O extends { signal?: StopSignal | undefined }>(options: O | undefined): O & { signal: StopSignal } => {
    assertMayWrite(fence, signal)
    return { ...(options as O), signal: options?.signal ?? signal }
  }
  const read = <O extends { signal?: StopSignal | undefined }>(options: O | undefined): O & { signal: StopSignal } => {
    signal.throwIfAborted()
    return { ...(options as O), signal: options?.signal ?? signal }
  }
  return {
    get: async (kind, key, options) => client.get(kind, key, read(options)),
    find: async (kind, key, options) => client.find(kind, key, read(options)),
    list: async (kind, options) => client.list(kind, read(options)),
    watch: (kind, options) => client.watch(kind, read(options)),
    create: async (kind, object, options) => client.create(kind, object, guard(options)),
    update: async (kind, object, options) => client.update(kind, object, guard(options)),
    updateStatus: async (kind, object, options) => client.updateStatus(kind, object, guard(options)),
    apply: async (kind, intent, options) => client.apply(kind, intent, guard(options)),
    patch: async (kind, key, type, patch, options) => client.patch(kind, key, type, patch, guard(options)),
    delete: async (kind, key, options) => client.delete(kind, key, guard(options)),
    deleteCollection: async (kind, options) => client.deleteCollection(kind, guard(options)),
    request: async (request) => {
      return client.request(request.method === 'GET' ? read(request) : guard(request))
    },
  }
}

/** An empty `labels` or `annotations` changes the resourceVersion on every apply, without any effect. */
function withoutEmptyMaps<T extends Obj>(intent: T | Immutable<T>): Immutable<T> {
  const { labels, annotations, ...rest } = intent.metadata
  if (!isEmpty(labels) && !isEmpty(annotations)) return intent as Immutable<T>
  const metadata = {
    ...rest,
    ...(labels !== undefined && !isEmpty(labels) && { labels }),
    ...(annotations !== undefined && !isEmpty(annotations) && { annotations }),
  }
  return { ...intent, metadata } as Immutable<T>
}

function isEmpty(map: object | undefined): boolean {
  return map !== undefined && Object.keys(map).length === 0
}
