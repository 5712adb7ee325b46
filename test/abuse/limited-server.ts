/**
 * The shipped program `bin/seamark apiserver` in a process of its own with a limited heap, and a client that gives up on a
 * request that takes too long: what would end or block a server is a failed test, and not the end of the test run.
 */
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { connect, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { readPeak } from './limited-process.ts'

/** Heap of the server, in MiB. */
const HEAP_MIB = 512
/** No request is answered later than that, on a machine that is busy with other tests. */
const ANSWER_TIMEOUT_MS = 20_000

interface Sent {
  readonly body?: unknown
  /** Content type. @default application/json */
  readonly type?: string
  /** Without the administrator's token. */
  readonly isAnonymous?: boolean
}

export interface Reply {
  readonly status: number
  readonly text: string
}

export interface LimitedServer {
  request(method: string, path: string, sent?: Sent): Promise<Reply>
  /** A further connection. */
  open(): ClientHttp2Session
  /** Most memory that the process ever had, in MiB; undefined where the system does not tell. */
  peakMib(): Promise<number | undefined>
  /** Whether the process still runs and answers. */
  isReady(): Promise<boolean>
  stop(): Promise<void>
}

export async function startLimitedServer(): Promise<LimitedServer> {
  const folder = await mkdtemp(join(tmpdir(), 'seamark-abuse-'))
  const kubeconfig = join(folder, 'kubeconfig')
  const program = spawn(
    join(import.meta.dirname, '../../bin/seamark'),
    ['apiserver', '--listen', '127.0.0.1:0', '--kubeconfig', kubeconfig],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, NODE_OPTIONS: `--max-old-space-size=${HEAP_MIB}` },
    },
  )
  const exited = new Promise<void>((resolve) => program.once('exit', () => resolve()))
  const sessions = new Set<ClientHttp2Session>()
  const stop = async (): Promise<void> => {
    for (const session of sessions) session.destroy()
    // A blocked process does not hear SIGTERM.
    program.kill('SIGKILL')
    await exited
    await rm(folder, { recursive: true, force: true })
  }
  for await (const line of createInterface(program.stdout)) {
    const url = /^ready (\S+)$/.exec(line)?.[1]
    if (url === undefined) continue
    const text = await readFile(kubeconfig, 'utf8')
    const ca = Buffer.from(/certificate-authority-data: (\S+)/.exec(text)?.[1] ?? '', 'base64').toString()
    const token = /token: (\S+)/.exec(text)?.[1] ?? ''
    const open = (): ClientHttp2Session => {
      const session = connect(url, { ca, settings: { initialWindowSize: 16 * 1024 * 1024 } })
      session.on('error', () => undefined)
      sessions.add(session)
      return session
    }
    const session = open()
    const request = async (method: string, path: string, sent: Sent = {}): Promise<Reply> =>
      await send(session, method, path, token, sent)
    return {
      request,
      open,
      stop,
      peakMib: async () => await readPeak(program.pid ?? 0),
      isReady: async () => program.exitCode === null && (await request('GET', '/readyz')).status === 200,
    }
  }
  await stop()
  throw new Error('bin/seamark apiserver ended before it was ready')
}

async function send(
  session: ClientHttp2Session,
  method: string,
  path: string,
  token: string,
  { body, type = 'application/json', isAnonymous = false }: Sent,
): Promise<Reply> {
  const stream = session.request(
    {
      ':method': method,
      ':path': path,
      ...(body !== undefined && { 'content-type': type }),
      ...(!isAnonymous && { authorization: `Bearer ${token}` }),
    },
    { endStream: body === undefined },
  )
  if (body !== undefined) stream.end(typeof body === 'string' ? body : JSON.stringify(body))
  return await readReply(stream, `${method} ${path}`)
}

export async function readReply(stream: ClientHttp2Stream, what: string): Promise<Reply> {
  return await new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new Error(`no answer within ${ANSWER_TIMEOUT_MS} ms: ${what}`))
      stream.close()
    }, ANSWER_TIMEOUT_MS)
    let status = 0
    const chunks: Buffer[] = []
    stream.on('response', (headers) => (status = Number(headers[':status'])))
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.on('error', () => undefined)
    stream.on('close', () => {
      clearTimeout(timer)
      if (status === 0) reject(new Error(`the connection was closed without an answer: ${what}`))
      else resolve({ status, text: Buffer.concat(chunks).toString() })
    })
  })
}
