/**
 * One watched set of objects with its indexes: what the reflector writes and readers read.
 *
 * Guarantees: indexes change in the same turn as the object; a relist is staged aside and swapped in one turn; a write
 * of our own is visible to reads until the watch has caught up (overlay), while subscribers see only the watch's own
 * sequence. Nothing is copied on read.
 *
 * Overlay: `#visible` is what readers see; for a key whose own write is newer than the watch, `#shadow` holds what the
 * watch said last (undefined: nothing). A deletion of our own hides the object until the watch confirms it.
 */
import type { Decoded } from './decode.ts'
import { ownFieldsOf, type OwnFields } from './managed-fields.ts'
import { PartedMap } from './parted-map.ts'
import { keyOf, type Immutable, type Key, type Obj } from './object.ts'
import { isNewer, isNumericVersion } from './resource-version.ts'
import type { ReadOwnFields } from './written.ts'

export type StoreChange<T extends Obj> =
  | { readonly type: 'added'; readonly object: Immutable<T>; readonly initial: boolean }
  | { readonly type: 'updated'; readonly old: Immutable<T>; readonly object: Immutable<T> }
  | { readonly type: 'deleted'; readonly object: Immutable<T> }

export type IndexValues<T extends Obj> = (object: Immutable<T>) => readonly string[]

export interface StoreOptions {
  /** Freeze every object that goes in: a reader that writes fails at once. For tests; it costs more than the parse. */
  freeze?: boolean
  /** The manager whose FieldsV1 are kept. */
  manager?: string
  /** An index function that throws is reported here, and the object is in none of its values. */
  onIndexError?: (index: string, error: unknown) => void
}

/** A key alone where only one object has the value: a Set for each would cost more than the object. */
type Postings = PartedMap<Key | Set<Key>>

interface StoredIndex<T extends Obj> {
  readonly values: IndexValues<T>
  postings: Postings
}

interface Staged<T extends Obj> {
  readonly objects: PartedMap<Immutable<T>>
  readonly own: PartedMap<OwnFields>
  readonly indexes: Map<string, Postings>
  /** Keys that were cached before and are there again. */
  kept: number
}

interface Overlay<T extends Obj> {
  readonly key: Key
  readonly object: Immutable<T> | undefined
  readonly own: OwnFields | undefined
  readonly deletedUid: string | undefined
}

export class Store<T extends Obj> {
  readonly #options: StoreOptions
  readonly #onChange: (changes: Iterable<StoreChange<T>>, count: number) => void
  /** As JSON text. */
  readonly #quotedManager: Buffer
  #visible = new PartedMap<Immutable<T>>()
  #own = new PartedMap<OwnFields>()
  readonly #shadow = new Map<Key, Immutable<T> | undefined>()
  /** UID of an object that we deleted and the watch has not reported. */
  readonly #deleted = new Map<Key, string>()
  readonly #indexes = new Map<string, StoredIndex<T>>()
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

  /** How far the watch has come. */
  get resourceVersion(): string | undefined {
    return this.#resourceVersion
  }

  // Reads

  get(key: Key): Immutable<T> | undefined {
    return this.#visible.get(key)
  }

