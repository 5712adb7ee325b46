/** `bin/seamark playground` as it is shipped, in a process of its own and with a folder of temporary files of its own. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const ROOT = join(import.meta.dirname, '../../..')
const PROGRAM = join(ROOT, 'bin/seamark')

export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export interface Status {
  readonly page: string
  readonly kubeconfig: string
  readonly dns: string
  readonly clusters: readonly { name: string; api: string; gateway: string; state: string }[]
}

/** A machine of its own: what is typed there finds only the playgrounds that were started there. */
export class Machine {
  readonly #env: NodeJS.ProcessEnv

  constructor(temporaryFolder: string) {
    const { KUBECONFIG: _, ...env } = process.env
    this.#env = { ...env, TMPDIR: temporaryFolder }
  }

  /** Starts one, and waits for `ready` or for a line that `until` accepts. */
  async start(
    args: readonly string[],
    {
      until = (line) => line.startsWith('ready '),
      command = PROGRAM,
    }: { until?: (line: string) => boolean; command?: string } = {},
  ): Promise<Playground> {
    const words = command === PROGRAM ? ['playground', ...args] : ['start', '--silent', '--', ...args]
    const child = spawn(command, words, {
      cwd: ROOT,
      env: this.#env,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    const playground = new Playground(child)
    await playground.untilLine(until)
    return playground
  }

  /** `seamark …` in a terminal. */
  async seamark(args: string, env: NodeJS.ProcessEnv = {}): Promise<Ran> {
    return this.#run(PROGRAM, args.split(' '), env)
  }

  /** A line as it was printed. */
  async paste(line: string, env: NodeJS.ProcessEnv = {}): Promise<Ran> {
    return this.#run('sh', ['-c', line], env)
  }

  async #run(file: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<Ran> {
    return new Promise((resolve) => {
      execFile(file, [...args], { cwd: ROOT, env: { ...this.#env, ...env } }, (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1
        resolve({ code, stdout, stderr })
      })
    })
  }
}

export class Playground {
  /** Of stdout, so far. */
  readonly lines: string[] = []
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>
  #errors = ''
  #onLine: () => void = () => undefined

  constructor(child: ChildProcess) {
    this.#child = child
    this.#ended = once(child, 'exit').then(() => this.#onLine())
    child.stderr?.on('data', (part: Buffer) => (this.#errors += part.toString()))
    if (child.stdout !== null)
      createInterface(child.stdout).on('line', (line) => {
        this.lines.push(line)
        this.#onLine()
      })
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  get feed(): string {
    return this.#errors
  }

  async untilLine(accepts: (line: string) => boolean): Promise<void> {
    while (!this.lines.some(accepts)) {
      if (this.#child.exitCode !== null || this.#child.signalCode !== null)
        throw new Error(`the playground ended: ${this.lines.join('\n')}\n${this.#errors}`)
      await new Promise<void>((resolve) => (this.#onLine = resolve))
    }
  }

  /** To the process, or as a terminal does to its whole group. Returns the exit code; null: killed. */
  async end(signal: 'SIGINT' | 'SIGTERM' | 'SIGKILL', { group = false } = {}): Promise<number | null> {
    if (this.#child.exitCode === null && this.#child.signalCode === null)
      process.kill(group ? -this.pid : this.pid, signal)
    await this.#ended
    return this.#child.exitCode
  }
}
