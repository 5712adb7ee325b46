/**
 * Reads ExternalDNS' TXT registry, so that its records are recognised as owned and can be handed over without a gap.
 *
 * A registry entry is a TXT record whose name is derived from the name of the RRset: `a-www.a.test` (new form), the name
 * itself (old form, no type), with a prefix, a suffix or `%{record_type}` in one of them, and with the wildcard label
 * replaced when configured. Its text is `heritage=external-dns,external-dns/owner=…`, or that text gzipped and encrypted
 * with AES-256-GCM (12 octets nonce, ciphertext, tag; base64). An unreadable entry is reported as unknown, never as free.
 */
import { createCipheriv, createDecipheriv } from 'node:crypto'
import { gunzipSync, gzipSync } from 'node:zlib'
import { type Invalid, txtText, txtValue } from './rrset.ts'

export interface RegistryOptions {
  /** @default '' */
  readonly prefix?: string
  /** Excludes `prefix`. @default '' */
  readonly suffix?: string
  /** ExternalDNS' replacement for `*`. @default none: the asterisk stays */
  readonly wildcardReplacement?: string
  /** 32 octets. Needed to read encrypted entries. */
  readonly aesKey?: Uint8Array
  /** `--identity` of a dnslb-controller-manager in the same zones: its ownership records are read, too. @default none */
  readonly dnslbIdentity?: string
}

export interface RegistryEntry {
  readonly owner: string
  /** `ingress/web/shop`, when the entry contains it. */
  readonly resource?: string
  /** Whose entry it is. @default ExternalDNS' */
  readonly program?: 'dnslb'
}

/** The owner as commands, annotations and markers name it: `external-dns/OWNER`, `dnslb/IDENTITY`. */
export function claimText({ owner, program }: RegistryEntry): string {
  return `${program ?? 'external-dns'}/${owner}`
}

export type RegistryReading =
  | { readonly kind: 'entry'; readonly entry: RegistryEntry }
  /** Has the form of a registry entry, but is not readable: the record has an unknown owner. */
  | { readonly kind: 'unknown' }
  /** An ordinary TXT record. */
  | { readonly kind: 'none' }

const TEMPLATE = '%{record_type}'
const HERITAGE = 'external-dns'

/** Registries of ExternalDNS; only the TXT registry is stored in the zone, where we can read it. */
export function checkRegistryKind(kind: string): Invalid | undefined {
  if (kind === 'txt' || kind === 'none') return undefined
  return { invalid: `registry '${kind}' is not known: ownership kept there cannot be seen; use txt, or none` }
}

export function parseAesKey(text: string): Uint8Array | Invalid {
  const plain = Buffer.from(text, 'latin1')
  if (plain.length === 32) return plain
  const decoded = Buffer.from(text, 'base64')
  if (decoded.length === 32) return decoded
  return { invalid: 'an encryption key has 32 octets, as plain text or in base64' }
}

/** Every name at which ExternalDNS may store its entry for this set; the one it currently writes is first. */
export function registryNames(name: string, type: string, options: RegistryOptions): string[] {
  const names = [newName(name, type, options)]
  // ExternalDNS never used the old form for AAAA, because the A entry has the same name.
  if (type !== 'AAAA') names.push(affixed(name, options, ''))
  // Alias A records were stored under `cname-` until v0.22.
  if (type === 'A' || type === 'AAAA') names.push(newName(name, 'CNAME', options))
  return [...new Set(names)]
}

function newName(name: string, type: string, options: RegistryOptions): string {
  const lower = type.toLowerCase()
  const isInAffix = (options.prefix ?? '').includes(TEMPLATE) || (options.suffix ?? '').includes(TEMPLATE)
  return affixed(name, options, lower, isInAffix ? '' : `${lower}-`)
}

function affixed(name: string, options: RegistryOptions, type: string, typeLabel = ''): string {
  const dot = name.indexOf('.')
  const first = dot < 0 ? name : name.slice(0, dot)
  const rest = dot < 0 ? '' : name.slice(dot)
  const replacement = options.wildcardReplacement ?? ''
  const label = first === '*' && replacement !== '' ? replacement : first
  const prefix = (options.prefix ?? '').replaceAll(TEMPLATE, type)
  const suffix = (options.suffix ?? '').replaceAll(TEMPLATE, type)
  return `${prefix}${typeLabel}${label}${suffix}${rest}`.toLowerCase()
}

