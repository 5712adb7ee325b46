import { once } from 'node:events'
import { createSocket } from 'node:dgram'
import { connect, createServer } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { createDnsClient, type DnsClient } from '../client/client.ts'
import { DnsError } from '../error.ts'
import { Deframer, frame } from '../wire/tcp-frame.ts'
import { RCODE, rcodeName, TYPE } from '../wire/codes.ts'
import { OPTION } from '../wire/edns.ts'
import { decodeMessage, encodeMessage, FLAG, type Message } from '../wire/message.ts'
import { fqdn } from '../wire/name.ts'
import { recordText } from '../wire/record.ts'
import { readTsig, signMessage, TsigKey } from '../wire/tsig.ts'
import { isZoneFileError, loadZoneFile } from '../zone/zone-file.ts'
import { createZone, type Zone } from '../zone/zone-table.ts'
import { createDispatcher, createDnsServer, type DnsServer, type DnsServerOptions } from './server.ts'

const ORIGIN = fqdn('example.test')
const KEY = new TsigKey('k', 'hmac-sha256', 'c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0')

const TEXT = `$ORIGIN example.test.
$TTL 300
@ SOA ns host 1 3600 600 86400 60
@ NS ns
ns A 127.0.0.1
www 60 A 192.0.2.1
www 60 A 192.0.2.2
alias CNAME www
*.wild TXT "w"
a.b.c A 192.0.2.3
sub NS ns.sub
ns.sub A 192.0.2.4
big TXT "${'x'.repeat(200)}"
big TXT "${'y'.repeat(200)}"
big TXT "${'z'.repeat(200)}"
`

function load(text = TEXT): Zone {
  const zone = loadZoneFile(text, { file: 'test.zone' })
  if (isZoneFileError(zone)) throw new Error(`${zone.line}: ${zone.reason}`)
  return zone
}

const open: Array<{ close(): Promise<void> }> = []

afterEach(async () => {
  await Promise.all(open.splice(0).map(async (each) => each.close()))
})

async function start(
  options: Partial<DnsServerOptions> = {},
): Promise<{ server: DnsServer; client: DnsClient; at: { address: string; port: number } }> {
  const server = await createDnsServer({ zones: [load()], listen: [{ address: '127.0.0.1', port: 0 }], ...options })
  const client = createDnsClient({ timeoutMs: 1000 })
  open.push(client, server)
  return { server, client, at: server.addresses[0]! }
}

