/** DNS messages over TCP (RFC 1035 §4.2.2): two octets of length before each. Used by the client and the server. */

export function frame(message: Uint8Array): Buffer {
  const framed = Buffer.allocUnsafe(message.length + 2)
  framed.writeUInt16BE(message.length, 0)
  framed.set(message, 2)
  return framed
}

/** Puts chunks together and gives out whole messages. */
export class Deframer {
  #chunks: Buffer[] = []
  #length = 0

  /** Octets that wait for the rest of their message. */
  get pending(): number {
    return this.#length
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#length += chunk.length
  }

  /** The next whole message, or undefined. */
  next(): Buffer | undefined {
    if (this.#length < 2) return undefined
    const length = this.#peekLength()
    if (this.#length < length + 2) return undefined
    const all = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks)
    const rest = all.subarray(length + 2)
    this.#chunks = rest.length === 0 ? [] : [rest]
    this.#length = rest.length
    return all.subarray(2, length + 2)
  }

  #peekLength(): number {
    const [first, second] = this.#chunks
    return first!.length >= 2 ? first!.readUInt16BE(0) : first![0]! * 256 + second![0]!
  }
}
