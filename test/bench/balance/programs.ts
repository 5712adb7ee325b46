/** The programs of the balance bench as child processes, and what they print. */
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { bundlePrograms } from '../bundle.ts'
import { MeasuredProcess, outputOf } from '../measured-process.ts'

let bundles: Promise<string> | undefined

async function start(program: 'subject' | 'probes', args: readonly string[]): Promise<ChildProcess> {
  bundles ??= bundlePrograms(import.meta.dirname, ['subject', 'probes'])
  return spawn(process.execPath, [join(await bundles, `${program}.mjs`), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}

export interface ProbeLoad {
  readonly probes: number
  readonly failures: number
  readonly cpuSeconds: number
}

export async function runProbes(mode: 'bare' | 'ours', ...numbers: number[]): Promise<ProbeLoad> {
  const child = await start('probes', [mode, ...numbers.map(String)])
  return JSON.parse(await outputOf(child, `the ${mode} prober`)) as ProbeLoad
}

export interface Report {
  readonly event: 'decided' | 'idle' | 'stopped'
  /** Write requests so far. */
  readonly writes: number
  readonly wallSeconds: number
  readonly cpuSeconds: number
}

/** `seamark dnslb` with its DNS server; see subject.ts. */
export async function startSubject(...args: string[]): Promise<MeasuredProcess<Report>> {
  return new MeasuredProcess(await start('subject', args))
}

/** Selects the first report of an event after `sinceSeconds` of the process' life. */
export function after(event: Report['event'], sinceSeconds = 0): (report: Report) => boolean {
  return (report) => report.event === event && report.wallSeconds > sinceSeconds
}
