/** Several processes with one zone: who writes, who follows, and what is answered until a zone is there. No cluster. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDnsClient, groupRecords, RCODE, rcodeName } from '@seamark/dns'
import { createLogger, systemClock } from '@seamark/kube'
import { Registry } from 'prom-client'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadConfig } from '../config.ts'
import { DnsConfig } from './config.ts'
import { createDnsMetrics } from './dns-metrics.ts'
import { type DnsService, type DnsServiceOptions, openDnsService } from './dns-service.ts'

const ZONE = { id: 'example.test.', name: 'example.test.' }
const SECRET = Buffer.alloc(32, 5).toString('base64')
const keys = [{ name: 'seamark', secretFrom: { env: 'TSIG' } }]
const client = createDnsClient({ timeoutMs: 500, tries: 1 })
const open: (() => Promise<void>)[] = []
let folder = ''

beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'seamark-dns-service-'))))
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
  rmSync(folder, { recursive: true, force: true })
})
afterAll(async () => client.close())

interface Replica {
  readonly service: DnsService
  readonly at: { address: string; port: number }
  readonly lines: string[]
  lead(): void
  stop(): Promise<void>
}

async function start(dns: object, options: Partial<DnsServiceOptions> = {}): Promise<Replica> {
  const lines: string[] = []
  const log = createLogger({ level: 'info', destination: { write: (line: string) => lines.push(line) } })
  let isLeading = false
  const service = await openDnsService({
    config: DnsConfig.parse({ listen: ['127.0.0.1:0'], zones: ['example.test'], keys, ...dns }),
    env: { TSIG: SECRET },
    isLeading: () => isLeading,
    log,
    clock: systemClock,
    ...options,
  })
  const stopping = new AbortController()
  const running = [service.follow(stopping.signal)]
  let isStopped = false
  const stop = async () => {
    if (isStopped) return
    isStopped = true
    stopping.abort()
    await Promise.all(running)
    await service.close()
  }
  open.push(stop)
  return {
    service,
    at: service.addresses[0]!,
    lines,
    lead() {
      isLeading = true
      running.push(service.lead(stopping.signal).then(() => undefined))
    },
    stop,
  }
}

const signal = new AbortController().signal

async function write(service: DnsService, name: string, value: string, from?: string): Promise<void> {
  const set = (address: string) => ({ name: `${name}.example.test.`, type: 'A', ttl: 60, values: [address] })
  await service.provider.apply(ZONE, [{ to: set(value), from: from === undefined ? undefined : set(from) }], signal)
}

async function ask({ at }: Replica, name = 'www'): Promise<string> {
  const { message } = await client.query({ server: at, name: `${name}.example.test`, type: 'A' })
  if (message.rcode !== RCODE.NOERROR) return rcodeName(message.rcode)
  return groupRecords(message.answers)
    .flatMap(({ values }) => [...values])
    .join(' ')
}

async function answers(replica: Replica, wanted: string, name = 'www'): Promise<void> {
  await expect.poll(async () => ask(replica, name), { timeout: 10_000, interval: 10 }).toBe(wanted)
}

/** Two or more processes that know each other's addresses only after all listen: ports are taken first. */
async function startReplicas(count: number): Promise<Replica[]> {
  const probes = await Promise.all(Array.from({ length: count }, async () => start({ dataDir: join(folder, 'probe') })))
  const ports = probes.map(({ at }) => `127.0.0.1:${at.port}`)
  await Promise.all(probes.map(async (probe) => probe.stop()))
  return Promise.all(
    ports.map(async (listen, i) =>
      start({ listen: [listen], dataDir: join(folder, String(i)), primaries: ports, secondaries: ports }),
    ),
  )
}

