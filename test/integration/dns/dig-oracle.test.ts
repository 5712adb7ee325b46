/**
 * dig as the oracle of presentation formats: generated records of every supported type, served by us. What dig prints of
 * them is what we print, and what we read from dig's text are the octets that we sent. One transfer carries them all.
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { createDnsServer, createZone, fqdn, isZoneFileError, loadZoneFile, createRRset, TsigKey } from '@seamark/dns'
import { findProgram, needs } from '@seamark/kit'

const run = promisify(execFile)
const SECRET = Buffer.alloc(32, 7).toString('base64')
const RECORDS = 400

const u8 = fc.nat(255)
const u16 = fc.nat(65_535)
const label = fc.oneof(
  fc.stringMatching(/^[a-z0-9_-]{1,20}$/),
  // Octets that must be escaped, dots and backslashes among them, each as \DDD.
  fc
    .uint8Array({ minLength: 1, maxLength: 8 })
    .map((octets) => [...octets].map((octet) => `\\${String(octet).padStart(3, '0')}`).join('')),
)
const name = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => `${labels.join('.')}.`)
const quoted = fc
  .uint8Array({ maxLength: 40 })
  .map((octets) => `"${[...octets].map((octet) => `\\${String(octet).padStart(3, '0')}`).join('')}"`)
const hex = (length: number) =>
  fc.uint8Array({ minLength: length, maxLength: length }).map((octets) => Buffer.from(octets).toString('hex'))
const base64 = fc.uint8Array({ minLength: 3, maxLength: 80 }).map((octets) => Buffer.from(octets).toString('base64'))
const words = (...parts: Array<fc.Arbitrary<string | number>>) => fc.tuple(...parts).map((values) => values.join(' '))
const tag = fc.stringMatching(/^[a-z0-9]{1,15}$/)
const param = fc.record(
  {
    alpn: fc.array(fc.stringMatching(/^[a-z0-9/.]{1,8}$/), { minLength: 1, maxLength: 3 }),
    port: u16,
    ipv4hint: fc.array(fc.ipV4(), { minLength: 1, maxLength: 3 }),
    ech: base64,
    ipv6hint: fc.array(fc.ipV6(), { minLength: 1, maxLength: 2 }),
  },
  { requiredKeys: [] },
)
const svcb = fc
  .tuple(fc.integer({ min: 1, max: 65_535 }), name, param)
  .map(([priority, target, params]) =>
    [priority, target, ...Object.entries(params).map(([key, value]) => `${key}="${String(value)}"`)].join(' '),
  )

/** One generator of values for each type. */
const VALUES: Readonly<Record<string, fc.Arbitrary<string>>> = {
  A: fc.ipV4(),
  AAAA: fc.ipV6(),
  NS: name,
  CNAME: name,
  PTR: name,
  DNAME: name,
  MX: words(u16, name),
  TXT: fc.array(quoted, { minLength: 1, maxLength: 4 }).map((strings) => strings.join(' ')),
  SPF: quoted,
  HINFO: words(quoted, quoted),
  RP: words(name, name),
  AFSDB: words(u16, name),
  SRV: words(u16, u16, u16, name),
  // dig refuses a regular expression it cannot read (RFC 3402 §3.2).
  NAPTR: words(u16, u16, quoted, quoted, fc.constantFrom('""', '"!^.*$!sip:info@example.test!i"'), name),
  CAA: words(u8, tag, quoted),
  URI: words(u16, u16, quoted),
  TLSA: words(u8, u8, u8, hex(32)),
  SMIMEA: words(u8, u8, u8, hex(40)),
  SSHFP: fc.oneof(words(u8, fc.constant(1), hex(20)), words(u8, fc.constant(2), hex(32))),
  DS: words(u16, u8, fc.constant(2), hex(32)),
  CDS: words(u16, u8, fc.constant(2), hex(32)),
  DNSKEY: words(fc.constantFrom(256, 257), fc.constant(3), fc.constantFrom(8, 13, 15), base64),
  CDNSKEY: words(fc.constantFrom(256, 257), fc.constant(3), fc.constantFrom(8, 13, 15), base64),
  OPENPGPKEY: base64,
  SVCB: svcb,
  HTTPS: svcb,
  TYPE65280: fc
    .uint8Array({ maxLength: 60 })
    .map((octets) => `\\# ${octets.length} ${Buffer.from(octets).toString('hex')}`),
}

const values = fc.oneof(
  ...Object.entries(VALUES).map(([type, arbitrary]) => arbitrary.map((value) => ({ type, value }))),
)

describe.skipIf(!needs('dig'))('records of every type', () => {
  const folder = mkdtempSync(join(tmpdir(), 'seamark-oracle-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('are printed by dig as by us, and read by us as we sent them', async () => {
    const seed = Number(process.env['SEAMARK_SEED'])
    const generated = fc.sample(values, { numRuns: RECORDS, seed })
    const origin = fqdn('oracle.test')
    const sets = generated.map(({ type, value }, i) => createRRset(`n${i}.oracle.test`, type, 60 + i, [value]))
    const apex = [
      createRRset(origin, 'SOA', 60, ['ns.oracle.test. host.oracle.test. 1 3600 600 86400 60']),
      createRRset(origin, 'NS', 60, ['ns.oracle.test.']),
    ]
    const key = new TsigKey('k', 'hmac-sha256', SECRET)
    const server = await createDnsServer({
      zones: [createZone(origin, [...apex, ...sets])],
      keys: [key],
      listen: [{ address: '127.0.0.1', port: 0 }],
      defaultPolicy: { transferKeys: [key.name] },
    })
    try {
      const file = join(folder, 'key')
      writeFileSync(file, `key "k" { algorithm hmac-sha256; secret "${SECRET}"; };\n`)
      const at = ['@127.0.0.1', '-p', String(server.addresses[0]!.port), '-k', file, '+noall', '+answer', '+nosplit']
      const { stdout } = await run(findProgram('dig')!, [...at, 'oracle.test', 'AXFR'], { maxBuffer: 1 << 24 })
      const lines = stdout.split('\n').filter((line) => /^n\d+\./.test(line))
      const theirs = new Map(
        lines.map((line) => [line.slice(0, line.search(/\s/)), line.split(/\s+/).slice(1).join(' ')]),
      )
      expect(theirs.size, `seed ${seed}`).toBe(RECORDS)
      const wrong = sets
        .map((set) => [`${set.ttl} IN ${set.type} ${set.values[0]}`, theirs.get(set.name)])
        .filter(([ours, dig]) => ours !== dig)
      expect(wrong, `seed ${seed}`).toEqual([])
      const head = '$ORIGIN oracle.test.\n@ 60 SOA ns host 1 3600 600 86400 60\n@ 60 NS ns\n'
      const read = loadZoneFile(`${head}${lines.join('\n')}\n`)
      if (isZoneFileError(read)) throw new Error(`${read.line}: ${read.reason}: ${lines[read.line - 4]} (seed ${seed})`)
      for (const set of sets) expect(read.find(set.name, set.type), `seed ${seed}`).toEqual(set)
    } finally {
      await server.close()
    }
  })
})
