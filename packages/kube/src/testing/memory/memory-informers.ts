/** The caches of the in-memory cluster: reads and subscriptions see every write at once. */
import type { Index } from '../../cache/cache.ts'
import type { CacheOptions, Change, Informer, Informers } from '../../cache/informer.ts'
import { type Immutable, type Kind, kindName, type Obj, parseKey } from '../../object/object.ts'
import { untilAborted } from '../../stop-signal.ts'
import { fieldsText } from './memory-fields.ts'
import { indexObject, isSynced, type MemoryIndex, type MemoryStores } from './memory-store.ts'

/** `healthListeners` are added by `onHealthChange`; the cluster calls them. */
export function memoryInformers(
  stores: MemoryStores,
  healthListeners: Set<(informer: Informer<Obj>) => void>,
): Informers {
  const created = new Map<string, Informer<Obj>>()
  const configured = new Map<string, CacheOptions<Obj>>()
  return {
    get: (kind, key) => stores.synced(kind).objects.get(key) as never,
    list: (kind, namespace) =>
      [...stores.synced(kind).objects]
        .filter(([key]) => namespace === undefined || parseKey(key).namespace === namespace)
        .map(([, object]) => object) as never[],
    by(index, value) {
      const store = stores.synced(index.kind)
      const keys = store.indexes.get(index.name)?.keys.get(value) ?? []
      return [...keys].map((key) => store.objects.get(key)) as never[]
    },
    all: () => [...created.values()],
    retry: () => undefined,
    onHealthChange(listener) {
      healthListeners.add(listener)
      return () => healthListeners.delete(listener)
    },
    configure: (kind, options) => void configured.set(kindName(kind), options as unknown as CacheOptions<Obj>),
    configured: <T extends Obj>(kind: Kind<T>) =>
      configured.get(kindName(kind)) as unknown as CacheOptions<T> | undefined,
    informer<T extends Obj>(kind: Kind<T>): Informer<T> {
      const store = stores.of(kind)
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
      const store = stores.of(kind)
      const index: MemoryIndex = { valuesOf: values as never, keys: new Map() }
      store.indexes.set(indexName, index)
      for (const [key, object] of store.objects) indexObject(index, key, undefined, object)
      return { kind, name: indexName }
    },
    findKind: ({ apiVersion = '', kind = '' }) => stores.findKind(apiVersion, kind),
    ownWrites: (kind) => stores.of(kind).ownWrites,
    offer: () => undefined,
    offerDeleted: () => undefined,
    ownFields(kind, key, by, subresource) {
      const entry = stores
        .of(kind)
        .objects.get(key)
        ?.metadata.managedFields?.find((each) => each.manager === by && each.subresource === subresource)
      return entry === undefined ? undefined : fieldsText(entry.fieldsV1 ?? {})
    },
    start: untilAborted,
  }
}