describe('a DNS service', () => {
  it('refuses a zone that is not there, serves it when it is complete, and again at once after a restart', async () => {
    const first = await start({ dataDir: folder }, { waitsForRecords: true })
    expect(await ask(first)).toBe('REFUSED')
    expect(first.service.check()).toMatch(/example.test. is not served: it is not complete yet/)
    first.lead()
    await write(first.service, 'www', '192.0.2.1')
    expect(await ask(first)).toBe('REFUSED')
    first.service.complete('example.test.')
    expect(await ask(first)).toBe('192.0.2.1')
    expect(await ask(first, 'missing')).toBe('NXDOMAIN')
    expect(first.service.check()).toBeUndefined()
    await first.stop()

    const second = await start({ dataDir: folder }, { waitsForRecords: true })
    expect(await ask(second)).toBe('192.0.2.1')
    await second.stop()
  })

  it('takes other zones while it runs, without an interruption of those that stay; what a removed one had is stored', async () => {
    const at = async (name: string) => {
      const { message } = await client.query({ server: only.at, name, type: 'SOA' })
      return rcodeName(message.rcode)
    }
    const only = await start({ dataDir: folder })
    only.lead()
    await write(only.service, 'www', '192.0.2.1')
    only.service.configure({ zones: ['example.test', 'more.test'], rateLimit: 20 })
    expect(await ask(only)).toBe('192.0.2.1')
    // As the next term of leadership does.
    only.service.renew()
    only.lead()
    await expect.poll(async () => at('more.test')).toBe('NOERROR')
    expect(await ask(only)).toBe('192.0.2.1')
    only.service.configure({ zones: ['more.test'], rateLimit: 20 })
    await expect.poll(async () => ask(only)).toBe('REFUSED')
    await expect(write(only.service, 'www', '192.0.2.2')).rejects.toThrow('example.test')
    expect((await only.service.provider.zones(signal)).map(({ name }) => name)).toEqual(['more.test.'])
    only.service.configure({ zones: ['more.test', 'example.test'], rateLimit: 20 })
    await answers(only, '192.0.2.1')
    await write(only.service, 'www', '192.0.2.3', '192.0.2.1')
    expect(await ask(only)).toBe('192.0.2.3')
  })

  it('a replica copies a zone that is new from its primaries, and no more one that is removed', async () => {
    const [leader, other] = await startReplicas(2)
    if (leader === undefined || other === undefined) throw new Error('two replicas are needed')
    leader.lead()
    await write(leader.service, 'www', '192.0.2.1')
    await answers(other, '192.0.2.1')
    for (const { service } of [leader, other])
      service.configure({ zones: ['example.test', 'more.test'], rateLimit: 20 })
    leader.service.renew()
    leader.lead()
    await expect
      .poll(
        async () => {
          const { message } = await client.query({ server: other.at, name: 'more.test', type: 'SOA' })
          return rcodeName(message.rcode)
        },
        { timeout: 10_000 },
      )
      .toBe('NOERROR')
    for (const { service } of [leader, other]) service.configure({ zones: ['more.test'], rateLimit: 20 })
    await answers(other, 'REFUSED')
  })

  it('refuses a zone that was not complete before a restart', async () => {
    const options = { waitsForRecords: true }
    const first = await start({ dataDir: folder }, options)
    first.lead()
    await write(first.service, 'www', '192.0.2.1')
    await first.stop()

    const second = await start({ dataDir: folder }, options)
    expect(await ask(second)).toBe('REFUSED')
    expect(second.service.check()).toMatch(/example.test. is not served: it is not complete yet/)
    second.lead()
    await write(second.service, 'more', '192.0.2.2')
    second.service.complete('example.test.')
    expect(await ask(second)).toBe('192.0.2.1')
    await second.stop()

    const third = await start({ dataDir: folder }, options)
    expect(await ask(third)).toBe('192.0.2.1')
    await third.stop()
  })

  it('refuses one zone whose store cannot be read, says why, and serves the others', async () => {
    const zones = ['example.test', 'other.test']
    const first = await start({ dataDir: folder, zones })
    first.lead()
    await write(first.service, 'www', '192.0.2.1')
    await first.stop()
    writeFileSync(join(folder, 'other.test', 'snapshot'), 'garbage')
    const second = await start({ dataDir: folder, zones })
    second.lead()
    await answers(second, '192.0.2.1')
    const { message } = await client.query({ server: second.at, name: 'other.test', type: 'SOA' })
    expect(message.rcode).toBe(RCODE.REFUSED)
    expect(second.service.check()).toMatch(/other.test. is not served: .*the snapshot does not begin with its head/)
    expect(second.lines.join()).toMatch(/STORE_CORRUPT/)
    await write(second.service, 'www', '192.0.2.2', '192.0.2.1')
    expect(await ask(second)).toBe('192.0.2.2')
  })

  it('starts a zone from a zone file once, and keeps its changes afterwards', async () => {
    const file = join(folder, 'db.example.test')
    writeFileSync(file, '$TTL 60\n@ SOA ns host 5 300 60 86400 60\n@ NS ns\nns A 192.0.2.53\nwww A 192.0.2.9\n')
    const dns = { dataDir: join(folder, 'data'), zones: [`example.test=${file}`] }
    const first = await start(dns)
    first.lead()
    await answers(first, '192.0.2.9')
    await write(first.service, 'www', '192.0.2.10', '192.0.2.9')
    await first.stop()
    const second = await start(dns)
    expect(await ask(second)).toBe('192.0.2.10')
  })

  it('reports a zone file that is none and goes on', async () => {
    const file = join(folder, 'bad.zone')
    writeFileSync(file, 'www A nonsense\n')
    const replica = await start({ dataDir: folder, zones: [`bad.test=${file}`, 'example.test'] })
    replica.lead()
    await answers(replica, 'NXDOMAIN')
    expect(replica.service.check()).toMatch(/bad.zone:1/)
  })
})

