/** `seamark run` as a process of its own, from the bundle, with everything it printed. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { freePort } from '../dns/peers.ts'

const root = join(import.meta.dirname, '../../..')

/** Builds the bundle when a source is newer. */
export function buildBundle(): void {
  const built = spawnSync(join(root, 'bin/seamark'), ['version'], { encoding: 'utf8' })
  if (built.status !== 0) throw new Error(`the bundle cannot be built: ${built.stderr}`)
}

export interface ManagerProcess {
  readonly child: ChildProcess
  /** All it printed. */
  log(): string
  metrics(): Promise<string>
  /** SIGKILL; resolves when the process has ended. */
  kill(): Promise<void>
  /** Ends it as a cluster does; resolves with its exit code. */
  stop(): Promise<number | null>
}

export async function startManager(
  argv: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<ManagerProcess> {
  const port = await freePort()
  const addresses = ['--metrics-address', `127.0.0.1:${port}`, '--probes-address', '127.0.0.1:0']
  const child = spawn(process.execPath, [join(root, 'dist/seamark.mjs'), 'run', ...addresses, ...argv], {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  // Not 'exit': what it printed last may come after that.
  const ended = once(child, 'close') as Promise<[number | null]>
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (text += String(chunk)))
  return {
    child,
    log: () => text,
    metrics: async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text(),
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
    async stop() {
      child.kill('SIGTERM')
      return (await ended)[0]
    },
  }
}
