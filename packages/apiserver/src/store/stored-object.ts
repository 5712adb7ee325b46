/**
 * One version of one object as it is kept: its serialised body, shared by every get, list and watch that shows it, and the
 * few facts that selectors need without parsing.
 *
 * Invariants: a `Stored` never changes. The body is the JSON text after the opening brace and without `kind` and
 * `apiVersion`, so the same bytes serve every version of a kind whose versions differ in name only. The parsed object is a
 * cache that may be dropped at any time (`RecentObjects`): 100 000 parsed objects would cost several times their bytes.
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
   * A real server would have other bytes in etcd: what it shows was pruned and defaulted when it was read. The next write
   * stores what is shown, even one that changes nothing else.
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

  /** The object, to read and never to change: it is shared. */
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

/** What precedes a body on the wire. */
export function bodyPrefix(apiVersion: string, kind: string): Buffer {
  return Buffer.from(`{"kind":${JSON.stringify(kind)},"apiVersion":${JSON.stringify(apiVersion)},`)
}

/** Keeps the parsed form of the newest versions only: they are what the next write and the selectors read. */
export class RecentObjects {
  readonly #slots: (Stored | undefined)[]
  readonly #maxBytes: number
  /** Where the next one goes, and where the oldest one is. */
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
