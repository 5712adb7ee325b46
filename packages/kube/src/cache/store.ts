/**
 * One watched set of objects with its indexes: written by the reflector, read by controllers.
 *
 * Guarantees: indexes change in the same event-loop turn as the object; a relist is staged separately and swapped in
 * one turn; an own write is visible to reads until the watch has reached its version (overlay), while subscribers see
 * only the event sequence of the watch. Reads do not copy.
 *
 * Overlay: `#visible` holds what readers see; for a key whose own write is newer than the watch, `#shadow` holds the
 * last object of the watch (undefined: none). An own deletion hides the object until the watch confirms it.
 */
import type { Decoded } from '../decode/decode.ts'
import { ownFieldsOf, type OwnFields } from '../decode/managed-fields.ts'
import { PartitionedMap } from './partitioned-map.ts'
import { keyOf, type Immutable, type Key, type Obj } from '../object/object.ts'
import type { ReflectorStore } from '../watch/reflector.ts'
import { isNewer, isNumericVersion } from '../watch/resource-version.ts'
import { differences, deletionsOf, initialChanges, isSameVersion, type StoreChange, watched } from './store-change.ts'
import { shareTexts } from './shared-texts.ts'
import { StoreIndex, type IndexValues } from './store-index.ts'
import type { ReadOwnFields } from '../client/write-response.ts'

export interface StoreOptions {
  /**
   * Freeze every cached object, so that a reader that modifies one fails immediately. For tests; it costs more than
   * parsing.
   */
  freeze?: boolean
  /** The manager whose FieldsV1 are kept. */
  manager?: string
  /** Called when an index function throws; the object is then indexed under no value. */
  onIndexError?: (index: string, error: unknown) => void
}

interface Staged<T extends Obj> {
  readonly objects: PartitionedMap<Immutable<T>>
  readonly own: PartitionedMap<OwnFields>
  readonly indexes: Map<string, StoreIndex<T>>
  /** Number of previously cached keys that are also in the staged set. */
  kept: number
}

interface Overlay<T extends Obj> {
  readonly key: Key
  readonly object: Immutable<T> | undefined
  readonly own: OwnFields | undefined
  readonly deletedUid: string | undefined
}

export class Store<T extends Obj> implements ReflectorStore<T> {
  readonly #options: StoreOptions
  readonly #onChange: (changes: Iterable<StoreChange<T>>, count: number) => void
  /** The manager's name as JSON text. */
  readonly #quotedManager: Buffer
  #visible = new PartitionedMap<Immutable<T>>()
  #own = new PartitionedMap<OwnFields>()
  readonly #shadow = new Map<Key, Immutable<T> | undefined>()
  /** UIDs of objects that this process deleted and the watch has not yet reported. */
  readonly #deleted = new Map<Key, string>()
  #indexes = new Map<string, StoreIndex<T>>()
  #staged: Staged<T> | undefined
  #listed: readonly Immutable<T>[] | undefined
  #resourceVersion: string | undefined
  #hasSynced = false

  constructor(onChange: (changes: Iterable<StoreChange<T>>, count: number) => void, options: StoreOptions = {}) {
    this.#onChange = onChange
    this.#options = options
    this.#quotedManager = Buffer.from(JSON.stringify(options.manager ?? ''))
  }

  get hasSynced(): boolean {
    return this.#hasSynced
  }

  get size(): number {
    return this.#visible.size
  }

  /** The version up to which the watch has been applied. */
  get resourceVersion(): string | undefined {
    return this.#resourceVersion
  }

  // Reads

  get(key: Key): Immutable<T> | undefined {
    return this.#visible.get(key)
  }

