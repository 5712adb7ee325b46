import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DnsError } from '../error.ts'
import { type Fqdn, fqdn } from '../wire/name.ts'
import type { RRset } from '../wire/record.ts'
import { readRegularFile } from './regular-file.ts'
import { isZoneFileError, loadZoneFile, parseZoneFile, printZoneFile, type ZoneFileError } from './zone-file.ts'

const HEAD = '$ORIGIN example.test.\n$TTL 1h\n@ IN SOA ns host ( 1 ; serial\n 2h 600\n 1w 60 )\n'

const parse = (text: string) => {
  const result = parseZoneFile(text, { file: 'x.zone' })
  if (isZoneFileError(result)) throw new Error(`${result.file}:${result.line}: ${result.reason}`)
  return result
}

describe('zone files', () => {
  it('have origins, TTLs, parentheses, comments, quotes and omitted owners', () => {
    const sets = parse(
      `${HEAD}@ NS ns\nwww 5m IN A 192.0.2.1 ; one\n    IN 30 A 192.0.2.2\n\tTXT "a;b (c)" d\\;e\n$ORIGIN sub\n@ A 192.0.2.3\nx AAAA 2001:db8::1\nabs.example.test. CNAME www.example.test.\n`,
    )
    expect(sets).toEqual([
      {
        name: 'example.test.',
        type: 'SOA',
        ttl: 3600,
        values: ['ns.example.test. host.example.test. 1 7200 600 604800 60'],
      },
      { name: 'example.test.', type: 'NS', ttl: 3600, values: ['ns.example.test.'] },
      { name: 'www.example.test.', type: 'A', ttl: 30, values: ['192.0.2.1', '192.0.2.2'] },
      { name: 'www.example.test.', type: 'TXT', ttl: 3600, values: ['"a;b (c)" "d;e"'] },
      { name: 'sub.example.test.', type: 'A', ttl: 3600, values: ['192.0.2.3'] },
      { name: 'x.sub.example.test.', type: 'AAAA', ttl: 3600, values: ['2001:db8::1'] },
      { name: 'abs.example.test.', type: 'CNAME', ttl: 3600, values: ['www.example.test.'] },
    ])
  })

  it('may hold international names, Windows line ends, a byte order mark and no last newline', () => {
    expect(parse('\ufeff$ORIGIN test.\r\n$TTL 5\r\nbücher A 192.0.2.1\r\n\r\nx TXT "é"')).toMatchObject([
      { name: 'xn--bcher-kva.test.' },
      { values: ['"\\195\\169"'] },
    ])
  })

  it.each([
    ['www A 192.0.2', 6, /IPv4/],
    ['www NONSENSE x', 6, /'NONSENSE' is not a record type/],
    ['\nwww', 7, /no type/],
    ['www CH A 192.0.2.1', 6, /class CH/],
    ['www A 192.0.2.1\nwww CNAME x', 7, /CNAME and A/],
    ['other.test. A 192.0.2.1', 6, /not in zone/],
    ['www TXT "open', 6, /no end/],
    ['www TXT ( "x"\n\n', 6, /not closed/],
    ['www A 192.0.2.1 )', 6, /not opened/],
    ['$GENERATE 1-2 a$ A 192.0.2.$', 6, /\$GENERATE/],
    ['$INCLUDE other', 6, /not allowed/],
    ['a..b A 192.0.2.1', 6, /empty label/],
    ['www TYPE255 \\# 0', 6, /is not allowed in a zone/],
    ['www 99999999999 A 192.0.2.1', 6, /not a record type/],
  ])('with %j are refused with the line', (line, number, reason) => {
    const result = loadZoneFile(`${HEAD}${line}\n`, { file: 'x.zone' })
    expect(result).toMatchObject({ file: 'x.zone', line: number })
    expect((result as { reason: string }).reason).toMatch(reason)
  })

  it('without records, SOA or origin are refused', () => {
    expect(loadZoneFile('; nothing\n')).toMatchObject({
      reason: /no records/.source.replace('no records', 'the file has no records'),
    })
    expect(loadZoneFile('$TTL 5\na.test. A 192.0.2.1\n')).toMatchObject({ reason: 'the zone has no SOA record' })
    expect(loadZoneFile('$TTL 5\n@ SOA a. b. 1 2 3 4 5\n')).toMatchObject({ line: 2 })
    expect(loadZoneFile(Buffer.from('a\xff.test. 5 A 192.0.2.1', 'latin1'))).toMatchObject({ line: 1 })
  })

  it('include others, which leave the origin alone and cannot include themselves for ever', () => {
    const files = new Map([
      ['in', '$ORIGIN deep.example.test.\nx A 192.0.2.1\n'],
      ['self', '$INCLUDE self\n'],
    ])
    const include = (name: string) => Buffer.from(files.get(name) ?? '')
    expect(parseZoneFile(`${HEAD}$INCLUDE in\ny A 192.0.2.2\n`, { include })).toMatchObject([
      {},
      { name: 'x.deep.example.test.' },
      { name: 'y.example.test.' },
    ])
    expect(parseZoneFile(`${HEAD}$INCLUDE self\n`, { include })).toMatchObject({
      file: 'self',
      reason: '$INCLUDE nests deeper than 8',
    })
  })

  it('print what they parse', () => {
    const label = fc
      .stringMatching(/^[a-z0-9_"()@.;$ \\-]{1,10}$/)
      .map((text) => text.replaceAll(/["()@.;$ \\]/g, String.raw`\$&`))
    const text = fc.stringMatching(/^[ -~]{0,40}$/).map((value) => `"${value.replaceAll(/["\\]/g, String.raw`\$&`)}"`)
    const set = fc.record({
      name: fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => fqdn(`${labels.join('.')}.example.test.`)),
      type: fc.constant('TXT'),
      ttl: fc.nat(100_000),
      values: fc.uniqueArray(text, { minLength: 1, maxLength: 3 }),
    })
    const soa: RRset = { name: fqdn('example.test'), type: 'SOA', ttl: 5, values: ['a. b. 1 2 3 4 5'] }
    fc.assert(
      fc.property(fc.uniqueArray(set, { maxLength: 10, selector: (each) => each.name }), (sets) => {
        const printed = printZoneFile(fqdn('example.test'), [...sets, soa])
        const parsed = parse(printed)
        expect(printZoneFile(fqdn('example.test'), parsed)).toBe(printed)
        expect(new Set(parsed.map((each) => each.name))).toEqual(new Set([soa.name, ...sets.map((each) => each.name)]))
      }),
    )
  })

  it('that include each other many times are refused before they are read for ever', () => {
    let reads = 0
    // Seven levels of ten: ten million reads without a limit.
    const include = (file: string) => {
      reads++
      return Buffer.from(`$INCLUDE ${Number(file) + 1}\n`.repeat(file === '7' ? 0 : 10))
    }
    expect(parseZoneFile(`${HEAD}$INCLUDE 0\n`, { include })).toMatchObject({
      reason: 'the zone includes more than 1000 files',
    })
    expect(reads).toBe(1000)
  })

  it('include regular files only', () => {
    const folder = mkdtempSync(join(tmpdir(), 'seamark-zone-'))
    try {
      const path = join(folder, 'part')
      writeFileSync(path, 'x A 192.0.2.1\n')
      expect(parseZoneFile(`${HEAD}$INCLUDE ${path}\n`, { include: readRegularFile })).toHaveLength(2)
      // Without an endless one, so that a broken check fails here; the test of the command has /dev/zero, in a process.
      for (const device of ['/dev/null', '/dev/tty', folder].filter((name) => existsSync(name)))
        expect(parseZoneFile(`${HEAD}$INCLUDE ${device}\n`, { include: readRegularFile })).toMatchObject({
          reason: expect.stringMatching(/^cannot include .*(is not a regular file|ENXIO|EACCES)/),
        })
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  it('give errors that are safe to print', () => {
    const escape = '\u001b]0;owned\u0007'
    for (const line of [`x A ${escape}`, `x ${escape}`, `$${escape} x`, `$INCLUDE ${escape}`, `$TTL ${escape}`]) {
      const error = parseZoneFile(`${HEAD}${line}\n`, { file: `zone${escape}` }) as ZoneFileError
      expect(error.reason).not.toMatch(/\p{Cc}/u)
      expect(error.file).toBe('zone\\u{1b}]0;owned\\u{7}')
    }
  })

  it('are printed with every value parsed anew: none can become another line or directive', () => {
    const origin = fqdn('example.test')
    const print = (set: Partial<RRset>) =>
      printZoneFile(origin, [{ name: fqdn('x.example.test'), type: 'TXT', ttl: 5, values: ['"v"'], ...set }])
    const lineOf = (set: Partial<RRset>) => print(set).split('\n')[1]
    expect(lineOf({ values: ['"a\n$INCLUDE /etc/passwd"'] })).toBe(
      'x.example.test.\t5\tIN\tTXT\t"a\\010$INCLUDE /etc/passwd"',
    )
    expect(lineOf({ values: ['"\u001b[31m"'] })).toBe('x.example.test.\t5\tIN\tTXT\t"\\027[31m"')
    expect(lineOf({ name: '$INCLUDE /etc/passwd\nx.example.test.' as Fqdn })).toBe(
      '\\$include\\032/etc/passwd\\010x.example.test.\t5\tIN\tTXT\t"v"',
    )
    for (const bad of [
      { type: 'A', values: ['192.0.2.1\n$INCLUDE /etc/passwd'] },
      { type: 'CNAME', values: ['a.test.\nevil.example.test. 5 IN A 192.0.2.1'] },
      { type: 'A\nevil', values: ['192.0.2.1'] },
      { ttl: '5 IN A 1.2.3.4\nx' as unknown as number },
    ])
      expect(() => print(bad), JSON.stringify(bad)).toThrow(DnsError)
  })

  it('of any octets are records or an error, and never an exception', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (octets) => void loadZoneFile(Buffer.from(octets))))
    const piece = fc.constantFrom(
      '$ORIGIN ',
      'a. ',
      '@ ',
      'SOA ',
      'A ',
      '(',
      ')',
      '"',
      '\\',
      ';',
      '\n',
      ' ',
      '1 ',
      '192.0.2.1',
      'TXT ',
      '\\#',
      '$TTL 5\n',
      'IN ',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => void loadZoneFile(pieces.join(''))),
      { numRuns: 2000 },
    )
  })
})
