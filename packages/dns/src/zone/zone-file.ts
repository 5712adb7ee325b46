/**
 * Zone files (RFC 1035 §5): parsed into RRsets or directly into a zone, and printed from RRsets.
 *
 * The parser works on octets, one entry at a time, and stops at the first error with file, line and reason: a zone is served
 * whole or not at all. Directives $ORIGIN, $TTL and $INCLUDE; class IN only. Names and strings are UTF-8: a label with
 * non-ASCII characters becomes an A-label; other octets are written \DDD.
 */
import { CLASS, findClass, findType, TYPE, typeCode, typeName } from '../wire/codes.ts'
import { MAX_TTL, parseDuration } from '../wire/ttl.ts'
import { DnsError } from '../error.ts'
import { printable } from '../printable.ts'
import { type Fqdn, fqdn, lowerWire, nameToText, nameToWire } from '../wire/name.ts'
import { parseRdata, rdataFromText } from '../wire/rdata/grammar.ts'
import type { Token } from '../wire/rdata/token.ts'
import { canonicalText, groupRecords, type RRset, type Resource } from '../wire/record.ts'
import { buildZone, ZoneConflict } from './zone-build.ts'
import { RecordLog } from './zone-log.ts'
import { sortSets, Zone } from './zone-table.ts'
import { ZoneReader } from './zone-reader.ts'

export interface ZoneFileOptions {
  /** Origin until the first $ORIGIN. */
  readonly origin?: Fqdn
  /** Named in errors. @default 'zone' */
  readonly file?: string
  /** Reads an $INCLUDEd file; without it $INCLUDE is an error. */
  readonly include?: (file: string) => Buffer
}

/** Why a zone file was refused: `file:line: reason`. */
export interface ZoneFileError {
  readonly file: string
  readonly line: number
  readonly reason: string
}

export const isZoneFileError = (result: object): result is ZoneFileError => 'reason' in result && 'line' in result

type Sink = (name: Uint8Array, type: number, ttl: number, data: Uint8Array, line: number) => void

class EntryError extends Error {
  readonly at: ZoneFileError
  constructor(at: ZoneFileError) {
    super(at.reason)
    this.at = at
  }
}

/** $INCLUDE nests no deeper: a file that includes itself ends here. */
const MAX_INCLUDE_DEPTH = 8
/** Included files of one zone: files that include each other several times would otherwise be read depth to the power of 8. */
const MAX_INCLUDES = 1000

interface State {
  origin: Uint8Array | undefined
  owner: Uint8Array | undefined
  /** Text and origin of the last owner: it is parsed again only when one of them changes. */
  ownerText: string
  ownerOrigin: Uint8Array | undefined
  /** From $TTL, else undefined. */
  defaultTtl: number | undefined
  lastTtl: number | undefined
  /** Files included so far, shared by all files of the zone. */
  readonly includes: { count: number }
}

function readEntries(text: Buffer, options: ZoneFileOptions, state: State, sink: Sink, depth: number): void {
  const file = printable(options.file ?? 'zone')
  const reader = new ZoneReader(text)
  try {
    while (reader.next()) {
      const { tokens } = reader
      const first = tokens[0]!
      if (reader.hasOwner && first.text.startsWith('$') && !first.isQuoted)
        readDirective(tokens, options, state, sink, depth)
      else readRecord(reader, state, sink)
    }
  } catch (error) {
    if (!(error instanceof DnsError)) throw error
    throw new EntryError({ file, line: reader.line, reason: error.message })
  }
}

const wrong = (reason: string) => new DnsError('BAD_ZONE', reason)

function readDirective(
  tokens: readonly Token[],
  options: ZoneFileOptions,
  state: State,
  sink: Sink,
  depth: number,
): void {
  const [directive, argument, extra] = tokens.map((token) => token.text)
  if (argument === undefined) throw wrong(`${directive} needs a value`)
  switch (directive!.toUpperCase()) {
    case '$ORIGIN':
      state.origin = nameToWire(argument, state.origin)
      return
    case '$TTL': {
      const ttl = parseDuration(argument)
      if (ttl === undefined || ttl > MAX_TTL) throw wrong(`'${argument}' is not a TTL`)
      state.defaultTtl = ttl
      return
    }
    case '$INCLUDE': {
      if (options.include === undefined) throw wrong('$INCLUDE is not allowed here')
      if (depth >= MAX_INCLUDE_DEPTH) throw wrong(`$INCLUDE nests deeper than ${MAX_INCLUDE_DEPTH}`)
      if (++state.includes.count > MAX_INCLUDES) throw wrong(`the zone includes more than ${MAX_INCLUDES} files`)
      // RFC 1035 §5.1: origin and owner of this file are restored after the included one.
      const inner = { ...state, origin: extra === undefined ? state.origin : nameToWire(extra, state.origin) }
      readEntries(readIncluded(options.include, argument), { ...options, file: argument }, inner, sink, depth + 1)
      return
    }
  }
  throw wrong(`${directive} is not known; use $ORIGIN, $TTL or $INCLUDE`)
}

