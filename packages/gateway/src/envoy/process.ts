/**
 * The Envoy of this control plane as a process: started, restarted when it ends, and stopped with the control plane.
 *
 * Flow: `runEnvoy` takes over an Envoy that an earlier control plane left running in the same folder, or starts one; it
 * polls the admin interface until the listeners accept connections; it restarts an Envoy that ended, with back-off.
 * Guarantees: an Envoy outlives a control plane that was killed and serves its last configuration, and the next control
 * plane in the same folder takes it over without a restart. An orderly stop drains and ends it.
 */
import { spawn } from 'node:child_process'
import { open, readFile, rm, stat } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { Backoff, KubeError, messageOf, poll, systemClock, untilAborted, type Clock, type Logger } from '@seamark/kube'
import { makePrivateFolder, writePrivateFile } from '@seamark/kube/private-file'
import type { ProxyAddresses } from '../ir/listen-addresses.ts'
import { LISTENER_NAMES } from '../xds/listeners.ts'
import { hashOf } from '../xds/resource.ts'
import { EnvoyAdmin } from './admin.ts'
import { bootstrapOf } from './bootstrap.ts'

export interface EnvoyOptions {
  /** The program. */
  readonly program: string
  /** Folder for sockets, bootstrap and log; private to the user of this process. */
  readonly folder: string
  readonly log: Logger
  readonly clock?: Clock
  /** Listeners that have to accept connections before Envoy counts as ready. */
  readonly listeners: readonly (keyof ProxyAddresses)[]
  readonly onReady: (addresses: ProxyAddresses) => void
}

const FILES = {
  bootstrap: 'bootstrap.json',
  admin: 'admin.sock',
  xds: 'xds.sock',
  state: 'envoy.json',
  log: 'envoy.log',
}
/** Of a socket file, with its final zero. */
const MAX_SOCKET_PATH = 107
const POLL_MS = 50
const FIRST_BACKOFF_MS = 200
const MAX_BACKOFF_MS = 30_000
/** An Envoy that ran so long was not ended by its configuration. */
const STABLE_MS = 60_000
const DRAIN_MS = 2_500
const END_MS = 1_000

interface Running {
  readonly pid: number
  /** Hash of program and bootstrap: another one needs another Envoy. */
  readonly hash: string
  /** Of the process: a process id alone may be another process by now. */
  readonly startedAt: string
}

/** The socket on which Envoy expects the control plane. */
export function xdsSocketOf(folder: string): string {
  return join(folder, FILES.xds)
}

export async function prepareFolder(folder: string): Promise<void> {
  const longest = join(folder, FILES.admin)
  if (Buffer.byteLength(longest) > MAX_SOCKET_PATH)
    throw new KubeError(
      'ENVOY_FOLDER',
      `${longest} is too long for a socket file (${MAX_SOCKET_PATH} bytes); choose a shorter folder`,
    )
  await makePrivateFolder(folder)
  const { uid, mode } = await stat(folder)
  // Whoever can write here can send Envoy a configuration.
  if (uid !== process.getuid?.() || (mode & 0o077) !== 0)
    throw new KubeError('ENVOY_FOLDER', `${folder} must belong to the user of this process alone (mode 0700)`)
  if (await isAnswered(xdsSocketOf(folder)))
    throw new KubeError('ENVOY_FOLDER', `another control plane uses ${folder}; stop it, or choose another folder`)
  // The socket of a control plane that was killed.
  await rm(xdsSocketOf(folder), { force: true })
}

async function isAnswered(socketPath: string): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect(socketPath)
    const finish = (result: boolean) => {
      socket.destroy()
      resolve(result)
    }
    socket.on('connect', () => finish(true))
    socket.on('error', () => finish(false))
  })
}

/** Runs until the signal aborts. The control plane listens already on `xdsSocketOf(folder)`. */
export async function runEnvoy(options: EnvoyOptions, signal: AbortSignal): Promise<void> {
  const { folder, log, clock = systemClock } = options
  const admin = new EnvoyAdmin(join(folder, FILES.admin))
  const backoff = new Backoff({ clock, baseMs: FIRST_BACKOFF_MS, limitMs: MAX_BACKOFF_MS, signal })
  while (!signal.aborted) {
    const startedMs = clock.monotonic()
    try {
      const { pid, ended } = (await adopt(options)) ?? (await start(options))
      const stopping = new AbortController()
      const ending = AbortSignal.any([signal, stopping.signal])
      const watching = Promise.all([
        announce(options, admin, clock, ending),
        // Also ends when this process is to stop.
        ended(ending).finally(() => stopping.abort()),
      ])
      await watching
      if (signal.aborted) return await stop(pid, admin, options, clock)
      log.warn({ pid, log: join(folder, FILES.log), tail: await logTail(folder) }, 'Envoy ended; it is started again')
    } catch (error) {
      log.warn({ error: messageOf(error) }, 'Envoy could not be started')
    }
    if (clock.monotonic() - startedMs > STABLE_MS) backoff.reset()
    await backoff.wait()
  }
}

