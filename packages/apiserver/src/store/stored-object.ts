/**
 * One version of one stored object: its serialised body, shared by every get, list and watch that returns it, and the
 * fields that selectors need without parsing.
 *
 * Invariants: a `Stored` is immutable. The body is the JSON text after the opening brace and without `kind` and
 * `apiVersion`, so the same bytes serve every version of a kind whose versions differ in name only. The parsed object
 * is a cache that may be dropped at any time (`RecentObjects`): 100 000 parsed objects would cost several times their
 * bytes.
 */
import { type ApiObject } from '../codec/object-shape.ts'

export class Stored {
  readonly key: string
  readonly resourceVersion: number
  readonly apiVersion: string
  readonly kind: string
  readonly body: Buffer
  readonly labels: Readonly<Record<string, string>> | undefined
  parsed: ApiObject | undefined
  /**
   * The bytes in the etcd of kube-apiserver would differ: the served form was pruned and defaulted on read. The next
   * write stores the served form, even if it changes nothing else.
   */
  readonly isStale: boolean

  constructor(key: string, resourceVersion: number, object: ApiObject, isStale = false) {
    this.key = key
    this.isStale = isStale
    this.resourceVersion = resourceVersion
    this.apiVersion = object.apiVersion ?? ''
    this.kind = object.kind ?? ''
    this.body = encodeBody(object)
    this.labels = object.metadata.labels
    this.parsed = object
  }

  /** The parsed object, read-only because it is shared. */
  get object(): ApiObject {
    return (
      this.parsed ??
      (JSON.parse(
        `{"kind":${JSON.stringify(this.kind)},"apiVersion":${JSON.stringify(this.apiVersion)},${this.body.toString()}`,
      ) as ApiObject)
    )
  }

  get namespace(): string {
    const slash = this.key.indexOf('/')
    return slash < 0 ? '' : this.key.slice(0, slash)
  }

  get name(): string {
    return this.key.slice(this.key.indexOf('/') + 1)
  }
}

/** JSON text of an object after `{`, without kind and apiVersion. */
function encodeBody(object: ApiObject): Buffer {
  const { kind: _kind, apiVersion: _apiVersion, ...rest } = object
  return Buffer.from(JSON.stringify(rest).slice(1))
}

/** The bytes before a body on the wire. */
export function bodyPrefix(apiVersion: string, kind: string): Buffer {
  return Buffer.from(`{"kind":${JSON.stringify(kind)},"apiVersion":${JSON.stringify(apiVersion)},`)
}

/** Caches the parsed form of the newest versions only: the next write and the selectors read them. */
export class RecentObjects {
  readonly #slots: (Stored | undefined)[]
  readonly #maxBytes: number
  /** Index of the next entry, which is the oldest one. */
  #next = 0
  #oldest = 0
  #count = 0
  #bytes = 0

  /** Bounded by number and by the bytes of the bodies. */
  constructor(size: number, maxBytes: number) {
    this.#slots = Array.from({ length: size })
    this.#maxBytes = maxBytes
  }

  add(stored: Stored): void {
    if (this.#count === this.#slots.length) this.#evict()
    this.#slots[this.#next] = stored
    this.#next = (this.#next + 1) % this.#slots.length
    this.#count += 1
    this.#bytes += stored.body.length
    while (this.#bytes > this.#maxBytes && this.#count > 1) this.#evict()
  }

  #evict(): void {
    const evicted = this.#slots[this.#oldest]
    this.#slots[this.#oldest] = undefined
    this.#oldest = (this.#oldest + 1) % this.#slots.length
    this.#count -= 1
    if (evicted === undefined) return
    evicted.parsed = undefined
    this.#bytes -= evicted.body.length
  }
}