describe('the metrics of a DNS service', () => {
  it('are questions by type, answers by rcode, transfers, and the state of each zone', async () => {
    const replica = await start({ zones: ['example.test', 'other.test=/nowhere/other.zone'], dataDir: folder })
    const registry = new Registry()
    createDnsMetrics(registry, replica.service)
    replica.lead()
    await write(replica.service, 'www', '192.0.2.1')
    await answers(replica, '192.0.2.1')
    await client.query({ server: replica.at, name: 'missing.example.test', type: 'AAAA' })
    await client.query({ server: replica.at, name: 'www.example.test', type: 'TYPE65280' })
    const text = await registry.metrics()
    const value = (series: string): number => {
      const line = text.split('\n').find((each) => each.startsWith(`${series} `))
      return Number(line?.slice(series.length))
    }
    expect(value('seamark_dns_queries_total{type="A"}')).toBeGreaterThanOrEqual(1)
    expect(value('seamark_dns_queries_total{type="AAAA"}')).toBe(1)
    expect(value('seamark_dns_queries_total{type="other"}')).toBe(1)
    expect(value('seamark_dns_responses_total{rcode="NXDOMAIN"}')).toBe(1)
    expect(value('seamark_dns_transfers_total{kind="AXFR"}')).toBe(0)
    expect(value('seamark_dns_tcp_connections')).toBe(0)
    const serial = replica.service.zones().find(({ zone }) => zone === ZONE.name)?.serial
    expect(value('seamark_dns_zone_serial{zone="example.test."}')).toBe(serial)
    expect(value('seamark_dns_zone_served{zone="example.test."}')).toBe(1)
    expect(value('seamark_dns_zone_served{zone="other.test."}')).toBe(0)
    expect(text).not.toContain('www.example.test')
    // Totals are read, not added up again.
    expect(await registry.metrics()).toBe(text)
  })
})

describe('examples/dns/seamark.yaml', () => {
  it('is a configuration that serves its zone', async () => {
    const file = readFileSync(join(import.meta.dirname, '../../../../examples/dns/seamark.yaml'), 'utf8')
    const loaded = loadConfig({ file })
    if (!loaded.ok) throw new Error(loaded.faults.join('; '))
    const { dns } = loaded.config
    expect(dns).toMatchObject({ zones: ['example.com'], dataDir: '/var/lib/seamark/dns', keys: [{ name: 'seamark' }] })
    // The same on a free port and another folder, without the name of a Service that no resolver here knows.
    const local = { listen: ['127.0.0.1:0'], dataDir: folder, primaries: [], secondaries: [] }
    const replica = await start({ ...dns, ...local }, { env: { DNS_TSIG_SECRET: SECRET } })
    replica.lead()
    await expect.poll(() => replica.service.check(), { timeout: 10_000, interval: 10 }).toBeUndefined()
    const { message } = await client.query({ server: replica.at, name: 'example.com', type: 'NS' })
    expect(groupRecords(message.answers)[0]?.values.toSorted()).toEqual(['ns1.example.com.', 'ns2.example.com.'])
  })
})

