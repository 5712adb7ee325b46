/**
 * The server name (SNI) of a TLS ClientHello, read before a certificate is chosen: passthrough and per-host TLS settings
 * depend on it. RFC 8446 §4.1.2, RFC 6066 §3.
 */

export type ClientHello =
  /** More octets are needed. */
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'invalid' }
  /** Without the extension the name is undefined. */
  | { readonly kind: 'hello'; readonly serverName: string | undefined }

const HANDSHAKE = 22
const CLIENT_HELLO = 1
const SERVER_NAME = 0
const HOST_NAME = 0
/** A ClientHello of a real client is far smaller, even with post-quantum keys. */
export const MAX_HELLO_BYTES = 16_384

export function readClientHello(octets: Buffer): ClientHello {
  const body = handshakeBody(octets)
  if (typeof body === 'string') return { kind: body }
  try {
    return { kind: 'hello', serverName: serverNameIn(body) }
  } catch (error) {
    if (error instanceof RangeError) return { kind: 'invalid' }
    throw error
  }
}

/** Joins the records that a ClientHello may be split into. */
function handshakeBody(octets: Buffer): Buffer | 'incomplete' | 'invalid' {
  const parts: Buffer[] = []
  let at = 0
  let wanted = Number.POSITIVE_INFINITY
  let size = 0
  while (size < wanted) {
    if (octets.length < at + 5) return octets.length > 0 && octets[0] !== HANDSHAKE ? 'invalid' : 'incomplete'
    if (octets[at] !== HANDSHAKE || octets[at + 1] !== 3) return 'invalid'
    const length = octets.readUInt16BE(at + 3)
    if (length === 0 || length > MAX_HELLO_BYTES) return 'invalid'
    if (octets.length < at + 5 + length) return 'incomplete'
    parts.push(octets.subarray(at + 5, at + 5 + length))
    size += length
    at += 5 + length
    const joined = parts.length === 1 ? (parts[0] ?? octets) : Buffer.concat(parts)
    if (joined.length >= 4) {
      if (joined[0] !== CLIENT_HELLO) return 'invalid'
      wanted = 4 + joined.readUIntBE(1, 3)
      if (wanted > MAX_HELLO_BYTES) return 'invalid'
      if (size >= wanted) return joined.subarray(4, wanted)
    }
  }
  return 'invalid'
}

/** Throws RangeError if a length leads beyond the end. */
function serverNameIn(hello: Buffer): string | undefined {
  // Version and random.
  let at = 34
  at += 1 + hello.readUInt8(at)
  at += 2 + hello.readUInt16BE(at)
  at += 1 + hello.readUInt8(at)
  if (at === hello.length) return undefined
  const end = at + 2 + hello.readUInt16BE(at)
  if (end > hello.length) throw new RangeError('extensions are longer than the message')
  at += 2
  while (at < end) {
    const type = hello.readUInt16BE(at)
    const length = hello.readUInt16BE(at + 2)
    if (at + 4 + length > end) throw new RangeError('an extension is longer than the message')
    if (type === SERVER_NAME) return nameIn(hello.subarray(at + 4, at + 4 + length))
    at += 4 + length
  }
  return undefined
}

function nameIn(extension: Buffer): string | undefined {
  if (extension.length === 0) return undefined
  if (extension.readUInt8(2) !== HOST_NAME) return undefined
  const length = extension.readUInt16BE(3)
  if (5 + length > extension.length) throw new RangeError('the name is longer than its extension')
  return extension.toString('latin1', 5, 5 + length).toLowerCase()
}
