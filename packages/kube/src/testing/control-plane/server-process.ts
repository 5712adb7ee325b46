/**
 * One server of a test control plane as a child process: starts it, waits until it is ready, and stops it reliably.
 *
 * Guarantees: `stop` resolves when the process has exited (SIGTERM, then SIGKILL after `stopTimeoutMs`). If this
 * process itself ends, in any way, a watchdog kills the child and removes its folder.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

export interface ServerProcess {
  /** The last lines of its output, for messages about a server that did not start. */
  readonly output: () => string
  stop(): Promise<void>
}

export interface ServerProcessOptions {
  command: string
  flags: readonly string[]
  /** Removed by the watchdog if this process ends without a stop. */
  folder: string
  /** True once the server responds. */
  isReady(): Promise<boolean>
  startTimeoutMs: number
  stopTimeoutMs: number
  /** Passes the server's output to stderr. */
  attachOutput: boolean
}

const MAX_OUTPUT_CHARACTERS = 8_000

export async function startServerProcess(options: ServerProcessOptions): Promise<ServerProcess> {
  const { command, flags, attachOutput } = options
  const child = spawn(command, flags, { stdio: ['ignore', 'ignore', 'pipe'] })
  let output = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output = (output + text).slice(-MAX_OUTPUT_CHARACTERS)
    if (attachOutput) process.stderr.write(text)
  })
  let failure: Error | undefined
  child.once('error', (error) => (failure = error))
  const watchdog = startWatchdog(child, options.folder)
  const server: ServerProcess = {
    output: () => output,
    async stop() {
      await stopChild(child, options.stopTimeoutMs)
      watchdog?.kill('SIGKILL')
    },
  }

  const deadline = performance.now() + options.startTimeoutMs
  while (!(await options.isReady().catch(() => false))) {
    const ended = failure !== undefined || hasEnded(child)
    if (!ended && performance.now() < deadline) {
      await delay(50)
      continue
    }
    await server.stop()
    const what = ended ? 'ended before it was ready' : `was not ready within ${options.startTimeoutMs} ms`
    throw new Error(`${command} ${what}; its last output:\n${output}`, { cause: failure })
  }
  return server
}

/** `count` different ports that are currently free; another program may still take one, so callers retry. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map(async (server) => once(server, 'listening')))
  const ports = servers.map((server) => (server.address() as AddressInfo).port)
  await Promise.all(servers.map(async (server) => once(server.close(), 'close')))
  return ports
}

/**
 * Waits until this process has ended (end of its stdin), then cleans up. In its own session, so that Ctrl-C does not
 * end it first.
 */
function startWatchdog(child: ChildProcess, folder: string): ChildProcess | undefined {
  if (child.pid === undefined) return undefined
  const script = 'cat >/dev/null; kill -9 "$1" 2>/dev/null; rm -rf -- "$2"'
  const watchdog = spawn('/bin/sh', ['-c', script, 'watchdog', String(child.pid), folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  watchdog.once('error', () => undefined)
  watchdog.unref()
  const { stdin } = watchdog
  if (stdin !== null && 'unref' in stdin && typeof stdin.unref === 'function') stdin.unref()
  return watchdog
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null || child.pid === undefined
}

async function stopChild(child: ChildProcess, timeoutMs: number): Promise<void> {
  if (hasEnded(child)) return
  const closed = once(child, 'close')
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs)
  await closed
  clearTimeout(timer)
}
