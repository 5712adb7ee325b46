/**
 * The typed client: one method per API verb, for any kind token; a dynamic client is the same client with `Kind<Obj>`.
 *
 * Guarantees: writes are server-side applies with our field manager unless another verb is asked for; refusals are the
 * typed errors of errors.ts; what a write returns is offered to the cache, so that a later cached read sees it.
 */
import { DecodeError } from './errors.ts'
import { apiVersionOf, collectionPath, keyOf, objectPath } from './object.ts'
import type { Immutable, Key, Kind, List, Obj, Status } from './object.ts'
import { errorOf, type Rest, type RestRequest } from './rest.ts'
import { watchEvents } from './watch.ts'
import { readWritten, type ReadOwnFields } from './written.ts'

export interface GetOptions {
  signal?: AbortSignal
  subresource?: string
  /** @default request */
  lane?: 'request' | 'lease'
}

export interface ListOptions {
  /** Only objects of this namespace. @default all namespaces */
  namespace?: string
  labelSelector?: string
  fieldSelector?: string
  limit?: number
  continue?: string
  resourceVersion?: string
  resourceVersionMatch?: 'NotOlderThan' | 'Exact'
  signal?: AbortSignal
}

export interface WriteOptions {
  /** Field manager. @default the client's own, given at construction */
  fieldManager?: string
  dryRun?: boolean
  signal?: AbortSignal
  subresource?: string
  /** The whole exchange, retries included. @default 30 s */
  deadlineMs?: number
  /** @default request */
  lane?: 'request' | 'lease'
  /**
   * Leaves managedFields out of what is returned: half of an answer, which is then not parsed. What is returned is shared
   * with the cache and must not be changed. @default false
   */
  isLean?: boolean
}

export interface ApplyOptions extends WriteOptions {
  /** Take over fields that another manager owns. @default true */
  force?: boolean
}

export interface DeleteOptions {
  /** Delete only this very object: a server-side compare, so that a stale view never deletes a recreated object. */
  precondition?: { uid?: string; resourceVersion?: string }
  propagationPolicy?: 'Background' | 'Foreground' | 'Orphan'
  gracePeriodSeconds?: number
  dryRun?: boolean
  signal?: AbortSignal
}

export type PatchType = 'merge' | 'json' | 'strategic'

export interface WatchOptions {
  namespace?: string
  labelSelector?: string
  fieldSelector?: string
  /** Where to begin. @default 0: what the server has cached first, as added objects, then what follows */
  resourceVersion?: string
  signal?: AbortSignal
}

export interface WatchEvent<T extends Obj> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'
  readonly object: T
}

/** A call outside the typed verbs: discovery, health, token requests. */
export interface RawRequest {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Absolute path without query, e.g. `/version`. */
  path: string
  query?: Readonly<Record<string, string | undefined>>
  headers?: Readonly<Record<string, string>>
  body?: string | Buffer
  signal?: AbortSignal
  /** The whole exchange, retries included. @default 30 s */
  deadlineMs?: number
  /** `lease` has a connection of its own, so that a renewal never waits behind anything else. @default request */
  lane?: 'request' | 'lease'
}

export interface RawResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

/** Called once per HTTP exchange. `code` is the HTTP status, or `<error>` when no answer came (client-go's label). */
/** One exchange with an API server, also one that got no answer (`code` is then `<error>`). */
export interface ObservedRequest {
  readonly code: string
  readonly method: string
  readonly host: string
  readonly durationMs: number
  readonly sentBytes: number
  /** Of the whole body; 0 for a stream, whose length is not known. */
  readonly receivedBytes: number
  /** 0 for the first attempt. */
  readonly retry: number
}

export interface RequestObserver {
  request(exchange: ObservedRequest): void
  /** A watch or list had to be started again. */
  restart?(event: { kind: string; reason: string }): void
}

