/**
 * The typed client: one method per API verb, for any kind token; a dynamic client is the same client with `Kind<Obj>`.
 *
 * Guarantees: writes are server-side applies with the client's field manager unless another verb is called; error
 * responses are the typed errors of errors.ts; the result of a write is offered to the cache, so that a later cached
 * read returns it.
 */
import { DecodeError } from '../errors.ts'
import { apiVersionOf, collectionPath, keyOf, objectPath } from '../object/object.ts'
import type { Immutable, Key, Kind, List, Obj, Status } from '../object/object.ts'
import type { OwnWrites } from './own-writes.ts'
import type { Rest, RestRequest } from './rest.ts'
import type { StopSignal } from '../stop-signal.ts'
import type { RawResponse } from '../transport/transport.ts'
import { watchEvents } from './watch.ts'
import { readWhole, readWritten, type ReadOwnFields } from './write-response.ts'

export interface GetOptions {
  signal?: StopSignal | undefined
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
  /** Limit of the response body in bytes, for servers that are not trusted. @default 512 MiB */
  maxBodyBytes?: number
  /** For the whole response. @default 30_000 */
  deadlineMs?: number
  signal?: StopSignal | undefined
}

export interface WriteOptions {
  /** Field manager. @default the client's own, given at construction */
  fieldManager?: string
  dryRun?: boolean
  signal?: StopSignal | undefined
  subresource?: string | undefined
  /** The whole exchange, retries included. @default 30 s */
  deadlineMs?: number
  /** @default request */
  lane?: 'request' | 'lease'
  /**
   * Omits managedFields from the returned object: they are half of a response, which is then not parsed. The returned
   * object is shared with the cache and must not be modified. @default false
   */
  isLean?: boolean
}

export interface ApplyOptions extends WriteOptions {
  /** Take over fields owned by other managers. @default true */
  force?: boolean
}

export interface DeleteOptions {
  /** Delete only this object: compared by the server, so that a stale view never deletes a recreated object. */
  precondition?: { uid?: string; resourceVersion?: string }
  propagationPolicy?: 'Background' | 'Foreground' | 'Orphan'
  gracePeriodSeconds?: number
  dryRun?: boolean
  signal?: StopSignal | undefined
}

export type PatchType = 'merge' | 'json' | 'strategic'

export interface WatchOptions {
  namespace?: string
  labelSelector?: string
  fieldSelector?: string
  /** The version to start at. @default 0: the objects in the server's cache as ADDED events, then changes */
  resourceVersion?: string
  signal?: StopSignal | undefined
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
  query?: Readonly<Record<string, string | undefined>> | undefined
  headers?: Readonly<Record<string, string>> | undefined
  body?: string | Buffer | undefined
  signal?: StopSignal | undefined
  /** The whole exchange, retries included. @default 30 s */
  deadlineMs?: number | undefined
  /** `lease` uses a separate connection, so that a renewal is never queued behind other requests. @default request */
  lane?: 'request' | 'lease' | undefined
  /** A longer answer is an error. @default 1 MiB */
  maxBodyBytes?: number | undefined
}

/**
 * One HTTP exchange, including those without a response. `code` is the HTTP status, or `<error>` without a response
 * (client-go's label).
 */
export interface ObservedRequest {
  readonly code: string
  readonly method: string
  readonly host: string
  readonly durationMs: number
  readonly sentBody: string | Buffer | undefined
  /** Bytes of the whole body; 0 for a stream, whose length is not known. */
  readonly receivedBytes: number
  /** 0 for the first attempt. */
  readonly retry: number
}

export interface RequestObserver {
  request(exchange: ObservedRequest): void
  /** A watch or list was restarted. */
  restart?(event: { kind: string; reason: string }): void
}