describe('the server', () => {
  it('answers over IPv4 and IPv6, UDP and TCP, and says which zones it does not serve', async () => {
    const { client, server } = await start({
      listen: [
        { address: '127.0.0.1', port: 0 },
        { address: '::1', port: 0 },
      ],
    })
    for (const at of server.addresses) {
      for (const transport of ['udp', 'tcp'] as const) {
        const { message } = await client.query({ server: at, name: 'www.example.test', type: 'A', transport })
        expect(message.answers.map((record) => record.ttl)).toEqual([60, 60])
        expect(message.flags & (FLAG.AA | FLAG.RA)).toBe(FLAG.AA)
      }
      expect((await client.query({ server: at, name: 'other.test', type: 'A' })).message.rcode).toBe(RCODE.REFUSED)
    }
  })

  it('gives a question back in the case it was asked in', async () => {
    const { client, at } = await start()
    const plain = createDnsClient({ isCaseRandom: false })
    open.push(plain)
    const { message } = await plain.query({ server: at, name: 'wWw.eXample.TEST', type: 'A' })
    expect(message.questions[0]!.name).toBe('wWw.eXample.TEST.')
    expect(message.answers[0]!.name).toBe('wWw.eXample.TEST.')
    expect(
      (await client.query({ server: at, name: 'nope.example.test', type: 'A' })).message.authorities.map(recordText)[0],
    ).toMatch(/\tSOA\tns\.example\.test\. host\.example\.test\. 1 3600 600 86400 60$/)
  })

  it('lets the addresses of a name take turns', async () => {
    const { client, at } = await start()
    const first = new Set<string>()
    for (let i = 0; i < 4; i++) {
      const { message } = await client.query({ server: at, name: 'www.example.test', type: 'A' })
      first.add(recordText(message.answers[0]!).split('\t').at(-1)!)
    }
    expect(first.size).toBe(2)
  })

  it('truncates what a client cannot take, and gives it whole by TCP', async () => {
    const { client, at, server } = await start()
    const cut = await client.query({
      server: at,
      name: 'big.example.test',
      type: 'TXT',
      hasEdns: false,
      isTruncationKept: true,
    })
    expect(cut.message.flags & FLAG.TC).toBe(FLAG.TC)
    expect(cut.size).toBeLessThanOrEqual(512)
    const whole = await client.query({ server: at, name: 'big.example.test', type: 'TXT', hasEdns: false })
    expect([whole.transport, whole.message.answers.length]).toEqual(['tcp', 3])
    expect(server.counters().truncated).toBe(2)
  })

  it('never sends more than 1232 octets by UDP, whatever the client says', async () => {
    const many = Array.from({ length: 200 }, (_, i) => `many A 192.0.2.${i}`).join('\n')
    const { client, at } = await start({ zones: [load(`${TEXT}${many}\n`)] })
    const { message, size } = await client.query({
      server: at,
      name: 'many.example.test',
      type: 'A',
      ednsSize: 65_535,
      isTruncationKept: true,
    })
    expect(size).toBeLessThanOrEqual(1232)
    expect(message.flags & FLAG.TC).toBe(FLAG.TC)
  })

  it('serves a swapped zone from the next question on, and forgets a removed one', async () => {
    const { client, at, server } = await start()
    const ask = async () => (await client.query({ server: at, name: 'www.example.test', type: 'A' })).message
    server.swap(
      server
        .findZone(ORIGIN)!
        .with([{ kind: 'put', set: { name: fqdn('www.example.test'), type: 'A', ttl: 1, values: ['192.0.2.77'] } }]),
    )
    expect((await ask()).answers.map(recordText).join()).toContain('192.0.2.77')
    server.remove(ORIGIN)
    expect((await ask()).rcode).toBe(RCODE.REFUSED)
  })

  it('counts questions per RRset, over changes of the zone', async () => {
    const { client, at, server } = await start()
    const ask = async (name: string, type = 'A') => client.query({ server: at, name, type })
    for (const name of ['www', 'www', 'alias', 'x.wild'])
      await ask(`${name}.example.test`, name === 'x.wild' ? 'TXT' : 'A')
    server.swap(
      server
        .findZone(ORIGIN)!
        .with([{ kind: 'put', set: { name: fqdn('new.example.test'), type: 'A', ttl: 1, values: ['192.0.2.77'] } }]),
    )
    server.swap(load(TEXT.replace('SOA ns host 1', 'SOA ns host 9')))
    await ask('www.example.test')
    const hits = new Map(server.hits(ORIGIN).map((each) => [`${each.name} ${each.type}`, each.hits]))
    expect(hits).toEqual(
      new Map([
        ['www.example.test. A', 4],
        ['alias.example.test. CNAME', 1],
        ['*.wild.example.test. TXT', 1],
      ]),
    )
  })

  it('asks a dynamic set with the name, the source and the client subnet, and survives its failure', async () => {
    const seen: unknown[] = []
    const answer = (query: unknown) => {
      seen.push(query)
      return ['192.0.2.10']
    }
    const soa = { name: ORIGIN, type: 'SOA', ttl: 60, values: ['a. b. 1 2 3 4 5'] }
    const zone = createZone(ORIGIN, [
      soa,
      { name: fqdn('geo.example.test'), type: 'A', ttl: 7, answer },
      { name: fqdn('*.any.example.test'), type: 'A', ttl: 7, answer: () => [] },
      { name: fqdn('bad.example.test'), type: 'A', ttl: 7, answer: () => ['not an address'] },
    ])
    const errors: unknown[] = []
    const { client, at } = await start({ zones: [zone], onError: (error) => errors.push(error) })
    const subnet = { address: '198.51.100.0', sourcePrefix: 24, scopePrefix: 0 }
    const { message } = await client.query({ server: at, name: 'geo.example.test', type: 'A', subnet })
    expect(message.answers.map(recordText).join()).toMatch(/\t7\tIN\tA\t192\.0\.2\.10$/)
    expect(seen).toMatchObject([{ type: 'A', source: '127.0.0.1', transport: 'udp', subnet }])
    const none = await client.query({ server: at, name: 'x.any.example.test', type: 'A' })
    expect([none.message.rcode, none.message.answers.length, none.message.authorities.length]).toEqual([0, 0, 1])
    expect((await client.query({ server: at, name: 'bad.example.test', type: 'A' })).message.rcode).toBe(RCODE.SERVFAIL)
    expect(errors).toHaveLength(1)
  })

  it('answers a client with a valid cookie in full when its prefix is limited, and does not reveal it to clients without one', async () => {
    const { at } = await start({ rateLimit: { responsesPerSecond: 5, isLoopbackLimited: true, slip: 1 } })
    const client = createDnsClient({ timeoutMs: 5000, isCaseRandom: false })
    open.push(client)
    const ask = async (cookie?: Uint8Array) =>
      client.query({
        server: at,
        name: 'www.example.test',
        type: 'A',
        isTruncationKept: true,
        options: cookie === undefined ? [] : [{ code: OPTION.COOKIE, data: cookie }],
      })
    const isFull = async (cookie?: Uint8Array) => (await ask(cookie)).message.answers.length === 2
    const own = Buffer.alloc(8, 7)
    const given = (await ask(own)).message.edns?.options.find(({ code }) => code === OPTION.COOKIE)?.data
    expect(given?.length).toBe(24)
    const plain: boolean[] = []
    for (let i = 0; i < 30; i++) plain.push(await isFull())
    expect(plain).toContain(false)
    const forged = Buffer.from(given!)
    forged[23]! ^= 1
    const verdicts = { valid: 0, forged: 0 }
    for (let i = 0; i < 30; i++) {
      if (await isFull(given)) verdicts.valid++
      if (await isFull(forged)) verdicts.forged++
    }
    expect(verdicts.valid).toBe(30)
    expect(verdicts.forged).toBeLessThan(30)
  })

  it('answers nothing from a parent zone for names of a zone that is not loaded yet', async () => {
    const child = fqdn('wild.example.test')
    const { client, at, server } = await start({ suspended: [child] })
    const rcodeOf = async (name: string) => (await client.query({ server: at, name, type: 'TXT' })).message.rcode
    expect(await rcodeOf('a.wild.example.test')).toBe(RCODE.REFUSED)
    expect(await rcodeOf('www.example.test')).toBe(RCODE.NOERROR)
    server.swap(createZone(child, [{ name: child, type: 'SOA', ttl: 1, values: ['ns. host. 1 2 3 4 5'] }]))
    expect(await rcodeOf('a.wild.example.test')).toBe(RCODE.NXDOMAIN)
  })

  it('leaves no port open when one of its addresses cannot be bound', async () => {
    const { at } = await start()
    const free = await start()
    await free.server.close()
    const listen = [free.at, at]
    await expect(createDnsServer({ listen })).rejects.toMatchObject({ code: 'NETWORK' })
    const again = await createDnsServer({ listen: [free.at] })
    await again.close()
    // Only TCP is taken: the UDP socket of the same port is closed, too.
    const blocker = createServer().listen(free.at.port, free.at.address)
    await once(blocker, 'listening')
    await expect(createDnsServer({ listen: [free.at] })).rejects.toMatchObject({ code: 'NETWORK' })
    const socket = createSocket('udp4').bind({ ...free.at, exclusive: true })
    await once(socket, 'listening')
    socket.close()
    blocker.close()
  })

  it('binds one port for both protocols and says what it cannot bind', async () => {
    const { at } = await start()
    await expect(createDnsServer({ listen: [at] })).rejects.toThrow(`cannot listen on 127.0.0.1 port ${at.port}`)
  })
})

