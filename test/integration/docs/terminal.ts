/**
 * Where a person pastes the commands of a page: a fresh folder, bash, `seamark` and (where found) kubectl in PATH, and nothing
 * of the machine's own configuration.
 *
 * A command that ends with `&`, and a server that prints `ready`, goes on until the terminal is closed. `export` holds for the
 * commands after it. Addresses of the page stand for those of the test (`replace`), in commands and in what they print.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { findProgram } from '@seamark/kit'
import { findKubectls } from '../kubectl/binaries.ts'

const ROOT = join(import.meta.dirname, '../../..')

/** The newest, or undefined. */
export const kubectl = findKubectls().at(-1)?.path

/** A command that neither ends nor says that it is ready by then is killed. */
const LIMIT_MS = 60_000

export interface Ran {
  readonly code: number | null
  /** stdout, then stderr. */
  readonly text: string
}

export interface TerminalOptions {
  readonly env?: Readonly<Record<string, string>>
  /** Text of the page, and what it is in this test. */
  readonly replace?: () => readonly (readonly [page: string, test: string])[]
  readonly lacks?: readonly string[]
  readonly happenings?: Readonly<Record<string, () => Promise<void>>>
  /** Called after the servers have ended. */
  readonly onClose?: () => Promise<void>
  /** Commands that are played: no kubelet runs here, and kubectl may be absent. Undefined: the command is typed. */
  readonly play?: (command: string) => Promise<Ran | undefined>
}

export class Terminal implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'seamark-docs-'))
  readonly #options: TerminalOptions
  readonly #servers: Server[] = []
  readonly #exports: string[] = []

  constructor(options: TerminalOptions = {}) {
    this.#options = options
    const bin = join(this.folder, '.bin')
    mkdirSync(bin)
    symlinkSync(join(ROOT, 'bin/seamark'), join(bin, 'seamark'))
    const helm = findProgram('helm')
    if (helm !== undefined) symlinkSync(helm, join(bin, 'helm'))
    if (kubectl !== undefined) symlinkSync(kubectl, join(bin, 'kubectl'))
    for (const name of ['charts', 'examples', 'package.json', 'node_modules', 'docs'])
      symlinkSync(join(ROOT, name), join(this.folder, name))
  }

  get lacks(): ReadonlySet<string> {
    return new Set(this.#options.lacks)
  }

  get happenings(): Readonly<Record<string, () => Promise<void>>> {
    return this.#options.happenings ?? {}
  }

  save(name: string, text: string): void {
    const file = join(this.folder, name)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, this.#toTest(text), { mode: 0o600 })
  }

  /** Everything that servers printed. */
  log(): string {
    return this.#servers.map(({ text }) => text).join('')
  }

  async type(command: string): Promise<Ran> {
    const played = await this.#options.play?.(command)
    if (played !== undefined) return played
    const line = this.#toTest(command)
    if (line.startsWith('export ')) {
      this.#exports.push(line)
      return { code: 0, text: '' }
    }
    const [, foreground = line, background] = /^(.*?)\s*(&)?(?:\s+#.*)?$/.exec(line) ?? []
    const child = this.#start(foreground)
    const ended = once(child, 'close') as Promise<[number | null]>
    const server: Server = { child, isOurs: /\bseamark /.test(foreground), text: '', ended }
    const output = { stdout: '', stderr: '' }
    const isReady = new Promise<'ready'>((resolve) => {
      for (const stream of ['stdout', 'stderr'] as const)
        child[stream]?.on('data', (chunk: Buffer) => {
          output[stream] += chunk.toString()
          server.text += chunk.toString()
          if (/^ready\b/m.test(output.stdout)) resolve('ready')
        })
    })
    const timer = setTimeout(() => killGroup(child), LIMIT_MS)
    const how = await Promise.race([isReady, server.ended])
    clearTimeout(timer)
    if (how === 'ready') {
      this.#servers.push(server)
      return { code: 0, text: this.#toPage(output.stdout) }
    }
    if (background !== undefined) throw new Error(`${command} ended:\n${server.text}`)
    return { code: how[0], text: this.#toPage(output.stdout + output.stderr) }
  }

  /** SIGTERM; every server of ours ends with 0, as on Ctrl-C. */
  async [Symbol.asyncDispose](): Promise<void> {
    const codes: (number | null)[] = []
    for (const { child, ended, isOurs } of this.#servers.toReversed()) {
      child.kill('SIGTERM')
      const [code] = await ended
      if (isOurs) codes.push(code)
    }
    await this.#options.onClose?.()
    rmSync(this.folder, { recursive: true, force: true })
    if (codes.some((code) => code !== 0)) throw new Error(`servers ended with ${codes.join(', ')}`)
  }

  #start(line: string): ChildProcess {
    const { PATH = '' } = process.env
    return spawn('bash', ['-c', [...this.#exports, isOneCommand(line) ? `exec ${line}` : line].join('\n')], {
      cwd: this.folder,
      env: {
        PATH: `${join(this.folder, '.bin')}:${dirname(process.execPath)}:${PATH}`,
        HOME: this.folder,
        // Of two readers of one page, side by side: what a command makes in a folder of the machine is its own.
        TMPDIR: this.folder,
        NO_COLOR: '1',
        ...this.#options.env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      // A group of its own, so that what bash started ends with it.
      detached: true,
    })
  }

  #toTest(text: string): string {
    return (this.#options.replace?.() ?? []).reduce((all, [page, test]) => all.replaceAll(page, test), text)
  }

  #toPage(text: string): string {
    return (this.#options.replace?.() ?? []).reduce((all, [page, test]) => all.replaceAll(test, page), text)
  }
}

function killGroup({ pid }: ChildProcess): void {
  if (pid !== undefined) process.kill(-pid, 'SIGKILL')
}

interface Server {
  readonly child: ChildProcess
  readonly isOurs: boolean
  readonly ended: Promise<[number | null]>
  text: string
}

/** Then bash replaces itself by it, and a signal reaches it. */
function isOneCommand(line: string): boolean {
  return /^(seamark|kubectl|node|npm) /.test(line) && !/[|;]|&&/.test(line)
}
