/**
 * Shared informers: one watch per (kind, selector, namespace, projection), whatever the number of controllers.
 */
import type { Index, Reader } from './cache.ts'
import type { CacheLimits } from '../watch/cache-limits.ts'
import type { Immutable, Key, Kind, Obj } from '../object/object.ts'
import type { ReadOwnFields } from '../client/write-response.ts'
import type { OwnWrites } from './own-writes.ts'

/** Handlers see the watch's own sequence: `old` is what the watch said before, never our own unconfirmed write. */
export type Change<T extends Obj> =
  | {
      readonly type: 'added'
      readonly object: Immutable<T>
      readonly initial: boolean
      /** The watch reports a version that a write of this process made. */
      readonly isOwnWrite?: boolean
    }
  | {
      readonly type: 'updated'
      readonly old: Immutable<T>
      readonly object: Immutable<T>
      readonly isOwnWrite?: boolean
    }
  | { readonly type: 'deleted'; readonly object: Immutable<T> }

/** `absent`: the server does not serve the kind (no CRD); the informer counts as synced and empty, and waits for it. */
export type InformerState = 'starting' | 'absent' | 'syncing' | 'live' | 'backoff'

/** A list or watch that failed and has not been answered since. */
export interface WatchFailure {
  /** `denied`: 401 or 403; `broken`: no answer; `busy`: 429, 503, 504; `internal`: 500; `over-limit`: see `limits`. */
  readonly reason: 'denied' | 'broken' | 'busy' | 'internal' | 'over-limit'
  /** With the server's own words where there are any. */
  readonly message: string
  /** Of the first failure in a row, ms since the epoch. */
  readonly sinceMs: number
}

export interface Informer<T extends Obj> {
  readonly kind: Kind<T>
  /**
   * Replays what is cached as initial adds, then every change, in order per key. A handler that throws is dropped and
   * its `onError` called; the stream and the other handlers go on. Returns the unsubscribe function.
   */
  subscribe(handler: (change: Change<T>) => void, options?: SubscribeOptions): () => void
  readonly hasSynced: boolean
  /** Resolves at the first sync (or confirmed absence of the kind); rejects with the signal's reason. */
  synced(signal?: AbortSignal): Promise<void>
  readonly state: InformerState
  /** Cached objects; 0 before the first sync. */
  readonly size: number
  /** About how much JSON is cached, judged by the first twenty objects; read it rarely. */
  estimateBytes(): number
  /** Why the server cannot be read now, as it said it; undefined once it has answered again. */
  readonly failure: WatchFailure | undefined
  /** When the server was last heard of (event, bookmark or list), by the monotonic clock; undefined before. */
  readonly heardAt: number | undefined
}

export interface SubscribeOptions {
  readonly onError?: (error: unknown) => void
  /** Called once everything that was cached at the time of the call has been handled; a large replay takes several turns. */
  readonly onReplayed?: () => void
}

export interface InformerOptions<T extends Obj> {
  /** @default all namespaces */
  namespace?: string
  labelSelector?: string
  fieldSelector?: string
  /**
   * `metadata` fetches only metadata; a function keeps what it returns (the same function: the same informer). It may
   * replace and delete members of the object it is given, never what lies deeper: that may be shared. @default full
   */
  projection?: 'full' | 'metadata' | ((object: T) => T)
  /**
   * Keep the FieldsV1 of this field manager for `ownFields`; all other managedFields are cut before parsing.
   * @default the cluster's own field manager, so that those who ask for it and those who do not share one watch
   */
  keepManagedFieldsOf?: string
  /** For a server that is not trusted. The first informer of a set decides. @default none */
  limits?: CacheLimits
}

/** How a kind is cached wherever a program watches it; see `Manager.cache`. */
export interface CacheOptions<T extends Obj> extends Omit<InformerOptions<T>, 'namespace'> {
  /** One watch in each of these namespaces. @default one watch of all namespaces */
  namespaces?: readonly string[]
}

export interface Informers extends Reader {
  /**
   * Sets the options of every informer of the kind; what `informer` is asked for goes before. Throws when the kind is
   * watched already, or was configured in another way.
   */
  configure<T extends Obj>(kind: Kind<T>, options: CacheOptions<T>): void
  /** What `configure` set. */
  configured<T extends Obj>(kind: Kind<T>): CacheOptions<T> | undefined
  informer<T extends Obj>(kind: Kind<T>, options?: InformerOptions<T>): Informer<T>
  /**
   * Calls the listener when an informer's `failure` appears, changes or goes, and when the server answers it for the first
   * time. Returns the unsubscribe function.
   */
  onHealthChange(listener: (informer: Informer<Obj>) => void): () => void
  /** Every informer made so far, for metrics. */
  all(): readonly Informer<Obj>[]
  /** `values` must be pure: it is called again on the old object when the object changes. Same name: same index. */
  index<T extends Obj>(kind: Kind<T>, name: string, values: (object: Immutable<T>) => readonly string[]): Index<T>
  /**
   * Read-your-writes: reads return at least this version from now on. The cluster's client calls it.
   * @param readOwnFields where `written` comes without its managedFields. @default read from those
   */
  offer<T extends Obj>(kind: Kind<T>, written: T, readOwnFields?: ReadOwnFields): void
  /** The token of an object's kind, among the kinds that were ever used here; undefined also when the object names none. */
  findKind(object: { readonly apiVersion?: string; readonly kind?: string }): Kind | undefined
  /** Which reports of the watch are our own writes; see own-writes.ts. The cluster's client reports its writes to it. */
  ownWrites(kind: Kind): OwnWrites
  /** The object is gone for certain: reads stop showing it before the watch says so. */
  offerDeleted<T extends Obj>(kind: Kind<T>, key: Key, uid?: string): void
  /**
   * FieldsV1 text of a manager's Apply entry, interned; UIDs in it are replaced by `UID_MARK` (managed-fields.ts).
   * Undefined when the manager owns nothing, or no informer of the kind keeps this manager's entry.
   */
  ownFields<T extends Obj>(kind: Kind<T>, key: Key, manager: string, subresource?: string): string | undefined
  /** Runs every informer, also those added later, until the signal aborts; resolves when all have stopped. */
  start(signal: AbortSignal): Promise<void>
}