describe('updates and transfers', () => {
  const policy = { updateKeys: [KEY.name], transferKeys: [KEY.name] }
  const operations = [
    { kind: 'add', set: { name: fqdn('new.example.test'), type: 'A', ttl: 5, values: ['192.0.2.9'] } },
  ] as const

  it('are taken only from the key that the policy names', async () => {
    const updated: number[] = []
    const other = new TsigKey('other', 'hmac-sha512', 'b3RoZXJvdGhlcm90aGVyb3RoZXI=')
    const { client, at } = await start({
      keys: [KEY, other],
      defaultPolicy: policy,
      onUpdate: (zone) => updated.push(zone.serial),
    })
    const update = async (key?: TsigKey) =>
      rcodeName(
        (await client.update({ server: at, zone: ORIGIN, operations, ...(key !== undefined && { key }) })).message
          .rcode,
      )
    expect(await update()).toBe('REFUSED')
    expect(await update(other)).toBe('REFUSED')
    expect(updated).toEqual([])
    expect(await update(KEY)).toBe('NOERROR')
    expect(updated).toEqual([2])
    await expect(update(new TsigKey('k', 'hmac-sha256', 'd3Jvbmc='))).rejects.toMatchObject({ code: 'TSIG_BAD_SIG' })
    await expect(update(new TsigKey('unknown', 'hmac-sha256', 'd3Jvbmc='))).rejects.toMatchObject({
      code: 'TSIG_BAD_KEY',
    })
    expect(
      rcodeName(
        (await client.update({ server: at, zone: fqdn('other.test'), operations: [], key: KEY })).message.rcode,
      ),
    ).toBe('NOTAUTH')
    await expect(client.transferRRsets({ server: at, zone: ORIGIN })).rejects.toMatchObject({ code: 'RCODE' })
    await expect(client.transferRRsets({ server: at, zone: ORIGIN, key: other })).rejects.toMatchObject({
      code: 'RCODE',
    })
    const sets = await client.transferRRsets({ server: at, zone: ORIGIN, key: KEY })
    expect(sets[0]).toMatchObject({ type: 'SOA' })
    expect(sets.find((set) => set.name === 'new.example.test.')).toMatchObject({ values: ['192.0.2.9'] })
  })

  it('report to a client whose clock is wrong by how much', async () => {
    const { at } = await start({ keys: [KEY], defaultPolicy: policy })
    const late = createDnsClient({ now: () => Date.now() - 3_600_000, timeoutMs: 5000 })
    open.push(late)
    await expect(late.query({ server: at, name: 'www.example.test', type: 'A', key: KEY })).rejects.toThrow(
      /clock differs by 3(600|599|601) s/,
    )
  })

  it('are answered with the time that the client signed and with that of the server (RFC 8945 §5.2.3)', () => {
    const dispatcher = createDispatcher({ zones: [load()], listen: [], keys: [KEY], now: () => 1_000_000_000 })
    const plain = encodeMessage({
      id: 7,
      flags: 0,
      opcode: 0,
      rcode: 0,
      questions: [{ name: 'www.example.test.', type: TYPE.A, class: 1 }],
      answers: [],
      authorities: [],
      additionals: [],
    })
    const out = Buffer.alloc(65_537)
    const peer = { address: '192.0.2.1', port: 1000, transport: 'tcp' } as const
    const length = dispatcher.answer(signMessage(plain, KEY, 990_000).bytes, peer, out)
    const reply = out.subarray(0, length)
    const { rcode, tsig } = decodeMessage(reply) as Message
    const { time, error, other } = readTsig(reply, tsig!.start)
    expect({ rcode, time, error, other: Buffer.from(other).readUIntBE(0, 6) }).toEqual({
      rcode: RCODE.NOTAUTH,
      time: 990_000,
      error: RCODE.BADTIME,
      other: 1_000_000,
    })
  })

  it('may be limited to names by the policy', async () => {
    const { client, at } = await start({
      keys: [KEY],
      defaultPolicy: { ...policy, mayUpdate: (_, record) => record.name !== 'new.example.test.' },
    })
    expect((await client.update({ server: at, zone: ORIGIN, operations, key: KEY })).message.rcode).toBe(RCODE.REFUSED)
  })

  it('carry a zone of many messages, signed to the end', async () => {
    const lines = Array.from({ length: 20_000 }, (_, i) => `host-${i} A 10.0.${i >> 8}.${i & 255}`).join('\n')
    const { client, at, server } = await start({
      zones: [load(`${TEXT}${lines}\n`)],
      keys: [KEY],
      defaultPolicy: policy,
    })
    const sets = await client.transferRRsets({ server: at, zone: ORIGIN, key: KEY })
    expect(sets.length).toBe(server.findZone(ORIGIN)!.rrsets)
    expect(server.counters().transfers).toBe(1)
  })

  it('give the changes of a removed zone to nobody, although another one gets its name and serials', async () => {
    const { client, at, server } = await start({ keys: [KEY], defaultPolicy: policy })
    const known = server.findZone(ORIGIN)!
    const next = (address: string) =>
      known.with([{ kind: 'put', set: { name: fqdn('new.example.test'), type: 'A', ttl: 1, values: [address] } }], 2)
    const changesSince1 = async () =>
      client.transferChanges({
        server: at,
        zone: ORIGIN,
        key: KEY,
        known: { name: ORIGIN, type: TYPE.SOA, class: 1, ttl: known.soa.ttl, data: known.soa.data },
      })
    server.swap(next('192.0.2.77'))
    expect(await changesSince1()).toMatchObject({ kind: 'changes' })
    server.remove(ORIGIN)
    server.swap(next('192.0.2.78'))
    expect(await changesSince1()).toMatchObject({ kind: 'zone' })
  })

  it('are answered SERVFAIL and reported when they cannot be stored', async () => {
    const errors: unknown[] = []
    const { client, at } = await start({
      keys: [KEY],
      defaultPolicy: policy,
      commit: async () => Promise.reject(new DnsError('STORE_WRITE', 'the disk is full')),
      onError: (error) => errors.push(error),
    })
    const { message } = await client.update({ server: at, zone: ORIGIN, operations, key: KEY })
    expect(rcodeName(message.rcode)).toBe('SERVFAIL')
    expect(errors.map(String).join()).toContain('the disk is full')
  })

  it('go over TCP when they are too long for a packet', async () => {
    const { client, at } = await start({ keys: [KEY], defaultPolicy: policy })
    const values = Array.from({ length: 10 }, (_, i) => `"${i}${'x'.repeat(200)}"`)
    const set = { name: fqdn('long.example.test'), type: 'TXT', ttl: 5, values }
    const reply = await client.update({ server: at, zone: ORIGIN, operations: [{ kind: 'add', set }], key: KEY })
    expect([reply.transport, rcodeName(reply.message.rcode)]).toEqual(['tcp', 'NOERROR'])
  })

  it('are announced to a secondary that has no version of the zone yet', async () => {
    const notices: string[] = []
    const { client, at } = await start({
      zones: [],
      suspended: [ORIGIN],
      onNotify: ({ zone }) => notices.push(zone) > 0,
    })
    expect((await client.notify({ server: at, zone: ORIGIN })).message.rcode).toBe(RCODE.NOERROR)
    expect((await client.notify({ server: at, zone: fqdn('other.test') })).message.rcode).toBe(RCODE.NOTAUTH)
    expect(notices).toEqual([ORIGIN])
  })

  it('notify secondaries of each new serial', async () => {
    const secondary = await start({ zones: [] })
    const { server } = await start({ defaultPolicy: { secondaries: [secondary.at] } })
    server.swap(
      server
        .findZone(ORIGIN)!
        .with([{ kind: 'put', set: { name: fqdn('new.example.test'), type: 'A', ttl: 1, values: ['192.0.2.77'] } }]),
    )
    await expect.poll(() => secondary.server.counters().answers['NOTAUTH']).toBe(1)
  })
})

