import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { RCODE } from './codes.ts'
import { parseKeyFile } from './key-file.ts'
import { decodeMessage, encodeMessage, type Message } from './message.ts'
import { BADSIG, readTsig, signMessage, TSIG_ALGORITHMS, TsigKey, type TsigVerdict, verifyMessage } from './tsig.ts'

const SECRET = Buffer.from('a secret of some length').toString('base64')
const NOW = 1_800_000_000
const message = encodeMessage({
  id: 99,
  flags: 0,
  opcode: 0,
  rcode: 0,
  questions: [{ name: 'a.test.', type: 1, class: 1 }],
  answers: [],
  authorities: [],
  additionals: [],
})

function verify(bytes: Uint8Array, key: TsigKey, now = NOW, previousMac?: Uint8Array): TsigVerdict {
  const { tsig } = decodeMessage(bytes) as Message
  const record = readTsig(bytes, tsig!.start)
  return verifyMessage(
    bytes,
    tsig!.start,
    record,
    (name) => (name === key.name ? key : undefined),
    now,
    previousMac === undefined ? {} : { previousMac },
  )
}

const errorOf = (verdict: TsigVerdict): number => (verdict.kind === 'invalid' ? verdict.error : 0)

/** Shortens the MAC of a signed message to `length` octets. */
function truncate(bytes: Buffer, length: number): Buffer {
  const { tsig } = decodeMessage(bytes) as Message
  const macAt = bytes.indexOf(Buffer.from(readTsig(bytes, tsig!.start).mac))
  const rest = bytes.subarray(macAt + bytes.readUInt16BE(macAt - 2))
  const cut = Buffer.concat([bytes.subarray(0, macAt), bytes.subarray(macAt, macAt + length), rest])
  const removed = bytes.length - cut.length
  cut.writeUInt16BE(length, macAt - 2)
  const lengthAt = cut.indexOf(Buffer.from([0, 250, 0, 255])) + 8
  cut.writeUInt16BE(cut.readUInt16BE(lengthAt) - removed, lengthAt)
  return cut
}

describe('TSIG', () => {
  it('is valid for a message that was forwarded with another id, and its answer is for the signed one', () => {
    const key = new TsigKey('key.test', 'hmac-sha256', SECRET)
    const { bytes } = signMessage(message, key, NOW)
    bytes.writeUInt16BE(1234, 0)
    expect(verify(bytes, key)).toMatchObject({ kind: 'valid', record: { originalId: 99 } })
  })

  it.each(TSIG_ALGORITHMS)('%s signatures verify, and not after one changed bit', (algorithm) => {
    const key = new TsigKey('Key.Test', algorithm, SECRET)
    const { bytes } = signMessage(message, key, NOW)
    expect(verify(bytes, key).kind).toBe('valid')
    for (let bit = 16; bit < message.length * 8; bit++) {
      // Counts in the header decide where TSIG is looked for; everything else is signed.
      if (bit >= 32 && bit < 96) continue
      const forged = Buffer.from(bytes)
      forged[bit >> 3]! ^= 1 << (bit & 7)
      const decoded = decodeMessage(forged)
      if ('code' in decoded || decoded.tsig === undefined) continue
      expect(errorOf(verify(forged, key)), `bit ${bit}`).toBe(BADSIG)
    }
  })

  it('says BADKEY for an unknown name or another algorithm', () => {
    const key = new TsigKey('k', 'hmac-sha256', SECRET)
    const { bytes } = signMessage(message, key, NOW)
    expect(errorOf(verify(bytes, new TsigKey('other', 'hmac-sha256', SECRET)))).toBe(RCODE.BADKEY)
    expect(errorOf(verify(bytes, new TsigKey('k', 'hmac-sha512', SECRET)))).toBe(RCODE.BADKEY)
  })

  it('says BADSIG for another secret or another request', () => {
    const key = new TsigKey('k', 'hmac-sha256', SECRET)
    const { bytes, mac } = signMessage(message, key, NOW)
    expect(errorOf(verify(bytes, new TsigKey('k', 'hmac-sha256', 'b3RoZXI=')))).toBe(BADSIG)
    const answer = signMessage(message, key, NOW, { previousMac: mac })
    expect(verify(answer.bytes, key, NOW, mac).kind).toBe('valid')
    expect(errorOf(verify(answer.bytes, key, NOW, mac.toReversed()))).toBe(BADSIG)
  })

  it('says BADTIME outside the fudge, on both sides', () => {
    const key = new TsigKey('k', 'hmac-sha256', SECRET)
    const { bytes } = signMessage(message, key, NOW)
    expect(verify(bytes, key, NOW + 300).kind).toBe('valid')
    expect(errorOf(verify(bytes, key, NOW + 301))).toBe(RCODE.BADTIME)
    expect(errorOf(verify(bytes, key, NOW - 301))).toBe(RCODE.BADTIME)
  })

  it('is valid for at most 300 s: a longer fudge is capped, and a shorter one counts', () => {
    const key = new TsigKey('k', 'hmac-sha256', SECRET)
    const long = signMessage(message, key, NOW, { fudge: 65_535 }).bytes
    for (const skew of [-300, 300]) expect(verify(long, key, NOW + skew).kind).toBe('valid')
    for (const skew of [-301, 301, 65_000]) expect(errorOf(verify(long, key, NOW + skew))).toBe(RCODE.BADTIME)
    const short = signMessage(message, key, NOW, { fudge: 10 }).bytes
    expect(verify(short, key, NOW + 10).kind).toBe('valid')
    expect(errorOf(verify(short, key, NOW + 11))).toBe(RCODE.BADTIME)
  })

  it('says BADTRUNC for a shortened MAC and FORMERR for one below half', () => {
    const key = new TsigKey('k', 'hmac-sha256', SECRET)
    const { bytes } = signMessage(message, key, NOW)
    expect(errorOf(verify(truncate(bytes, 16), key))).toBe(RCODE.BADTRUNC)
    expect(errorOf(verify(truncate(bytes, 15), key))).toBe(RCODE.FORMERR)
  })

  it('never shows a secret', () => {
    const key = new TsigKey('k', 'hmac-sha256', SECRET)
    expect(JSON.stringify(key) + inspect(key, { depth: 9, showHidden: true })).not.toContain(SECRET.slice(0, 8))
    expect(() => new TsigKey('k', 'hmac-md5', SECRET)).toThrow(/hmac-md5/)
    expect(() => new TsigKey('k', 'hmac-sha256', 'not base64!')).toThrow(/^(?!.*not base64!).*$/)
  })

  it('reads keys as tsig-keygen writes them', () => {
    const [key] = parseKeyFile(
      `# comment\nkey "seamark" {\n\talgorithm hmac-sha512;\n\tsecret "${SECRET}";\n};\n`,
      'x.key',
    )
    expect(key).toMatchObject({ name: 'seamark.', algorithm: 'hmac-sha512' })
    expect(() => parseKeyFile('nothing', 'x.key')).toThrow(/x.key holds no key/)
  })
})
