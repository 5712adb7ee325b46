/**
 * Limits of one watched set, for API servers that are not trusted: a member cluster that sends objects without end must not
 * exhaust the memory of the process.
 *
 * Flow: http-source.ts counts objects and bytes as they arrive, before they are parsed or staged; above a limit the
 * operation fails with `CacheLimitExceeded`, the reflector drops what was staged, waits and lists again. Until a list stays
 * within the limits the informer is not `live`, so nobody takes part of the set for all of it.
 * Guarantee: at most `maxBytes` of received JSON stand behind what is cached, and `maxObjectBytes` behind one object.
 */
import { KubeError } from '../errors.ts'

export interface CacheLimits {
  readonly maxObjects: number
  /** JSON of one object as received. */
  readonly maxObjectBytes: number
  /** JSON of all objects as received, since the last complete list. */
  readonly maxBytes: number
}

/** Nothing is cached of the set that exceeds a limit. */
export class CacheLimitExceeded extends KubeError {
  constructor(message: string) {
    super('CACHE_LIMIT', message)
  }
}

/** What arrived since the last list began. Deletions give back their object but not its bytes, which are not known then. */
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

  /** Pages without objects would never end by the number of objects. */
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
