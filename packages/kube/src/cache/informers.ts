/**
 * The informers of one cluster: watches are shared, reads use the stores, and own writes are added to the stores.
 *
 * An informer whose CRD is absent is started by a metadata watch of CRDs (if RBAC allows it), otherwise by polling
 * discovery every 30 s.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Index } from './cache.ts'
import { KubeError, NotSynced } from '../errors.ts'
import { createHttpSource } from '../watch/http-source.ts'
import type { CacheOptions, Informer, InformerOptions, Informers } from './informer.ts'
import { JoinedInformer } from './joined-informer.ts'
import { CustomResourceDefinition } from '../object/kinds.ts'
import {
  apiVersionOf,
  kindName,
  parseKey,
  type Immutable,
  type Key,
  type Kind,
  type Obj,
  type Stored,
} from '../object/object.ts'
import type { ReflectorOptions, Source } from '../watch/reflector.ts'
import type { Failure } from '../watch/reflector-machine.ts'
import type { Rest } from '../client/rest.ts'
import { sharedStop, untilAborted } from '../stop-signal.ts'
import { OwnWrites } from '../client/own-writes.ts'
import { SharedInformer } from './shared-informer.ts'
import type { IndexValues } from './store-index.ts'
import type { TurnBudget } from '../decode/decode-budget.ts'

export interface InformersOptions extends Pick<
  ReflectorOptions,
  'clock' | 'random' | 'relistMs' | 'removalLimits' | 'pageSize'
> {
  readonly budget?: TurnBudget
  /** The manager whose FieldsV1 are kept by informers that do not set `keepManagedFieldsOf`. @default none */
  readonly manager?: string
  /** Freeze cached objects. @default true under NODE_ENV=test */
  readonly freeze?: boolean
  readonly onFailure?: (kind: Kind, failure: Failure, error: unknown) => void
  readonly onUserError?: (what: string, error: unknown) => void
  /** For tests. @default HTTP */
  readonly sourceOf?: <T extends Obj>(kind: Kind<T>, options: InformerOptions<T>) => Source<T>
}

type Scope = Pick<InformerOptions<Obj>, 'namespace' | 'labelSelector' | 'fieldSelector'>

/** State per kind. */
interface KindEntry {
  readonly informers: SharedInformer<Obj>[]
  readonly indexes: Map<string, IndexValues<Obj>>
  configured: CacheOptions<Obj> | undefined
  readonly ownWrites: OwnWrites
}

/** Created when a namespace is first listed. */
const BY_NAMESPACE = '\0namespace'
const namespaceOf: IndexValues<Obj> = ({ metadata: { namespace } }) => (namespace === undefined ? [] : [namespace])

