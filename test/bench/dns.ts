/**
 * packages/dns against BIND and a bare Node UDP echo, under dnsperf, on a zone of 10 000 names and 80 % A, 10 % AAAA, 5 % no
 * such name, 3 % wildcard, 2 % another type. Every server is its own process; per CPU-second, because machines are noisy.
 */
import { execFile } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findProgram, needs } from '@seamark/kit'
import { DnsBench, type Load, type LoadedServer, zoneText } from './dns/servers.ts'
import { type Figure, median, shared } from './figure.ts'

const run = promisify(execFile)
const NAMES = 10_000
/** Turns of one second that each server gets in a run. */
const ROUNDS = 3
/** Turns that each server gets under the open loop, and the seconds of one. */
const LATENCY_ROUNDS = 5
const LATENCY_SECONDS = 2

const nodeArgs = (file: string, args: readonly string[]): string[] => [
  '--conditions=source',
  '--import',
  'tsx',
  '--expose-gc',
  join(import.meta.dirname, 'dns', file),
  ...args,
]

async function script<T>(file: string, ...args: string[]): Promise<T> {
  const { stdout } = await run(process.execPath, nodeArgs(file, args))
  return JSON.parse(stdout) as T
}

/** The cores of this process: the client of the open loop gets the last one, the servers do not. */
const cores = /^Cpus_allowed_list:\s*(?<others>.*?)[-,]?(?<last>\d+)$/m.exec(
  readFileSync('/proc/self/status', 'utf8'),
)?.groups
const taskset = findProgram('taskset')

/** Asks at a fixed rate. The kernel would now and then move client and server onto one core, and that is then the tail. */
async function openLoop(port: number, rate: number, seconds: number): Promise<{ p99: number }> {
  const args = nodeArgs('open-loop.ts', [port, rate, seconds, NAMES].map(String))
  const { stdout } =
    taskset === undefined || cores === undefined
      ? await run(process.execPath, args)
      : await run(taskset, ['-c', cores['last'] ?? '', process.execPath, ...args])
  return JSON.parse(stdout) as { p99: number }
}

/** 99th percentile of the first server ÷ of the second, which take turns under the same client at the same rate. */
async function compareLatency(ours: LoadedServer, baseline: LoadedServer, rate: number): Promise<number> {
  const first: number[] = []
  const second: number[] = []
  if (taskset !== undefined && cores?.['others'])
    for (const { pid } of [ours, baseline]) await run(taskset, ['-a', '-c', '-p', cores['others'], String(pid)])
  for (let round = 0; round < LATENCY_ROUNDS; round++) {
    second.push((await openLoop(baseline.port, rate, LATENCY_SECONDS)).p99)
    first.push((await openLoop(ours.port, rate, LATENCY_SECONDS)).p99)
  }
  return median(first) / median(second)
}

const perCpuSecond = (load: Load): number => load.answers / load.cpuSeconds

const throughput = shared(async () => {
  const bench = new DnsBench(NAMES)
  const servers = await Promise.all([bench.ours(), bench.echo(), ...(needs('named') ? [bench.bind()] : [])])
  try {
    const [ours, echo, bind] = bench.compare(servers, ROUNDS)
    const rate = Math.floor(ours!.answers / ours!.seconds / 2)
    return {
      echo: perCpuSecond(ours!) / perCpuSecond(echo!),
      bind: bind === undefined ? Number.NaN : perCpuSecond(ours!) / perCpuSecond(bind),
      p99: await compareLatency(servers[0], servers[1], rate),
    }
  } finally {
    await Promise.all(servers.map(async (server) => server.close()))
    bench.close()
  }
})

const load = shared(async () => {
  const file = join(tmpdir(), `seamark-bench-${process.pid}.zone`)
  writeFileSync(file, zoneText(1_000_000))
  try {
    return await script<{ seconds: number; bytes: number }>('load.ts', file)
  } finally {
    rmSync(file, { force: true })
  }
})

const swap = shared(async () => script<{ median: number; p95: number }>('swap.ts', '100000'))

const lacks =
  (...programs: string[]) =>
  () =>
    needs(...programs) ? undefined : `not installed: ${programs.join(', ')}`

export const figures: readonly Figure[] = [
  {
    name: 'dns.bind',
    what: 'answers per CPU-second, 10 000 names',
    unit: 'ratio',
    bound: { min: 0.8 },
    against: 'BIND 9.18, one thread, same run',
    unavailable: lacks('dnsperf', 'named'),
    measure: async (n) => (await throughput(n)).bind,
  },
  {
    name: 'dns.echo',
    what: 'answers per CPU-second, 10 000 names',
    unit: 'ratio',
    bound: { min: 0.65 },
    against: 'bare Node UDP echo, same run',
    unavailable: lacks('dnsperf'),
    measure: async (n) => (await throughput(n)).echo,
  },
  {
    name: 'dns.p99',
    what: 'open loop at half of the maximum, 99th percentile',
    unit: 'ratio',
    bound: { max: 1.5 },
    against: 'bare Node UDP echo, same client and rate, taking turns',
    unavailable: lacks('dnsperf'),
    measure: async (n) => (await throughput(n)).p99,
  },
  {
    name: 'dns.load',
    what: '1 000 000 names from a zone file',
    unit: 's',
    bound: { max: 10 },
    against: '-',
    runs: 3,
    measure: async (n) => (await load(n)).seconds,
  },
  {
    name: 'dns.heap',
    what: 'heap and external memory per name of 1 000 000',
    unit: 'bytes',
    bound: { max: 400 },
    against: '-',
    runs: 3,
    measure: async (n) => (await load(n)).bytes,
  },
  {
    name: 'dns.swap',
    what: 'one record changed in a served zone of 100 000 names, median of 500 changes',
    unit: 'ms',
    bound: { max: 2 },
    against: '-',
    measure: async (n) => (await swap(n)).median,
  },
  {
    name: 'dns.swap.p95',
    what: 'the same, 95th percentile: for so long no question is answered',
    unit: 'ms',
    bound: { max: 2 },
    against: '-',
    measure: async (n) => (await swap(n)).p95,
  },
]
