/**
 * An in-memory cluster for tests of the runtime itself: enough API semantics to run controllers, every request recorded
 * and interceptable, no sockets. Behaviour of a real server is tested with one; packages/apiserver is a complete API
 * server.
 */
import type { ApplyOptions, Client, PatchType, WriteOptions } from '../../client/client.ts'
import type { Clock } from '../../clock.ts'
import type { Cluster } from '../../cache/cluster.ts'
import { timestamp } from '../../object/conditions.ts'
import { apiError } from '../../errors.ts'
import type { Informer, InformerState, WatchFailure } from '../../cache/informer.ts'
import { createLogger, type Logger } from '../../log.ts'
import { apiVersionOf, keyOf, kindName, type Immutable, type Key, type Kind, type Obj } from '../../object/object.ts'
import type { StopSignal } from '../../stop-signal.ts'
import { memoryInformers } from './memory-informers.ts'
import {
  copyOf,
  fieldsOf,
  isEqual,
  jsonPatch,
  type JsonOperation,
  merge,
  type Plain,
  withoutAbandoned,
} from './memory-patch.ts'
import { internFields } from './memory-fields.ts'
import { indexObject, isSynced, MemoryStores, notify } from './memory-store.ts'

interface MemoryRequest {
  verb: 'get' | 'list' | 'create' | 'update' | 'apply' | 'patch' | 'delete'
  kind: string
  key: Key
  subresource?: string | undefined
  lane?: 'request' | 'lease' | undefined
  body?: unknown
}

export interface MemoryCluster extends Cluster {
  /** All requests sent so far. */
  readonly requests: MemoryRequest[]
  /** Called before a request is processed; throw or reject to fail it, wait to delay it. */
  intercept: ((request: MemoryRequest, signal?: StopSignal) => void | Promise<void>) | undefined
  /** A write by another client, not recorded in the request log. */
  put<T extends Obj>(kind: Kind<T>, object: T): T
  remove<T extends Obj>(kind: Kind<T>, key: Key): void
  /** Reports every object as updated without a change, as a complete sync of a watch does. */
  relist(): void
  /** @default live; `starting` does not sync */
  setState(kind: Kind, state: InformerState): void
  /** Sets or clears the failure of the watch of the kind. */
  setFailure(kind: Kind, failure: WatchFailure | undefined): void
  readonly log: Logger
  readonly lines: string[]
  isClosed: boolean
}

/** Supports `key` and `key=value`, which tests use. */
function labelled(selector = ''): (object: Obj) => boolean {
  const [label = '', value] = selector.split('=')
  return ({ metadata: { labels = {} } }) =>
    label === '' || (value === undefined ? label in labels : labels[label] === value)
}

