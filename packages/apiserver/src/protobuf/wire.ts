/**
 * The protobuf wire format (varint, 64-bit, length-delimited, 32-bit), read only.
 *
 * Guarantees: every read is bounded by the buffer; a malformed body throws MalformedProtobuf, never anything else.
 * Integers beyond 2^53 lose precision, as they do in JSON here.
 */
export class MalformedProtobuf extends Error {
  readonly code = 'MALFORMED_PROTOBUF'
  readonly status = 400

  constructor(message: string) {
    super(message)
    this.name = 'MalformedProtobuf'
  }
}

const text = new TextDecoder('utf-8', { ignoreBOM: true })

export class WireReader {
  readonly #bytes: Uint8Array
  readonly #view: DataView
  #position = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  isAtEnd(): boolean {
    return this.#position >= this.#bytes.length
  }

  /** Field number and wire type of the next field. */
  tag(): { number: number; wireType: number } {
    const tag = Number(this.#unsigned())
    const number = Math.floor(tag / 8)
    if (number === 0) throw new MalformedProtobuf('proto: illegal tag 0')
    return { number, wireType: tag % 8 }
  }

  #unsigned(): bigint {
    let result = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#bytes[this.#position++]
      if (byte === undefined) throw new MalformedProtobuf('unexpected EOF')
      result |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return result
    }
    throw new MalformedProtobuf('proto: integer overflow')
  }

  /** A varint read as a signed 64-bit integer. */
  integer(): number {
    const first = this.#bytes[this.#position]
    if (first !== undefined && first < 0x80) {
      this.#position++
      return first
    }
    return Number(BigInt.asIntN(64, this.#unsigned()))
  }

  double(): number {
    this.#require(8)
    const value = this.#view.getFloat64(this.#position, true)
    this.#position += 8
    return value
  }

  block(): Uint8Array {
    const length = Number(this.#unsigned())
    this.#require(length)
    const block = this.#bytes.subarray(this.#position, this.#position + length)
    this.#position += length
    return block
  }

  string(): string {
    return text.decode(this.block())
  }

  skip(wireType: number): void {
    switch (wireType) {
      case 0:
        this.#unsigned()
        break
      case 1:
        this.#require(8)
        this.#position += 8
        break
      case 2:
        this.block()
        break
      case 5:
        this.#require(4)
        this.#position += 4
        break
      default:
        throw new MalformedProtobuf(`proto: illegal wireType ${wireType}`)
    }
  }

  #require(length: number): void {
    if (!(length >= 0) || this.#position + length > this.#bytes.length) throw new MalformedProtobuf('unexpected EOF')
  }
}
