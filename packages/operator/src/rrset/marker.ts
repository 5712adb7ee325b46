/**
 * Ownership markers: one TXT set at `_seamark-<type>.<name>` identifies the owner of the RRset (INV-7 … INV-12).
 *
 *   _seamark-a.www.example.com.  TXT  "v=seamark1,owner=prod,cluster=UID,source=UID,plan=42"
 *
 * Fields have one fixed order, so equal markers are equal bytes. Several values at one name are several owners that share
 * the RRset, each with its own `part`. With a key the last field is an HMAC over name, type and all preceding fields, so
 * a marker copied to another name is invalid. Readers accept every older version; a newer one is rejected.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { compareText, type RRset, txtText, txtValue } from './rrset.ts'

export interface Marker {
  readonly owner: string
  /** UID of the namespace kube-system: distinguishes two clusters with the same owner id. */
  readonly cluster: string
  /** UID of the object that requested the RRset. */
  readonly source: string
  readonly plan: number
  /** Revision of the source when the values were last written: distinguishes a retarget from a changed source. */
  readonly revision?: string
  /** `external-dns/OWNER`, `dnslb/IDENTITY`: the registry entry that existed at the adoption, and is kept beside our marker. */
  readonly from?: string
  /** `external-dns/resource` of that entry, so that it can be given back when the entry was removed: `ingress/web/shop`. */
  readonly resource?: string
  /** Our own values of a shared set. Absent: the whole set is ours. */
  readonly part?: readonly string[]
}

/** The content found at a marker's name. */
export type MarkerReading =
  | { readonly kind: 'marker'; readonly marker: Marker; readonly value: string }
  | { readonly kind: 'newer'; readonly value: string }
  | { readonly kind: 'forged'; readonly value: string }
  | { readonly kind: 'unreadable'; readonly value: string }

export const MARKER_TTL = 300
/** Source of a set that was adopted by a command: the first source that requests it becomes its source. */
export const ADOPTED = 'adopted'
const PREFIX = '_seamark-'
const VERSION_FIELD = 'v=seamark1,'
const WILDCARD_LABEL = '_any'

/** `*.a.test.` and A → `_seamark-a._any.a.test.` */
export function markerName(name: string, type: string): string {
  const plain = name.startsWith('*.') ? `${WILDCARD_LABEL}${name.slice(1)}` : name
  return `${PREFIX}${type.toLowerCase()}.${plain}`
}

export function isMarkerName(name: string): boolean {
  return name.startsWith(PREFIX)
}

/** The inverse of `markerName`; undefined when the name is not that of a marker. */
export function markedSet(name: string): { name: string; type: string } | undefined {
  if (!name.startsWith(PREFIX)) return undefined
  const dot = name.indexOf('.')
  if (dot < 0) return undefined
  const rest = name.slice(dot + 1)
  const plain = rest.startsWith(`${WILDCARD_LABEL}.`) ? `*${rest.slice(WILDCARD_LABEL.length)}` : rest
  return { name: plain, type: typeOf(name.slice(PREFIX.length, dot)) }
}

function typeOf(label: string): string {
  // The two most frequent types, without allocating a string for each marker of a large zone.
  return label === 'a' ? 'A' : label === 'cname' ? 'CNAME' : label.toUpperCase()
}

/** Whether a text is valid in a field: no separator, quote or control character, so that parsing is splitting. */
export function isFieldText(text: string): boolean {
  if (text.length === 0 || text.length > 128) return false
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (
      code <= 0x20 ||
      code >= 0x7f ||
      code === 0x22 ||
      code === 0x2c ||
      code === 0x3d ||
      code === 0x5c ||
      code === 0x7c
    ) {
      return false
    }
  }
  return true
}

function macOf(subject: { name: string; type: string }, text: string, key: Uint8Array): string {
  // 128 bits suffice against forgery and keep the marker short: its length limits the size of Route 53 batches.
  return createHmac('sha256', key).update(`${subject.name} ${subject.type} ${text}`).digest('base64url').slice(0, 22)
}

/** The TXT value of a marker. */
export function printMarker(subject: { name: string; type: string }, marker: Marker, key?: Uint8Array): string {
  let text = `${VERSION_FIELD}owner=${marker.owner},cluster=${marker.cluster},source=${marker.source},plan=${marker.plan}`
  if (marker.revision !== undefined) text += `,rev=${marker.revision}`
  if (marker.from !== undefined) text += `,from=${marker.from}`
  if (marker.resource !== undefined) text += `,resource=${marker.resource}`
  if (marker.part !== undefined) text += `,part=${marker.part.join('|')}`
  if (key !== undefined) text += `,mac=${macOf(subject, text, key)}`
  return txtValue(text)
}

/** The beginning of a marker; nearly all markers of a zone share it, so it is parsed once and then compared. */
interface Head {
  readonly text: string
  readonly owner: string
  readonly cluster: string
}

/** Parses one value at a marker's name. */
export type MarkerReader = (subject: { name: string; type: string }, value: string) => MarkerReading

