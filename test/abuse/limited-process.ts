/** A program in a process of its own with a limited heap: what would end or block it is a failed test, not a dead runner. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const ROOT = join(import.meta.dirname, '../..')

export interface LimitedProcess {
  readonly child: ChildProcess
  /** The first line of its output, from now on, that matches; rejects when the process ends before. */
  line(pattern: RegExp): Promise<RegExpExecArray>
  isRunning(): boolean
  /** Most memory that it ever had, in MiB; undefined where the system does not report it. */
  peakMib(): Promise<number | undefined>
  stop(): Promise<void>
}

/** A TypeScript program of this folder, or `bin/seamark` with its arguments. */
export function startLimited(program: string, args: readonly string[], heapMib: number): LimitedProcess {
  const isCommand = program === 'bin/seamark'
  const file = isCommand ? join(ROOT, program) : process.execPath
  const source = ['--conditions=source', '--import', 'tsx', join(import.meta.dirname, program)]
  const child = spawn(file, [...(isCommand ? [] : source), ...args], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, NODE_OPTIONS: `--max-old-space-size=${heapMib}` },
  })
  const exited = once(child, 'exit')
  const lines = createInterface(child.stdout)
  const seen: string[] = []
  const waiting = new Set<(line: string) => void>()
  lines.on('line', (line) => {
    seen.push(line)
    for (const look of waiting) look(line)
  })
  return {
    child,
    async line(pattern) {
      return await new Promise((resolve, reject) => {
        const look = (line: string): void => {
          const found = pattern.exec(line)
          if (found === null) return
          waiting.delete(look)
          resolve(found)
        }
        waiting.add(look)
        lines.once('close', () =>
          reject(new Error(`${program} ended before it printed ${pattern}: ${seen.join('\n')}`)),
        )
        for (const line of seen.splice(0)) look(line)
      })
    },
    isRunning: () => child.exitCode === null && child.signalCode === null,
    peakMib: async () => await readPeak(child.pid ?? 0),
    async stop() {
      // A blocked process does not handle SIGTERM.
      child.kill('SIGKILL')
      await exited
    },
  }
}

export async function readPeak(pid: number): Promise<number | undefined> {
  const file = `/proc/${pid}/status`
  if (!existsSync(file)) return undefined
  const kib = /VmHWM:\s+(\d+) kB/.exec(await readFile(file, 'utf8'))?.[1]
  return kib === undefined ? undefined : Number(kib) / 1024
}
