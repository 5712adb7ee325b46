/**
 * The limits of DNS for what a change writes: names of at most 255 octets with labels of at most 63 (RFC 1035 §2.3.4), and
 * RRsets that fit into one message (§4.2.2). The marker of a set has a longer name than the set, so a legal name may have
 * no legal marker. Pure.
 */
import { parseName } from '@seamark/dns'
import { ProviderError } from './error.ts'
import { isInvalid, type RRset, setKey, shown, txtStrings } from './rrset.ts'
import type { SetChange } from './set-change.ts'

/** As our own server: what is left of a message besides its header, question and signature. */
const MAX_SET_OCTETS = 65_000
/** Of one record besides its data: a compressed name, type, class, TTL and length. */
const RECORD_OCTETS = 12
/** Characters of a name without its final dot, which are 255 octets on the wire. */
const MAX_NAME_CHARACTERS = 253

/** Why a set can be in no zone, or undefined. */
function findSetFault(set: RRset): string | undefined {
  const name = parseName(set.name)
  if (name instanceof Error) return name.message
  const octets = octetsOf(set)
  if (octets <= MAX_SET_OCTETS) return undefined
  return `its ${set.values.length} values have ${octets} octets; at most ${MAX_SET_OCTETS} fit into a DNS message`
}

/** Throws a refusal when a set of the batch can be in no zone. */
export function checkBatch(batch: readonly SetChange[]): void {
  for (const { to } of batch) {
    const fault = to === undefined ? undefined : findSetFault(to)
    if (to !== undefined && fault !== undefined)
      throw new ProviderError('RecordRejected', 'rejected', `${shown(setKey(to))}: ${fault}`)
  }
}

/**
 * Why a change can be written to no zone, or undefined. `markers` are the sets that are written with it.
 */
export function findChangeFault(
  { to }: Pick<SetChange, 'to'>,
  markers: readonly Pick<SetChange, 'to'>[],
): string | undefined {
  const own = to === undefined ? undefined : findSetFault(to)
  if (own !== undefined) return own
  for (const { to: marker } of markers) {
    const fault = marker === undefined ? undefined : findSetFault(marker)
    if (marker === undefined || fault === undefined) continue
    const length = marker.name.length - 1
    if (to === undefined || length <= MAX_NAME_CHARACTERS) return `the record of its owner at ${marker.name}: ${fault}`
    const most = MAX_NAME_CHARACTERS - (marker.name.length - to.name.length)
    return `the record of its owner would have a name of ${length} characters, and DNS allows ${MAX_NAME_CHARACTERS}; use a name of at most ${most} characters`
  }
  return undefined
}

/** Octets of a set in a message, at most. */
export function octetsOf({ type, values }: RRset): number {
  return values.reduce((sum, value) => sum + RECORD_OCTETS + dataOctetsOf(type, value), 0)
}

function dataOctetsOf(type: string, value: string): number {
  if (type === 'A') return 4
  if (type === 'AAAA') return 16
  const strings = type === 'TXT' ? txtStrings(value) : undefined
  if (strings === undefined || isInvalid(strings)) return value.length + 1
  return strings.reduce((sum, text) => sum + text.length + 1, 0)
}
