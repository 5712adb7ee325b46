/**
 * Decodes bytes to objects: one watch frame, or one item of a list, with managedFields removed before parsing.
 *
 * The results are optimised for long-lived caching: apiVersion and kind are the strings of the kind token (shared by
 * all objects, and set where a list omits them), and a metadata-only object has no other members.
 */
import { isAscii } from 'node:buffer'
import { readOwnWrite, type PendingWrites } from './own-write-frame.ts'
import { DecodeError, messageOf } from '../errors.ts'
import { findMember, isKey, newMember, nextMember, skipBlanks, skipValue } from './json-bytes.ts'
import { findManagedFields, readOwnFields, type OwnFields } from './managed-fields.ts'
import { apiVersionOf, type Kind, type Obj, type Status } from '../object/object.ts'

export interface Decoded<T extends Obj> {
  readonly object: T
  readonly own: OwnFields | undefined
}

export type Frame<T extends Obj> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: T; readonly own: OwnFields | undefined }
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string; readonly isInitialEnd: boolean }
  | { readonly type: 'ERROR'; readonly status: Status }

export interface DecoderOptions<T extends Obj> {
  /** @default full */
  readonly projection?: 'full' | 'metadata' | ((object: T) => T)
  /** Keep this manager's FieldsV1. */
  readonly keepManagedFieldsOf?: string
  /** Leave managedFields in. @default false */
  readonly keepAll?: boolean
  /** Frames of these objects are not parsed: the cached object is returned instead. */
  readonly pendingWrites?: PendingWrites<T>
  /**
   * Called when a projection throws; the complete object is kept, so that one unexpected object does not stop a watch.
   */
  readonly onProjectionError?: (error: unknown) => void
}

export interface Decoder<T extends Obj> {
  /** Decodes one watch frame without its newline. Throws DecodeError. May modify the bytes. */
  frame(bytes: Buffer, at: number, end: number): Frame<T>
  /** Decodes one object of a list. Throws DecodeError. May modify the bytes. */
  item(bytes: Buffer, at: number, end: number): Decoded<T>
}

const OBJECT = Buffer.from('"object"')
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end'

export function createDecoder<T extends Obj>(kind: Kind<T>, options: DecoderOptions<T> = {}): Decoder<T> {
  const { projection = 'full', keepManagedFieldsOf, keepAll = false, pendingWrites, onProjectionError } = options
  const apiVersion = apiVersionOf(kind)
  const manager = keepManagedFieldsOf === undefined ? undefined : Buffer.from(JSON.stringify(keepManagedFieldsOf))
  const member = newMember()
  /** Set by `parse`; avoids allocating a result object per event. */
  let own: OwnFields | undefined

  /** Parses the bytes from `at` to `end`; the object begins at `objectAt`. */
  function parse(bytes: Buffer, at: number, end: number, objectAt: number): unknown {
    own = undefined
    const cut = keepAll || objectAt < 0 ? undefined : findManagedFields(bytes, objectAt, end)
    let textEnd = end
    if (cut !== undefined) {
      if (manager !== undefined) own = readOwnFields(bytes, cut, manager)
      bytes.copyWithin(cut.from, cut.to, end)
      textEnd = end - (cut.to - cut.from)
    }
    const slice = bytes.subarray(at, textEnd)
    // Nearly all objects are ASCII, which latin1 decodes identically at a third of the cost.
    return JSON.parse(slice.toString(isAscii(slice) ? 'latin1' : 'utf8'))
  }

  function finish(value: unknown): T {
    const object = value as T
    const { metadata } = object
    if (typeof metadata !== 'object' || metadata === null || typeof metadata.name !== 'string') {
      throw new DecodeError(`${kind.plural}: an object without metadata.name`)
    }
    if (projection === 'full') return named(object)
    if (projection === 'metadata') return { apiVersion, kind: kind.kind, metadata } as T
    try {
      return projection(named(object))
    } catch (error) {
      onProjectionError?.(error)
      return object
    }
  }

  function named(object: T): T {
    object.apiVersion = apiVersion
    object.kind = kind.kind
    return object
  }

  return {
    frame(bytes, at, end) {
      let value: { type?: unknown; object?: unknown }
      const objectAt = findMember(bytes, at, end, OBJECT, member)
      const ownWrite = pendingWrites === undefined ? undefined : readOwnWrite(bytes, at, end, objectAt, pendingWrites)
      if (ownWrite !== undefined) return ownWrite
      try {
        value = parse(bytes, at, end, objectAt) as {
          type?: unknown
          object?: unknown
        }
      } catch (cause) {
        throw malformed(kind, 'watch frame', cause)
      }
      const { type, object } = value ?? {}
      if (typeof object !== 'object' || object === null)
        throw new DecodeError(`${kind.plural}: a watch frame without object`)
      switch (type) {
        case 'ADDED':
        case 'MODIFIED':
        case 'DELETED':
          return { type, object: finish(object), own }
        case 'BOOKMARK': {
          const { metadata } = object as Obj
          if (typeof metadata?.resourceVersion !== 'string')
            throw new DecodeError(`${kind.plural}: a bookmark without resourceVersion`)
          const isInitialEnd = metadata.annotations?.[INITIAL_EVENTS_END] === 'true'
          return { type, resourceVersion: metadata.resourceVersion, isInitialEnd }
        }
        case 'ERROR':
          return { type, status: object as Status }
        default:
          throw new DecodeError(`${kind.plural}: a watch frame of unknown type`)
      }
    },
    item(bytes, at, end) {
      let value: unknown
      try {
        value = parse(bytes, at, end, at)
      } catch (cause) {
        throw malformed(kind, 'list item', cause)
      }
      return { object: finish(value), own }
    },
  }
}