describe('replicas', () => {
  it('all answer; a change is answered by each, and another one continues when the first is gone', async () => {
    const [a, b, c] = await startReplicas(3)
    if (a === undefined || b === undefined || c === undefined) throw new Error('three replicas')
    expect(await ask(b)).toBe('REFUSED')
    a.lead()
    await write(a.service, 'www', '192.0.2.1')
    for (const replica of [a, b, c]) await answers(replica, '192.0.2.1')
    await write(a.service, 'www', '192.0.2.2', '192.0.2.1')
    for (const replica of [a, b, c]) await answers(replica, '192.0.2.2')
    expect(b.lines.join()).toMatch(/"incremental":true/)

    await a.stop()
    b.lead()
    await write(b.service, 'www', '192.0.2.3', '192.0.2.2')
    await answers(c, '192.0.2.3')
    expect(await ask(b)).toBe('192.0.2.3')
  })

  it('that takes over first takes what another one has and it has not', async () => {
    const [a, b, c] = await startReplicas(3)
    if (a === undefined || b === undefined || c === undefined) throw new Error('three replicas')
    a.lead()
    await write(a.service, 'www', '192.0.2.1')
    await answers(b, '192.0.2.1')
    await answers(c, '192.0.2.1')
    // c misses the last change: it was down, and is back when a is gone.
    const { at } = c
    await c.stop()
    await write(a.service, 'www', '192.0.2.2', '192.0.2.1')
    await answers(b, '192.0.2.2')
    await a.stop()
    const again = await start({
      listen: [`127.0.0.1:${at.port}`],
      dataDir: join(folder, '2'),
      primaries: [`127.0.0.1:${b.at.port}`],
      secondaries: [`127.0.0.1:${b.at.port}`],
    })
    again.lead()
    await write(again.service, 'www', '192.0.2.3', '192.0.2.2')
    expect(await ask(again)).toBe('192.0.2.3')
  })
})

describe('the file of regions', () => {
  it.each([
    ['a table with a wrong line', Buffer.from('192.0.2.0/24 eu\nnonsense\n'), /line 2 of the region table/],
    [
      'a damaged MMDB',
      Buffer.concat([Buffer.alloc(64), Buffer.from('abcdef4d61784d696e642e636f6d', 'hex')]),
      /the region database cannot be read/,
    ],
  ])('that is %s stops the start and is named', async (_case, content, why) => {
    const regionsFile = join(folder, 'regions')
    writeFileSync(regionsFile, content)
    await expect(start({ dataDir: folder, regionsFile })).rejects.toThrow(why)
    await expect(start({ dataDir: folder, regionsFile })).rejects.toThrow(regionsFile)
  })
})

describe('the configuration of the DNS server', () => {
  it.each([
    [{ listen: ['127.0.0.1'] }, /is no ADDRESS:PORT/],
    [{ listen: ['example.test:53'] }, /is no ADDRESS:PORT/],
    [{ zones: ['a..b'] }, /is no zone/],
    [{ zones: ['a.test='] }, /is no zone/],
    [{ zones: ['a.test', 'A.test.'] }, /named twice/],
    [{ zones: ['a.test'], primaries: ['192.0.2.1'] }, /needs a key/],
    [{ secondaries: [':53'] }, /HOST:PORT/],
  ])('refuses %j', (dns, message) => {
    expect(DnsConfig.safeParse(dns).error?.message ?? '').toMatch(message)
  })

  it('accepts addresses, names of servers, and zones with files', () => {
    const dns = {
      listen: [':53', '[::1]:5353', 'localhost:0'],
      zones: ['example.test', 'other.test=/etc/zones/other.test.zone'],
      secondaries: ['192.0.2.53', 'ns2.example.net:5353', '2001:db8::53'],
    }
    expect(DnsConfig.safeParse(dns).success).toBe(true)
  })
})
