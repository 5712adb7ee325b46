/**
 * The programs of the publish bench, each a process of its own: the raw loop, our manager, the embedded server, a user.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { bundlePrograms } from '../bundle.ts'

export interface Usage {
  readonly wallSeconds: number
  readonly cpuSeconds: number
}

export interface Report extends Usage {
  readonly event: 'decided' | 'written' | 'idle' | 'stopped'
  /** Write requests so far. */
  readonly writes: number
  readonly reconciles: number
  readonly peakMb: number
  readonly stallMs: number
}

const PROGRAMS = ['raw', 'subject', 'server', 'latency', 'echo'] as const
type Program = (typeof PROGRAMS)[number]

let bundles: Promise<string> | undefined

async function bundle(): Promise<string> {
  return (bundles ??= bundlePrograms(import.meta.dirname, PROGRAMS))
}

export async function start(
  program: Program,
  flags: readonly string[],
  args: readonly string[],
): Promise<ChildProcess> {
  const path = join(await bundle(), `${program}.mjs`)
  return spawn(process.execPath, [...flags, path, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
}

/** What a program prints, once it has ended. */
async function run(program: Program, ...args: string[]): Promise<string> {
  const child = await start(program, [], args)
  let text = ''
  child.stdout?.on('data', (chunk: Buffer) => (text += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number]
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} exited with ${code}`)
  return text
}

/** The raw loop, to its end. */
export async function runRaw(kubeconfigPath: string, count: number, task: string): Promise<Usage> {
  return JSON.parse(await run('raw', kubeconfigPath, String(count), task)) as Usage
}

/** The bare client of echo.ts, until it is stopped. */
export async function startEcho(kubeconfigPath: string): Promise<{ stop(): Promise<void> }> {
  const child = await start('echo', [], [kubeconfigPath])
  if (child.stdout === null) throw new Error('the echo has no output')
  await once(child.stdout, 'data')
  return {
    async stop() {
      const exited = once(child, 'exit')
      child.kill('SIGTERM')
      await exited
    },
  }
}

/** Keeps one core busy until it is stopped. */
export async function occupyCore(): Promise<{ stop(): Promise<void> }> {
  const child = spawn(process.execPath, ['-e', `for (;;) if (process.ppid !== ${process.pid}) process.exit()`], {
    stdio: 'ignore',
  })
  await once(child, 'spawn')
  return {
    async stop() {
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    },
  }
}

/** ms; see latency.ts. */
export async function measureLatency(kubeconfigPath: string, firstIndex: number): Promise<number> {
  return Number(await run('latency', kubeconfigPath, String(firstIndex)))
}

/** Node's flags as the command has them: the subject runs as it is shipped. */
function launcherFlags(): string[] {
  const launcher = readFileSync(join(import.meta.dirname, '../../../bin/seamark'), 'utf8')
  const flags = /^exec node (.*) "\$bundle"/m.exec(launcher)?.[1]
  if (flags === undefined) throw new Error('bin/seamark does not say how it starts Node')
  return flags.split(' ')
}

/** Our manager, and what it reports. */
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

  /** Reports after every `step` writes; with `sources`, also when so many were decided. */
  static async start(
    kubeconfigPath: string,
    { sources = 0, step }: { readonly sources?: number; readonly step: number },
    flags: readonly string[] = [],
  ): Promise<Subject> {
    return new Subject(
      await start('subject', [...launcherFlags(), ...flags], [kubeconfigPath, String(sources), String(step)]),
    )
  }

  async until(isRight: (report: Report) => boolean): Promise<Report> {
    for (;;) {
      const found = this.#reports.find(isRight)
      if (found !== undefined) return found
      if (this.#hasExited) throw new Error('the subject ended before it was done')
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** The last report: peaks over its whole life. */
  async stop(): Promise<Report> {
    this.#child.kill('SIGTERM')
    return this.until(({ event }) => event === 'stopped')
  }
}
