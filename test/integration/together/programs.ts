/** The shipped program: commands as a person types them, and the processes that run until they are ended. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

const PROGRAM = join(import.meta.dirname, '../../../dist/seamark.mjs')

export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export async function seamark(...argv: readonly string[]): Promise<Ran> {
  return seamarkIn(undefined, ...argv)
}

/** In a folder of its own, for a command that writes into it. */
export async function seamarkIn(folder: string | undefined, ...argv: readonly string[]): Promise<Ran> {
  const child = start(argv, folder)
  const ran = { stdout: '', stderr: '' }
  child.stdout?.on('data', (chunk) => (ran.stdout += String(chunk)))
  child.stderr?.on('data', (chunk) => (ran.stderr += String(chunk)))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, ...ran }
}

/** One that runs until `kill`: `seamark run` or `seamark gateway`. */
export interface Running {
  /** The end of what it printed. */
  log(): string
  /** SIGKILL; resolves when the process has ended and its ports are closed. */
  kill(): Promise<void>
}

/** Resolves when it printed `ready`; rejects with its output when it ends before. */
export async function startProgram(...argv: readonly string[]): Promise<Running> {
  const child = start(argv)
  const ended = once(child, 'close')
  let text = ''
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk) => {
        text = `${text}${String(chunk)}`.slice(-MAX_LOG)
        if (/^ready /m.test(text)) resolve()
      })
    ended.then(() => reject(new Error(`${argv[0]} ended:\n${text}`))).catch(reject)
  })
  return {
    log: () => text,
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

const MAX_LOG = 200_000

function start(argv: readonly string[], cwd?: string): ChildProcess {
  // Nothing of the machine's own configuration.
  const env = { PATH: process.env['PATH'] ?? '' }
  return spawn(process.execPath, [PROGRAM, ...argv], { env, cwd, stdio: ['ignore', 'pipe', 'pipe'] })
}