  /** All objects; returns the same array until a change. */
  list(): readonly Immutable<T>[] {
    return (this.#listed ??= this.#visible.values())
  }

  hasIndex(name: string): boolean {
    return this.#indexes.has(name)
  }

  by(name: string, value: string): Immutable<T>[] {
    const objects: Immutable<T>[] = []
    for (const key of this.#indexes.get(name)?.keysOf(value) ?? []) {
      const object = this.#visible.get(key)
      if (object !== undefined) objects.push(object)
    }
    return objects
  }

  ownFields(key: Key, subresource: string): string | undefined {
    return this.#own.get(key)?.get(subresource)
  }

  /** The objects as last reported by the watch, for the replay to a late subscriber. */
  watched(): IterableIterator<Immutable<T>> {
    return watched({ visible: this.#visible, shadow: this.#shadow })
  }

  addIndex(name: string, values: IndexValues<T>): void {
    if (this.#indexes.has(name)) return
    const index = new StoreIndex(values, (error) => this.#options.onIndexError?.(name, error))
    this.#indexes.set(name, index)
    for (const [key, object] of this.#visible) index.add(key, object)
    if (this.#staged === undefined) return
    const staged = index.createEmpty()
    for (const [key, object] of this.#staged.objects) staged.add(key, object)
    this.#staged.indexes.set(name, staged)
  }

  // Complete sets: staged, then swapped

  stage({ object, own }: Decoded<T>): void {
    this.#staged ??= this.#newStage()
    const staged = this.#staged
    const key = keyOf(object)
    const known = this.#shadow.has(key) ? this.#shadow.get(key) : this.#visible.get(key)
    // Keep the cached object if the version is unchanged, so that a relist does not create a second copy.
    const isKnown = known !== undefined && isSameVersion(known, object)
    const kept = isKnown ? known : this.#kept(object)
    const before = staged.objects.get(key)
    if (known !== undefined && before === undefined) staged.kept++
    staged.objects.set(key, kept)
    if (own === undefined) staged.own.delete(key)
    else staged.own.set(key, own)
    for (const index of staged.indexes.values()) {
      if (before === undefined) index.add(key, kept)
      else index.change(key, before, kept)
    }
  }

  /** The initial events of a watch may also update or delete an object. */
  unstage(key: Key): void {
    const staged = this.#staged
    const object = staged?.objects.get(key)
    if (staged === undefined || object === undefined) return
    staged.objects.delete(key)
    staged.own.delete(key)
    if (this.#visible.has(key) || this.#deleted.has(key)) staged.kept--
    for (const index of staged.indexes.values()) index.remove(key, object)
  }

  discard(): void {
    this.#staged = undefined
  }

  /** Number of cached objects, and how many of them the staged set would remove. */
  get removals(): { known: number; removed: number } {
    const known = this.#visible.size + this.#deleted.size
    return { known, removed: Math.max(0, known - (this.#staged?.kept ?? 0)) }
  }

  /** Makes the staged set visible and reports the differences; unchanged objects are not reported. */
  commit(resourceVersion: string): void {
    const staged = this.#staged ?? this.#newStage()
    this.#staged = undefined
    const before = { visible: this.#visible, shadow: new Map(this.#shadow) }
    const isFirst = !this.#hasSynced
    // A server restored from a backup continues from an older version: own writes after the backup are lost.
    const isRestored = isNewer(this.#resourceVersion, resourceVersion)
    const overlays = isRestored ? [] : this.#takeOverlays()
    this.#shadow.clear()
    this.#deleted.clear()
    this.#visible = staged.objects
    this.#listed = undefined
    this.#own = staged.own
    this.#indexes = staged.indexes
    this.#resourceVersion = resourceVersion
    this.#hasSynced = true

    // Overlays are applied to the staged map itself; copy the watch's view before.
    const listed = overlays.length === 0 ? staged.objects : staged.objects.copy()
    for (const overlay of overlays) this.#restore(overlay, resourceVersion)
    // A copy of the references: changes may be delivered over several turns while the map changes.
    if (isFirst) this.#onChange(initialChanges(listed.values()), listed.size)
    else {
      const changes = differences(before, listed, (key) => this.#visible.has(key))
      if (changes.length > 0) this.#onChange(changes, changes.length)
    }
  }

  /** The kind is no longer served: the set is known to be empty. */
  clear(): void {
    this.discard()
    const changes = deletionsOf({ visible: this.#visible, shadow: this.#shadow })
    this.#shadow.clear()
    this.#deleted.clear()
    this.#visible = new PartitionedMap()
    this.#listed = undefined
    this.#own = new PartitionedMap()
    this.#indexes = this.#emptyIndexes()
    this.#resourceVersion = undefined
    this.#hasSynced = true
    if (changes.length > 0) this.#onChange(changes, changes.length)
  }

  // Watch events

  advance(resourceVersion: string): void {
    this.#resourceVersion = resourceVersion
  }

  upsert({ object: given, own }: Decoded<T>): void {
    const object = this.#kept(given)
    const key = keyOf(object)
    const isShadowed = this.#shadow.has(key)
    const visible = this.#visible.get(key)
    const old = isShadowed ? this.#shadow.get(key) : visible
    this.#resourceVersion = object.metadata.resourceVersion
    if (old !== undefined && isSameVersion(old, object)) return
    let isOwnWrite = false
    if (!isShadowed) this.#show(key, visible, object, own)
    else if (this.#isCaughtUp(key, visible, object)) {
      this.#shadow.delete(key)
      this.#deleted.delete(key)
      // The event of an own write: owned fields and indexes are already up to date.
      isOwnWrite = visible !== undefined && isSameVersion(visible, object)
      if (!isOwnWrite) this.#show(key, visible, object, own)
      else if (visible !== object) this.#replace(key, object)
    } else this.#shadow.set(key, object)
    this.#notify(
      old === undefined
        ? { type: 'added', object, initial: false, isOwnWrite }
        : { type: 'updated', old, object, isOwnWrite },
    )
  }

  delete(given: T): void {
    const object = this.#kept(given)
    const key = keyOf(object)
    const isShadowed = this.#shadow.has(key)
    const visible = this.#visible.get(key)
    const old = isShadowed ? this.#shadow.get(key) : visible
    this.#resourceVersion = object.metadata.resourceVersion ?? this.#resourceVersion
    this.#deleted.delete(key)
    // An own write after this deletion recreated the object: it stays visible until the watch reports it.
    const isRecreated = isShadowed && visible !== undefined && visible.metadata.uid !== object.metadata.uid
    if (isRecreated) this.#shadow.set(key, undefined)
    else {
      this.#shadow.delete(key)
      if (visible !== undefined) this.#hide(key, visible)
    }
    // Also report the deletion of an object that was visible only because of an own write.
    if (old !== undefined || (visible !== undefined && !isRecreated)) this.#notify({ type: 'deleted', object })
  }

  // Own writes

  /**
   * The response to an own write. Ignored if the watch has already reached its version, or if versions cannot be
   * compared.
   * @param readOwnFields set if the response was parsed without managedFields
   */
  offer(written: T, readOwnFields?: ReadOwnFields): void {
    const { resourceVersion } = written.metadata
    if (!isNumericVersion(resourceVersion)) return
    // Before the first sync every write is kept: the list in progress may be older than the write.
    if (this.#resourceVersion !== undefined && !isNewer(resourceVersion, this.#resourceVersion)) return
    const key = keyOf(written)
    const visible = this.#visible.get(key)
    if (visible !== undefined && !isNewer(resourceVersion, visible.metadata.resourceVersion)) return
    if (!this.#shadow.has(key)) this.#shadow.set(key, visible)
    this.#deleted.delete(key)
    const { object, own } =
      readOwnFields === undefined
        ? this.#withoutManagedFields(written)
        : { object: written, own: readOwnFields(this.#quotedManager) }
    this.#show(key, visible, this.#kept(object), own)
  }

  #withoutManagedFields(written: T): Decoded<T> {
    const { managedFields = [], ...metadata } = written.metadata
    const { manager } = this.#options
    const own = manager === undefined ? undefined : ownFieldsOf(managedFields, manager)
    return { object: { ...written, metadata }, own }
  }

  get hasPendingWrites(): boolean {
    return this.#shadow.size > 0
  }

  /** The object of an own write with exactly this version: the watch event contains nothing new. */
  findPendingWrite(key: Key, resourceVersion: string): Decoded<T> | undefined {
    if (!this.#shadow.has(key)) return undefined
    const visible = this.#visible.get(key)
    if (visible === undefined || visible.metadata.resourceVersion !== resourceVersion) return undefined
    return { object: visible as T, own: this.#own.get(key) }
  }

  /** Hides an object that this process deleted. Without a UID the deleted object cannot be identified. */
  offerDeleted(key: Key, uid: string | undefined): void {
    const visible = this.#visible.get(key)
    if (uid === undefined || visible === undefined || visible.metadata.uid !== uid) return
    if (!this.#shadow.has(key)) this.#shadow.set(key, visible)
    this.#deleted.set(key, uid)
    this.#hide(key, visible)
  }

  /** Whether the object of the watch replaces that of the own write. */
  #isCaughtUp(key: Key, visible: Immutable<T> | undefined, object: Immutable<T>): boolean {
    if (visible === undefined) return this.#deleted.get(key) !== object.metadata.uid
    return !isNewer(visible.metadata.resourceVersion, object.metadata.resourceVersion)
  }

  #takeOverlays(): Overlay<T>[] {
    return [...this.#shadow.keys()].map((key) => ({
      key,
      object: this.#visible.get(key),
      own: this.#own.get(key),
      deletedUid: this.#deleted.get(key),
    }))
  }

  /**
   * After a relist: objects written after the list stay visible; objects deleted by this process that the list still
   * contains stay hidden.
   */
  #restore(overlay: Overlay<T>, listVersion: string): void {
    const { key, object, own, deletedUid } = overlay
    const listed = this.#visible.get(key)
    if (object !== undefined && isNewer(object.metadata.resourceVersion, listVersion)) {
      this.#shadow.set(key, listed)
      this.#show(key, listed, object, own)
    } else if (deletedUid !== undefined && listed?.metadata.uid === deletedUid) {
      this.#shadow.set(key, listed)
      this.#deleted.set(key, deletedUid)
      this.#hide(key, listed)
    }
  }

  #show(key: Key, old: Immutable<T> | undefined, object: Immutable<T>, own: OwnFields | undefined): void {
    this.#replace(key, object)
    if (own !== undefined) this.#own.set(key, own)
    else if (this.#own.size > 0) this.#own.delete(key)
    for (const index of this.#indexes.values()) {
      if (old === undefined) index.add(key, object)
      else index.change(key, old, object)
    }
  }

  #replace(key: Key, object: Immutable<T>): void {
    this.#visible.set(key, object)
    this.#listed = undefined
  }

  #hide(key: Key, object: Immutable<T>): void {
    this.#visible.delete(key)
    this.#listed = undefined
    this.#own.delete(key)
    for (const index of this.#indexes.values()) index.remove(key, object)
  }

  #newStage(): Staged<T> {
    return { objects: new PartitionedMap(), own: new PartitionedMap(), indexes: this.#emptyIndexes(), kept: 0 }
  }

  #emptyIndexes(): Map<string, StoreIndex<T>> {
    return new Map([...this.#indexes].map(([name, index]) => [name, index.createEmpty()]))
  }

  /** As it is cached. */
  #kept(object: T): Immutable<T> {
    shareTexts(object)
    return (this.#options.freeze === true ? deepFreeze(object) : object) as Immutable<T>
  }

  #notify(change: StoreChange<T>): void {
    this.#onChange([change], 1)
  }
}

function deepFreeze<V>(value: V): V {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  for (const inner of Object.values(value)) deepFreeze(inner)
  return value
}