/** V8's message quotes the text, which may contain a Secret: only the class of the error is kept. */
function malformed(kind: Kind, what: string, cause: unknown): DecodeError {
  const message = cause instanceof SyntaxError ? 'not JSON' : messageOf(cause)
  return new DecodeError(`${kind.plural}: a ${what} cannot be read: ${message}`)
}

/** List metadata; a list is parsed item by item, never as a whole. */
export interface ListPage {
  readonly resourceVersion: string
  readonly continueToken: string | undefined
}

const ITEMS = Buffer.from('"items"')
const METADATA = Buffer.from('"metadata"')

/**
 * Parses a list response item by item: `next` parses one item and returns false at the end, when `page` is set. The
 * members may be in any order: kube-apiserver writes the metadata of built-in kinds before the items, and of custom
 * resources after them.
 */
export class ListParser<T extends Obj> {
  readonly #bytes: Buffer
  readonly #decoder: Decoder<T>
  readonly #each: (decoded: Decoded<T>) => void
  readonly #kind: Kind<T>
  readonly #member = newMember()
  #at: number
  #isInItems = false
  #page: ListPage | undefined

  constructor(kind: Kind<T>, bytes: Buffer, decoder: Decoder<T>, each: (decoded: Decoded<T>) => void) {
    this.#kind = kind
    this.#bytes = bytes
    this.#decoder = decoder
    this.#each = each
    this.#at = skipBlanks(bytes, 0, bytes.length) + 1
    if (bytes[this.#at - 1] !== 0x7b) throw this.#broken('is not a JSON object')
  }

  get page(): ListPage {
    if (this.#page === undefined) throw this.#broken('has no resourceVersion')
    return this.#page
  }

  next(): boolean {
    while (!this.#isInItems) if (!this.#readMember()) return false
    const bytes = this.#bytes
    let at = skipBlanks(bytes, this.#at, bytes.length)
    if (bytes[at] === 0x2c) at = skipBlanks(bytes, at + 1, bytes.length)
    if (bytes[at] === 0x5d) {
      this.#isInItems = false
      this.#at = at + 1
      return this.next()
    }
    const end = skipValue(bytes, at, bytes.length)
    if (end < 0) throw this.#broken('ends inside an item')
    this.#at = end
    this.#each(this.#decoder.item(bytes, at, end))
    return true
  }

  /** Reads one member of the list object; false after the last. */
  #readMember(): boolean {
    const bytes = this.#bytes
    const member = this.#member
    if (!nextMember(bytes, this.#at, bytes.length, member)) {
      if (bytes[skipBlanks(bytes, this.#at, bytes.length)] !== 0x7d) throw this.#broken('ends too early')
      return false
    }
    if (isKey(bytes, member, ITEMS) && bytes[member.valueAt] === 0x5b) {
      this.#isInItems = true
      this.#at = member.valueAt + 1
      return true
    }
    const end = skipValue(bytes, member.valueAt, bytes.length)
    if (end < 0) throw this.#broken('ends too early')
    if (isKey(bytes, member, METADATA)) this.#page = this.#readPage(member.valueAt, end)
    this.#at = end
    return true
  }

  #readPage(at: number, end: number): ListPage | undefined {
    let metadata: { resourceVersion?: unknown; continue?: unknown }
    try {
      metadata = JSON.parse(this.#bytes.toString('utf8', at, end)) as typeof metadata
    } catch {
      throw this.#broken('has metadata that cannot be read')
    }
    const { resourceVersion, continue: token } = metadata
    if (typeof resourceVersion !== 'string') return undefined
    return { resourceVersion, continueToken: typeof token === 'string' && token !== '' ? token : undefined }
  }

  #broken(why: string): DecodeError {
    return new DecodeError(`${this.#kind.plural}: the list ${why}`)
  }
}