export function createInformers(rest: Rest, options: InformersOptions = {}): Informers {
  const kinds = new Map<string, KindEntry>()
  /** Lookup by token without building the id: tokens are long-lived. */
  const byToken = new WeakMap<Kind, KindEntry>()
  /** Tokens by apiVersion and kind of objects. */
  const byName = new Map<string, Map<string, Kind>>()
  const projections = new Map<unknown, number>()
  const ids = new Map<string, SharedInformer<Obj>>()
  const joined = new Map<string, Informer<Obj>>()
  const healthListeners = new Set<(informer: Informer<Obj>) => void>()
  const { freeze = process.env['NODE_ENV'] === 'test', manager } = options
  let isWatchingDefinitions = false
  let running: { readonly signal: AbortSignal; readonly promises: Promise<void>[] } | undefined

  function entryOf(kind: Kind): KindEntry {
    let entry = byToken.get(kind)
    if (entry === undefined) {
      const id = `${apiVersionOf(kind)}/${kind.plural}`
      entry = kinds.get(id) ?? {
        informers: [],
        indexes: new Map(),
        configured: undefined,
        ownWrites: new OwnWrites(),
      }
      kinds.set(id, entry)
      let named = byName.get(apiVersionOf(kind))
      if (named === undefined) byName.set(apiVersionOf(kind), (named = new Map()))
      named.set(kind.kind, kind)
      byToken.set(kind, entry)
    }
    return entry
  }

  function idOf<T extends Obj>(kind: Kind<T>, given: InformerOptions<T>): string {
    const { projection = 'full' } = given
    if (!projections.has(projection)) projections.set(projection, projections.size)
    return JSON.stringify([
      apiVersionOf(kind),
      kind.plural,
      given.namespace,
      given.labelSelector,
      given.fieldSelector,
      projections.get(projection),
      given.keepManagedFieldsOf,
    ])
  }

  function add<T extends Obj>(kind: Kind<T>, given: InformerOptions<T>): SharedInformer<T> {
    const source =
      options.sourceOf?.(kind, given) ??
      createHttpSource(rest, kind, {
        ...given,
        ...(options.budget !== undefined && { budget: options.budget }),
        pendingWrites: {
          get hasPending() {
            return informer.store.hasPendingWrites
          },
          find: (key, version) => informer.store.findPendingWrite(key, version),
        },
        onProjectionError: (error) => options.onUserError?.(`projection of ${kindName(kind)}`, error),
      })
    const informer: SharedInformer<T> = new SharedInformer(kind, given, {
      ...options,
      source,
      freeze,
      onFailure: (failure, error) => options.onFailure?.(kind, failure, error),
      onAbsent: () => watchDefinitions(kind),
      onHealthChange: () => {
        for (const listener of healthListeners) listener(informer)
      },
    })
    const entry = entryOf(kind)
    for (const [name, values] of entry.indexes) informer.store.addIndex(name, values)
    const shared = informer as unknown as SharedInformer<Obj>
    // Reads prefer an unrestricted informer: one with a selector holds only part of a kind.
    if (isRestricted(given)) entry.informers.push(shared)
    else entry.informers.unshift(shared)
    if (running !== undefined) running.promises.push(informer.run(running.signal))
    return informer
  }

  function findOrAdd<T extends Obj>(kind: Kind<T>, given: InformerOptions<T>): SharedInformer<T> {
    const id = idOf(kind, given)
    const known = ids.get(id)
    if (known !== undefined) return known as unknown as SharedInformer<T>
    const informer = add(kind, given)
    ids.set(id, informer as unknown as SharedInformer<Obj>)
    return informer
  }

  /** Watches CRDs, to detect when an absent kind is served. */
  function watchDefinitions(kind: Kind): void {
    if (kind.group === '' || kind.group === CustomResourceDefinition.group) return
    if (isWatchingDefinitions) return
    isWatchingDefinitions = true
    informers.informer(CustomResourceDefinition, { projection: 'metadata' }).subscribe((change) => {
      const { name } = change.object.metadata
      for (const informer of ids.values()) {
        if (`${informer.kind.plural}.${informer.kind.group}` === name) informer.reflector.kick()
      }
    })
  }

  function readableInformers<T extends Obj>(kind: Kind<T>): readonly SharedInformer<T>[] {
    const found = entryOf(kind).informers as unknown as SharedInformer<T>[]
    if (found.length === 0)
      throw new NotSynced(`${kindName(kind)} is not watched: make an informer for it before reading`)
    // A single unrestricted informer holds all objects.
    const [first] = found
    const used = first !== undefined && !isRestricted(first.options) ? [first] : found
    for (const {
      hasSynced,
      options: { namespace },
    } of used) {
      if (!hasSynced) {
        const where = namespace === undefined ? '' : ` in namespace ${namespace}`
        throw new NotSynced(`${kindName(kind)}${where} is not synced yet: wait for the informer's synced()`)
      }
    }
    return used
  }

  const informers: Informers = {
    all: () => [...ids.values()],
    retry() {
      for (const { failure, reflector } of ids.values())
        if (failure !== undefined && failure.reason !== 'over-limit') reflector.kick()
    },
    onHealthChange(listener) {
      healthListeners.add(listener)
      return () => healthListeners.delete(listener)
    },
    informer<T extends Obj>(kind: Kind<T>, requested: InformerOptions<T> = {}): Informer<T> {
      const { namespaces = [], ...configured } = informers.configured(kind) ?? {}
      const given: InformerOptions<T> = {
        ...(manager !== undefined && { keepManagedFieldsOf: manager }),
        ...configured,
        ...requested,
      }
      const [only] = namespaces
      if (given.namespace !== undefined || only === undefined) return findOrAdd(kind, given)
      if (namespaces.length === 1) return findOrAdd(kind, { ...given, namespace: only })
      const id = JSON.stringify([idOf(kind, given), namespaces])
      const known = joined.get(id)
      if (known !== undefined) return known as unknown as Informer<T>
      const parts = namespaces.map((namespace) => findOrAdd(kind, { ...given, namespace }))
      const informer = new JoinedInformer(kind, parts)
      joined.set(id, informer)
      return informer
    },
    configure(kind, cache) {
      const entry = entryOf(kind)
      const requested = cache as unknown as CacheOptions<Obj>
      if (entry.configured !== undefined && isSameCache(entry.configured, requested)) return
      if (entry.configured !== undefined)
        throw new KubeError('CACHE_OPTIONS', `the cache of ${kindName(kind)} is configured already, with other options`)
      if (entry.informers.length > 0)
        throw new KubeError('CACHE_OPTIONS', `${kindName(kind)} is watched already: configure its cache before`)
      entry.configured = requested
    },
    configured: <T extends Obj>(kind: Kind<T>) => entryOf(kind).configured as CacheOptions<T> | undefined,
    index<T extends Obj>(kind: Kind<T>, name: string, values: IndexValues<T>): Index<T> {
      const { indexes, informers: existing } = entryOf(kind)
      if (!indexes.has(name)) {
        indexes.set(name, values as unknown as IndexValues<Obj>)
        for (const { store } of existing) store.addIndex(name, values as unknown as IndexValues<Obj>)
      }
      return Object.freeze({ kind, name })
    },
    get<T extends Obj>(kind: Kind<T>, key: Key) {
      for (const { store } of readableInformers(kind as Kind<Stored<T>>)) {
        const object = store.get(key)
        if (object !== undefined) return object
      }
      return undefined
    },
    list<T extends Obj>(kind: Kind<T>, namespace?: string) {
      const used = readableInformers(kind as Kind<Stored<T>>)
      const [only] = used
      if (namespace === undefined)
        return used.length === 1 && only !== undefined
          ? only.store.list()
          : distinct(used.flatMap(({ store }) => [...store.list()]))
      for (const { store } of used) if (!store.hasIndex(BY_NAMESPACE)) store.addIndex(BY_NAMESPACE, namespaceOf)
      return distinct(used.flatMap(({ store }) => store.by(BY_NAMESPACE, namespace)))
    },
    by<T extends Obj>(index: Index<T>, value: string) {
      const used = readableInformers(index.kind as Kind<Stored<T>>)
      const [only] = used
      if (used.length === 1 && only !== undefined) return only.store.by(index.name, value)
      return distinct(used.flatMap(({ store }) => store.by(index.name, value)))
    },
    findKind: ({ apiVersion = '', kind = '' }) => byName.get(apiVersion)?.get(kind),
    ownWrites: (kind) => entryOf(kind).ownWrites,
    offer(kind, written, readOwnFields) {
      for (const informer of entryOf(kind).informers) {
        if (isCovered(informer.options, written.metadata.namespace))
          informer.store.offer(project(informer, written, readOwnFields !== undefined), readOwnFields)
      }
    },
    offerDeleted(kind, key, uid) {
      for (const { store, options: given } of entryOf(kind).informers) {
        if (given.namespace === undefined || given.namespace === parseKey(key).namespace) store.offerDeleted(key, uid)
      }
    },
    ownFields(kind, key, manager, subresource = '') {
      for (const { store, options: given } of entryOf(kind).informers) {
        if (given.keepManagedFieldsOf !== manager) continue
        const fields = store.ownFields(key, subresource)
        if (fields !== undefined) return fields
      }
      return undefined
    },
    async start(signal) {
      if (running !== undefined) throw new NotSynced('the informers of this cluster are already running')
      // Adds one listener to the caller's signal, independent of the number of informers.
      const stop = sharedStop()
      const promises: Promise<void>[] = []
      running = { signal: stop.signal, promises }
      for (const informer of ids.values()) promises.push(informer.run(stop.signal))
      await untilAborted(signal)
      stop.abort()
      for (let done = 0; done < promises.length;) {
        done = promises.length
        await Promise.all(promises)
      }
      running = undefined
    },
  }
  return informers
}

