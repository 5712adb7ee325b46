/**
 * The newest decision about the status of every object, between the build and the writer. Publishing never waits, and the
 * writer gets the decisions that differ from the last ones.
 */
import type { LoadBalancerIngress } from '@seamark/kube'
import type { Finding } from '../draft/draft.ts'
import type { StatusIntent } from '../draft/status-intent.ts'

interface Desired {
  readonly intents: ReadonlyMap<string, StatusIntent>
  readonly findings: readonly Finding[]
}

export class StatusBoard {
  #desired: Desired = { intents: new Map(), findings: [] }
  #addresses: readonly LoadBalancerIngress[] = []
  #listener: ((keys: Iterable<string>) => void) | undefined

  /** The decisions of a build; keys whose decision differs from the last one are written. */
  publish(intents: readonly StatusIntent[], findings: readonly Finding[]): void {
    const { intents: before } = this.#desired
    const next = new Map(intents.map((intent) => [`${intent.kind} ${intent.key}`, intent]))
    this.#desired = { intents: next, findings }
    this.#listener?.([...next].filter(([key, intent]) => !isEqual(before.get(key), intent)).map(([key]) => key))
  }

  setAddresses(addresses: readonly LoadBalancerIngress[]): void {
    if (JSON.stringify(addresses) === JSON.stringify(this.#addresses)) return
    this.#addresses = addresses
    this.#listener?.(this.#desired.intents.keys())
  }

  get addresses(): readonly LoadBalancerIngress[] {
    return this.#addresses
  }

  get desired(): Desired {
    return this.#desired
  }

  /** One listener at a time; it is called with all keys at once. */
  follow(listener: (keys: Iterable<string>) => void): () => void {
    this.#listener = listener
    listener(this.#desired.intents.keys())
    return () => (this.#listener = undefined)
  }
}

/** Most decisions are the same object as before. */
function isEqual(a: StatusIntent | undefined, b: StatusIntent): boolean {
  return a === b || (a !== undefined && JSON.stringify(a) === JSON.stringify(b))
}
