/** Figures of sets whose answers are chosen, of several threads on one port, and of a BIND secondary of our server. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { CAN_SHARE_PORT, POLICY_TYPE, policyText } from '@seamark/dns'
import { needs } from '@seamark/kit'
import { DnsBench, type Load } from './dns/servers.ts'
import type { Figure } from './figure.ts'

const run = promisify(execFile)
const NAMES = 10_000
const ROUNDS = 3
/** Changes that a secondary follows in one run. */
const CHANGES = 100

const perCpuSecond = (load: Load | undefined): number =>
  load === undefined ? Number.NaN : load.answers / load.cpuSeconds

/** Three addresses a name, with a policy beside them or not. */
function setsText(isWeighted: boolean): string {
  const lines = ['$ORIGIN bench.test.', '$TTL 60', '@ SOA ns host 1 3600 600 86400 60', '@ NS ns', 'ns A 127.0.0.1']
  for (let i = 0; i < NAMES; i++) {
    const values = [1, 2, 3].map((n) => `10.${n}.${(i >> 8) & 255}.${i & 255}`)
    for (const value of values) lines.push(`host-${i} A ${value}`)
    if (!isWeighted) continue
    const entries = values.map((value, n) => ({ value, weight: n + 1 }))
    lines.push(`host-${i} TYPE${POLICY_TYPE} ${policyText({ type: 'A', mode: 'weighted', entries })}`)
  }
  return `${lines.join('\n')}\n`
}

const addressQuestions = (): string =>
  `${Array.from({ length: 50_000 }, (_, i) => `host-${(i * 7919) % NAMES}.bench.test A`).join('\n')}\n`

async function measureWeighted(): Promise<number> {
  const bench = new DnsBench(NAMES, { zone: setsText(false), questions: addressQuestions() })
  const servers = [await bench.ours(setsText(true)), await bench.ours()]
  try {
    const [weighted, plain] = bench.compare(servers, ROUNDS)
    return perCpuSecond(weighted) / perCpuSecond(plain)
  } finally {
    await Promise.all(servers.map(async (server) => server.close()))
    bench.close()
  }
}

/** A Node that can share a port: this one, or the one that CI installs for its matrix. */
function findNode(): string | undefined {
  if (CAN_SHARE_PORT) return process.execPath
  const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache')
  const other = join(cache, 'seamark/nodes/node_modules/node24/bin/node')
  return existsSync(other) ? other : undefined
}

async function measureWorkers(): Promise<number> {
  const node = findNode()
  if (node === undefined) return Number.NaN
  const bench = new DnsBench(NAMES)
  // Builds the bundle when it is not up to date.
  await (await bench.ours()).close()
  const servers = [await bench.oursWith(node, 2), await bench.oursWith(node, 1)]
  try {
    const [two, one] = bench.compare(servers, ROUNDS)
    return perCpuSecond(two) / perCpuSecond(one)
  } finally {
    await Promise.all(servers.map(async (server) => server.close()))
    bench.close()
  }
}

async function measureSecondary(): Promise<number> {
  const script = join(import.meta.dirname, 'dns/secondary.ts')
  const args = ['--conditions=source', '--import', 'tsx', script, '1000', String(CHANGES)]
  const { stdout } = await run(process.execPath, args)
  return (JSON.parse(stdout) as { p99: number }).p99
}

const lacks = (...programs: string[]) => (needs(...programs) ? undefined : `not installed: ${programs.join(', ')}`)

export const figures: readonly Figure[] = [
  {
    name: 'dns.weighted',
    what: 'answers per CPU-second from 10 000 weighted sets of three addresses',
    unit: 'ratio',
    bound: { min: 0.7 },
    against: 'the same sets without weights, same run',
    runs: 3,
    unavailable: () => lacks('dnsperf'),
    measure: measureWeighted,
  },
  {
    name: 'dns.workers',
    what: 'answers per CPU-second with two threads on one port',
    unit: 'ratio',
    bound: { min: 0.85 },
    against: 'one thread, same run',
    runs: 3,
    unavailable: () => lacks('dnsperf') ?? (findNode() === undefined ? 'needs Node 23.1 or newer' : undefined),
    measure: measureWorkers,
  },
  {
    name: 'balance.secondary',
    what: `change → answer of a BIND secondary, p99 of ${CHANGES} changes`,
    unit: 's',
    bound: { max: 1 },
    against: '-',
    runs: 3,
    unavailable: () => lacks('named'),
    measure: measureSecondary,
  },
]
