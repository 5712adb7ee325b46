/**
 * Our client against BIND, Knot and PowerDNS, their tools against our server: signed updates both ways, transfers both ways,
 * a Knot secondary that follows NOTIFY, dig as a reader of what we serve.
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import {
  createDnsClient,
  createDnsServer,
  type DnsServer,
  fqdn,
  groupRecords,
  isZoneFileError,
  loadZoneFile,
  RCODE,
  recordText,
  TsigKey,
  type Zone,
} from '@seamark/dns'
import { findProgram, needs } from '@seamark/kit'
import { freePort, type Key, type Peer, startBind, startKnot, startPowerDns } from './peers.ts'

const run = promisify(execFile)
const ORIGIN = fqdn('example.test')
const SECRET = Buffer.alloc(32, 7).toString('base64')
const KEY: Key = { name: 'seamark', algorithm: 'hmac-sha256', secret: SECRET }
const TEXT = `$ORIGIN example.test.
$TTL 300
@ IN SOA ns1 hostmaster 1 3600 600 86400 60
@ IN NS ns1
ns1 IN A 127.0.0.1
www IN A 192.0.2.1
www IN A 192.0.2.2
alias IN CNAME www
txt IN TXT "a b" "c\\"d"
mx IN MX 10 www
srv IN SRV 1 2 443 www
caa IN CAA 0 issue "ca.test"
svc IN HTTPS 1 . alpn="h2,h3" port=8443 ipv4hint=192.0.2.1
tlsa IN TLSA 3 1 1 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff
naptr IN NAPTR 1 2 "s" "SIP+D2U" "" _sip._udp.example.test.
unknown IN TYPE65280 \\# 4 01020304
*.wild IN A 192.0.2.9
`

const open: Array<{ close(): Promise<void> }> = []
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close()
})

const client = createDnsClient({ timeoutMs: 3000 })
afterAll(async () => client.close())

function keep<T extends { close(): Promise<void> }>(each: T): T {
  open.push(each)
  return each
}

function load(): Zone {
  const zone = loadZoneFile(TEXT)
  if (isZoneFileError(zone)) throw new Error(zone.reason)
  return zone
}

const keyOf = (algorithm: string) => new TsigKey('seamark', algorithm, SECRET)

async function serve(secondaryPort?: number, algorithm = 'hmac-sha256'): Promise<DnsServer> {
  const key = keyOf(algorithm)
  const secondaries = secondaryPort === undefined ? [] : [{ address: '127.0.0.1', port: secondaryPort, key: key.name }]
  return keep(
    await createDnsServer({
      zones: [load()],
      keys: [key],
      listen: [{ address: '127.0.0.1', port: 0 }],
      defaultPolicy: { updateKeys: [key.name], transferKeys: [key.name], secondaries },
    }),
  )
}

const PEERS: ReadonlyArray<readonly [string, string[], (algorithm: string) => Promise<Peer>]> = [
  [
    'BIND',
    ['named'],
    async (algorithm) => startBind([{ origin: 'example.test', text: TEXT }], [{ ...KEY, algorithm }]),
  ],
  [
    'Knot',
    ['knotd'],
    async (algorithm) => startKnot([{ origin: 'example.test', text: TEXT }], [{ ...KEY, algorithm }]),
  ],
  [
    'PowerDNS',
    ['pdns_server', 'pdnsutil', 'sqlite3'],
    async (algorithm) => startPowerDns([{ origin: 'example.test', text: TEXT }], [{ ...KEY, algorithm }]),
  ],
]

describe.each(PEERS)('%s', (name, programs, startPeer) => {
  it.skipIf(!needs(...programs)).each(['hmac-sha256', 'hmac-sha384', 'hmac-sha512'])(
    'takes our updates signed with %s, with prerequisites',
    async (algorithm) => {
      const peer = keep(await startPeer(algorithm))
      const call = { server: peer.address, zone: ORIGIN, key: keyOf(algorithm) }
      const set = { name: fqdn('new.example.test'), type: 'A', ttl: 60, values: ['192.0.2.20', '192.0.2.21'] }
      const absent = [{ kind: 'name-not-in-use', name: set.name }] as const
      const first = await client.update({ ...call, prerequisites: absent, operations: [{ kind: 'add', set }] })
      expect(first.message.rcode).toBe(RCODE.NOERROR)
      expect(
        (await client.update({ ...call, prerequisites: absent, operations: [{ kind: 'add', set }] })).message.rcode,
      ).toBe(RCODE.YXDOMAIN)
      const read = await client.query({ server: peer.address, name: set.name, type: 'A' })
      expect(groupRecords(read.message.answers)[0]?.values.toSorted()).toEqual(set.values)
      const swapped = await client.update({
        ...call,
        prerequisites: [{ kind: 'set-equals', name: set.name, type: 'A', values: set.values }],
        operations: [
          { kind: 'delete-set', name: set.name, type: 'A' },
          { kind: 'add', set: { ...set, values: ['192.0.2.22'] } },
        ],
      })
      expect(swapped.message.rcode).toBe(RCODE.NOERROR)
      await client.update({
        ...call,
        operations: [{ kind: 'delete-values', name: set.name, type: 'A', values: ['192.0.2.22'] }],
      })
      expect((await client.query({ server: peer.address, name: set.name, type: 'A' })).message.rcode).toBe(
        RCODE.NXDOMAIN,
      )
    },
  )

  it.skipIf(!needs(...programs))('refuses what it should, and says so in words', async () => {
    const peer = keep(await startPeer('hmac-sha256'))
    const operations = [{ kind: 'delete-name', name: fqdn('www.example.test') }] as const
    const wrong = new TsigKey('seamark', 'hmac-sha256', Buffer.alloc(32, 8).toString('base64'))
    await expect(client.update({ server: peer.address, zone: ORIGIN, operations, key: wrong })).rejects.toMatchObject({
      // PowerDNS answers a bad signature without one.
      code: name === 'PowerDNS' ? 'TSIG_MISSING' : 'TSIG_BAD_SIG',
    })
    const unsigned = await client.update({ server: peer.address, zone: ORIGIN, operations })
    expect([RCODE.REFUSED, RCODE.NOTAUTH]).toContain(unsigned.message.rcode)
    expect(
      (await client.query({ server: peer.address, name: 'www.example.test', type: 'A' })).message.answers,
    ).toHaveLength(2)
  })

  it.skipIf(!needs(...programs))(
    'gives us its zone by signed transfer, the same as we read it from the file',
    async () => {
      const peer = keep(await startPeer('hmac-sha256'))
      const theirs = await client.transferRRsets({ server: peer.address, zone: ORIGIN, key: keyOf('hmac-sha256') })
      const sort = (sets: typeof theirs) =>
        sets
          .filter((set) => set.type !== 'SOA')
          .map((set) => ({ ...set, values: set.values.toSorted() }))
          .sort((a, b) => `${a.name} ${a.type}`.localeCompare(`${b.name} ${b.type}`))
      expect(sort(theirs)).toEqual(sort([...load().sets()]))
    },
  )
})

describe('our server', () => {
  const folder = mkdtempSync(join(tmpdir(), 'seamark-nsupdate-'))
  const keyFile = join(folder, 'key')
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it.skipIf(!needs('nsupdate')).each(['hmac-sha256', 'hmac-sha384', 'hmac-sha512'])(
    'takes updates of nsupdate signed with %s',
    async (algorithm) => {
      const server = await serve(undefined, algorithm)
      writeFileSync(keyFile, `key "seamark" { algorithm ${algorithm}; secret "${SECRET}"; };\n`)
      const script = [
        `server 127.0.0.1 ${server.addresses[0]!.port}`,
        'zone example.test',
        'prereq yxrrset www.example.test A',
        'prereq nxdomain new.example.test',
        'update add new.example.test 60 A 192.0.2.10',
        'update delete alias.example.test',
        'send',
        '',
      ].join('\n')
      const file = join(folder, 'script')
      writeFileSync(file, script)
      await run(findProgram('nsupdate')!, ['-k', keyFile, file])
      expect(server.findZone(ORIGIN)!.find(fqdn('new.example.test'), 'A')?.values).toEqual(['192.0.2.10'])
      expect(server.findZone(ORIGIN)!.find(fqdn('alias.example.test'), 'CNAME')).toBeUndefined()
      await expect(run(findProgram('nsupdate')!, ['-k', keyFile, file])).rejects.toThrow(/YXDOMAIN/)
    },
  )

  it.skipIf(!needs('dig'))('is read by dig record for record, and transferred by it', async () => {
    const server = await serve()
    writeFileSync(keyFile, `key "seamark" { algorithm hmac-sha256; secret "${SECRET}"; };\n`)
    const at = ['@127.0.0.1', '-p', String(server.addresses[0]!.port), '+noall', '+answer', '+nosplit']
    const lines = (text: string) =>
      text
        .split('\n')
        .map((line) => line.replaceAll(/\s+/g, ' ').trim())
        .filter((line) => line !== '' && !line.startsWith(';'))
    for (const set of load().sets()) {
      const { stdout } = await run(findProgram('dig')!, [...at, set.name, set.type])
      const { message } = await client.query({ server: server.addresses[0]!, name: set.name, type: set.type })
      // The same text, field by field, from two implementations of the presentation format.
      const ours = message.answers.map((record) =>
        recordText({ ...record, name: fqdn(record.name) }).replaceAll(/\s+/g, ' '),
      )
      expect(lines(stdout).sort()).toEqual(ours.sort())
    }
    const { stdout } = await run(findProgram('dig')!, [...at, '-k', keyFile, 'example.test', 'AXFR'])
    const records = [...load().sets()].reduce((sum, set) => sum + set.values.length, 0)
    expect(lines(stdout).filter((line) => !line.includes('TSIG'))).toHaveLength(records + 1)
  })

  it.skipIf(!needs('dig', 'named')).each([
    ['an old serial that no history has, by TCP: the whole zone', ['+tcp'], 4],
    ['the current serial by TCP: the SOA alone', ['+tcp'], 5],
    ['a serial ahead of ours by TCP: the SOA alone', ['+tcp'], 6],
    ['an old serial by UDP: the SOA alone', ['+notcp'], 4],
    ['the current serial by UDP: the SOA alone', ['+notcp'], 5],
  ])('answers IXFR as BIND does that has no history, for %s', async (_, flags, serial) => {
    const text = TEXT.replace('hostmaster 1 ', 'hostmaster 5 ')
    const peer = keep(await startBind([{ origin: 'example.test', text }], [KEY]))
    const server = await serve()
    const zone = loadZoneFile(text)
    if (isZoneFileError(zone)) throw new Error(zone.reason)
    server.swap(zone)
    writeFileSync(keyFile, `key "seamark" { algorithm hmac-sha256; secret "${SECRET}"; };\n`)
    const records = async (port: number) => {
      const at = ['@127.0.0.1', '-p', String(port), '-k', keyFile, '+noall', '+answer', '+nosplit', '+ignore', ...flags]
      const { stdout } = await run(findProgram('dig')!, [...at, 'example.test', `IXFR=${serial}`])
      const lines = stdout.split('\n').filter((line) => line !== '' && !line.startsWith(';') && !line.includes('TSIG'))
      return lines.map((line) => line.replaceAll(/\s+/g, ' ')).toSorted()
    }
    const ours = await records(server.addresses[0]!.port)
    expect(ours).toEqual(await records(peer.address.port!))
    expect(ours.length > 1).toBe(serial === 4 && flags[0] === '+tcp')
    expect(ours.join()).toContain(' SOA ')
  })

  it.skipIf(!needs('knotd'))('feeds a Knot secondary, which follows each NOTIFY', async () => {
    const port = await freePort()
    const server = await serve(port)
    const remote = `remote:\n  - id: primary\n    address: 127.0.0.1@${server.addresses[0]!.port}\n    key: seamark`
    const knot = keep(
      await startKnot([{ origin: 'example.test', text: '' }], [KEY], '    master: primary\n', remote, port),
    )
    const serialOf = async () => {
      const { message } = await client.query({ server: knot.address, name: ORIGIN, type: 'SOA' })
      return message.answers[0] === undefined ? 0 : Number(recordText(message.answers[0]).split(' ')[2])
    }
    expect(await serialOf()).toBe(1)
    for (let serial = 2; serial < 5; serial++) {
      server.swap(
        server
          .findZone(ORIGIN)!
          .with([
            { kind: 'put', set: { name: fqdn(`n${serial}.example.test`), type: 'A', ttl: 5, values: ['192.0.2.3'] } },
          ]),
      )
      await expect.poll(serialOf, { timeout: 10_000, interval: 50 }).toBe(serial)
      expect(
        (await client.query({ server: knot.address, name: `n${serial}.example.test`, type: 'A' })).message.answers,
      ).toHaveLength(1)
    }
  })
})
