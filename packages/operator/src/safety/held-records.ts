/**
 * What records holds of the DNSEndpoints of this process, for the reports of publish: ExternalDNS' own CRD has no conditions in
 * which records could say it.
 *
 * Guarantee: before the first pass over all names nothing is known, so that a restart reports nothing else than before.
 */
import type { Immutable, Obj } from '@seamark/kube/object'
import type { Reason } from '../reasons.ts'

export interface HeldRecord {
  readonly reason: Reason
  readonly message: string
}

export class HeldRecords {
  readonly #isLeft: (object: Immutable<Obj>, reason: string) => boolean
  readonly #byUid = new Map<string, HeldRecord>()
  readonly #listeners = new Set<(object: Immutable<Obj>) => void>()
  #isKnown = false

  /** `isLeft`: what is no fault, because somebody else writes the records of the object. */
  constructor(isLeft: (object: Immutable<Obj>, reason: string) => boolean = () => false) {
    this.#isLeft = isLeft
  }

  get isKnown(): boolean {
    return this.#isKnown
  }

  /** After the first pass over all names. */
  setKnown(): void {
    this.#isKnown = true
  }

  note(object: Immutable<Obj>, held: HeldRecord | undefined): void {
    const { uid = '' } = object.metadata
    const before = this.#byUid.get(uid)
    if (before?.reason === held?.reason && before?.message === held?.message) return
    if (held === undefined) this.#byUid.delete(uid)
    else this.#byUid.set(uid, held)
    for (const listener of this.#listeners) listener(object)
  }

  forget(object: Immutable<Obj>): void {
    this.#byUid.delete(object.metadata.uid ?? '')
  }

  of(object: Immutable<Obj>): HeldRecord | undefined {
    const held = this.#byUid.get(object.metadata.uid ?? '')
    return held === undefined || this.#isLeft(object, held.reason) ? undefined : held
  }

  isLeft(object: Immutable<Obj>, reason: string): boolean {
    return this.#isLeft(object, reason)
  }

  /** Called with the DNSEndpoint whose records became held, for another reason, or are no longer held. */
  subscribe(listener: (object: Immutable<Obj>) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
}
