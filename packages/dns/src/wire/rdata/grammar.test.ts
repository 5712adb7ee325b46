import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { TYPE, typeCode } from '../codes.ts'
import { DnsError } from '../../error.ts'
import { createRRset } from '../record.ts'
import { WireReader } from '../wire.ts'
import { rdataFromText, rdataToText, readRdata } from './grammar.ts'

/** Values in the form we print; each must print as itself. */
const CANONICAL: ReadonlyArray<readonly [type: string, value: string]> = [
  ['A', '192.0.2.1'],
  ['AAAA', '2001:db8::1'],
  ['AAAA', '::'],
  ['AAAA', '::ffff:192.0.2.1'],
  ['AAAA', '1:0:0:2::3'],
  ['NS', 'ns1.example.test.'],
  ['CNAME', 'www.example.test.'],
  ['DNAME', 'other.test.'],
  ['PTR', 'a\\.b.test.'],
  ['SOA', 'ns.test. host.test. 4294967295 3600 600 86400 60'],
  ['MX', '10 mail.example.test.'],
  ['TXT', '"a b" "\\"quoted\\" \\\\ \\200" ""'],
  ['SRV', '1 2 443 web.example.test.'],
  ['CAA', '128 issue "ca.example; policy=x"'],
  [
    'HTTPS',
    '1 . alpn="h2,h3" no-default-alpn port=443 ipv4hint=192.0.2.1,192.0.2.2 ech=AAEC ipv6hint=2001:db8::1 key65333="x"',
  ],
  ['SVCB', '0 foo.example.test.'],
  ['SVCB', '1 foo.example.test. mandatory=alpn,port alpn="a\\\\,b" port=1'],
  ['TLSA', '3 1 1 0123456789ABCDEF'],
  ['NAPTR', '100 10 "S" "SIP+D2U" "!^.*$!sip:x@test!" _sip._udp.example.test.'],
  ['DS', '12345 13 2 ABCDEF'],
  ['DNSKEY', '257 3 13 AAECAw=='],
  ['SSHFP', '4 2 ABCD'],
  ['HINFO', '"cpu" "os"'],
  ['URI', '10 1 "https://example.test/"'],
  ['NSEC', 'b.test. A NS SOA TYPE1234'],
  ['RRSIG', 'A 13 2 3600 20260131235959 20260101000000 12345 example.test. AAEC'],
  ['TYPE65280', '\\# 3 0102FF'],
  ['TYPE65281', '\\# 0'],
]

/** Anything but a DnsError escapes and fails the property. */
function readOrError(type: number, octets: Uint8Array): Buffer | DnsError {
  try {
    return readRdata(type, new WireReader(octets), octets.length)
  } catch (error) {
    if (error instanceof DnsError) return error
    throw error
  }
}

describe('record data', () => {
  it.each(CANONICAL)('%s %s is read and printed as it is written', (type, value) => {
    expect(createRRset('x.test', type, 60, [value]).values).toEqual([value])
  })

  it.each(CANONICAL)('%s %s can also be written in the generic form of RFC 3597', (type, value) => {
    const data = rdataFromText(typeCode(type), value)
    const generic = `\\# ${data.length} ${data.toString('hex')}`
    expect(rdataToText(typeCode(type), rdataFromText(typeCode(type), generic))).toBe(value)
  })

  it('is canonical: names in lower case, strings as they are, no value twice', () => {
    expect(createRRset('X.Test', 'mx', 5, ['10 Mail.Test.', '10 mail.test.'])).toEqual({
      name: 'x.test.',
      type: 'MX',
      ttl: 5,
      values: ['10 mail.test.'],
    })
    expect(createRRset('x.test', 'TXT', 5, ['"Ab"']).values).toEqual(['"Ab"'])
  })

  it.each([
    ['A', '1.2.3'],
    ['A', '01.2.3.4'],
    ['A', '1.2.3.4 5'],
    ['A', '256.1.1.1'],
    ['AAAA', '1::2::3'],
    ['AAAA', 'fe80::1%eth0'],
    ['MX', '65536 a.'],
    ['MX', '10'],
    ['TXT', `"${'x'.repeat(256)}"`],
    ['TXT', '"open'],
    ['CAA', '0 is-sue "x"'],
    ['HTTPS', '1 . port=70000'],
    ['HTTPS', '1 . alpn="h2" alpn="h3"'],
    ['HTTPS', '1 . nonsense=1'],
    ['TLSA', '3 1 1 ABC'],
    ['TYPE65280', '192.0.2.1'],
    ['TYPE65280', '\\# 4 0102'],
    ['A', '\\# 3 010203'],
    ['CNAME', '\\# 2 C00C'],
  ])('%s %s is refused with a reason', (type, value) => {
    expect(() => rdataFromText(typeCode(type), value)).toThrow(DnsError)
  })

  it('of hostile octets is an error or prints and reads back, and never anything else', () => {
    const types = [...new Set(CANONICAL.map(([type]) => typeCode(type)))]
    fc.assert(
      fc.property(fc.constantFrom(...types), fc.uint8Array({ maxLength: 80 }), (type, octets) => {
        const data = readOrError(type, octets)
        fc.pre(!(data instanceof DnsError))
        expect(rdataFromText(type, rdataToText(type, data))).toEqual(data)
      }),
      { numRuns: 3000 },
    )
  })

  it('prints in the generic form what does not fit its type', () => {
    expect(rdataToText(TYPE.A, Uint8Array.of(1, 2, 3))).toBe('\\# 3 010203')
  })
})