/** Reads one TXT value found at one of `registryNames`. */
export function readRegistryValue(value: string, options: RegistryOptions): RegistryReading {
  const text = txtText(value)
  if (text === undefined) return { kind: 'none' }
  if (options.aesKey !== undefined) {
    const opened = openText(text, options.aesKey)
    if (opened !== undefined) return readLabels(opened)
  }
  if (text.startsWith('heritage=') || text.includes(',heritage=')) return readLabels(text)
  return isSealedShape(text) ? { kind: 'unknown' } : { kind: 'none' }
}

function readLabels(text: string): RegistryReading {
  let isOurs = false
  const labels = new Map<string, string>()
  for (const token of text.split(',')) {
    const equals = token.indexOf('=')
    if (equals < 0) continue
    const key = token.slice(0, equals)
    const value = token.slice(equals + 1)
    if (key === 'heritage') {
      if (value !== HERITAGE) return { kind: 'unknown' }
      isOurs = true
    } else if (key.startsWith(`${HERITAGE}/`)) {
      labels.set(key.slice(HERITAGE.length + 1), value)
    }
  }
  const owner = labels.get('owner')
  if (!isOurs || owner === undefined) return { kind: 'unknown' }
  const resource = labels.get('resource')
  return { kind: 'entry', entry: resource === undefined ? { owner } : { owner, resource } }
}

/** The TXT value ExternalDNS would write for an owner (labels sorted by key). */
export function printRegistryValue(entry: RegistryEntry, options: RegistryOptions, nonce?: Uint8Array): string {
  const resource = entry.resource === undefined ? '' : `,${HERITAGE}/resource=${entry.resource}`
  const text = `heritage=${HERITAGE},${HERITAGE}/owner=${entry.owner}${resource}`
  if (options.aesKey === undefined || nonce === undefined) return txtValue(text)
  return txtValue(sealText(text, options.aesKey, nonce))
}

/** Strict base64 of at least a nonce, a tag and one octet: the form of an entry that is encrypted with an unknown key. */
function isSealedShape(text: string): boolean {
  if (text.length < 40 || text.length % 4 !== 0 || text.includes(' ')) return false
  const data = Buffer.from(text, 'base64')
  return data.length > 28 && data.toString('base64') === text
}

const NONCE_OCTETS = 12
const TAG_OCTETS = 16
/** An entry has a few hundred octets; the limit stops decompression bombs. */
const MAX_TEXT_OCTETS = 65536

function openText(text: string, key: Uint8Array): string | undefined {
  const data = Buffer.from(text, 'base64')
  if (data.length <= NONCE_OCTETS + TAG_OCTETS) return undefined
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, data.subarray(0, NONCE_OCTETS), { authTagLength: TAG_OCTETS })
    decipher.setAuthTag(data.subarray(-TAG_OCTETS))
    const packed = Buffer.concat([decipher.update(data.subarray(NONCE_OCTETS, -TAG_OCTETS)), decipher.final()])
    return gunzipSync(packed, { maxOutputLength: MAX_TEXT_OCTETS }).toString('latin1')
  } catch {
    // Not encrypted with this key: the caller treats it as plain text.
    return undefined
  }
}

function sealText(text: string, key: Uint8Array, nonce: Uint8Array): string {
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_OCTETS })
  const sealed = Buffer.concat([cipher.update(gzipSync(Buffer.from(text, 'latin1'), { level: 9 })), cipher.final()])
  return Buffer.concat([nonce, sealed, cipher.getAuthTag()]).toString('base64')
}

/** Validates the registry options of a configuration. */
export function checkRegistryOptions(options: RegistryOptions): Invalid | undefined {
  if ((options.prefix ?? '') !== '' && (options.suffix ?? '') !== '') {
    return { invalid: 'prefix and suffix of a registry exclude each other' }
  }
  if (options.aesKey !== undefined && options.aesKey.length !== 32)
    return { invalid: 'an encryption key has 32 octets' }
  return undefined
}
