/** As much of a cluster as tests of records need: objects in a Map, a watch, and every request seen. */
import { type Change, type Client, createLogger, type Informer, type InformerState } from '@seamark/kube'
import { type Immutable, type Key, keyOf, type Kind, type Obj } from '@seamark/kube/object'

interface SeenRequest {
  readonly verb: 'get' | 'list' | 'create' | 'update' | 'apply' | 'patch' | 'delete'
  readonly kind: string
  readonly key: string
}

export interface FakeCluster {
  readonly client: Client
  readonly requests: SeenRequest[]
  /** Called before a request acts; throws to fail it. */
  intercept: ((request: SeenRequest) => void) | undefined
  /** As somebody else, past the request log. */
  put<T extends Obj>(kind: Kind<T>, object: T): T
  remove(kind: Kind, key: Key): void
  informer<T extends Obj>(kind: Kind<T>): Informer<T>
  setState(state: InformerState): void
}

export const silentLog = createLogger({ level: 'silent' })

export function fakeCluster(): FakeCluster {
  const stores = new Map<string, Map<Key, Obj>>()
  const handlers = new Map<string, Set<(change: Change<Obj>) => void>>()
  let version = 0
  let state: InformerState = 'live'
  const storeOf = (kind: Kind): Map<Key, Obj> => {
    const store = stores.get(kind.plural) ?? new Map<Key, Obj>()
    stores.set(kind.plural, store)
    return store
  }
  const tell = (kind: Kind, change: Change<Obj>): void => {
    for (const handler of handlers.get(kind.plural) ?? []) handler(change)
  }
  const put = <T extends Obj>(kind: Kind<T>, object: T): T => {
    const old = storeOf(kind).get(keyOf(object)) as (T & { spec?: unknown }) | undefined
    const isMoved = JSON.stringify(old?.spec) !== JSON.stringify((object as { spec?: unknown }).spec)
    const metadata = {
      ...object.metadata,
      uid: old?.metadata.uid ?? `uid-${++version}`,
      generation: (old?.metadata.generation ?? 0) + (isMoved ? 1 : 0),
      resourceVersion: String(++version),
    }
    const stored = { ...object, metadata }
    storeOf(kind).set(keyOf(object), stored)
    tell(
      kind,
      old === undefined ? { type: 'added', object: stored, initial: false } : { type: 'updated', old, object: stored },
    )
    return stored
  }
  const remove = (kind: Kind, key: Key): void => {
    const object = storeOf(kind).get(key)
    storeOf(kind).delete(key)
    if (object !== undefined) tell(kind, { type: 'deleted', object })
  }
  const admit = (verb: SeenRequest['verb'], kind: Kind, key: string): void => {
    cluster.requests.push({ verb, kind: kind.kind, key })
    cluster.intercept?.({ verb, kind: kind.kind, key })
  }
  const write = async <T extends Obj>(
    verb: SeenRequest['verb'],
    kind: Kind<T>,
    object: T | Immutable<T>,
  ): Promise<T> => {
    admit(verb, kind, keyOf(object))
    return put(kind, structuredClone(object) as T)
  }
  const find = async <T extends Obj>(kind: Kind<T>, key: Key): Promise<T | undefined> => {
    admit('get', kind, key)
    return storeOf(kind).get(key) as T | undefined
  }
  const client = {
    find,
    get: find,
    list: async (kind: Kind, { labelSelector = '' }: { labelSelector?: string } = {}) => {
      admit('list', kind, '')
      const [label = '', value] = labelSelector.split('=')
      const items = [...storeOf(kind).values()].filter(({ metadata: { labels = {} } }) =>
        value === undefined ? label === '' || labels[label] !== undefined : labels[label] === value,
      )
      return { metadata: {}, items }
    },
    create: async (kind: Kind, object: Obj) => write('create', kind, object),
    update: async (kind: Kind, object: Obj) => write('update', kind, object),
    updateStatus: async (kind: Kind, object: Obj) => write('update', kind, object),
    apply: async (kind: Kind, object: Obj) => write('apply', kind, object),
    patch: async (kind: Kind, key: Key, _type: string, patch: { metadata?: object }) => {
      admit('patch', kind, key)
      const old = storeOf(kind).get(key)
      return put(kind, { ...old, ...patch, metadata: { ...old?.metadata, ...patch.metadata } })
    },
    delete: async (kind: Kind, key: Key) => {
      admit('delete', kind, key)
      remove(kind, key)
    },
    deleteCollection: async (kind: Kind) => admit('delete', kind, ''),
    request: async () => ({ status: 200, headers: {}, body: Buffer.from('{}') }),
  } as unknown as Client
  const cluster: FakeCluster = {
    client,
    requests: [],
    intercept: undefined,
    put,
    remove,
    setState: (next) => (state = next),
    informer: <T extends Obj>(kind: Kind<T>): Informer<T> => ({
      kind,
      subscribe(handler) {
        const all = handlers.get(kind.plural) ?? new Set()
        handlers.set(kind.plural, all.add(handler as (change: Change<Obj>) => void))
        for (const object of storeOf(kind).values())
          handler({ type: 'added', object: object as Immutable<T>, initial: true })
        return () => all.delete(handler as (change: Change<Obj>) => void)
      },
      hasSynced: true,
      synced: async () => undefined,
      get state() {
        return state
      },
      get size() {
        return storeOf(kind).size
      },
      estimateBytes: () => 0,
      heardAt: undefined,
    }),
  }
  return cluster
}