/** Reads go to the server; see `Reader` in cache.ts for cached reads. */
export interface Client {
  /** Rejects with `NotFound`. */
  get<T extends Obj>(kind: Kind<T>, key: Key, options?: GetOptions): Promise<T>
  /** Like `get`, but absence is a value. */
  find<T extends Obj>(kind: Kind<T>, key: Key, options?: Omit<GetOptions, 'subresource'>): Promise<T | undefined>
  list<T extends Obj>(kind: Kind<T>, options?: ListOptions): Promise<List<T>>
  /** One raw watch: ends when the server ends it, throws `Gone` and others. Informers are the usual way. */
  watch<T extends Obj>(kind: Kind<T>, options?: WatchOptions): AsyncGenerator<WatchEvent<T>, void, undefined>
  create<T extends Obj>(kind: Kind<T>, object: T | Immutable<T>, options?: WriteOptions): Promise<T>
  update<T extends Obj>(kind: Kind<T>, object: T | Immutable<T>, options?: WriteOptions): Promise<T>
  /** Server-side apply. `intent` holds only what we want to own; apiVersion and kind are added. */
  apply<T extends Obj>(kind: Kind<T>, intent: T | Immutable<T>, options?: ApplyOptions): Promise<T>
  patch<T extends Obj>(kind: Kind<T>, key: Key, type: PatchType, patch: unknown, options?: WriteOptions): Promise<T>
  delete<T extends Obj>(kind: Kind<T>, key: Key, options?: DeleteOptions): Promise<void>
  deleteCollection<T extends Obj>(kind: Kind<T>, options: ListOptions & DeleteOptions): Promise<void>
  /** Replaces the status only; `object` carries the new status and the resourceVersion it was based on. */
  updateStatus<T extends Obj>(kind: Kind<T>, object: T | Immutable<T>, options?: WriteOptions): Promise<T>
  /** Any status is an answer here; only transport failures reject. 401 and Retry-After are handled as everywhere. */
  request(request: RawRequest): Promise<RawResponse>
}

export interface ClientOptions {
  /** @default seamark */
  fieldManager?: string
  /** Where write results go; see `Informers.offer`. */
  cache?: {
    offer<T extends Obj>(kind: Kind<T>, written: T, readOwnFields?: ReadOwnFields): void
    offerDeleted<T extends Obj>(kind: Kind<T>, key: Key, uid?: string): void
  }
}

const PATCH_TYPES: Record<PatchType | 'apply', string> = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
}

const JSON_TYPE = { 'content-type': 'application/json' }

