/** Servers under load, each its own process, with the CPU time the kernel charges it. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram } from '@seamark/kit'
import { startBind } from '../../integration/dns/peers.ts'

export interface LoadedServer {
  readonly pid: number
  readonly port: number
  /** Seconds of user and system time since it started. */
  cpuSeconds(): number
  close(): Promise<void>
}

export interface Load {
  readonly answers: number
  readonly cpuSeconds: number
  readonly seconds: number
}

const root = join(import.meta.dirname, '../../..')
const TICKS = 100 // clock ticks a second in /proc; fixed on Linux

function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS
}

async function start(command: string, ...args: string[]): Promise<LoadedServer> {
  const child = spawn(command, args, { cwd: root })
  const port = await readyPort(child)
  return {
    pid: child.pid!,
    port,
    cpuSeconds: () => cpuSeconds(child.pid!),
    async close() {
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
    },
  }
}

async function readyPort(child: ChildProcess): Promise<number> {
  let text = ''
  child.stderr!.on('data', (chunk) => (text += String(chunk)))
  for await (const chunk of child.stdout!) {
    text += String(chunk)
    const port = /ready \S+:(\d+)/.exec(text)?.[1]
    if (port !== undefined) return Number(port)
  }
  throw new Error(`the server ended before it was ready: ${text}`)
}

/** Names host-0 … and a wildcard. */
export function zoneText(names: number): string {
  const lines = [
    '$ORIGIN bench.test.',
    '$TTL 300',
    '@ SOA ns host 1 3600 600 86400 60',
    '@ NS ns',
    'ns A 127.0.0.1',
    '*.wild A 192.0.2.77',
  ]
  for (let i = 0; i < names; i++) lines.push(`host-${i} 60 A 10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`)
  return `${lines.join('\n')}\n`
}

/** 80 % A, 10 % AAAA (no data), 5 % no such name, 3 % wildcard, 2 % another type. */
export function questions(names: number, count: number): string {
  const lines: string[] = []
  for (let i = 0; i < count; i++) {
    const n = (i * 7919) % names
    const kind = i % 100
    if (kind < 80) lines.push(`host-${n}.bench.test A`)
    else if (kind < 90) lines.push(`host-${n}.bench.test AAAA`)
    else if (kind < 95) lines.push(`nope-${i}.bench.test A`)
    else if (kind < 98) lines.push(`any-${i}.wild.bench.test A`)
    else lines.push(`host-${n}.bench.test CAA`)
  }
  return `${lines.join('\n')}\n`
}

export class DnsBench {
  readonly folder = mkdtempSync(join(tmpdir(), 'seamark-bench-dns-'))
  readonly #zone: string
  readonly #questions: string

  constructor(names: number, given: { zone?: string; questions?: string } = {}) {
    this.#zone = given.zone ?? zoneText(names)
    writeFileSync(join(this.folder, 'bench.test.zone'), this.#zone)
    this.#questions = join(this.folder, 'questions')
    writeFileSync(this.#questions, given.questions ?? questions(names, 50_000))
  }

  /** As it is shipped. Another zone text is served instead of the bench's. */
  async ours(zoneText?: string): Promise<LoadedServer> {
    return start(join(root, 'bin/seamark'), 'dns', 'serve', '--listen', '127.0.0.1:0', this.#fileOf(zoneText))
  }

  /** The bundle under another Node, with this many threads. The bundle has to be built. */
  async oursWith(node: string, workers: number): Promise<LoadedServer> {
    const args = ['dns', 'serve', '--listen', '127.0.0.1:0', '--workers', String(workers), this.#fileOf()]
    return start(node, '--max-semi-space-size=4', '--v8-pool-size=1', join(root, 'dist/seamark.mjs'), ...args)
  }

  #fileOf(text?: string): string {
    if (text === undefined) return join(this.folder, 'bench.test.zone')
    const folder = mkdtempSync(join(this.folder, 'zone-'))
    writeFileSync(join(folder, 'bench.test.zone'), text)
    return join(folder, 'bench.test.zone')
  }

  async echo(): Promise<LoadedServer> {
    return start(process.execPath, '--import', 'tsx', join(import.meta.dirname, 'echo.ts'))
  }

  async bind(): Promise<LoadedServer> {
    const peer = await startBind([{ origin: 'bench.test.', text: this.#zone }])
    const pid = Number(readFileSync(join(peer.folder, 'named.pid'), 'utf8'))
    return { pid, port: peer.address.port!, cpuSeconds: () => cpuSeconds(pid), close: async () => peer.close() }
  }

  /** Answers, server CPU-seconds and seconds of one run of dnsperf as fast as it can. */
  #load(server: LoadedServer, seconds: number): Load {
    const before = server.cpuSeconds()
    const report = execFileSync(
      findProgram('dnsperf')!,
      `-s 127.0.0.1 -p ${server.port} -d ${this.#questions} -l ${seconds} -c 8 -q 128 -T 1`.split(' '),
      { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] },
    )
    const cpuSeconds = server.cpuSeconds() - before
    const answers = Number(/Queries completed:\s+(\d+)/.exec(report)?.[1])
    const lost = Number(/Queries lost:\s+(\d+)/.exec(report)?.[1])
    if (!(answers > 0) || lost > answers / 100) throw new Error(`dnsperf lost ${lost} of ${answers}:\n${report}`)
    return { answers, cpuSeconds, seconds: Number(/Run time \(s\):\s+([\d.]+)/.exec(report)?.[1]) }
  }

  /** Takes turns between the servers, `rounds` times, after each was warm for a second; sums per server. */
  compare(servers: readonly LoadedServer[], rounds: number): Load[] {
    for (const server of servers) this.#load(server, 1)
    const sums = servers.map(() => ({ answers: 0, cpuSeconds: 0, seconds: 0 }))
    for (let round = 0; round < rounds; round++) {
      for (const [i, server] of servers.entries()) {
        const { answers, cpuSeconds, seconds } = this.#load(server, 1)
        sums[i]!.answers += answers
        sums[i]!.cpuSeconds += cpuSeconds
        sums[i]!.seconds += seconds
      }
    }
    return sums
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}
