/**
 * Encodes what resolve.ts found into the response: the answers that the fast path of answer.ts does not build from prebuilt
 * octets.
 *
 * Guarantees: names are compressed; an RRset is in the response whole or not at all; after the first one without room nothing
 * follows, and the response is truncated (RFC 2181 §9).
 */
import { MAX_MESSAGE } from '../wire/message.ts'
import { WireWriter } from '../wire/wire.ts'
import type { Zone } from '../zone/zone-table.ts'
import { type AnswerSet, negativeSoa, writeSet } from './answer-set.ts'
import type { Request } from './request.ts'
import type { Resolution } from './resolve.ts'
import type { Response } from './response.ts'

export interface Encoded {
  readonly isTruncated: boolean
  /** Records in the answer, authority and additional sections. */
  readonly counts: readonly [number, number, number]
}

export class ResolutionEncoder {
  readonly #request: Request
  readonly #response: Response
  readonly #writer = new WireWriter(MAX_MESSAGE)

  constructor(request: Request, response: Response) {
    this.#request = request
    this.#response = response
  }

  /** Records of equal length are rotated by `turn`. */
  encode(zone: Zone, result: Resolution, turn: number): Encoded {
    const writer = this.#writer
    const request = this.#request
    const response = this.#response
    const room = response.limit - response.start - response.optLength()
    writer.reset()
    writer.at = 12
    writer.name(request.bytes, 12)
    writer.put(request.bytes, request.questionEnd - 4, request.questionEnd)
    const soa: AnswerSet[] = result.isNegative ? [negativeSoa(zone)] : []
    const counts: [number, number, number] = [0, 0, 0]
    let isTruncated = false
    for (const [section, sets] of [result.answers, [...result.authorities, ...soa], result.glue].entries()) {
      for (const set of sets) {
        const before = writer.at
        writeSet(set, writer, turn)
        if (writer.at > room) {
          writer.rewind(before)
          isTruncated = true
          break
        }
        counts[section]! += set.set.records
      }
      if (isTruncated) break
    }
    response.out.set(writer.bytes.subarray(12, writer.at), response.start + 12)
    response.at = response.start + writer.at
    return { isTruncated, counts }
  }
}
