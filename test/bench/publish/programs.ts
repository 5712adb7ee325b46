/**
 * The programs the publish bench measures, each a process of its own: the raw loop, our manager, the embedded server. They are
 * bundled once, as they are shipped; `tsx` would count its own memory and start into every figure.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { build } from 'esbuild'

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

type Program = 'raw' | 'subject' | 'server'

let bundles: Promise<string> | undefined

async function bundle(): Promise<string> {
  bundles ??= (async () => {
    const outdir = await mkdtemp(join(tmpdir(), 'publish-bench-'))
    process.on('exit', () => rmSync(outdir, { recursive: true, force: true }))
    await build({
      entryPoints: ['raw', 'subject', 'server'].map((name) => join(import.meta.dirname, `${name}.ts`)),
      outdir,
      outExtension: { '.js': '.mjs' },
      chunkNames: 'chunks/[name]-[hash]',
      bundle: true,
      splitting: true,
      minifySyntax: true,
      minifyWhitespace: true,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      conditions: ['source', 'node'],
      banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
      logLevel: 'error',
    })
    return outdir
  })()
  return bundles
}

export async function start(
  program: Program,
  flags: readonly string[],
  args: readonly string[],
): Promise<ChildProcess> {
  const path = join(await bundle(), `${program}.mjs`)
  return spawn(process.execPath, [...flags, path, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
}

/** The raw loop, to its end. */
export async function runRaw(kubeconfigPath: string, count: number, task: string): Promise<Usage> {
  const child = await start('raw', [], [kubeconfigPath, String(count), task])
  let text = ''
  child.stdout?.on('data', (chunk: Buffer) => (text += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number]
  if (code !== 0) throw new Error(`the raw loop ${task} exited with ${code}`)
  return JSON.parse(text) as Usage
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