function isSameCache(a: CacheOptions<Obj>, b: CacheOptions<Obj>): boolean {
  const { projection: projectionA, ...restA } = a
  const { projection: projectionB, ...restB } = b
  return projectionA === projectionB && isDeepStrictEqual(restA, restB)
}

function isRestricted({ namespace, labelSelector, fieldSelector }: Scope): boolean {
  return namespace !== undefined || labelSelector !== undefined || fieldSelector !== undefined
}

/**
 * Whether a watch with these options is certain to report a written object. Only then may the store show the write
 * early.
 */
function isCovered(options: Scope, namespace: string | undefined): boolean {
  if (options.labelSelector !== undefined || options.fieldSelector !== undefined) return false
  return options.namespace === undefined || options.namespace === namespace
}

/** @param isShared the caller of the write does not modify the returned object */
function project<T extends Obj>(informer: SharedInformer<Obj>, written: T, isShared: boolean): T {
  const { projection = 'full' } = informer.options
  const { apiVersion } = informer
  const { kind } = informer.kind
  if (projection === 'metadata') return { apiVersion, kind, metadata: written.metadata } as T
  if (projection === 'full' && isShared) {
    // Use the shared apiVersion and kind strings instead of a copy per object. A frozen object already has them from
    // another informer.
    if (!Object.isFrozen(written)) Object.assign(written, { apiVersion, kind })
    return written
  }
  // The caller keeps `written`; a projection may modify only the top-level members of its argument.
  const copy = { ...written, apiVersion, kind }
  return projection === 'full' ? copy : (projection(copy) as T)
}

/** Removes duplicates: restricted informers may overlap. */
function distinct<T extends Obj>(objects: readonly Immutable<T>[]): readonly Immutable<T>[] {
  return objects.length < 2
    ? objects
    : [
        ...new Map(
          objects.map((object) => [`${object.metadata.namespace ?? ''}/${object.metadata.name ?? ''}`, object]),
        ).values(),
      ]
}
