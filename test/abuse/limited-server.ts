/**
 * The shipped program `bin/seamark apiserver` in a process of its own with a limited heap, and a client that gives up on a
 * request that takes too long: what would end or block a server is a failed test, and not the end of the test run.
 */
import { connect, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2'
import { startShippedApiServer } from '@seamark/kit/shipped-apiserver'
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
  /** Most memory that the process ever had, in MiB; undefined where the system does not report it. */
  peakMib(): Promise<number | undefined>
  /** Whether the process still runs and answers. */
  isReady(): Promise<boolean>
  stop(): Promise<void>
}

export async function startLimitedServer(): Promise<LimitedServer> {
  const server = await startShippedApiServer(`--max-old-space-size=${HEAP_MIB}`)
  const sessions = new Set<ClientHttp2Session>()
  const open = (): ClientHttp2Session => {
    const session = connect(server.url, { ca: server.ca, settings: { initialWindowSize: 16 * 1024 * 1024 } })
    session.on('error', () => undefined)
    sessions.add(session)
    return session
  }
  const session = open()
  const request = async (method: string, path: string, sent: Sent = {}): Promise<Reply> =>
    await send(session, method, path, server.token, sent)
  return {
    request,
    open,
    peakMib: async () => await readPeak(server.pid),
    isReady: async () => server.isRunning && (await request('GET', '/readyz')).status === 200,
    async stop() {
      for (const each of sessions) each.destroy()
      // A blocked process does not handle SIGTERM.
      await server.stop('SIGKILL')
    },
  }
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
