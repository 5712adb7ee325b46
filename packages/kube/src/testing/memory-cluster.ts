/**
 * An in-memory cluster for tests of the runtime itself: enough API semantics to run controllers, every request recorded
 * and interceptable, no sockets. Behaviour of a real server is tested with one; packages/apiserver is a complete API
 * server.
 */
import type { Index } from '../cache/cache.ts'
import type { ApplyOptions, Client, PatchType, WriteOptions } from '../client/client.ts'
import type { Clock } from '../clock.ts'
import type { Cluster } from '../cache/cluster.ts'
import { timestamp } from '../object/conditions.ts'
import { apiError, NotSynced } from '../errors.ts'
import type { CacheOptions, Change, Informer, Informers, InformerState, WatchFailure } from '../cache/informer.ts'
import { createLogger, type Logger } from '../log.ts'
import { OwnWrites } from '../client/own-writes.ts'
import {
  apiVersionOf,
  keyOf,
  kindName,
  parseKey,
  type Immutable,
  type Key,
  type Kind,
  type Obj,
} from '../object/object.ts'
import { untilAborted, type StopSignal } from '../stop-signal.ts'

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

interface Store {
  objects: Map<Key, Obj>
  handlers: Set<{ handle: (change: Change<Obj>) => void; onError?: ((error: unknown) => void) | undefined }>
  state: InformerState
  waiters: Set<() => void>
  indexes: Map<string, MemoryIndex>
  ownWrites: OwnWrites
  failure: WatchFailure | undefined
}

interface MemoryIndex {
  readonly valuesOf: (object: Immutable<Obj>) => readonly string[]
  readonly keys: Map<string, Set<Key>>
}

function indexObject({ valuesOf, keys }: MemoryIndex, key: Key, old: Obj | undefined, now: Obj | undefined): void {
  for (const value of old === undefined ? [] : valuesOf(old)) keys.get(value)?.delete(key)
  for (const value of now === undefined ? [] : valuesOf(now)) {
    const found = keys.get(value)
    if (found === undefined) keys.set(value, new Set([key]))
    else found.add(key)
  }
}

/** Supports `key` and `key=value`, which tests use. */
function labelled(selector = ''): (object: Obj) => boolean {
  const [label = '', value] = selector.split('=')
  return ({ metadata: { labels = {} } }) =>
    label === '' || (value === undefined ? label in labels : labels[label] === value)
}

const isSynced = (state: InformerState) => state !== 'starting' && state !== 'syncing'