interface Watched {
  readonly pid: number
  /** Resolves when the process is gone or the signal aborts. */
  readonly ended: (signal: AbortSignal) => Promise<void>
}

/** The Envoy of an earlier control plane, if it runs with the same program and bootstrap; one with another is ended. */
async function adopt(options: EnvoyOptions): Promise<Watched | undefined> {
  const { folder, log, clock = systemClock } = options
  const running = await readState(folder)
  if (running === undefined || (await startTimeOf(running.pid)) !== running.startedAt) return undefined
  if (running.hash !== identityOf(options)) {
    log.info({ pid: running.pid }, 'the running Envoy has another bootstrap and is replaced')
    await stop(running.pid, new EnvoyAdmin(join(folder, FILES.admin)), options, clock)
    return undefined
  }
  log.info({ pid: running.pid }, 'the running Envoy is taken over')
  const { pid } = running
  return {
    pid,
    async ended(signal) {
      await poll(() => (isAlive(pid) ? undefined : true), { clock, intervalMs: POLL_MS * 10, signal })
    },
  }
}

async function start(options: EnvoyOptions): Promise<Watched> {
  const { program, folder, log } = options
  const text = bootstrapText(options)
  const bootstrap = join(folder, FILES.bootstrap)
  await writePrivateFile(bootstrap, text)
  await rm(join(folder, FILES.admin), { force: true })
  const logFile = join(folder, FILES.log)
  // A file and not a pipe: the process outlives its parent.
  const output = await open(logFile, 'w', 0o600)
  const args = ['--config-path', bootstrap, '--disable-hot-restart', '--log-level', 'warning']
  const child = spawn(program, args, { detached: true, stdio: ['ignore', output.fd, output.fd], env: {} })
  try {
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve)
      child.once('error', reject)
    })
  } finally {
    await output.close()
  }
  child.unref()
  const pid = child.pid ?? 0
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const state: Running = { pid, hash: identityOf(options), startedAt: (await startTimeOf(pid)) ?? '' }
  await writePrivateFile(join(folder, FILES.state), JSON.stringify(state))
  log.info({ pid, program, log: logFile }, 'Envoy started')
  return {
    pid,
    ended: async (signal) => Promise.race([exited, untilAborted(signal)]),
  }
}

/** Calls `onReady` once the configuration is in effect and the listeners accept connections. */
async function announce(options: EnvoyOptions, admin: EnvoyAdmin, clock: Clock, signal: AbortSignal): Promise<void> {
  const findAddresses = async (): Promise<ProxyAddresses | undefined> => {
    if (!(await admin.isReady())) return undefined
    const found = await admin.listeners().catch(() => new Map<string, never>())
    const open = options.listeners.map((each) => [each, found.get(LISTENER_NAMES[each])] as const)
    return open.every(([, address]) => address !== undefined) ? Object.fromEntries(open) : undefined
  }
  const addresses = await poll(findAddresses, { clock, intervalMs: POLL_MS, signal })
  if (addresses !== undefined) options.onReady(addresses)
}

/** Lets requests in flight finish, then ends the process. */
async function stop(pid: number, admin: EnvoyAdmin, { folder, log }: EnvoyOptions, clock: Clock): Promise<void> {
  const isIdle = async () => ((await admin.activeRequests()) === 0 ? true : undefined)
  const hasEnded = () => (isAlive(pid) ? undefined : true)
  try {
    await admin.drain()
    await poll(isIdle, { clock, intervalMs: POLL_MS, timeoutMs: DRAIN_MS })
  } catch (error) {
    log.debug({ error: messageOf(error) }, 'Envoy is ended without draining')
  }
  for (const name of ['SIGTERM', 'SIGKILL'] as const) {
    if (!isAlive(pid)) break
    process.kill(pid, name)
    await poll(hasEnded, { clock, intervalMs: POLL_MS, timeoutMs: END_MS })
  }
  await rm(join(folder, FILES.state), { force: true })
}

function bootstrapText({ folder }: EnvoyOptions): string {
  return JSON.stringify(bootstrapOf({ xds: { path: xdsSocketOf(folder) }, adminSocket: join(folder, FILES.admin) }))
}

function identityOf(options: EnvoyOptions): string {
  return hashOf(`${options.program}\n${bootstrapText(options)}`)
}

async function readState(folder: string): Promise<Running | undefined> {
  try {
    return JSON.parse(await readFile(join(folder, FILES.state), 'utf8')) as Running
  } catch {
    return undefined
  }
}

/** Field 22 of /proc/PID/stat; undefined if there is no such process. */
async function startTimeOf(pid: number): Promise<string | undefined> {
  try {
    const text = await readFile(`/proc/${pid}/stat`, 'utf8')
    // The name of the program, in parentheses, may contain spaces.
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[19]
  } catch {
    return undefined
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

const MAX_TAIL = 2_000

async function logTail(folder: string): Promise<string> {
  const text = await readFile(join(folder, FILES.log), 'utf8').catch(() => '')
  return text.slice(-MAX_TAIL)
}