function readIncluded(include: (file: string) => Buffer, file: string): Buffer {
  try {
    return include(file)
  } catch (error) {
    throw new DnsError(
      'BAD_ZONE',
      `cannot include ${file}: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    )
  }
}

function readOwner(text: string, state: State): void {
  if (state.owner !== undefined && text === state.ownerText && state.ownerOrigin === state.origin) return
  state.ownerText = text
  state.ownerOrigin = state.origin
  if (text === '@') {
    if (state.origin === undefined) throw wrong("'@' means the origin, but no $ORIGIN is set")
    state.owner = state.origin
  } else {
    if (state.origin === undefined && !text.endsWith('.')) throw wrong(`'${text}' is relative, but no $ORIGIN is set`)
    state.owner = nameToWire(text, state.origin)
  }
}

function readRecord(reader: ZoneReader, state: State, sink: Sink): void {
  const { tokens } = reader
  let at = 0
  if (reader.hasOwner) {
    readOwner(tokens[0]!.text, state)
    at = 1
  }
  if (state.owner === undefined) throw wrong('the first record has no name')
  let ttl: number | undefined
  let hasClass = false
  for (; at < tokens.length; at++) {
    const { text } = tokens[at]!
    const duration = ttl === undefined ? parseDuration(text) : undefined
    if (duration !== undefined) {
      if (duration > MAX_TTL) throw wrong(`TTL ${text} is over ${MAX_TTL}`)
      ttl = duration
      continue
    }
    const rrClass = hasClass ? undefined : findClass(text)
    if (rrClass === undefined) break
    if (rrClass !== CLASS.IN) throw wrong(`class ${text} is not served; only IN is`)
    hasClass = true
  }
  const token = tokens[at]
  if (token === undefined) throw wrong('the record has no type')
  const type = token.isQuoted ? undefined : findType(token.text)
  if (type === undefined) throw wrong(`'${token.text}' is not a record type`)
  if (type === 0 || type === TYPE.OPT || (type >= TYPE.TKEY && type <= TYPE.ANY))
    throw wrong(`type ${typeName(type)} is not allowed in a zone`)
  const data = parseRdata(type, tokens, at + 1, state.origin)
  // RFC 2308 §4: without $TTL the last explicit TTL counts; BIND takes the SOA's negative TTL when there is none yet.
  ttl ??= state.defaultTtl ?? state.lastTtl ?? (type === TYPE.SOA ? data.readUInt32BE(data.length - 4) : undefined)
  if (ttl === undefined) throw wrong('the record has no TTL; set $TTL first')
  state.lastTtl = ttl
  sink(state.owner, type, ttl, data, reader.line)
}

function read(text: Buffer | string, options: ZoneFileOptions, state: State, sink: Sink): ZoneFileError | undefined {
  try {
    readEntries(typeof text === 'string' ? Buffer.from(text) : text, options, state, sink, 0)
    return undefined
  } catch (error) {
    if (error instanceof EntryError) return error.at
    throw error
  }
}

const newState = (options: ZoneFileOptions): State => ({
  origin: options.origin === undefined ? undefined : nameToWire(options.origin),
  owner: undefined,
  ownerText: '',
  ownerOrigin: undefined,
  defaultTtl: undefined,
  lastTtl: undefined,
  includes: { count: 0 },
})

/** RRsets of a zone file, in its order, or the error value. The records need not form a zone. */
export function parseZoneFile(text: Buffer | string, options: ZoneFileOptions = {}): RRset[] | ZoneFileError {
  const records: Resource[] = []
  const error = read(text, options, newState(options), (name, type, ttl, data) =>
    records.push({ name: nameToText(name), type, class: CLASS.IN, ttl, data }),
  )
  return error ?? groupRecords(records)
}

/** A zone from a zone file. Its origin is the owner of the SOA; every record must be in it. */
export function loadZoneFile(text: Buffer | string, options: ZoneFileOptions = {}): Zone | ZoneFileError {
  const file = printable(options.file ?? 'zone')
  let log: RecordLog | undefined
  const early: Parameters<Sink>[] = []
  const error = read(text, options, newState(options), (...record) => {
    if (log === undefined && record[1] === TYPE.SOA) log = new RecordLog(lowerWire(record[0]))
    if (log === undefined) early.push(record)
    else log.add(...record)
  })
  if (error !== undefined) return error
  if (log === undefined)
    return { file, line: 1, reason: early.length === 0 ? 'the file has no records' : 'the zone has no SOA record' }
  for (const record of early) {
    try {
      log.add(...record)
    } catch (cause) {
      if (!(cause instanceof DnsError)) throw cause
      return { file, line: record[4], reason: cause.message }
    }
  }
  const parts = buildZone(log)
  if (!(parts instanceof DnsError)) return new Zone(parts)
  return { file, line: parts instanceof ZoneConflict ? parts.line : 1, reason: parts.message }
}

/**
 * A zone file of absolute names, the SOA first, one record a line. Names and values are parsed and printed anew, so that text
 * from elsewhere cannot become another line or directive. Throws DnsError when one is no valid presentation form.
 */
export function printZoneFile(origin: Fqdn, sets: Iterable<RRset>): string {
  const lines = [`$ORIGIN ${origin}`]
  for (const set of sortSets(origin, sets)) {
    const type = typeCode(set.type)
    const head = `${fqdn(set.name)}\t${checkedTtl(set)}\tIN\t${typeName(type)}`
    for (const value of set.values) lines.push(`${head}\t${checkedValue(set, type, value)}`)
  }
  return `${lines.join('\n')}\n`
}

function checkedTtl({ name, type, ttl }: RRset): number {
  if (Number.isInteger(ttl) && ttl >= 0 && ttl <= MAX_TTL) return ttl
  throw wrong(`the TTL ${ttl} of ${name} ${type} is not a number from 0 to ${MAX_TTL}`)
}

function checkedValue(set: RRset, type: number, value: string): string {
  try {
    return canonicalText(type, rdataFromText(type, value))
  } catch (cause) {
    if (!(cause instanceof DnsError)) throw cause
    throw new DnsError('BAD_RDATA', `${set.name} ${set.type} has the value '${value}': ${cause.message}`, { cause })
  }
}
