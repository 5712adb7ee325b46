/**
 * Limits of one watched set, for API servers that are not trusted: a member cluster that sends unbounded data must not
 * exhaust the memory of the process.
 *
 * Flow: http-source.ts counts objects and bytes as they arrive, before they are parsed or staged; above a limit the
 * operation fails with `CacheLimitExceeded`, and the reflector discards the staged objects, waits and lists again.
 * Until a list stays within the limits the informer is not `live`, so a partial set is never used as a complete one.
 * Guarantee: the cached set was received as at most `maxBytes` of JSON, one object as at most `maxObjectBytes`.
 */
import { KubeError } from '../errors.ts'

export interface CacheLimits {
  readonly maxObjects: number
  /** JSON of one object as received, bytes. */
  readonly maxObjectBytes: number
  /** JSON of all objects as received since the start of the last complete list, bytes. */
  readonly maxBytes: number
}

/** A set that exceeds a limit is not cached, not even in part. */
export class CacheLimitExceeded extends KubeError {
  constructor(message: string) {
    super('CACHE_LIMIT', message)
  }
}

/**
 * Counts what arrived since the last list began. A deletion decrements the objects but not the bytes: the size of the
 * deleted object is not known.
 */
export class SizeMeter {
  readonly #limits: CacheLimits
  readonly #what: string
  #objects = 0
  #pages = 0
  #bytes = 0

  constructor(limits: CacheLimits, what: string) {
    this.#limits = limits
    this.#what = what
  }

  reset(): void {
    this.#objects = 0
    this.#pages = 0
    this.#bytes = 0
  }

  /** Limits empty pages, which the number of objects does not limit. */
  addPage(): void {
    const { maxObjects } = this.#limits
    if (++this.#pages > maxObjects)
      throw new CacheLimitExceeded(`${this.#what}: a list of more than ${maxObjects} pages`)
  }

  addObject(bytes: number): void {
    const { maxObjects, maxBytes } = this.#limits
    this.checkObject(bytes)
    if (++this.#objects > maxObjects) throw new CacheLimitExceeded(`${this.#what}: more than ${maxObjects} objects`)
    this.#bytes += bytes
    if (this.#bytes > maxBytes) throw new CacheLimitExceeded(`${this.#what}: more than ${maxBytes} bytes of objects`)
  }

  removeObject(): void {
    this.#objects = Math.max(0, this.#objects - 1)
  }

  checkObject(bytes: number): void {
    const { maxObjectBytes } = this.#limits
    if (bytes > maxObjectBytes)
      throw new CacheLimitExceeded(`${this.#what}: an object of ${bytes} bytes; the limit is ${maxObjectBytes}`)
  }
}
