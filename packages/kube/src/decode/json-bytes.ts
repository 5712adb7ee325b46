/**
 * Scans JSON in a Buffer without parsing it: where a value ends, where the members of an object are. Used to cut text
 * out before parsing, and to split a list into items. It does not validate; JSON.parse does that afterwards.
 *
 * Every function returns a position, or -1 if the text is truncated or not what was expected.
 */
const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const COMMA = 0x2c
const COLON = 0x3a

export function skipBlanks(bytes: Buffer, at: number, end: number): number {
  while (at < end) {
    const byte = bytes[at]
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at
    at++
  }
  return at
}

/** `at` is the opening quote; the result is the position after the closing one. */
function skipString(bytes: Buffer, at: number, end: number): number {
  for (let index = at + 1; index < end; index++) {
    const byte = bytes[index]
    if (byte === QUOTE) return index + 1
    if (byte === BACKSLASH) index++
  }
  return -1
}

/** `at` is the first byte of a value; the result is the position after its last. */
export function skipValue(bytes: Buffer, at: number, end: number): number {
  const first = bytes[at]
  if (first === QUOTE) return skipString(bytes, at, end)
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) {
    let index = at
    for (; index < end; index++) {
      const byte = bytes[index]
      if (byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET || byte === 0x20 || byte === 0x0a) break
    }
    return index === at ? -1 : index
  }
  let depth = 0
  for (let index = at; index < end; index++) {
    const byte = bytes[index] as number
    if (byte === QUOTE) {
      // skipString inlined: most bytes of an object are in strings.
      for (index++; index < end; index++) {
        const inner = bytes[index]
        if (inner === QUOTE) break
        if (inner === BACKSLASH) index++
      }
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++
    else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --depth === 0) return index + 1
  }
  return -1
}

/** A member of an object: `keyAt` is the opening quote of its key, `valueAt` the first byte of its value. */
export interface Member {
  keyAt: number
  keyEnd: number
  valueAt: number
}

/**
 * The first member at or after `at`, which is after `{` or after the previous value. False at the closing brace and on
 * malformed text. Fills `member` instead of allocating one, because it runs for every event.
 */
export function nextMember(bytes: Buffer, at: number, end: number, member: Member): boolean {
  let index = skipBlanks(bytes, at, end)
  if (bytes[index] === COMMA) index = skipBlanks(bytes, index + 1, end)
  if (index >= end || bytes[index] !== QUOTE) return false
  const keyEnd = skipString(bytes, index, end)
  if (keyEnd < 0) return false
  const colon = skipBlanks(bytes, keyEnd, end)
  if (bytes[colon] !== COLON) return false
  member.keyAt = index
  member.keyEnd = keyEnd
  member.valueAt = skipBlanks(bytes, colon + 1, end)
  return member.valueAt < end
}

/** True when the member's key is `"key"`, given with its quotes. */
export function isKey(bytes: Buffer, member: Member, quotedKey: Buffer): boolean {
  const length = member.keyEnd - member.keyAt
  if (length !== quotedKey.length) return false
  for (let index = 1; index < length - 1; index++) {
    if (bytes[member.keyAt + index] !== quotedKey[index]) return false
  }
  return true
}

/** Finds a member of the object that begins at `at`; the result is the first byte of its value, or -1. */
export function findMember(bytes: Buffer, at: number, end: number, quotedKey: Buffer, member: Member): number {
  if (bytes[at] !== OPEN_BRACE) return -1
  let index = at + 1
  while (nextMember(bytes, index, end, member)) {
    if (isKey(bytes, member, quotedKey)) return member.valueAt
    index = skipValue(bytes, member.valueAt, end)
    if (index < 0) return -1
  }
  return -1
}

export function newMember(): Member {
  return { keyAt: 0, keyEnd: 0, valueAt: 0 }
}