/** For many markers of one zone. With a key, a marker without a valid HMAC is `forged`. */
export function createMarkerReader(key?: Uint8Array): MarkerReader {
  let head: Head | undefined
  const cursor = new Cursor()
  return (subject, value) => {
    if (!cursor.open(value)) return { kind: 'unreadable', value }
    if (!cursor.skip(VERSION_FIELD)) {
      const isNewer = /^v=seamark\d+,/.test(cursor.rest())
      return { kind: isNewer ? 'newer' : 'unreadable', value }
    }
    if (head === undefined || !cursor.skip(head.text)) head = readHead(cursor)
    const marker = head === undefined ? undefined : readFields(cursor, head)
    if (marker === undefined) return { kind: 'unreadable', value }
    if (key !== undefined && !isMacRight(subject, cursor.whole(), key)) return { kind: 'forged', value }
    return { kind: 'marker', marker, value }
  }
}

export function readMarker(subject: { name: string; type: string }, value: string, key?: Uint8Array): MarkerReading {
  return createMarkerReader(key)(subject, value)
}

function readHead(cursor: Cursor): Head | undefined {
  const { at } = cursor
  const owner = cursor.take('owner=')
  const cluster = cursor.take('cluster=')
  // It ends with a comma: else `cluster=ab` would match the beginning of `cluster=abc`.
  if (owner === undefined || cluster === undefined || cursor.isPastEnd) return undefined
  return { text: cursor.text.slice(at, cursor.at), owner, cluster }
}

function readFields(cursor: Cursor, { owner, cluster }: Head): Marker | undefined {
  const source = cursor.take('source=')
  const plan = cursor.takeNumber('plan=')
  const revision = cursor.take('rev=')
  if (source === undefined || plan === undefined) return undefined
  // One object shape for nearly all markers, without the spreads below: a large zone has very many.
  if (cursor.isPastEnd)
    return revision === undefined ? { owner, cluster, source, plan } : { owner, cluster, source, plan, revision }
  const from = cursor.take('from=')
  const resource = cursor.take('resource=')
  const part = cursor.take('part=')
  cursor.take('mac=')
  if (!cursor.isPastEnd) return undefined
  return {
    owner,
    cluster,
    source,
    plan,
    ...(revision !== undefined && { revision }),
    ...(from !== undefined && { from }),
    ...(resource !== undefined && { resource }),
    ...(part !== undefined && { part: part === '' ? [] : part.split('|') }),
  }
}

/** A position in the text of a marker. Fields are read in the fixed order: unknown and repeated ones are left over. */
class Cursor {
  text = ''
  at = 0
  #start = 0
  #end = 0

  /** False: the value is not in quoted form. */
  open(value: string): boolean {
    // Markers are plain ASCII in one string: they are parsed in place.
    const isPlain = value.indexOf('"', 1) === value.length - 1 && value.startsWith('"') && !value.includes('\\')
    const text = isPlain ? value : txtText(value)
    if (text === undefined) return false
    this.text = text
    this.#start = isPlain ? 1 : 0
    this.#end = isPlain ? value.length - 1 : text.length
    this.at = this.#start
    return true
  }

  get isPastEnd(): boolean {
    return this.at === this.#end + 1
  }

  whole(): string {
    return this.text.slice(this.#start, this.#end)
  }

  rest(): string {
    return this.text.slice(this.at, this.#end)
  }

  skip(expected: string): boolean {
    const end = this.at + expected.length
    // String comparison works on words, `startsWith` on characters.
    if (this.text.slice(this.at, end) !== expected) return false
    this.at = end
    return true
  }

  /** The value of the field at the position, if it has this key. */
  take(field: string): string | undefined {
    if (!this.skip(field)) return undefined
    const from = this.at
    return this.text.slice(from, this.#passField())
  }

  takeNumber(field: string): number | undefined {
    if (!this.skip(field)) return undefined
    const from = this.at
    const to = this.#passField()
    let number = 0
    for (let index = from; index < to; index++) {
      const digit = this.text.charCodeAt(index) - 0x30
      if (digit < 0 || digit > 9) return undefined
      number = number * 10 + digit
    }
    return to > from && Number.isSafeInteger(number) ? number : undefined
  }

  /** Moves behind the comma that ends the field, and returns that position. */
  #passField(): number {
    const comma = this.text.indexOf(',', this.at)
    const end = comma < 0 ? this.#end : comma
    this.at = end + 1
    return end
  }
}

/** The HMAC is the last field, over all preceding text. */
function isMacRight(subject: { name: string; type: string }, text: string, key: Uint8Array): boolean {
  const at = text.lastIndexOf(',mac=')
  if (at < 0) return false
  const expected = Buffer.from(macOf(subject, text.slice(0, at), key))
  const given = Buffer.from(text.slice(at + ',mac='.length))
  return expected.length === given.length && timingSafeEqual(expected, given)
}

/** The marker set with `own` in place of `previous` (one value among several owners), or undefined when no value is left. */
export function markerSet(
  subject: { name: string; type: string },
  present: RRset | undefined,
  previous: string | undefined,
  own: string | undefined,
): RRset | undefined {
  const values = (present?.values ?? []).filter((value) => value !== previous)
  if (own !== undefined) values.push(own)
  if (values.length === 0) return undefined
  return {
    name: markerName(subject.name, subject.type),
    type: 'TXT',
    ttl: present?.ttl ?? MARKER_TTL,
    values: values.sort(compareText),
  }
}
