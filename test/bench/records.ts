/** Records: a plan over a large zone, the cost of ten changes in zones of two sizes, and updates beside nsupdate. */
import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type ServerAddress, TsigKey } from '@seamark/dns'
import { findProgram } from '@seamark/kit'
import {
  createEngine,
  createKillSwitch,
  type Desired,
  type Engine,
  memoryGuardStore,
  memoryProvider,
  type ObservedRRset,
  type Plan,
  powerdnsProvider,
  type Provider,
  rfc2136Provider,
} from '@seamark/operator'
import { startBind } from '../integration/dns/peers.ts'
import { startPowerdnsApi } from '../integration/providers/powerdns-api.ts'
import { type Figure, median, shared } from './figure.ts'

const ZONE = 'bench.test.'
const zone = { id: ZONE, name: ZONE }
const OWNER = { id: 'bench', cluster: '6f1f0f5e-0000-4000-8000-000000000000' }
const signal = new AbortController().signal

const nameOf = (index: number) => `host-${index}.${ZONE}`
const desiredRecord = (index: number, address = '192.0.2.1', revision = '1'): Desired => ({
  set: { name: nameOf(index), type: 'A', ttl: 60, values: [address] },
  source: {
    uid: `dnsendpoint/00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
    label: `DNSEndpoint bench/host-${index}`,
    age: { createdAt: '', namespace: 'bench', name: `host-${index}`, kind: 'DNSEndpoint' },
    revision,
  },
})

function engineOn(provider: Provider): Engine {
  return createEngine({
    providers: [provider],
    owner: OWNER,
    store: memoryGuardStore(),
    killSwitch: createKillSwitch(),
    mode: 'enforce',
    types: ['A', 'AAAA', 'CNAME'],
    registry: {},
  })
}

const sourcesOf = (desired: readonly Desired[]) => ({
  present: new Set(desired.map(({ source }) => source.uid)),
  gone: new Set<string>(),
})

/** The engine's timers do not hold the process; a bench must not end while one is waited for. */
async function keepAlive<T>(work: () => Promise<T>): Promise<T> {
  const timer = setInterval(() => undefined, 1000)
  try {
    return await work()
  } finally {
    clearInterval(timer)
  }
}

async function planAndApply(
  engine: Engine,
  desired: readonly Desired[],
  names: ReadonlySet<string> | 'all',
): Promise<number> {
  const { plans, unread } = await engine.plan({ desired, unusable: [], sources: sourcesOf(desired) }, names, signal)
  if (unread.length > 0) throw new Error(`unread: ${JSON.stringify(unread)}`)
  let applied = 0
  for (const plan of plans)
    applied += (await engine.apply(plan, signal)).results.filter(({ result }) => result === 'applied').length
  return applied
}

/** A zone of n owned names, made once with the executor. */
async function fill(provider: Provider, count: number): Promise<void> {
  const applied = await planAndApply(
    engineOn(provider),
    Array.from({ length: count }, (_, index) => desiredRecord(index)),
    'all',
  )
  if (applied !== count) throw new Error(`filled ${applied} of ${count}`)
}

const fullZone = shared(async () => {
  const provider = memoryProvider({ zones: [ZONE], capabilities: { maxChanges: 50_000 } })
  await fill(provider, 100_000)
  return provider
})

async function planSeconds(): Promise<number> {
  const provider = await fullZone(0)
  const engine = engineOn(provider)
  // One in a hundred changes; the rest is compared, its markers read, its owner checked.
  const desired = Array.from({ length: 100_000 }, (_, index) =>
    desiredRecord(index, index % 100 === 0 ? '192.0.2.2' : '192.0.2.1', '2'),
  )
  const wanted = { desired, unusable: [], sources: sourcesOf(desired) }
  globalThis.gc?.()
  const startedAt = performance.now()
  const { plans } = await engine.plan(wanted, 'all', signal)
  const seconds = (performance.now() - startedAt) / 1000
  if (plans[0]?.changes.length !== 1000) throw new Error(`planned ${plans[0]?.changes.length} changes`)
  return seconds
}

interface Cost {
  readonly reads: number
  readonly cpuMs: number
}

/** Counts what is read, whatever the provider. */
function counting(provider: Provider): { provider: Provider; counts: { sets: number } } {
  const counts = { sets: 0 }
  const counted: Provider = {
    ...provider,
    async read(at, names, inner) {
      const found: readonly ObservedRRset[] = await provider.read(at, names, inner)
      counts.sets += found.length + 1
      return found
    },
  }
  return { provider: counted, counts }
}

/** Every round writes something new. */
let serial = 0

interface Zone {
  readonly engine: Engine
  readonly counts: { sets: number }
  readonly count: number
}

function zoneOn(inner: Provider, count: number): Zone {
  const { provider, counts } = counting(inner)
  return { engine: engineOn(provider), counts, count }
}

async function costOfTen({ engine, counts, count }: Zone, round: number): Promise<Cost> {
  serial++
  const desired = Array.from({ length: 10 }, (_, index) =>
    desiredRecord((index * 37 + round * 11) % count, `198.51.${serial >> 8}.${serial & 255}`, `r${serial}`),
  )
  counts.sets = 0
  const before = process.cpuUsage()
  const applied = await planAndApply(engine, desired, new Set(desired.map(({ set }) => set.name)))
  const { user, system } = process.cpuUsage(before)
  if (applied !== 10) throw new Error(`applied ${applied} of 10`)
  return { reads: counts.sets, cpuMs: (user + system) / 1000 }
}

/** Warms both, then takes turns, so that what disturbs the machine disturbs both. */
async function growthOf(large: Zone, small: Zone, rounds: number): Promise<number> {
  const costs: [Cost, Cost][] = []
  for (let round = 0; round < rounds + 20; round++) {
    const isLargeFirst = round % 2 === 0
    const first = await costOfTen(isLargeFirst ? large : small, round)
    const second = await costOfTen(isLargeFirst ? small : large, round)
    if (round >= 20) costs.push(isLargeFirst ? [first, second] : [second, first])
  }
  const ratioOf = (pick: (cost: Cost) => number): number =>
    median(costs.map(([cost]) => pick(cost))) / median(costs.map(([, cost]) => pick(cost)))
  return Math.max(
    ratioOf(({ reads }) => reads),
    ratioOf(({ cpuMs }) => cpuMs),
  )
}

async function memoryGrowth(): Promise<number> {
  const [small, large] = [1000, 100_000].map(() =>
    memoryProvider({ zones: [ZONE], capabilities: { maxChanges: 50_000 } }),
  )
  if (small === undefined || large === undefined) throw new Error('no providers')
  await fill(small, 1000)
  await fill(large, 100_000)
  globalThis.gc?.()
  return growthOf(zoneOn(large, 100_000), zoneOn(small, 1000), 500)
}

/** What `fill` would write, put into the database at once: loading a large zone is not what is measured. */
async function seed(database: string, origin: string, count: number): Promise<void> {
  const model = memoryProvider({ zones: [ZONE], capabilities: { maxChanges: 50_000 } })
  await fill(model, count)
  const rows = model.dump(ZONE).map((set) => {
    const name = `${set.name.slice(0, -ZONE.length)}${origin.slice(0, -1)}`
    return `((SELECT id FROM domains WHERE name='${origin.slice(0, -1)}'),'${name}','${set.type}','${set.values[0]}',${set.ttl},0,1)`
  })
  const statements = ['PRAGMA busy_timeout=20000;', 'BEGIN;']
  for (let at = 0; at < rows.length; at += 500) {
    statements.push(
      `INSERT INTO records(domain_id,name,type,content,ttl,disabled,auth) VALUES ${rows.slice(at, at + 500).join(',')};`,
    )
  }
  execFileSync(findProgram('sqlite3') ?? 'sqlite3', [database], {
    input: [...statements, 'COMMIT;'].join('\n'),
    stdio: ['pipe', 'ignore', 'inherit'],
  })
}

async function powerdnsGrowth(): Promise<number> {
  const zones = ['small', 'large'].map((label) => `${label}.test.`)
  const server = await startPowerdnsApi(zones)
  try {
    const providerOf = (name: string): Provider => {
      const inner = powerdnsProvider({
        name,
        url: server.url,
        apiKey: server.apiKey,
        zones: [`${name}.test.`],
        requestsPerSecond: 1000,
      })
      // The bench's names are of one zone; each server zone plays it.
      const rename = (text: string, from: string, to: string) => `${text.slice(0, -from.length)}${to}`
      const at = { id: `${name}.test.`, name: `${name}.test.` }
      const into = (set: ObservedRRset) => ({ ...set, name: rename(set.name, ZONE, at.name) })
      const out = (set: ObservedRRset) => ({ ...set, name: rename(set.name, at.name, ZONE) })
      return {
        ...inner,
        zones: async () => [zone],
        read: async (_zone, names, inside) => {
          const asked = names === 'all' ? names : new Set([...names].map((text) => rename(text, ZONE, at.name)))
          return (await inner.read(at, asked, inside)).map(out)
        },
        apply: async (_zone, batch, inside) =>
          inner.apply(
            at,
            batch.map(({ from, to }) => ({ from: from && into(from), to: to && into(to) })),
            inside,
          ),
      }
    }
    const [small, large] = [providerOf('small'), providerOf('large')]
    await seed(server.database, 'small.test.', 1000)
    await seed(server.database, 'large.test.', 100_000)
    return await growthOf(zoneOn(large, 100_000), zoneOn(small, 1000), 40)
  } finally {
    await server.close()
  }
}

const KEY = { name: 'bench', algorithm: 'hmac-sha256', secret: Buffer.alloc(32, 7).toString('base64') }
/** A zone for nsupdate of its own: neither finds what the other wrote. */
const PEER_ZONE = 'peer.test.'
const zoneText = (origin: string) =>
  `$ORIGIN ${origin}\n$TTL 300\n@ IN SOA ns1 hostmaster 1 3600 600 86400 60\n@ IN NS ns1\nns1 IN A 127.0.0.1\n`
const CHANGES = 1000
/** Of 1 000 changes each; the first warms both. */
const ROUNDS = 4

/** The input of nsupdate: the changes of a plan in the batches in which we send them, with the same prerequisites. */
function nsupdateScript(plan: Plan, server: ServerAddress, perBatch: number): string {
  const lines = [`server ${server.address} ${server.port}`, `zone ${PEER_ZONE}`]
  for (let at = 0; at < plan.changes.length; at += perBatch) {
    for (const change of plan.changes.slice(at, at + perBatch)) {
      for (const set of [change.to, change.markers[0]?.to]) {
        if (set === undefined) continue
        const name = `${set.name.slice(0, -ZONE.length)}${PEER_ZONE}`
        lines.push(`prereq nxrrset ${name} ${set.type}`, `update add ${name} ${set.ttl} ${set.type} ${set.values[0]}`)
      }
    }
    lines.push('send')
  }
  return `${lines.join('\n')}\n`
}

async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return (performance.now() - startedAt) / 1000
}

/** Ours: reserve, read, compare, pack, send. nsupdate: the same batches with the same prerequisites from a file. */
async function nsupdateRatio(run: number): Promise<number> {
  const peer = await startBind(
    [ZONE, PEER_ZONE].map((origin) => ({ origin, text: zoneText(origin) })),
    [KEY],
  )
  const folder = mkdtempSync(join(tmpdir(), 'seamark-nsupdate-'))
  const provider = rfc2136Provider({
    name: 'bind',
    server: peer.address,
    key: new TsigKey(KEY.name, KEY.algorithm, KEY.secret),
    zones: [ZONE],
    requestsPerSecond: 1000,
  })
  const [keyFile, scriptFile] = [join(folder, 'key'), join(folder, 'script')]
  writeFileSync(keyFile, `key "${KEY.name}" { algorithm ${KEY.algorithm}; secret "${KEY.secret}"; };\n`)
  try {
    const engine = engineOn(provider)
    const times = { ours: [] as number[], theirs: [] as number[] }
    for (let round = 0; round < ROUNDS; round++) {
      const desired = Array.from({ length: CHANGES }, (_, index) => desiredRecord(round * CHANGES + index))
      const names = new Set(desired.map(({ set }) => set.name))
      const { plans } = await engine.plan({ desired, unusable: [], sources: sourcesOf(desired) }, names, signal)
      const [plan] = plans
      if (plan?.changes.length !== CHANGES) throw new Error(`planned ${plan?.changes.length} changes`)
      writeFileSync(scriptFile, nsupdateScript(plan, peer.address, provider.capabilities.maxChanges / 2))
      const send = {
        ours: async () => {
          const { results } = await engine.apply(plan, signal)
          if (results.some(({ result }) => result !== 'applied')) throw new Error('not everything was applied')
        },
        theirs: async () =>
          promisify(execFile)(findProgram('nsupdate') ?? 'nsupdate', ['-v', '-k', keyFile, scriptFile]),
      }
      const order = (run + round) % 2 === 0 ? (['ours', 'theirs'] as const) : (['theirs', 'ours'] as const)
      for (const who of order) times[who].push(await secondsOf(send[who]))
    }
    return median(times.theirs.slice(1)) / median(times.ours.slice(1))
  } finally {
    await provider.close?.()
    await peer.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

const lacks =
  (...programs: string[]) =>
  () => {
    const absent = programs.filter((program) => findProgram(program) === undefined)
    return absent.length === 0 ? undefined : `not installed: ${absent.join(', ')}`
  }

export const figures: readonly Figure[] = [
  {
    name: 'records.plan',
    what: 'plan over 100 000 record sets, markers parsed and guards run',
    unit: 's',
    bound: { max: 1 },
    against: '-',
    measure: async () => keepAlive(planSeconds),
  },
  {
    name: 'records.growth',
    what: 'reads and CPU of 10 changes with 100 000 owned records ÷ with 1 000; the larger of memory and PowerDNS',
    unit: 'ratio',
    bound: { max: 1.2 },
    against: '1 000 owned records',
    runs: 1,
    unavailable: lacks('pdns_server', 'sqlite3'),
    measure: async () => keepAlive(async () => Math.max(await memoryGrowth(), await powerdnsGrowth())),
  },
  {
    name: 'records.nsupdate',
    what: '1 000 changes to BIND, rate ÷ nsupdate fed the same batches',
    unit: 'ratio',
    bound: { min: 0.8 },
    against: 'nsupdate',
    unavailable: lacks('named', 'nsupdate'),
    measure: async (run) => keepAlive(async () => nsupdateRatio(run)),
  },
]
