/** `seamark dnslb` as a process of its own, from the bundle, with everything that it printed. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../../..')

export interface DnslbProcess {
  readonly child: ChildProcess
  log(): string
  /** Resolves with the exit code. */
  readonly ended: Promise<number | null>
  /** Resolves with the exit code. */
  stop(): Promise<number | null>
  /** As a machine that loses its power. */
  kill(): Promise<void>
}

export function startDnslb(argv: readonly string[], env: Readonly<Record<string, string>> = {}): DnslbProcess {
  const child = spawn(
    process.execPath,
    [join(root, 'dist/seamark.mjs'), 'dnslb', '--allow-loopback-targets', ...argv],
    {
      env: { PATH: process.env['PATH'] ?? '', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (text += String(chunk)))
  // Not 'exit': what it printed last may come after that.
  const ended = once(child, 'close').then(([code]) => code as number | null)
  return {
    child,
    log: () => text,
    ended,
    async stop() {
      child.kill('SIGTERM')
      return ended
    },
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
  }
}