/** @param clock sets creation and deletion times. @default no creation times, and 2030-01-01 as the time of every deletion */
export function memoryCluster(name = 'local', manager = 'test', clock?: Pick<Clock, 'now'>): MemoryCluster {
  const stores = new MemoryStores()
  const healthListeners = new Set<(informer: Informer<Obj>) => void>()
  const informers = memoryInformers(stores, healthListeners)
  const lines: string[] = []
  let version = 100
  let uid = 0

  function fail(verb: string, kind: Kind, key: Key, http: number, reason: string): never {
    throw apiError(`${verb} ${kindName(kind)} ${key}`, http, {
      kind: 'Status',
      apiVersion: 'v1',
      reason,
      message: reason,
    })
  }

  function write<T extends Obj>(kind: Kind<T>, object: T): T {
    const store = stores.of(kind)
    const key = keyOf(object)
    const old = store.objects.get(key)
    const { deletionTimestamp, finalizers = [] } = object.metadata
    if (old !== undefined && deletionTimestamp !== undefined && finalizers.length === 0) {
      drop(kind, key)
      return object
    }
    const isSpecChanged = !isEqual((old as { spec?: unknown })?.spec, (object as { spec?: unknown }).spec)
    const metadata = {
      ...object.metadata,
      uid: old?.metadata.uid ?? object.metadata.uid ?? `uid-${++uid}`,
      ...(clock !== undefined && {
        creationTimestamp:
          old?.metadata.creationTimestamp ?? object.metadata.creationTimestamp ?? timestamp(clock.now()),
      }),
      generation: (old?.metadata.generation ?? 0) + (isSpecChanged || old === undefined ? 1 : 0),
      resourceVersion: String(++version),
    }
    const stored: T = { ...object, apiVersion: apiVersionOf(kind), kind: kind.kind, metadata }
    store.objects.set(key, stored)
    for (const index of store.indexes.values()) indexObject(index, key, old, stored)
    notify(
      store,
      old === undefined ? { type: 'added', object: stored, initial: false } : { type: 'updated', old, object: stored },
    )
    return stored
  }

  function drop(kind: Kind, key: Key): void {
    const store = stores.of(kind)
    const object = store.objects.get(key)
    if (object === undefined) return
    store.objects.delete(key)
    for (const index of store.indexes.values()) indexObject(index, key, object, undefined)
    notify(store, { type: 'deleted', object })
  }

  async function admit(request: MemoryRequest, signal?: StopSignal): Promise<void> {
    cluster.requests.push(request)
    await cluster.intercept?.(request, signal)
  }

  function read<T extends Obj>(kind: Kind<T>, key: Key): T | undefined {
    return stores.of(kind).objects.get(key) as T | undefined
  }

  function getOrFail<T extends Obj>(verb: string, kind: Kind<T>, key: Key): T {
    return read(kind, key) ?? fail(verb, kind, key, 404, 'NotFound')
  }

  /** As the real client. The watch of this cluster reports a write before the response. */
  async function tracked<T extends Obj>(kind: Kind<T>, key: Key, send: () => Promise<T>): Promise<T> {
    const { ownWrites } = stores.of(kind)
    let resourceVersion: string | undefined
    ownWrites.begin(key)
    try {
      const written = await send()
      resourceVersion = written.metadata.resourceVersion
      return written
    } finally {
      ownWrites.end(key, resourceVersion)
    }
  }

  async function replace<T extends Obj>(kind: Kind<T>, given: T | Immutable<T>, options?: WriteOptions): Promise<T> {
    const object = structuredClone(given) as T
    const key = keyOf(object)
    await admit(
      {
        verb: 'update',
        kind: kindName(kind),
        key,
        subresource: options?.subresource,
        lane: options?.lane,
        body: object,
      },
      options?.signal,
    )
    const live = getOrFail('update', kind, key)
    const { resourceVersion } = object.metadata
    if (resourceVersion !== undefined && resourceVersion !== live.metadata.resourceVersion)
      fail('update', kind, key, 409, 'Conflict')
    return write(kind, object)
  }

  async function applyObject<T extends Obj>(
    kind: Kind<T>,
    intent: T | Immutable<T>,
    options?: ApplyOptions,
  ): Promise<T> {
    const key = keyOf(intent)
    const { subresource } = options ?? {}
    await admit({ verb: 'apply', kind: kindName(kind), key, subresource, body: intent }, options?.signal)
    const live = read(kind, key)
    if (live === undefined && subresource !== undefined) fail('apply', kind, key, 404, 'NotFound')
    const { uid: wantedUid } = intent.metadata
    if (wantedUid !== undefined && wantedUid !== live?.metadata.uid) fail('apply', kind, key, 409, 'Conflict')
    const by = options?.fieldManager ?? manager
    const entries = live?.metadata.managedFields ?? []
    const others = entries.filter((entry) => entry.manager !== by || entry.subresource !== subresource)
    const fieldsV1 = internFields(
      fieldsOf({
        ...(intent as Plain),
        apiVersion: undefined,
        kind: undefined,
        metadata: { ...intent.metadata, name: undefined, namespace: undefined, uid: undefined },
      }),
    )
    const entry = {
      manager: by,
      operation: 'Apply' as const,
      fieldsV1,
      ...(subresource !== undefined && { subresource }),
    }
    const before = entries.find((each) => !others.includes(each))?.fieldsV1
    const kept =
      before === undefined
        ? live
        : withoutAbandoned(
            live,
            before,
            fieldsV1,
            others.map((each) => each.fieldsV1 as Plain),
          )
    const merged = merge(kept ?? {}, copyOf(intent)) as Obj
    merged.metadata.managedFields = [...others, entry]
    const isSame = live !== undefined && isEqual(live, merged)
    return isSame ? live : write(kind, merged as never)
  }

  async function patchObject<T extends Obj>(
    kind: Kind<T>,
    key: Key,
    type: PatchType,
    patch: unknown,
    options?: WriteOptions,
  ): Promise<T> {
    const { subresource, signal } = options ?? {}
    await admit({ verb: 'patch', kind: kindName(kind), key, body: patch, subresource }, signal)
    const live = structuredClone(getOrFail('patch', kind, key))
    if (type !== 'json') return write(kind, merge(live, patch) as never)
    const failPatch = () => fail('patch', kind, key, 422, 'Invalid')
    return write(kind, jsonPatch(live, patch as JsonOperation[], failPatch) as never)
  }

  const client: Client = {
    async get(kind, key, options) {
      await admit({ verb: 'get', kind: kindName(kind), key, lane: options?.lane }, options?.signal)
      return getOrFail('get', kind, key)
    },
    async find(kind, key, options) {
      await admit({ verb: 'get', kind: kindName(kind), key, lane: options?.lane }, options?.signal)
      return read(kind, key)
    },
    async list(kind, options) {
      await admit({ verb: 'list', kind: kindName(kind), key: '' }, options?.signal)
      const items = [...stores.of(kind).objects.values()].filter(labelled(options?.labelSelector)) as never[]
      return {
        apiVersion: kind.version,
        kind: `${kind.kind}List`,
        metadata: { resourceVersion: String(version) },
        items,
      }
    },
    create: async (kind, object, options) => {
      const key = keyOf(object)
      return tracked(kind, key, async () => {
        await admit({ verb: 'create', kind: kindName(kind), key, lane: options?.lane, body: object }, options?.signal)
        if (read(kind, key) !== undefined) fail('create', kind, key, 409, 'AlreadyExists')
        return write(kind, structuredClone(object) as never)
      })
    },
    update: async (kind, object, options) => tracked(kind, keyOf(object), async () => replace(kind, object, options)),
    updateStatus: async (kind, object, options) => client.update(kind, object, { ...options, subresource: 'status' }),
    apply: async (kind, intent, options) =>
      tracked(kind, keyOf(intent), async () => applyObject(kind, intent, options)),
    patch: async (kind, key, type, patch, options) =>
      tracked(kind, key, async () => patchObject(kind, key, type, patch, options)),
    async delete(kind, key, options) {
      await admit({ verb: 'delete', kind: kindName(kind), key, body: options?.precondition }, options?.signal)
      const live = getOrFail('delete', kind, key)
      const { uid: wantedUid, resourceVersion } = options?.precondition ?? {}
      if (wantedUid !== undefined && wantedUid !== live.metadata.uid) fail('delete', kind, key, 409, 'Conflict')
      if (resourceVersion !== undefined && resourceVersion !== live.metadata.resourceVersion)
        fail('delete', kind, key, 409, 'Conflict')
      if ((live.metadata.finalizers ?? []).length === 0) drop(kind, key)
      else if (live.metadata.deletionTimestamp === undefined)
        write(kind, {
          ...live,
          metadata: {
            ...live.metadata,
            deletionTimestamp: clock === undefined ? '2030-01-01T00:00:00Z' : timestamp(clock.now()),
          },
        })
    },
    deleteCollection: async () => Promise.reject(new Error('not in memory')),
    request: async () => Promise.reject(new Error('not in memory')),
    watch: () => {
      throw new Error('not in memory')
    },
  }

  const cluster: MemoryCluster = {
    name,
    client,
    informers,
    requests: [],
    intercept: undefined,
    put: write,
    remove: drop,
    relist() {
      for (const store of stores.all())
        for (const object of store.objects.values()) notify(store, { type: 'updated', old: object, object })
    },
    setState(kind, state) {
      const store = stores.of(kind)
      store.state = state
      if (isSynced(state)) for (const wake of store.waiters) wake()
    },
    setFailure(kind, failure) {
      stores.of(kind).failure = failure
      for (const listener of healthListeners) listener(informers.informer(kind))
    },
    reconfigure: () => true,
    lines,
    log: createLogger({ level: 'debug', destination: { write: (line: string) => lines.push(line) } }),
    isClosed: false,
    guardWrites: () => undefined,
    close: async () => {
      cluster.isClosed = true
    },
  }
  return cluster
}
