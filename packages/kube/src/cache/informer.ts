/**
 * Shared informers: one watch per (kind, selector, namespace, projection), independent of the number of controllers.
 */
import type { StoreChange } from './store-change.ts'
import type { Index, Reader } from './cache.ts'
import type { CacheLimits } from '../watch/cache-limits.ts'
import type { Immutable, Key, Kind, Obj } from '../object/object.ts'
import type { ReadOwnFields } from '../client/write-response.ts'
import type { OwnWrites } from '../client/own-writes.ts'

/**
 * Handlers see the event sequence of the watch: `old` is the object of the previous watch event, never an own write
 * that the watch has not confirmed.
 */
export type Change<T extends Obj> = StoreChange<T>

/**
 * `absent`: the server does not serve the kind (no CRD). The informer counts as synced and empty, and syncs once the
 * kind is served.
 */
export type InformerState = 'starting' | 'absent' | 'syncing' | 'live' | 'backoff'

/** A failed list or watch; cleared by the next successful response. */
export interface WatchFailure {
  /** `denied`: 401 or 403; `broken`: no answer; `busy`: 429, 503, 504; `internal`: 500; `over-limit`: see `limits`. */
  readonly reason: 'denied' | 'broken' | 'busy' | 'internal' | 'over-limit'
  /** Includes the message of the server if there is one. */
  readonly message: string
  /** Time of the first of consecutive failures, ms since the epoch. */
  readonly sinceMs: number
}

export interface Informer<T extends Obj> {
  readonly kind: Kind<T>
  /**
   * Replays the cached objects as initial adds, then delivers every change, in order per key. A handler that throws is
   * removed and its `onError` called; other handlers are not affected. Returns the unsubscribe function.
   */
  subscribe(handler: (change: Change<T>) => void, options?: SubscribeOptions): () => void
  readonly hasSynced: boolean
  /** Resolves at the first sync (or confirmed absence of the kind); rejects with the signal's reason. */
  synced(signal?: AbortSignal): Promise<void>
  readonly state: InformerState
  /** Cached objects; 0 before the first sync. */
  readonly size: number
  /**
   * Estimated size of the cached JSON in bytes, extrapolated from the first twenty objects. Serialises them on every
   * call.
   */
  estimateBytes(): number
  /** Why the server cannot be read, with its message; undefined after the next successful response. */
  readonly failure: WatchFailure | undefined
  /**
   * Time of the last data from the server (event, bookmark or list) on the monotonic clock; undefined before the first.
   */
  readonly lastReceivedAt: number | undefined
}

export interface SubscribeOptions {
  readonly onError?: (error: unknown) => void
  /**
   * Called after every object that was cached at the time of the call has been handled; a large replay takes several
   * event-loop turns.
   */
  readonly onReplayed?: () => void
}

export interface InformerOptions<T extends Obj> {
  /** @default all namespaces */
  namespace?: string
  labelSelector?: string
  fieldSelector?: string
  /**
   * `metadata` fetches only metadata; a function returns the object to cache (informers are shared by function
   * identity). It may replace and delete top-level members of its argument, but not change nested values, which may be
   * shared. @default full
   */
  projection?: 'full' | 'metadata' | ((object: T) => T)
  /**
   * Keep the FieldsV1 of this field manager for `ownFields`; all other managedFields are removed before parsing.
   * @default the cluster's own field manager, so that informers with and without this option share one watch
   */
  keepManagedFieldsOf?: string
  /** For servers that are not trusted. The options of the first informer of a set apply. @default none */
  limits?: CacheLimits
}

/** How a kind is cached by all informers of a process; see `Manager.cache`. */
export interface CacheOptions<T extends Obj> extends Omit<InformerOptions<T>, 'namespace'> {
  /** One watch in each of these namespaces. @default one watch of all namespaces */
  namespaces?: readonly string[]
}

export interface Informers extends Reader {
  /**
   * Sets the default options of every informer of the kind; options passed to `informer` take precedence. Throws if the
   * kind is already watched, or already configured with different options.
   */
  configure<T extends Obj>(kind: Kind<T>, options: CacheOptions<T>): void
  /** The options set by `configure`. */
  configured<T extends Obj>(kind: Kind<T>): CacheOptions<T> | undefined
  informer<T extends Obj>(kind: Kind<T>, options?: InformerOptions<T>): Informer<T>
  /** The server answers again: watches that wait after a failure are tried again within a second. */
  retry(): void
  /**
   * Calls the listener when an informer's `failure` is set, changes or is cleared, and on the first response of the
   * server. Returns the unsubscribe function.
   */
  onHealthChange(listener: (informer: Informer<Obj>) => void): () => void
  /** Every informer created so far, for metrics. */
  all(): readonly Informer<Obj>[]
  /**
   * `values` must be pure: it is called again with the old object when the object changes. Indexes are identified by
   * name.
   */
  index<T extends Obj>(kind: Kind<T>, name: string, values: (object: Immutable<T>) => readonly string[]): Index<T>
  /**
   * Read-your-writes: from now on reads return at least this version. Called by the cluster's client.
   * @param readOwnFields if `written` has no managedFields. @default read from `written`
   */
  offer<T extends Obj>(kind: Kind<T>, written: T, readOwnFields?: ReadOwnFields): void
  /**
   * The kind token of an object, among the kinds used with this cluster; undefined also if the object has no apiVersion
   * or kind.
   */
  findKind(object: { readonly apiVersion?: string; readonly kind?: string }): Kind | undefined
  /** Identifies watch events caused by own writes; see own-writes.ts. The cluster's client records its writes there. */
  ownWrites(kind: Kind): OwnWrites
  /** The object is known to be deleted: reads hide it before the watch reports the deletion. */
  offerDeleted<T extends Obj>(kind: Kind<T>, key: Key, uid?: string): void
  /**
   * FieldsV1 text of a manager's Apply entry, interned; UIDs in it are replaced by `UID_MARK` (managed-fields.ts).
   * Undefined when the manager owns nothing, or no informer of the kind keeps this manager's entry.
   */
  ownFields<T extends Obj>(kind: Kind<T>, key: Key, manager: string, subresource?: string): string | undefined
  /** Runs every informer, including those added later, until the signal aborts; resolves when all have stopped. */
  start(signal: AbortSignal): Promise<void>
}
