/**
 * Hash of lower-case wire names. It runs from the root towards the first label, so that one pass over a name yields the
 * hash of the name and of all its ancestors: the answer path finds the zone, the node and the closest encloser from it.
 *
 * The seed is random per process: an attacker who chooses names cannot choose collisions.
 */
import { randomBytes } from 'node:crypto'

const SEED = randomBytes(4).readInt32LE(0)

/** Labels of the last scanned name; 127 is the most that 255 octets hold. */
export interface NameScan {
  /** Number of labels without the root. */
  labels: number
  /** Offset of label i in the name; [labels] is the root's. */
  readonly offsets: Uint8Array
  /** Hash of the name that starts at label i; [labels] is the root's. */
  readonly hashes: Uint32Array
  /** The same before the final mixing: to continue the hash with a label in front. */
  readonly raw: Int32Array
}

export const createNameScan = (): NameScan => ({
  labels: 0,
  offsets: new Uint8Array(128),
  hashes: new Uint32Array(128),
  raw: new Int32Array(128),
})

function mix(hash: number): number {
  hash ^= hash >>> 15
  hash = Math.imul(hash, 0x2c1b3c6d)
  hash ^= hash >>> 12
  hash = Math.imul(hash, 0x297a2d39)
  return (hash ^ (hash >>> 15)) >>> 0
}

const ROOT_HASH = mix(SEED)

/** Fills `scan` with labels and suffix hashes of the lower-case name of `length` octets at the start of `name`. */
export function scanName(name: Uint8Array, length: number, scan: NameScan): void {
  const { offsets, hashes, raw } = scan
  let labels = 0
  for (let at = 0; at < length - 1; at += name[at]! + 1) offsets[labels++] = at
  offsets[labels] = length - 1
  hashes[labels] = ROOT_HASH
  raw[labels] = SEED
  scan.labels = labels
  let hash = SEED
  for (let i = labels - 1, at = length - 2; i >= 0; i--) {
    for (const start = offsets[i]!; at >= start; at--) hash = Math.imul(hash ^ name[at]!, 0x01000193)
    raw[i] = hash
    hashes[i] = mix(hash)
  }
}

export function hashName(name: Uint8Array, from = 0, to = name.length): number {
  let hash = SEED
  for (let at = to - 2; at >= from; at--) hash = Math.imul(hash ^ name[at]!, 0x01000193)
  return mix(hash)
}

/** Hash of `*.` before the name that starts at label i. */
export const wildcardHash = (scan: NameScan, label: number): number =>
  mix(Math.imul(Math.imul(scan.raw[label]! ^ 0x2a, 0x01000193) ^ 1, 0x01000193))
