/**
 * Limits of one watched set, for API servers that are not trusted: a member cluster that sends unbounded data must not
 * exhaust the memory of the process.
 *
 * Flow: http-source.ts checks the size of an object before it is parsed, and counts objects and bytes before they are
 * staged or applied, whatever the type of their event: a server may send new objects as MODIFIED. Above a limit the
 * operation fails with `CacheLimitExceeded`, and the reflector discards the staged objects, waits and lists again.
 * Until a list stays within the limits the informer is not `live`, so a partial set is never used as a complete one.
 * Guarantee: the cached set was received as at most `maxBytes` of JSON, one object as at most `maxObjectBytes`.
 */
import { KubeError } from '../errors.ts'
import type { Key } from '../object/object.ts'

export interface CacheLimits {
  readonly maxObjects: number
  /** JSON of one object as received, bytes. */
  readonly maxObjectBytes: number
  /** JSON of all objects, each as last received, bytes. */
  readonly maxBytes: number
}

/** A set that exceeds a limit is not cached, not even in part. */
export class CacheLimitExceeded extends KubeError {
  constructor(message: string) {
    super('CACHE_LIMIT', message)
  }
}

/** The objects since the last list began, by key, with the bytes of each as last received. */
export class SizeMeter {
  readonly #limits: CacheLimits
  readonly #what: string
  readonly #bytesOf = new Map<Key, number>()
  #pages = 0
  #bytes = 0

  constructor(limits: CacheLimits, what: string) {
    this.#limits = limits
    this.#what = what
  }

  reset(): void {
    this.#bytesOf.clear()
    this.#pages = 0
    this.#bytes = 0
  }

  /** Limits empty pages, which the number of objects does not limit. */
  addPage(): void {
    const { maxObjects } = this.#limits
    if (++this.#pages > maxObjects)
      throw new CacheLimitExceeded(`${this.#what}: a list of more than ${maxObjects} pages`)
  }

  /** Counts a new object, or the new size of a known one. */
  putObject(key: Key, bytes: number): void {
    const { maxObjects, maxBytes } = this.#limits
    this.#bytes += bytes - (this.#bytesOf.get(key) ?? 0)
    this.#bytesOf.set(key, bytes)
    if (this.#bytesOf.size > maxObjects) throw new CacheLimitExceeded(`${this.#what}: more than ${maxObjects} objects`)
    if (this.#bytes > maxBytes) throw new CacheLimitExceeded(`${this.#what}: more than ${maxBytes} bytes of objects`)
  }

  removeObject(key: Key): void {
    this.#bytes -= this.#bytesOf.get(key) ?? 0
    this.#bytesOf.delete(key)
  }

  checkObject(bytes: number): void {
    const { maxObjectBytes } = this.#limits
    if (bytes > maxObjectBytes)
      throw new CacheLimitExceeded(`${this.#what}: an object of ${bytes} bytes; the limit is ${maxObjectBytes}`)
  }
}
