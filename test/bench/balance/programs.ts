/** The programs of the balance bench as child processes, and what they print. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { join } from 'node:path'
import { bundlePrograms } from '../bundle.ts'

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
  let text = ''
  child.stdout?.on('data', (chunk: Buffer) => (text += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number]
  if (code !== 0) throw new Error(`the ${mode} prober exited with ${code}`)
  return JSON.parse(text) as ProbeLoad
}

export interface Report {
  readonly event: 'decided' | 'idle' | 'stopped'
  /** Write requests so far. */
  readonly writes: number
  readonly wallSeconds: number
  readonly cpuSeconds: number
}

export class Subject {
  readonly #child: ChildProcess
  readonly #reports: Report[] = []
  #hasExited = false
  #wake: () => void = () => undefined

  private constructor(child: ChildProcess) {
    this.#child = child
    if (child.stdout === null) throw new Error('the subject has no output')
    createInterface({ input: child.stdout }).on('line', (line) => {
      this.#reports.push(JSON.parse(line) as Report)
      this.#wake()
    })
    child.once('exit', () => {
      this.#hasExited = true
      this.#wake()
    })
  }

  static async start(...args: string[]): Promise<Subject> {
    return new Subject(await start('subject', args))
  }

  /** The first report of this sort after `sinceSeconds` of its life. */
  async until(event: Report['event'], sinceSeconds = 0): Promise<Report> {
    for (;;) {
      const found = this.#reports.find((report) => report.event === event && report.wallSeconds > sinceSeconds)
      if (found !== undefined) return found
      if (this.#hasExited) throw new Error('the subject ended before it was done')
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  async stop(): Promise<Report> {
    this.#child.kill('SIGTERM')
    return this.until('stopped')
  }
}