describe('TCP', () => {
  const questionOf = (name: string, type: number) =>
    frame(
      encodeMessage({
        id: 7,
        flags: 0,
        opcode: 0,
        rcode: 0,
        questions: [{ name, type, class: 1 }],
        answers: [],
        authorities: [],
        additionals: [],
      }),
    )
  const question = questionOf('www.example.test.', TYPE.A)

  it('answers pipelined questions in one connection', async () => {
    const { client, at, server } = await start()
    const replies = await Promise.all(
      Array.from({ length: 50 }, async () =>
        client.query({ server: at, name: 'www.example.test', type: 'A', transport: 'tcp' }),
      ),
    )
    expect(replies.every((reply) => reply.message.answers.length === 2)).toBe(true)
    expect(server.counters().tcpConnections).toBe(1)
  })

  it('closes a connection that sends garbage, after the answer to what was good', async () => {
    const { at, client } = await start()
    const socket = connect(at.port, at.address)
    let received = 0
    socket.on('data', (chunk) => (received += chunk.length))
    socket.write(Buffer.concat([question, Buffer.from([0, 5, 1, 2, 3, 4, 5])]))
    await once(socket, 'close')
    expect(received).toBe(2 + 12 + 22 + 2 * 16)
    expect(
      (await client.query({ server: at, name: 'www.example.test', type: 'A', transport: 'tcp' })).message.rcode,
    ).toBe(0)
  })

  it('ends a slow-loris by the clock, however many octets drip in', async () => {
    const { at } = await start({ tcp: { idleMs: 300 } })
    const socket = connect(at.port, at.address)
    await once(socket, 'connect')
    const drip = setInterval(() => socket.write(Buffer.of(255)), 50)
    socket.on('error', () => {})
    await new Promise((resolve) => socket.once('close', resolve))
    clearInterval(drip)
    expect(socket.destroyed).toBe(true)
  })

  it('keeps a connection as long as whole questions come', async () => {
    const { at } = await start({ tcp: { idleMs: 1500 } })
    const socket = connect(at.port, at.address)
    let received = 0
    socket.on('data', (chunk) => (received += chunk.length))
    const ask = setInterval(() => socket.write(question), 200)
    // Two idle times and a sweep later it would be gone.
    await expect.poll(() => received, { timeout: 10_000 }).toBeGreaterThanOrEqual(22 * (2 + 12 + 22 + 2 * 16))
    clearInterval(ask)
    expect(socket.destroyed).toBe(false)
    socket.destroy()
  })

  it('lets newcomers in over any number of idle connections', async () => {
    const { at, client, server } = await start({ tcp: { maxConnections: 50, maxPerSource: 40 } })
    const idle = Array.from({ length: 300 }, () => connect(at.port, at.address).on('error', () => {}))
    await expect.poll(() => server.counters().tcpConnections).toBe(40)
    expect(
      (await client.query({ server: at, name: 'www.example.test', type: 'A', transport: 'tcp' })).message.answers,
    ).toHaveLength(2)
    for (const socket of idle) socket.destroy()
  })

  it('closes the connection that is idle longest when all sources together have too many', async () => {
    const { at, server } = await start({ tcp: { maxConnections: 2, maxPerSource: 2 } })
    const open = async (localAddress: string) => {
      const socket = connect({ host: at.address, port: at.port, localAddress })
      socket.write(question)
      await once(socket, 'data')
      return socket
    }
    const [first, second] = [await open('127.0.0.1'), await open('127.0.0.2')]
    // The older connection is now the one that was used last.
    first.write(question)
    await once(first, 'data')
    const closed = once(second, 'close')
    const third = await open('127.0.0.3')
    await closed
    expect(first.destroyed).toBe(false)
    expect(server.counters().tcpConnections).toBe(2)
    for (const socket of [first, third]) socket.destroy()
  })

  it('answers a peer that does not read only as far as the buffers of the connection reach', async () => {
    const texts = Array.from({ length: 200 }, (_, i) => `huge TXT "${i}${'x'.repeat(240)}"`).join('\n')
    const { at, client, server } = await start({ zones: [load(`${TEXT}${texts}\n`)] })
    const count = 300
    const socket = connect(at.port, at.address)
    socket.write(Buffer.concat(Array.from({ length: count }, () => questionOf('huge.example.test.', TYPE.TXT))))
    await expect.poll(() => server.counters().queries).toBeGreaterThan(0)
    // The server has had many turns when it has answered these.
    const others = 20
    for (let i = 0; i < others; i++) await client.query({ server: at, name: 'www.example.test', type: 'A' })
    expect(server.counters().queries).toBeLessThan(count + others)
    const deframer = new Deframer()
    let received = 0
    socket.on('data', (chunk) => {
      deframer.push(chunk)
      while (deframer.next() !== undefined) received++
    })
    await expect.poll(() => received).toBe(count)
    socket.destroy()
  })
})
