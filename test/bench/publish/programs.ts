/**
 * The programs of the publish bench, each a process of its own: the raw loop, our manager, the embedded server, a user.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { bundlePrograms } from '../bundle.ts'
import { MeasuredProcess, outputOf } from '../measured-process.ts'

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
  return outputOf(await start(program, [], args), `${program} ${args.join(' ')}`)
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

/** Our manager; it reports after every `step` writes, and with `sources` also when so many were decided. */
export async function startSubject(
  kubeconfigPath: string,
  { sources = 0, step }: { readonly sources?: number; readonly step: number },
  flags: readonly string[] = [],
): Promise<MeasuredProcess<Report>> {
  const args = [kubeconfigPath, String(sources), String(step)]
  return new MeasuredProcess(await start('subject', [...launcherFlags(), ...flags], args))
}
