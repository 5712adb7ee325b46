/**
 * BIND and Knot as secondaries of our server, and our server as a secondary of theirs: NOTIFY and IXFR both ways, a secondary
 * that stops and comes back, and one that asks for a serial of long ago.
 */
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import {
  createDnsClient,
  createDnsServer,
  createRRset,
  createZone,
  type DnsServer,
  fqdn,
  groupRecords,
  RCODE,
  SecondaryZone,
  type ServerAddress,
  TsigKey,
  type Zone,
  ZoneKeeper,
} from '@seamark/dns'
import { needs } from '@seamark/kit'
import { freePort, type Key, type Peer, startBind, startBindSecondary, startKnot } from './peers.ts'

const ORIGIN = fqdn('example.test')
const SECRET = Buffer.alloc(32, 9).toString('base64')
const KEY: Key = { name: 'seamark', algorithm: 'hmac-sha256', secret: SECRET }
const key = new TsigKey(KEY.name, KEY.algorithm, SECRET)
const client = createDnsClient({ timeoutMs: 500, tries: 1 })
const open: { close(): Promise<void> }[] = []

afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close()
})
afterAll(async () => client.close())

function keep<T extends { close(): Promise<void> }>(each: T): T {
  open.push(each)
  return each
}

function firstVersion(): Zone {
  return createZone(ORIGIN, [
    createRRset(ORIGIN, 'SOA', 60, ['ns1.example.test. host.example.test. 1 3600 1 86400 60']),
    createRRset(ORIGIN, 'NS', 60, ['ns1.example.test.']),
    createRRset('ns1.example.test', 'A', 60, ['127.0.0.1']),
    ...Array.from({ length: 40 }, (_, i) => createRRset(`host-${i}.example.test`, 'A', 60, [`10.0.0.${i}`])),
  ])
}

async function startPrimary(secondaryPort: number): Promise<DnsServer> {
  return keep(
    await createDnsServer({
      zones: [firstVersion()],
      keys: [key],
      listen: [{ address: '127.0.0.1', port: 0 }],
      defaultPolicy: {
        transferKeys: [key.name],
        secondaries: [{ address: '127.0.0.1', port: secondaryPort, key: key.name }],
      },
    }),
  )
}

function change(server: DnsServer, i: number): void {
  const zone = server.findZone(ORIGIN)!
  server.swap(zone.with([{ kind: 'put', set: createRRset('www.example.test', 'A', 60, [`192.0.2.${i}`]) }]))
}

async function ask(server: ServerAddress, name = 'www.example.test'): Promise<string> {
  const { message } = await client.query({ server, name, type: 'A' })
  if (message.rcode !== RCODE.NOERROR) return `rcode ${message.rcode}`
  return groupRecords(message.answers)
    .flatMap(({ values }) => [...values])
    .join(' ')
}

async function answers(server: ServerAddress, wanted: string): Promise<void> {
  await expect.poll(async () => ask(server).catch(String), { timeout: 20_000, interval: 20 }).toBe(wanted)
}

type StartSecondary = (primaryPort: number, port: number) => Promise<Peer>

const SECONDARIES: readonly (readonly [string, string, StartSecondary])[] = [
  ['BIND', 'named', async (primary, port) => startBindSecondary('example.test', primary, KEY, port)],
  [
    'Knot',
    'knotd',
    async (primary, port) => {
      const remote = `remote:\n  - id: primary\n    address: 127.0.0.1@${primary}\n    key: seamark`
      return startKnot([{ origin: 'example.test', text: '' }], [KEY], '    master: primary\n', remote, port)
    },
  ],
]

describe.each(SECONDARIES)('%s', (_, program, start) => {
  it.skipIf(!needs(program))(
    'follows each change of our server by NOTIFY and IXFR, and catches up after a stop',
    async () => {
      const port = await freePort()
      const primary = await startPrimary(port)
      const first = await start(primary.addresses[0]!.port, port)
      for (let i = 1; i <= 3; i++) {
        change(primary, i)
        await answers(first.address, `192.0.2.${i}`)
      }
      await expect.poll(() => primary.counters().incrementalTransfers, { timeout: 20_000 }).toBeGreaterThan(0)
      await first.close()
      // While it is away, more changes than one: it starts from nothing and gets the whole zone.
      for (let i = 4; i <= 6; i++) change(primary, i)
      const second = keep(await start(primary.addresses[0]!.port, port))
      await answers(second.address, '192.0.2.6')
      change(primary, 7)
      await answers(second.address, '192.0.2.7')
    },
  )
})

it.skipIf(!needs('named'))('our server is a secondary of BIND, by IXFR and after NOTIFY', async () => {
  const port = await freePort()
  // Larger than a change: BIND sends the whole zone when that is shorter.
  const hosts = Array.from({ length: 40 }, (_, i) => `host-${i} A 10.0.0.${i}\n`).join('')
  const text = `$ORIGIN example.test.\n$TTL 60\n@ SOA ns1 host 1 3600 1 86400 60\n@ NS ns1\nns1 A 127.0.0.1\n${hosts}`
  const bind = keep(
    await startBind(
      [{ origin: 'example.test', text }],
      [KEY],
      `also-notify { 127.0.0.1 port ${port} key "seamark"; }; notify-delay 0; ixfr-from-differences yes;`,
      'explicit',
    ),
  )
  let secondary: SecondaryZone | undefined
  const copy = keep(
    await createDnsServer({
      listen: [{ address: '127.0.0.1', port }],
      keys: [key],
      suspended: [ORIGIN],
      onNotify: ({ source, key: signer }) => {
        if (signer !== undefined) secondary?.notify(source)
        return signer !== undefined
      },
    }),
  )
  const keeper = new ZoneKeeper({ server: copy })
  await keeper.open(ORIGIN)
  const kinds: string[] = []
  secondary = new SecondaryZone({
    zone: ORIGIN,
    key,
    client,
    primaries: async () => [bind.address],
    present: () => keeper.findZone(ORIGIN),
    accept: async ({ zone, deltas }) => {
      kinds.push(deltas === undefined ? 'whole' : 'changes')
      await keeper.replace(zone, deltas)
      keeper.serve(ORIGIN)
    },
  })
  const stopping = new AbortController()
  const running = secondary.run(stopping.signal)
  await expect.poll(() => kinds, { timeout: 10_000 }).toEqual(['whole'])
  for (let i = 1; i <= 2; i++) {
    const set = createRRset('www.example.test', 'A', 60, [`192.0.2.${i}`])
    const operations = [
      { kind: 'delete-set', name: set.name, type: 'A' },
      { kind: 'add', set },
    ] as const
    const { message } = await client.update({ server: bind.address, zone: ORIGIN, key, operations })
    expect(message.rcode).toBe(RCODE.NOERROR)
    await answers(copy.addresses[0]!, `192.0.2.${i}`)
  }
  expect(kinds.slice(1)).toContain('changes')
  stopping.abort()
  await running
})