/** @param clock sets creation and deletion times. @default no creation times, and 2030-01-01 as the time of every deletion */
export function memoryCluster(name = 'local', manager = 'test', clock?: Pick<Clock, 'now'>): MemoryCluster {
  const stores = new Map<string, Store>()
  const tokens = new Map<string, Kind>()
  const created = new Map<string, Informer<Obj>>()
  const configured = new Map<string, CacheOptions<Obj>>()
  const healthListeners = new Set<(informer: Informer<Obj>) => void>()
  const lines: string[] = []
  let version = 100
  let uid = 0

  function storeOf(kind: Kind): Store {
    tokens.set(`${apiVersionOf(kind)} ${kind.kind}`, kind)
    let store = stores.get(kindName(kind))
    if (store === undefined) {
      store = {
        objects: new Map(),
        handlers: new Set(),
        state: 'live',
        waiters: new Set(),
        indexes: new Map(),
        ownWrites: new OwnWrites(),
        failure: undefined,
      }
      stores.set(kindName(kind), store)
    }
    return store
  }

  function fail(verb: string, kind: Kind, key: Key, http: number, reason: string): never {
    throw apiError(`${verb} ${kindName(kind)} ${key}`, http, {
      kind: 'Status',
      apiVersion: 'v1',
      reason,
      message: reason,
    })
  }

  function notify(store: Store, change: Change<Obj>): void {
    for (const subscriber of store.handlers) {
      try {
        subscriber.handle(change)
      } catch (error) {
        store.handlers.delete(subscriber)
        subscriber.onError?.(error)
      }
    }
  }

  function write<T extends Obj>(kind: Kind<T>, object: T): T {
    const store = storeOf(kind)
    const key = keyOf(object)
    const old = store.objects.get(key)
    const { deletionTimestamp, finalizers = [] } = object.metadata
    if (old !== undefined && deletionTimestamp !== undefined && finalizers.length === 0) {
      drop(kind, key)
      return object
    }
    const isSpecChanged =
      JSON.stringify((old as { spec?: unknown })?.spec) !== JSON.stringify((object as { spec?: unknown }).spec)
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
    const store = storeOf(kind)
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
    return storeOf(kind).objects.get(key) as T | undefined
  }

  function getOrFail<T extends Obj>(verb: string, kind: Kind<T>, key: Key): T {
    return read(kind, key) ?? fail(verb, kind, key, 404, 'NotFound')
  }

  /** As the real client. The watch of this cluster reports a write before the response. */
  async function tracked<T extends Obj>(kind: Kind<T>, key: Key, send: () => Promise<T>): Promise<T> {
    const { ownWrites } = storeOf(kind)
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
    const by = options?.fieldManager ?? manager
    const entries = live?.metadata.managedFields ?? []
    const others = entries.filter((entry) => entry.manager !== by || entry.subresource !== subresource)
    const fieldsV1 = fieldsOf({
      ...(intent as Plain),
      apiVersion: undefined,
      kind: undefined,
      metadata: { ...intent.metadata, name: undefined, namespace: undefined, uid: undefined },
    })
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
            before as Plain,
            fieldsV1,
            others.map((each) => each.fieldsV1 as Plain),
          )
    const merged = merge(kept ?? {}, structuredClone(intent)) as Obj
    merged.metadata.managedFields = [...others, entry]
    const isSame = live !== undefined && JSON.stringify(live) === JSON.stringify(merged)
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
      const items = [...storeOf(kind).objects.values()].filter(labelled(options?.labelSelector)) as never[]
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

  function synced(kind: Kind): Store {
    const store = storeOf(kind)
    if (!isSynced(store.state)) throw new NotSynced(`${kindName(kind)} is not synced`)
    return store
  }

  const informers: Informers = {
    get: (kind, key) => synced(kind).objects.get(key) as never,
    list: (kind, namespace) =>
      [...synced(kind).objects]
        .filter(([key]) => namespace === undefined || parseKey(key).namespace === namespace)
        .map(([, object]) => object) as never[],
    by(index, value) {
      const store = synced(index.kind)
      const keys = store.indexes.get(index.name)?.keys.get(value) ?? []
      return [...keys].map((key) => store.objects.get(key)) as never[]
    },
    all: () => [...created.values()],
    onHealthChange(listener) {
      healthListeners.add(listener)
      return () => healthListeners.delete(listener)
    },
    configure: (kind, options) => void configured.set(kindName(kind), options as unknown as CacheOptions<Obj>),
    configured: <T extends Obj>(kind: Kind<T>) =>
      configured.get(kindName(kind)) as unknown as CacheOptions<T> | undefined,
    informer<T extends Obj>(kind: Kind<T>): Informer<T> {
      const store = storeOf(kind)
      const informer: Informer<T> = {
        kind,
        subscribe(handle, { onError, onReplayed } = {}) {
          const subscriber = { handle: handle as (change: Change<Obj>) => void, onError }
          store.handlers.add(subscriber)
          for (const object of store.objects.values()) handle({ type: 'added', object: object as never, initial: true })
          onReplayed?.()
          return () => store.handlers.delete(subscriber)
        },
        get hasSynced() {
          return isSynced(store.state)
        },
        async synced(signal) {
          while (!isSynced(store.state)) {
            signal?.throwIfAborted()
            await new Promise<void>((resolve, reject) => {
              store.waiters.add(resolve)
              signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
            })
          }
        },
        get state() {
          return store.state
        },
        get size() {
          return store.objects.size
        },
        estimateBytes: () => 0,
        get failure() {
          return store.failure
        },
        get lastReceivedAt() {
          return isSynced(store.state) ? 0 : undefined
        },
      }
      created.set(kindName(kind), informer)
      return informer
    },
    index<T extends Obj>(
      kind: Kind<T>,
      indexName: string,
      values: (object: Immutable<T>) => readonly string[],
    ): Index<T> {
      const store = storeOf(kind)
      const index: MemoryIndex = { valuesOf: values as never, keys: new Map() }
      store.indexes.set(indexName, index)
      for (const [key, object] of store.objects) indexObject(index, key, undefined, object)
      return { kind, name: indexName }
    },
    findKind: ({ apiVersion = '', kind = '' }) => tokens.get(`${apiVersion} ${kind}`),
    ownWrites: (kind) => storeOf(kind).ownWrites,
    offer: () => undefined,
    offerDeleted: () => undefined,
    ownFields(kind, key, by, subresource) {
      const entry = read(kind, key)?.metadata.managedFields?.find(
        (each) => each.manager === by && each.subresource === subresource,
      )
      return entry === undefined ? undefined : JSON.stringify(entry.fieldsV1)
    },
    start: untilAborted,
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
      for (const store of stores.values())
        for (const object of store.objects.values()) notify(store, { type: 'updated', old: object, object })
    },
    setState(kind, state) {
      const store = storeOf(kind)
      store.state = state
      if (isSynced(state)) for (const wake of store.waiters) wake()
    },
    setFailure(kind, failure) {
      storeOf(kind).failure = failure
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

type Plain = Record<string, unknown>

function isPlain(value: unknown): value is Plain {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** RFC 7386. */
function merge(target: unknown, patch: unknown): unknown {
  if (!isPlain(patch)) return patch
  const result: Plain = isPlain(target) ? { ...target } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key]
    else if (value !== undefined) result[key] = merge(result[key], value)
  }
  return result
}

/** For a schema in which every list is atomic. */
function fieldsOf(value: Plain): Plain {
  const entries = Object.entries(value).filter(
    ([, below]) => below !== undefined && (!isPlain(below) || Object.values(below).some((each) => each !== undefined)),
  )
  return Object.fromEntries(entries.map(([key, below]) => [`f:${key}`, isPlain(below) ? fieldsOf(below) : {}]))
}

/** Fields that the previous entry of the manager has and the new one does not are removed, unless another manager has them. */
function withoutAbandoned(value: unknown, before: Plain, now: Plain, others: readonly Plain[]): unknown {
  if (!isPlain(value)) return value
  const result = { ...value }
  for (const [field, below] of Object.entries(before)) {
    const name = field.slice('f:'.length)
    const shared = others.map((fields) => fields[field]).filter(isPlain)
    const next = now[field]
    if (isPlain(next) && isPlain(below)) result[name] = withoutAbandoned(result[name], below, next, shared)
    else if (shared.length === 0) delete result[name]
  }
  return result
}

interface JsonOperation {
  op: 'add' | 'remove' | 'replace' | 'test'
  path: string
  value?: unknown
}

/** The subset of RFC 6902 used by the runtime: finalizers. */
function jsonPatch(object: Obj, operations: readonly JsonOperation[], failPatch: () => never): Obj {
  for (const { op, path, value } of operations) {
    const segments = path.split('/').slice(1)
    const last = segments.pop() ?? ''
    const parent = segments.reduce<unknown>((node, segment) => (node as Plain | undefined)?.[segment], object) as
      | Plain
      | unknown[]
    if (op === 'test') {
      if (JSON.stringify((parent as Plain | undefined)?.[last]) !== JSON.stringify(value)) failPatch()
    } else if (Array.isArray(parent)) {
      if (op === 'add') parent.splice(last === '-' ? parent.length : Number(last), 0, value)
      else if (op === 'remove') parent.splice(Number(last), 1)
      else parent[Number(last)] = value
    } else if (op === 'remove') delete parent[last]
    else parent[last] = value
  }
  return object
}