/** Reads from the server; see `Reader` in cache.ts for cached reads. */
export interface Client {
  /** Rejects with `NotFound`. */
  get<T extends Obj>(kind: Kind<T>, key: Key, options?: GetOptions): Promise<T>
  /** Like `get`, but returns undefined if the object does not exist. */
  find<T extends Obj>(kind: Kind<T>, key: Key, options?: Omit<GetOptions, 'subresource'>): Promise<T | undefined>
  list<T extends Obj>(kind: Kind<T>, options?: ListOptions): Promise<List<T>>
  /** One raw watch: returns when the server ends it, throws `Gone` and other errors. Prefer informers. */
  watch<T extends Obj>(kind: Kind<T>, options?: WatchOptions): AsyncGenerator<WatchEvent<T>, void, undefined>
  create<T extends Obj>(kind: Kind<T>, object: T | Immutable<T>, options?: WriteOptions): Promise<T>
  update<T extends Obj>(kind: Kind<T>, object: T | Immutable<T>, options?: WriteOptions): Promise<T>
  /** Server-side apply. `intent` holds only the fields to own; apiVersion and kind are added. */
  apply<T extends Obj>(kind: Kind<T>, intent: T | Immutable<T>, options?: ApplyOptions): Promise<T>
  patch<T extends Obj>(kind: Kind<T>, key: Key, type: PatchType, patch: unknown, options?: WriteOptions): Promise<T>
  delete<T extends Obj>(kind: Kind<T>, key: Key, options?: DeleteOptions): Promise<void>
  deleteCollection<T extends Obj>(kind: Kind<T>, options: ListOptions & DeleteOptions): Promise<void>
  /** Replaces only the status; `object` has the new status and the resourceVersion it was based on. */
  updateStatus<T extends Obj>(kind: Kind<T>, object: T | Immutable<T>, options?: WriteOptions): Promise<T>
  /**
   * Resolves with any status; only transport failures reject. 401 and Retry-After are handled as for other requests.
   */
  request(request: RawRequest): Promise<RawResponse>
}

export interface ClientOptions {
  /** @default seamark */
  fieldManager?: string
  /** Receives the results of writes; see `Informers.offer`. */
  cache?: {
    offer<T extends Obj>(kind: Kind<T>, written: T, readOwnFields?: ReadOwnFields): void
    offerDeleted<T extends Obj>(kind: Kind<T>, key: Key, uid?: string): void
    ownWrites(kind: Kind): OwnWrites
  }
}

const PATCH_TYPES: Record<PatchType | 'apply', { readonly 'content-type': string }> = {
  merge: { 'content-type': 'application/merge-patch+json' },
  json: { 'content-type': 'application/json-patch+json' },
  strategic: { 'content-type': 'application/strategic-merge-patch+json' },
  apply: { 'content-type': 'application/apply-patch+yaml' },
}

/** Of discovery, health and reviews. */
const MAX_RAW_BYTES = 2 ** 20
/** Of one object: at most 1.5 MiB in etcd, several times that when each character is escaped. */
const MAX_OBJECT_BYTES = 16 * 2 ** 20

const JSON_TYPE = { 'content-type': 'application/json' }

type Write<T extends Obj> = {
  readonly method: 'POST' | 'PUT' | 'PATCH'
  readonly headers: { readonly 'content-type': string }
  readonly isIdempotent: boolean
  readonly force?: boolean
} & (
  | { readonly object: T | Immutable<T>; /** @default that of the object */ readonly path?: string }
  | { readonly patch: unknown; readonly path: string; readonly key: Key }
)