  /** All of it; the same array until something changes. */
  list(): readonly Immutable<T>[] {
    return (this.#listed ??= this.#visible.values())
  }

  hasIndex(name: string): boolean {
    return this.#indexes.has(name)
  }

  by(name: string, value: string): Immutable<T>[] {
    const found = this.#indexes.get(name)?.postings.get(value)
    if (found === undefined) return []
    const objects: Immutable<T>[] = []
    for (const key of typeof found === 'string' ? [found] : found) {
      const object = this.#visible.get(key)
      if (object !== undefined) objects.push(object)
    }
    return objects
  }

  ownFields(key: Key, subresource: string): string | undefined {
    return this.#own.get(key)?.get(subresource)
  }

  /** What the watch last said, for a subscriber that comes later. */
  *watched(): IterableIterator<Immutable<T>> {
    for (const [key, object] of this.#visible) if (!this.#shadow.has(key)) yield object
    for (const object of this.#shadow.values()) if (object !== undefined) yield object
  }

  addIndex(name: string, values: IndexValues<T>): void {
    if (this.#indexes.has(name)) return
    const index = { values, postings: new PartedMap() as Postings }
    this.#indexes.set(name, index)
    for (const [key, object] of this.#visible) this.#post(index.postings, name, values, key, object)
    if (this.#staged === undefined) return
    const postings: Postings = new PartedMap()
    for (const [key, object] of this.#staged.objects) this.#post(postings, name, values, key, object)
    this.#staged.indexes.set(name, postings)
  }

  // A whole new set, staged and then swapped

  stage({ object, own }: Decoded<T>): void {
    this.#staged ??= this.#newStage()
    const staged = this.#staged
    const key = keyOf(object)
    const known = this.#shadow.has(key) ? this.#shadow.get(key) : this.#visible.get(key)
    // The one we have already is kept, so that a relist of an unchanged set leaves no second copy behind.
    const isKnown = known !== undefined && isSameVersion(known, object)
    const kept = isKnown ? known : this.#frozen(object)
    if (known !== undefined && !staged.objects.has(key)) staged.kept++
    staged.objects.set(key, kept)
    if (own === undefined) staged.own.delete(key)
    else staged.own.set(key, own)
    for (const [name, index] of this.#indexes) {
      const postings = staged.indexes.get(name)
      if (postings !== undefined) this.#post(postings, name, index.values, key, kept)
    }
  }

  /** During the initial events of a watch an object may also change or go again. */
  unstage(key: Key): void {
    const staged = this.#staged
    const object = staged?.objects.get(key)
    if (staged === undefined || object === undefined) return
    staged.objects.delete(key)
    staged.own.delete(key)
    if (this.#visible.has(key) || this.#deleted.has(key)) staged.kept--
    for (const [name, index] of this.#indexes) {
      const postings = staged.indexes.get(name)
      if (postings !== undefined)
        for (const value of this.#valuesOf(name, index.values, object)) unpost(postings, value, key)
    }
  }

  discard(): void {
    this.#staged = undefined
  }

  /** How many objects the staged set would remove, of how many. */
  get vanishing(): { known: number; vanished: number } {
    const known = this.#visible.size + this.#deleted.size
    return { known, vanished: Math.max(0, known - (this.#staged?.kept ?? 0)) }
  }

  /** Swaps the staged set in. Everything that differs is reported; what is equal is not. */
  commit(resourceVersion: string): void {
    const staged = this.#staged ?? this.#newStage()
    this.#staged = undefined
    const before = this.#visible
    const shadow = new Map(this.#shadow)
    const isFirst = !this.#hasSynced
    // A server restored from a backup counts from an older version: what we wrote to it later is gone.
    const hasGoneBack = isNewer(this.#resourceVersion, resourceVersion)
    const overlays = hasGoneBack ? [] : this.#takeOverlays()
    this.#shadow.clear()
    this.#deleted.clear()
    this.#visible = staged.objects
    this.#listed = undefined
    this.#own = staged.own
    for (const [name, index] of this.#indexes) index.postings = staged.indexes.get(name) ?? new PartedMap()
    this.#resourceVersion = resourceVersion
    this.#hasSynced = true

    // Overlays are put into the very map that was staged; what the watch says is kept apart before.
    const wanted = overlays.length === 0 ? staged.objects : staged.objects.copy()
    for (const overlay of overlays) this.#restore(overlay, resourceVersion)
    // A copy of the references: changes may be delivered over several turns, while the map goes on changing.
    if (isFirst) this.#onChange(initialChanges(wanted.values()), wanted.size)
    else {
      const changes = differences(before, shadow, wanted)
      for (const object of untold(before, shadow))
        if (!this.#visible.has(keyOf(object))) changes.push({ type: 'deleted', object })
      if (changes.length > 0) this.#onChange(changes, changes.length)
    }
  }

  /** The kind is not served any more: known to be empty. */
  clear(): void {
    this.discard()
    const gone = [...this.watched(), ...untold(this.#visible, this.#shadow)]
    this.#shadow.clear()
    this.#deleted.clear()
    this.#visible = new PartedMap()
    this.#listed = undefined
    this.#own = new PartedMap()
    for (const index of this.#indexes.values()) index.postings = new PartedMap()
    this.#resourceVersion = undefined
    this.#hasSynced = true
    const changes = gone.map((object) => ({ type: 'deleted' as const, object }))
    if (changes.length > 0) this.#onChange(changes, changes.length)
  }

  // The watch, event by event

  advance(resourceVersion: string): void {
    this.#resourceVersion = resourceVersion
  }

  upsert({ object: given, own }: Decoded<T>): void {
    const object = this.#frozen(given)
    const key = keyOf(object)
    const isShadowed = this.#shadow.has(key)
    const visible = this.#visible.get(key)
    const old = isShadowed ? this.#shadow.get(key) : visible
    this.#resourceVersion = object.metadata.resourceVersion
    if (old !== undefined && isSameVersion(old, object)) return
    if (!isShadowed) this.#show(key, visible, object, own)
    else if (this.#isCaughtUp(key, visible, object)) {
      this.#shadow.delete(key)
      this.#deleted.delete(key)
      // The echo of our own write: own fields and indexes stand already.
      if (visible === undefined || !isSameVersion(visible, object)) this.#show(key, visible, object, own)
      else if (visible !== object) this.#replace(key, object)
    } else this.#shadow.set(key, object)
    this.#notify(old === undefined ? { type: 'added', object, initial: false } : { type: 'updated', old, object })
  }

  delete(given: T): void {
    const object = this.#frozen(given)
    const key = keyOf(object)
    const isShadowed = this.#shadow.has(key)
    const visible = this.#visible.get(key)
    const old = isShadowed ? this.#shadow.get(key) : visible
    this.#resourceVersion = object.metadata.resourceVersion ?? this.#resourceVersion
    this.#deleted.delete(key)
    // Our own write after this deletion made a new object: it stays visible until the watch reports it.
    const isRecreated = isShadowed && visible !== undefined && visible.metadata.uid !== object.metadata.uid
    if (isRecreated) this.#shadow.set(key, undefined)
    else {
      this.#shadow.delete(key)
      if (visible !== undefined) this.#hide(key, visible)
    }
    // What only our own write had shown is gone as well: whoever made it must hear of it.
    if (old !== undefined || (visible !== undefined && !isRecreated)) this.#notify({ type: 'deleted', object })
  }

  // Our own writes

  /**
   * The answer to a write of ours. Ignored when the watch has already come that far, or versions cannot be compared.
   * @param readOwnFields where the answer comes without its managedFields
   */
  offer(written: T, readOwnFields?: ReadOwnFields): void {
    const { resourceVersion } = written.metadata
    if (!isNumericVersion(resourceVersion)) return
    // Before the first sync everything is kept: the list under way may be older than this write.
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
    this.#show(key, visible, this.#frozen(object), own)
  }

  #withoutManagedFields(written: T): Decoded<T> {
    const { managedFields = [], ...metadata } = written.metadata
    const { manager } = this.#options
    const own = manager === undefined ? undefined : ownFieldsOf(managedFields, manager)
    return { object: { ...written, metadata }, own }
  }

  get isAwaitingEchoes(): boolean {
    return this.#shadow.size > 0
  }

  /** What our own write showed in this very version: the watch brings nothing new. */
  findEcho(key: Key, resourceVersion: string): Decoded<T> | undefined {
    if (!this.#shadow.has(key)) return undefined
    const visible = this.#visible.get(key)
    if (visible === undefined || visible.metadata.resourceVersion !== resourceVersion) return undefined
    return { object: visible as T, own: this.#own.get(key) }
  }

  /** We deleted it and it is gone; without a UID there is no telling which object that was. */
  offerDeleted(key: Key, uid: string | undefined): void {
    const visible = this.#visible.get(key)
    if (uid === undefined || visible === undefined || visible.metadata.uid !== uid) return
    if (!this.#shadow.has(key)) this.#shadow.set(key, visible)
    this.#deleted.set(key, uid)
    this.#hide(key, visible)
  }

  /** Does the watch's object replace what our own write showed? */
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

  /** After a relist: what we wrote later than the list stays visible; what we deleted and the list still has, hidden. */
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
    for (const [name, index] of this.#indexes) {
      const now = this.#valuesOf(name, index.values, object)
      const before = old === undefined ? NONE : this.#valuesOf(name, index.values, old)
      if (isSameList(before, now)) continue
      for (const value of before) if (!now.includes(value)) unpost(index.postings, value, key)
      for (const value of now) if (!before.includes(value)) post(index.postings, value, key)
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
    for (const [name, index] of this.#indexes) {
      for (const value of this.#valuesOf(name, index.values, object)) unpost(index.postings, value, key)
    }
  }

  #post(postings: Postings, name: string, values: IndexValues<T>, key: Key, object: Immutable<T>): void {
    for (const value of this.#valuesOf(name, values, object)) post(postings, value, key)
  }

  #valuesOf(name: string, values: IndexValues<T>, object: Immutable<T>): readonly string[] {
    try {
      return values(object)
    } catch (error) {
      this.#options.onIndexError?.(name, error)
      return NONE
    }
  }

  #newStage(): Staged<T> {
    const indexes = new Map([...this.#indexes.keys()].map((name): [string, Postings] => [name, new PartedMap()]))
    return { objects: new PartedMap(), own: new PartedMap(), indexes, kept: 0 }
  }

  #frozen(object: T): Immutable<T> {
    return (this.#options.freeze === true ? deepFreeze(object) : object) as Immutable<T>
  }

  #notify(change: StoreChange<T>): void {
    this.#onChange([change], 1)
  }
}

const NONE: readonly string[] = []

function isSameVersion(
  a: { metadata: Obj['metadata'] | Immutable<Obj['metadata']> },
  b: { metadata: Obj['metadata'] | Immutable<Obj['metadata']> },
): boolean {
  return a.metadata.resourceVersion === b.metadata.resourceVersion && a.metadata.uid === b.metadata.uid
}

function isSameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((value, index) => value === b[index])
}

function post(postings: Postings, value: string, key: Key): void {
  const found = postings.get(value)
  if (found === undefined) postings.set(value, key)
  else if (typeof found !== 'string') found.add(key)
  else if (found !== key) postings.set(value, new Set([found, key]))
}

function unpost(postings: Postings, value: string, key: Key): void {
  const found = postings.get(value)
  if (found === key) postings.delete(value)
  else if (found instanceof Set) {
    found.delete(key)
    const [last] = found
    if (found.size === 1 && last !== undefined) postings.set(value, last)
  }
}

function* initialChanges<T extends Obj>(objects: Iterable<Immutable<T>>): IterableIterator<StoreChange<T>> {
  for (const object of objects) yield { type: 'added', object, initial: true }
}

/** What our own writes made and the watch has not told of. */
function* untold<T extends Obj>(
  visible: PartedMap<Immutable<T>>,
  shadow: ReadonlyMap<Key, Immutable<T> | undefined>,
): IterableIterator<Immutable<T>> {
  for (const [key, told] of shadow) {
    const shown = told === undefined ? visible.get(key) : undefined
    if (shown !== undefined) yield shown
  }
}

/** The watch's view before (what it said, not our overlay) against the new list. */
function differences<T extends Obj>(
  visible: PartedMap<Immutable<T>>,
  shadow: ReadonlyMap<Key, Immutable<T> | undefined>,
  wanted: PartedMap<Immutable<T>>,
): StoreChange<T>[] {
  const changes: StoreChange<T>[] = []
  const before = (key: Key) => (shadow.has(key) ? shadow.get(key) : visible.get(key))
  const report = (key: Key) => {
    const old = before(key)
    if (old === undefined) return
    const now = wanted.get(key)
    // Deleted and made again under the same name: two changes, as the watch would have said.
    if (now === undefined || now.metadata.uid !== old.metadata.uid) changes.push({ type: 'deleted', object: old })
  }
  for (const key of visible.keys()) report(key)
  for (const key of shadow.keys()) if (!visible.has(key)) report(key)
  for (const [key, object] of wanted) {
    const old = before(key)
    if (old === undefined || old.metadata.uid !== object.metadata.uid)
      changes.push({ type: 'added', object, initial: false })
    else if (!isSameVersion(old, object)) changes.push({ type: 'updated', old, object })
  }
  return changes
}

function deepFreeze<V>(value: V): V {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  for (const inner of Object.values(value)) deepFreeze(inner)
  return value
}
