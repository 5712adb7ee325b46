/**
 * The ownership records of dnslb-controller-manager (and of external-dns-management until v0.22): one TXT set for all types
 * of a name, TTL 600, with one attribute in each value.
 *
 *   comment-www.example.com.  TXT  "owner=GardenRing" "prefix=comment-" "cnames=a.example.net,b.example.net"
 *
 * The name of the TXT set is `comment-` + name; of a wildcard `*.x.y` it is `*.comment-x.y`. The first release wrote the bare
 * owner into a TXT set at the name itself; that form is read, and replaced when the set is written. Pure.
 */
import { canonicalName, compareText, isInvalid, type RRset, txtText, txtValue } from './rrset.ts'

const ORIGINAL_MARKER_TTL = 600
const PREFIX = 'comment-'
const WILDCARD = '*.'

export interface OriginalMarker {
  /** The name whose records the marker is about. */
  readonly name: string
  readonly owner: string
  /** The form of the first release: a bare value at the name itself. */
  readonly isLegacy: boolean
}

/** Undefined when the name with its prefix is not a DNS name: the first label has at most 55 octets. */
export function originalMarkerName(name: string): string | undefined {
  const text = name.startsWith(WILDCARD) ? `${WILDCARD}${PREFIX}${name.slice(WILDCARD.length)}` : `${PREFIX}${name}`
  const canonical = canonicalName(text)
  return isInvalid(canonical) ? undefined : canonical
}

/** Undefined: an ordinary TXT set. */
export function readOriginalMarker(set: RRset): OriginalMarker | undefined {
  if (set.type !== 'TXT') return undefined
  const attributes = new Map<string, string>()
  const bare: string[] = []
  for (const value of set.values) {
    const text = txtText(value)
    if (text === undefined) continue
    const equals = text.indexOf('=')
    if (equals > 0) attributes.set(text.slice(0, equals), text.slice(equals + 1))
    else if (/^[^\s=]+$/.test(text)) bare.push(text)
  }
  const owner = attributes.get('owner')
  const prefix = attributes.get('prefix') ?? ''
  if (owner !== undefined && prefix !== '') {
    const name = withoutPrefix(set.name, prefix)
    return name === undefined ? undefined : { name, owner, isLegacy: false }
  }
  const [only] = bare
  return only !== undefined && bare.length === 1 ? { name: set.name, owner: only, isLegacy: true } : undefined
}

function withoutPrefix(name: string, prefix: string): string | undefined {
  const isWildcard = name.startsWith(WILDCARD)
  const rest = isWildcard ? name.slice(WILDCARD.length) : name
  if (!rest.startsWith(prefix)) return undefined
  return `${isWildcard ? WILDCARD : ''}${rest.slice(prefix.length)}`
}

export function originalMarkerSet(name: string, owner: string, cnames: readonly string[]): RRset | undefined {
  const markerName = originalMarkerName(name)
  if (markerName === undefined) return undefined
  const hosts = [...new Set(cnames.map((cname) => cname.replace(/\.$/, '')))].sort(compareText)
  const texts = [`owner=${owner}`, `prefix=${PREFIX}`, ...(hosts.length > 0 ? [`cnames=${hosts.join(',')}`] : [])]
  return { name: markerName, type: 'TXT', ttl: ORIGINAL_MARKER_TTL, values: texts.map(txtValue).sort(compareText) }
}

/** The legacy set without the owner's bare value; undefined when nothing else is in it. */
export function withoutLegacyMarker(set: RRset, owner: string): RRset | undefined {
  const values = set.values.filter((value) => txtText(value) !== owner)
  return values.length === 0 ? undefined : { name: set.name, type: set.type, ttl: set.ttl, values }
}