export function createClient(rest: Rest, options: ClientOptions = {}): Client {
  const { fieldManager = 'seamark', cache } = options

  /** @param field which every answer of the kind has */
  async function call<R>(request: RestRequest, field?: 'metadata' | 'items'): Promise<R> {
    const response = await rest.call(request)
    if (response.status >= 300) throw rest.errorOf(request, response)
    return read(request, response.body, (body) => parseAnswer(body, field) as R)
  }

  function read<R>(request: RestRequest, body: Buffer, parse: (body: Buffer) => R): R {
    try {
      return parse(body)
    } catch {
      // Without the cause: JSON.parse repeats a part of the answer, which may have our credential.
      throw new DecodeError(`${rest.host}: ${request.method} ${request.path}: the answer is no object of Kubernetes`)
    }
  }

  /** One function with objects of one shape, because it runs for every object of a controller. */
  async function write<T extends Obj>(kind: Kind<T>, options: WriteOptions, request: Write<T>): Promise<T> {
    const isDryRun = options.dryRun === true
    const complete: RestRequest = {
      method: request.method,
      path: 'patch' in request ? request.path : (request.path ?? pathOf(kind, request.object, options.subresource)),
      headers: request.headers,
      body: 'patch' in request ? JSON.stringify(request.patch) : bodyOf(kind, request.object),
      isIdempotent: request.isIdempotent,
      query: {
        fieldManager: options.fieldManager ?? fieldManager,
        dryRun: isDryRun ? 'All' : undefined,
        force: request.force === true ? 'true' : undefined,
      },
      signal: options.signal,
      deadlineMs: options.deadlineMs,
      lane: options.lane,
      maxBodyBytes: MAX_OBJECT_BYTES,
    }
    const key = 'patch' in request ? request.key : keyOf(request.object)
    const ownWrites = isDryRun ? undefined : cache?.ownWrites(kind)
    let made: string | undefined
    ownWrites?.begin(key)
    try {
      const response = await rest.call(complete)
      if (response.status >= 300) throw rest.errorOf(complete, response)
      const { value, readOwnFields } = read(complete, response.body, options.isLean === true ? readWritten : readWhole)
      const written = value as T
      // A subresource may return another kind (Scale, TokenRequest).
      if (cache !== undefined && !isDryRun && written.kind === kind.kind) cache.offer(kind, written, readOwnFields)
      made = written.metadata?.resourceVersion
      return written
    } finally {
      ownWrites?.end(key, made)
    }
  }

  const client: Client = {
    get: async (kind, key, { subresource, signal, lane } = {}) => {
      return call(
        {
          method: 'GET',
          path: objectPath(kind, key, subresource),
          signal,
          lane,
          maxBodyBytes: MAX_OBJECT_BYTES,
        },
        'metadata',
      )
    },
    find: async (kind, key, { signal, lane } = {}) => {
      const request: RestRequest = {
        method: 'GET',
        path: objectPath(kind, key),
        signal,
        lane,
        maxBodyBytes: MAX_OBJECT_BYTES,
      }
      const response = await rest.call(request)
      if (response.status === 404) return undefined
      if (response.status >= 300) throw rest.errorOf(request, response)
      return read(request, response.body, (body) => parseAnswer(body, 'metadata')) as never
    },
    list: async (kind, { namespace, signal, limit, maxBodyBytes, deadlineMs, ...query } = {}) => {
      return call(
        {
          method: 'GET',
          path: collectionPath(kind, namespace),
          query: { ...query, limit: limit === undefined ? undefined : String(limit) },
          ...(maxBodyBytes !== undefined && { maxBodyBytes }),
          ...(deadlineMs !== undefined && { deadlineMs }),
          signal,
        },
        'items',
      )
    },
    watch: (kind, watch = {}) => watchEvents(rest, kind, watch),
    create: async (kind, object, write_ = {}) => {
      const isNew = write_.subresource === undefined
      const path = isNew ? { path: collectionPath(kind, object.metadata.namespace) } : {}
      return write(kind, write_, { method: 'POST', headers: JSON_TYPE, object, isIdempotent: false, ...path })
    },
    update: async (kind, object, write_ = {}) => {
      // With a resourceVersion a repeated update can only conflict.
      const isIdempotent = object.metadata.resourceVersion !== undefined
      return write(kind, write_, { method: 'PUT', headers: JSON_TYPE, object, isIdempotent })
    },
    updateStatus: async (kind, object, write_ = {}) =>
      client.update(kind, object, { ...write_, subresource: 'status' }),
    apply: (kind, object, write_ = {}) => {
      const force = write_.force ?? true
      return write(kind, write_, { method: 'PATCH', headers: PATCH_TYPES.apply, object, isIdempotent: true, force })
    },
    patch: async (kind, key, type, patch, write_ = {}) => {
      return write(kind, write_, {
        method: 'PATCH',
        headers: PATCH_TYPES[type],
        patch,
        key,
        path: objectPath(kind, key, write_.subresource),
        // JSON and strategic merge patches may append to a list; a merge patch only sets values.
        isIdempotent: type === 'merge',
      })
    },
    delete: async (kind, key, delete_ = {}) => {
      const answer = await call<Status | Obj>({
        method: 'DELETE',
        path: objectPath(kind, key),
        headers: JSON_TYPE,
        body: deleteBody(delete_),
        signal: delete_.signal,
        maxBodyBytes: MAX_OBJECT_BYTES,
      })
      if (cache === undefined || delete_.dryRun === true) return
      if (isStatus(answer)) cache.offerDeleted(kind, key, answer.details?.uid)
      // Some kinds return the object: it still exists while it waits for finalizers or a grace period, otherwise it is
      // deleted.
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
        signal: delete_.signal,
      })
    },
    request: async (request) => {
      const response = await rest.call({ ...request, maxBodyBytes: request.maxBodyBytes ?? MAX_RAW_BYTES })
      const body = rest.credentials.body(response.body)
      return body === response.body ? response : { ...response, body }
    },
  }
  return client
}

/** Throws when it is no JSON object, or one without the field. */
function parseAnswer(body: Buffer, field?: string): unknown {
  const value = JSON.parse(body.toString('utf8')) as unknown
  if (typeof value === 'object' && value !== null && (field === undefined || field in value)) return value
  throw new DecodeError('not an object')
}

function pathOf<T extends Obj>(kind: Kind<T>, object: T | Immutable<T>, subresource: string | undefined): string {
  return objectPath(kind, keyOf(object), subresource)
}

function bodyOf<T extends Obj>(kind: Kind<T>, object: T | Immutable<T>): string {
  const apiVersion = apiVersionOf(kind)
  const isNamed = object.apiVersion === apiVersion && object.kind === kind.kind
  return JSON.stringify(isNamed ? object : { apiVersion, kind: kind.kind, ...object })
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