export function createClient(rest: Rest, options: ClientOptions = {}): Client {
  const { fieldManager = 'seamark', cache } = options

  async function call<R>(request: RestRequest): Promise<R> {
    return answerOf(request, (body) => JSON.parse(body.toString('utf8')) as R)
  }

  async function answerOf<R>(request: RestRequest, parse: (body: Buffer) => R): Promise<R> {
    const response = await rest.call(request)
    if (response.status >= 300) throw errorOf(request, response)
    try {
      return parse(response.body)
    } catch (cause) {
      throw new DecodeError(`${request.method} ${request.path}: the answer is not JSON`, { cause })
    }
  }

  async function write<T extends Obj>(kind: Kind<T>, write: WriteOptions, request: RestRequest): Promise<T> {
    const complete = {
      ...request,
      query: {
        fieldManager: write.fieldManager ?? fieldManager,
        dryRun: write.dryRun === true ? 'All' : undefined,
        ...request.query,
      },
      ...passOn(write),
    }
    const { value, readOwnFields } =
      write.isLean === true
        ? await answerOf(complete, readWritten)
        : { value: await call<T>(complete), readOwnFields: undefined }
    const written = value as T
    // A subresource may answer with another kind (Scale, TokenRequest).
    if (cache !== undefined && write.dryRun !== true && written.kind === kind.kind)
      cache.offer(kind, written, readOwnFields)
    return written
  }

  const client: Client = {
    get: async (kind, key, { subresource, ...get } = {}) => {
      return call({ method: 'GET', path: objectPath(kind, key, subresource), ...passOn(get) })
    },
    find: async (kind, key, find = {}) => {
      const request: RestRequest = { method: 'GET', path: objectPath(kind, key), ...passOn(find) }
      const response = await rest.call(request)
      if (response.status === 404) return undefined
      if (response.status >= 300) throw errorOf(request, response)
      return JSON.parse(response.body.toString('utf8'))
    },
    list: async (kind, { namespace, signal, limit, ...query } = {}) => {
      return call({
        method: 'GET',
        path: collectionPath(kind, namespace),
        query: { ...query, limit: limit === undefined ? undefined : String(limit) },
        ...passOn({ signal }),
      })
    },
    watch: (kind, watch = {}) => watchEvents(rest, kind, watch),
    create: async (kind, object, write_ = {}) => {
      const { namespace } = object.metadata
      const { subresource } = write_
      const path =
        subresource === undefined ? collectionPath(kind, namespace) : objectPath(kind, keyOf(object), subresource)
      return write(kind, write_, { method: 'POST', path, headers: JSON_TYPE, body: bodyOf(kind, object) })
    },
    update: async (kind, object, write_ = {}) => {
      const path = objectPath(kind, keyOf(object), write_.subresource)
      // With a resourceVersion a repeated update can only conflict.
      const isIdempotent = object.metadata.resourceVersion !== undefined
      return write(kind, write_, {
        method: 'PUT',
        path,
        headers: JSON_TYPE,
        body: bodyOf(kind, object),
        isIdempotent,
      })
    },
    updateStatus: async (kind, object, write_ = {}) =>
      client.update(kind, object, { ...write_, subresource: 'status' }),
    apply: async (kind, intent, { force = true, ...write_ } = {}) => {
      return write(kind, write_, {
        method: 'PATCH',
        path: objectPath(kind, keyOf(intent), write_.subresource),
        headers: { 'content-type': PATCH_TYPES.apply },
        query: { force: force ? 'true' : undefined },
        body: bodyOf(kind, intent),
        isIdempotent: true,
      })
    },
    patch: async (kind, key, type, patch, write_ = {}) => {
      return write(kind, write_, {
        method: 'PATCH',
        path: objectPath(kind, key, write_.subresource),
        headers: { 'content-type': PATCH_TYPES[type] },
        body: JSON.stringify(patch),
        // A JSON patch may add to a list, a strategic one too; a merge patch only sets.
        isIdempotent: type === 'merge',
      })
    },
    delete: async (kind, key, delete_ = {}) => {
      const answer = await call<Status | Obj>({
        method: 'DELETE',
        path: objectPath(kind, key),
        headers: JSON_TYPE,
        body: deleteBody(delete_),
        ...passOn(delete_),
      })
      if (cache === undefined || delete_.dryRun === true) return
      if (isStatus(answer)) cache.offerDeleted(kind, key, answer.details?.uid)
      // Some kinds answer with the object: still there when it waits for finalizers or grace, else already gone.
      else if (answer.metadata.deletionTimestamp === undefined) cache.offerDeleted(kind, key, answer.metadata.uid)
      else if (answer.kind === kind.kind) cache.offer(kind, answer as typeof kind extends Kind<infer T> ? T : never)
    },
    deleteCollection: async (kind, { namespace, labelSelector, fieldSelector, ...delete_ }) => {
      await call<unknown>({
        method: 'DELETE',
        path: collectionPath(kind, namespace),
        query: { labelSelector, fieldSelector },
        headers: JSON_TYPE,
        body: deleteBody(delete_),
        ...passOn(delete_),
      })
    },
    request: async (request) => rest.call(request),
  }
  return client
}

function passOn(options: { signal?: AbortSignal | undefined; deadlineMs?: number; lane?: 'request' | 'lease' }) {
  return {
    ...(options.signal === undefined ? {} : { signal: options.signal }),
    ...(options.deadlineMs === undefined ? {} : { deadlineMs: options.deadlineMs }),
    ...(options.lane === undefined ? {} : { lane: options.lane }),
  }
}

function bodyOf<T extends Obj>(kind: Kind<T>, object: T | Immutable<T>): string {
  return JSON.stringify({ apiVersion: apiVersionOf(kind), kind: kind.kind, ...object })
}

function deleteBody({ precondition, propagationPolicy, gracePeriodSeconds, dryRun }: DeleteOptions): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'DeleteOptions',
    preconditions: precondition,
    propagationPolicy,
    gracePeriodSeconds,
    dryRun: dryRun === true ? ['All'] : undefined,
  })
}

function isStatus(answer: Status | Obj): answer is Status {
  return answer.kind === 'Status'
}
