/**
 * SipHash-2-4 with a 64-bit result: the hash that RFC 9018 §4.4 fixes for interoperable server cookies. Node has none.
 * 64-bit words are kept as pairs of 32-bit halves (low, high): BigInt would be fifty times slower.
 */
const state = new Int32Array(8) // v0..v3 as low, high

function add(a: number, b: number): void {
  const low = (state[a]! >>> 0) + (state[b]! >>> 0)
  state[a + 1] = state[a + 1]! + state[b + 1]! + (low > 0xffff_ffff ? 1 : 0)
  state[a] = low
}

function rotate(v: number, by: number): void {
  const low = state[v]!
  const high = state[v + 1]!
  if (by === 32) {
    state[v] = high
    state[v + 1] = low
    return
  }
  state[v] = (low << by) | (high >>> (32 - by))
  state[v + 1] = (high << by) | (low >>> (32 - by))
}

function xor(a: number, b: number): void {
  state[a]! ^= state[b]!
  state[a + 1]! ^= state[b + 1]!
}

function round(): void {
  add(0, 2)
  rotate(2, 13)
  xor(2, 0)
  rotate(0, 32)
  add(4, 6)
  rotate(6, 16)
  xor(6, 4)
  add(0, 6)
  rotate(6, 21)
  xor(6, 0)
  add(4, 2)
  rotate(2, 17)
  xor(2, 4)
  rotate(4, 32)
}

const word = (bytes: Uint8Array, at: number): number =>
  (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8) | ((bytes[at + 2] ?? 0) << 16) | ((bytes[at + 3] ?? 0) << 24)

function absorb(low: number, high: number): void {
  state[6]! ^= low
  state[7]! ^= high
  round()
  round()
  state[0]! ^= low
  state[1]! ^= high
}

/** `key` has 16 octets; the eight octets of the result are in the order of the reference implementation. */
export function siphash(key: Uint8Array, data: Uint8Array): Uint8Array {
  const keyWords = [word(key, 0), word(key, 4), word(key, 8), word(key, 12)] as const
  state[0] = keyWords[0] ^ 0x70736575
  state[1] = keyWords[1] ^ 0x736f6d65
  state[2] = keyWords[2] ^ 0x6e646f6d
  state[3] = keyWords[3] ^ 0x646f7261
  state[4] = keyWords[0] ^ 0x6e657261
  state[5] = keyWords[1] ^ 0x6c796765
  state[6] = keyWords[2] ^ 0x79746573
  state[7] = keyWords[3] ^ 0x74656462
  const whole = data.length & ~7
  for (let at = 0; at < whole; at += 8) absorb(word(data, at), word(data, at + 4))
  const tail = data.subarray(whole)
  absorb(word(tail, 0), (word(tail, 4) & 0x00ff_ffff) | (data.length << 24))
  state[4] ^= 0xff
  round()
  round()
  round()
  round()
  const result = new Uint8Array(8)
  for (let i = 0; i < 8; i++) {
    const half = i < 4 ? 0 : 1
    const value = state[half]! ^ state[half + 2]! ^ state[half + 4]! ^ state[half + 6]!
    result[i] = value >>> (8 * (i & 3))
  }
  return result
}
