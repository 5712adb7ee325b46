/**
 * The signed UPDATEs of the last minutes, so that each is taken once: a repeated one gets the answer of the first and changes
 * nothing. A client repeats a message whose answer was lost; anybody on the path may repeat it later to undo a change.
 *
 * Guarantee: a message is never taken again while its signature is valid. Beyond MAX_TAKEN the oldest are forgotten, and no
 * message that was signed as early is taken any more.
 */
import { MAX_FUDGE_SECONDS, type TsigRecord } from '../wire/tsig.ts'

type Rcode = number | Promise<number>

/** About 10 MB. */
const MAX_TAKEN = 50_000

export class TakenUpdates {
  readonly #max: number
  /** By key and MAC, in the order of arrival. */
  readonly #taken = new Map<string, { readonly time: number; readonly rcode: Rcode }>()
  /** Messages signed at or before this time may have been forgotten, seconds since 1970. */
  #forgottenTime = 0

  constructor(max = MAX_TAKEN) {
    this.#max = max
  }

  /** The answer of the first; `take` is called for a new one only. Undefined: it is too old to be known. */
  once(
    { keyName, mac, time }: Pick<TsigRecord, 'keyName' | 'mac' | 'time'>,
    now: number,
    take: () => Rcode,
  ): Rcode | undefined {
    const id = `${Buffer.from(mac).toString('base64')} ${keyName}`
    const known = this.#taken.get(id)
    if (known !== undefined) return known.rcode
    if (time <= this.#forgottenTime) return undefined
    this.#forget(now)
    const rcode = take()
    this.#taken.set(id, { time, rcode })
    return rcode
  }

  #forget(now: number): void {
    for (const [id, { time }] of this.#taken) {
      const isExpired = now - time > MAX_FUDGE_SECONDS
      if (!isExpired && this.#taken.size < this.#max) return
      this.#taken.delete(id)
      if (!isExpired) this.#forgottenTime = Math.max(this.#forgottenTime, time)
    }
  }
}
