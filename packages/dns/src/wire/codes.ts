/**
 * Numbers and mnemonics of the DNS registries: types, classes, opcodes, response codes.
 * Unknown values print as TYPE123 / CLASS123 (RFC 3597 §5) and parse back from that form.
 */
import { DnsError } from '../error.ts'

export const TYPE = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  HINFO: 13,
  MX: 15,
  TXT: 16,
  RP: 17,
  AFSDB: 18,
  AAAA: 28,
  LOC: 29,
  SRV: 33,
  NAPTR: 35,
  DNAME: 39,
  OPT: 41,
  DS: 43,
  SSHFP: 44,
  RRSIG: 46,
  NSEC: 47,
  DNSKEY: 48,
  NSEC3: 50,
  NSEC3PARAM: 51,
  TLSA: 52,
  SMIMEA: 53,
  CDS: 59,
  CDNSKEY: 60,
  OPENPGPKEY: 61,
  ZONEMD: 63,
  SVCB: 64,
  HTTPS: 65,
  SPF: 99,
  TKEY: 249,
  TSIG: 250,
  IXFR: 251,
  AXFR: 252,
  MAILB: 253,
  MAILA: 254,
  ANY: 255,
  URI: 256,
  CAA: 257,
} as const

export const CLASS = { IN: 1, CH: 3, HS: 4, NONE: 254, ANY: 255 } as const

export const OPCODE = { QUERY: 0, IQUERY: 1, STATUS: 2, NOTIFY: 4, UPDATE: 5 } as const

export const RCODE = {
  NOERROR: 0,
  FORMERR: 1,
  SERVFAIL: 2,
  NXDOMAIN: 3,
  NOTIMP: 4,
  REFUSED: 5,
  YXDOMAIN: 6,
  YXRRSET: 7,
  NXRRSET: 8,
  NOTAUTH: 9,
  NOTZONE: 10,
  BADVERS: 16,
  BADKEY: 17,
  BADTIME: 18,
  BADTRUNC: 22,
  BADCOOKIE: 23,
} as const

type Table = Readonly<Record<string, number>>

const invert = (table: Table) => new Map(Object.entries(table).map(([name, code]) => [code, name]))
const codesOf = (table: Table) => new Map(Object.entries(table))

const typeNames = invert(TYPE)
const typeCodes = codesOf(TYPE)
const classNames = invert(CLASS)
const classCodes = codesOf(CLASS)
const opcodeNames = invert(OPCODE)
const rcodeNames = invert(RCODE)

function findCode(codes: Map<string, number>, generic: string, text: string): number | undefined {
  const usual = codes.get(text)
  if (usual !== undefined) return usual
  const upper = text.toUpperCase()
  const known = codes.get(upper)
  if (known !== undefined) return known
  if (!upper.startsWith(generic)) return undefined
  const digits = upper.slice(generic.length)
  if (!/^\d{1,5}$/.test(digits)) return undefined
  const code = Number(digits)
  return code <= 0xffff ? code : undefined
}

/** The number of a type mnemonic or `TYPE123`, in any case. */
export const findType = (text: string): number | undefined => findCode(typeCodes, 'TYPE', text)
export const findClass = (text: string): number | undefined => findCode(classCodes, 'CLASS', text)

export function typeCode(text: string): number {
  const code = findType(text)
  if (code === undefined) throw new DnsError('BAD_TYPE', `unknown record type '${text}'; write TYPE123 for a number`)
  return code
}

export const typeName = (code: number): string => typeNames.get(code) ?? `TYPE${code}`
export const className = (code: number): string => classNames.get(code) ?? `CLASS${code}`
export const opcodeName = (code: number): string => opcodeNames.get(code) ?? `OPCODE${code}`
export const rcodeName = (code: number): string => rcodeNames.get(code) ?? `RCODE${code}`
