/**
 * One probe of one target over real sockets: TCP connect, or an HTTP(S) request with bounded redirects and a bounded body.
 *
 * Guarantees:
 * - One deadline of `timeoutMs` covers every phase; when it passes, the socket is destroyed and the result names the phase.
 * - When the deadline's timer itself runs late, the prober was stalled and the result is inconclusive.
 * - At most `maxBodyBytes` are read, at most `maxRedirects` redirects are followed, and each connection passes the address
 *   guard. A redirect to the target's own host stays on the target's address; headers of the user go nowhere else.
 * - A connection is kept for `CONNECTION_PROBES` probes and at least `CONNECTION_MIN_AGE_MS`, at most
 *   `CONNECTION_MAX_AGE_MS`, so that the accept path and the name are checked again; a new one costs as much as three probes. A kept connection that the server closed meanwhile is replaced once; it does not count as a failure.
 */
import { Agent, type ClientRequest, type IncomingMessage, request as httpRequest, type RequestOptions } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Socket } from 'node:net'
import { type Clock, Stop, type StopSignal } from '@seamark/kube'
import { type ConnectionDeps, type ConnectionRequest, openConnection, type ProbePhase } from './connection.ts'
import { hostOnly, type ProbeRequest, serverName } from './policy.ts'
import { type ProbeCode, ProbeFailure } from './probe-failure.ts'
import { isExpected, printExpectedStatus } from '../expected-status.ts'

export interface ProbeResult {
  readonly code: ProbeCode
  /** What happened, in a sentence without the target's name. */
  readonly detail: string
  readonly elapsedMs: number
}

export interface ProbeDeps extends ConnectionDeps {
  readonly clock: Clock
}

export interface ProbeClient {
  probe(request: ProbeRequest, timeoutMs: number): Promise<ProbeResult>
  /** Closes kept connections. */
  close(): void
}

export const CONNECTION_PROBES = 12
export const CONNECTION_MIN_AGE_MS = 30_000
export const CONNECTION_MAX_AGE_MS = 300_000
/** How long the unread body of a decided probe may take. */
const DISCARD_MS = 1_000
const MAX_HEADER_BYTES = 16 * 1024
/** A deadline that fires this late was delayed by this process, not by the target. */
export const STALL_MS = 250

/** Where one HTTP exchange goes: the target itself, or what it redirected to. */
interface Hop {
  readonly secure: boolean
  readonly connection: NamedConnection
  readonly hostHeader: string
  readonly path: string
  /** Of the user, without those that every probe has. */
  readonly headers: Readonly<Record<string, string>>
  readonly sentHeaders: Readonly<Record<string, string>>
}

/** `name` is equal for requests that can use the same connection. */
interface NamedConnection extends ConnectionRequest {
  readonly name: string
}

/** How far a running probe has come; filled in while it runs, read when its deadline passes. */
interface Progress {
  phase: ProbePhase
  readonly signal: StopSignal
}

export function createProbeClient(deps: ProbeDeps): ProbeClient {
  const agent = new ProbeAgent(deps)

  return {
    close: () => agent.destroy(),
    async probe(request, timeoutMs) {
      const { clock } = deps
      const startMs = clock.monotonic()
      const deadline = new Stop()
      const progress: Progress = { phase: 'connect', signal: deadline }
      let lateMs = 0
      const cancel = clock.after(timeoutMs, () => {
        lateMs = clock.monotonic() - startMs - timeoutMs
        deadline.abort(undefined)
      })
      try {
        const detail =
          request.scheme === 'tcp'
            ? await probeTcp(deps, request, progress)
            : await probeHttp(agent, clock, request, progress)
        return { code: 'Passed', detail, elapsedMs: clock.monotonic() - startMs }
      } catch (error) {
        const elapsedMs = clock.monotonic() - startMs
        if (!deadline.aborted) {
          const failure = ProbeFailure.from(error)
          return { code: failure.code, detail: failure.message, elapsedMs }
        }
        return lateMs > STALL_MS
          ? { code: 'ProberFault', detail: `the prober was stalled for ${Math.round(lateMs)} ms`, elapsedMs }
          : { code: 'TimedOut', detail: `no result within ${timeoutMs} ms, phase ${progress.phase}`, elapsedMs }
      } finally {
        cancel()
      }
    },
  }
}

async function probeTcp(deps: ConnectionDeps, request: ProbeRequest, progress: Progress): Promise<string> {
  const socket = await openConnection(
    deps,
    { host: request.host, ...addressesOf(request), port: request.port, tls: undefined },
    progress.signal,
    (phase) => (progress.phase = phase),
  )
  // A reset instead of FIN leaves no socket in TIME_WAIT.
  socket.resetAndDestroy()
  return 'the connection was accepted'
}

/** Of each target: the same for every probe. */
const firstHops = new WeakMap<ProbeRequest, Hop>()

async function probeHttp(agent: ProbeAgent, clock: Clock, request: ProbeRequest, progress: Progress): Promise<string> {
  let hop = firstHops.get(request)
  if (hop === undefined) firstHops.set(request, (hop = firstHop(request)))
  for (let redirects = 0; ; redirects++) {
    const response = await exchange(agent, request.method, hop, progress)
    const location = response.headers.location
    const status = response.statusCode ?? 0
    if (isRedirect(status) && location !== undefined && !isExpected(request.expectedCodes, status)) {
      response.destroy()
      if (redirects >= request.maxRedirects) {
        const limit = request.maxRedirects
        throw new ProbeFailure(
          'RedirectRefused',
          limit === 0 ? `status ${status}; redirects are not followed` : `more than ${limit} redirects`,
        )
      }
      hop = nextHop(request, hop, location)
      continue
    }
    if (!isExpected(request.expectedCodes, status)) {
      response.destroy()
      const expected = printExpectedStatus(request.expectedCodes)
      throw new ProbeFailure('StatusUnexpected', `status ${status}, expected ${expected}`)
    }
    if (request.bodyContains === undefined) discardBody(response, request.maxBodyBytes, clock)
    else await matchBody(response, request.bodyContains, request.maxBodyBytes, progress)
    return `status ${status}`
  }
}

function isRedirect(status: number): boolean {
  return status === 301 || status === 302 || status === 303 || status === 307 || status === 308
}

function firstHop(request: ProbeRequest): Hop {
  const secure = request.scheme === 'https'
  return hopOf({
    secure,
    connection: {
      host: request.host,
      ...addressesOf(request),
      port: request.port,
      tls: secure ? tlsOf(request, serverName(request)) : undefined,
    },
    hostHeader: request.hostHeader ?? authority(request.host, request.port, secure),
    path: request.path,
    headers: request.headers,
  })
}

function hopOf(hop: Omit<Hop, 'connection' | 'sentHeaders'> & { readonly connection: ConnectionRequest }): Hop {
  const { host, addresses, port, tls } = hop.connection
  const security = tls === undefined ? 'plain' : `${tls.serverName ?? ''} ${tls.verify} ${tls.ca ?? ''}`
  return {
    ...hop,
    connection: { ...hop.connection, name: `${host} ${addresses?.join() ?? ''} ${port} ${security}` },
    sentHeaders: {
      'user-agent': 'seamark-health',
      accept: '*/*',
      ...hop.headers,
      host: hop.hostHeader,
      connection: 'keep-alive',
    },
  }
}

function nextHop(request: ProbeRequest, from: Hop, location: string): Hop {
  const base = `${from.secure ? 'https' : 'http'}://${from.hostHeader}${from.path}`
  if (!URL.canParse(location, base)) throw new ProbeFailure('RedirectRefused', 'the redirect is not a URL')
  const url = new URL(location, base)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new ProbeFailure('RedirectRefused', `redirect to the scheme ${url.protocol}`)
  }
  const secure = url.protocol === 'https:'
  const name = hostOnly(url.hostname)
  const isSameHost = [hostOnly(request.hostHeader ?? ''), hostOnly(request.host)].includes(name)
  // Without an explicit port a redirect within one scheme stays on the port that is probed.
  const isSamePlace = isSameHost && url.host === from.hostHeader && secure === from.secure
  const port = isSamePlace ? from.connection.port : url.port === '' ? (secure ? 443 : 80) : Number(url.port)
  return hopOf({
    secure,
    connection: {
      host: isSameHost ? request.host : name,
      ...(isSameHost && addressesOf(request)),
      port,
      tls: secure
        ? tlsOf(request, isSameHost ? serverName(request) : serverName({ ...request, sni: name }))
        : undefined,
    },
    hostHeader: url.host,
    path: `${url.pathname}${url.search}`,
    headers: isSameHost ? request.headers : {},
  })
}

function addressesOf({ addresses }: ProbeRequest): Pick<ConnectionRequest, 'addresses'> {
  return addresses === undefined ? {} : { addresses }
}

function tlsOf(request: ProbeRequest, name: string | undefined): NonNullable<ConnectionRequest['tls']> {
  return { serverName: name, verify: request.verifyTls, ...(request.ca !== undefined && { ca: request.ca }) }
}

function authority(host: string, port: number, secure: boolean): string {
  const name = host.includes(':') ? `[${host}]` : host
  return port === (secure ? 443 : 80) ? name : `${name}:${port}`
}

/** One request and the head of its response. */
async function exchange(agent: ProbeAgent, method: string, hop: Hop, progress: Progress): Promise<IncomingMessage> {
  for (;;) {
    const attempt: { reused: boolean } = { reused: false }
    try {
      return await sendRequest(agent, method, hop, progress, attempt)
    } catch (error) {
      // The server closed a kept connection while the request was on its way (RFC 9112 §9.3.1).
      if (!attempt.reused || progress.signal.aborted) throw error
    }
  }
}

async function sendRequest(
  agent: ProbeAgent,
  method: string,
  hop: Hop,
  progress: Progress,
  attempt: { reused: boolean },
): Promise<IncomingMessage> {
  return await new Promise<IncomingMessage>((resolve, reject) => {
    const options: AgentOptions = {
      agent,
      method,
      path: hop.path,
      // Only for Node's own bookkeeping: the agent's createConnection opens the socket from `target`.
      host: hostOnly(hop.connection.host),
      port: hop.connection.port,
      headers: hop.sentHeaders,
      maxHeaderSize: MAX_HEADER_BYTES,
      target: hop.connection,
      progress,
    }
    let request: ClientRequest
    try {
      request = httpRequest(options)
    } catch (error) {
      // A path or header value that HTTP cannot carry.
      reject(new ProbeFailure('ProtocolError', error instanceof Error ? error.message : String(error)))
      return
    }
    const onAbort = () => request.destroy(new ProbeFailure('TimedOut', 'aborted'))
    progress.signal.addEventListener('abort', onAbort, { once: true })
    request.on('socket', () => {
      attempt.reused = request.reusedSocket
      progress.phase = 'headers'
    })
    request.once('response', (response) => {
      // The response outlives the request's own listeners: matchBody and discardBody end it.
      progress.signal.removeEventListener('abort', onAbort)
      response.on('error', () => undefined)
      resolve(response)
    })
    request.on('error', (error) => {
      progress.signal.removeEventListener('abort', onAbort)
      reject(ProbeFailure.from(error))
    })
    request.end()
  })
}

/** Reads at most `maxBodyBytes` and looks for the expected text. */
async function matchBody(
  response: IncomingMessage,
  wanted: string,
  maxBodyBytes: number,
  progress: Progress,
): Promise<void> {
  progress.phase = 'body'
  const onAbort = () => response.destroy(new ProbeFailure('TimedOut', 'aborted'))
  progress.signal.addEventListener('abort', onAbort, { once: true })
  const chunks: Buffer[] = []
  let size = 0
  try {
    if (progress.signal.aborted) onAbort()
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      size += chunk.length
      if (size >= maxBodyBytes) break
    }
  } finally {
    progress.signal.removeEventListener('abort', onAbort)
  }
  if (Buffer.concat(chunks).subarray(0, maxBodyBytes).toString('utf8').includes(wanted)) return
  throw new ProbeFailure(
    'BodyMismatch',
    `the expected text is not in the first ${Math.min(size, maxBodyBytes)} bytes of the body`,
  )
}

/** The status decided. A small body is read to its end so that the connection can be kept; any other is cut off. */
function discardBody(response: IncomingMessage, maxBodyBytes: number, clock: Clock): void {
  let size = 0
  const cancel = clock.after(DISCARD_MS, () => response.destroy())
  response.once('close', cancel)
  response.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > maxBodyBytes) response.destroy()
  })
}

interface AgentOptions extends RequestOptions {
  readonly target: NamedConnection
  readonly progress: Progress
}

/** Keeps one idle connection for each distinct target, and opens new ones through the address guard. */
class ProbeAgent extends Agent {
  readonly #deps: ProbeDeps
  readonly #uses = new WeakMap<Duplex, { readonly openedMs: number; probes: number }>()

  constructor(deps: ProbeDeps) {
    super({ keepAlive: true, maxFreeSockets: 1 })
    this.#deps = deps
  }

  override getName(options?: AgentOptions): string {
    return options?.target.name ?? ''
  }

  override createConnection(
    options: AgentOptions,
    callback?: (error: Error | null, stream: Duplex) => void,
  ): Duplex | null | undefined {
    if (callback !== undefined) void this.#open(options, callback)
    return undefined
  }

  async #open(
    { target, progress }: AgentOptions,
    callback: (error: Error | null, stream: Duplex) => void,
  ): Promise<void> {
    let socket: Socket
    try {
      socket = await openConnection(this.#deps, target, progress.signal, (phase) => (progress.phase = phase))
    } catch (error) {
      callback(ProbeFailure.from(error), undefined as never)
      return
    }
    this.#uses.set(socket, { openedMs: this.#deps.clock.monotonic(), probes: 0 })
    callback(null, socket)
  }

  override keepSocketAlive(socket: Duplex): boolean {
    const use = this.#uses.get(socket)
    if (use === undefined) return false
    const ageMs = this.#deps.clock.monotonic() - use.openedMs
    const isUsed = ++use.probes >= CONNECTION_PROBES && ageMs >= CONNECTION_MIN_AGE_MS
    if (isUsed || ageMs >= CONNECTION_MAX_AGE_MS) return false
    const kept = socket as Socket
    kept.setKeepAlive(false)
    // An idle connection must not keep the process alive.
    kept.unref()
    return true
  }

  override reuseSocket(socket: Duplex, request: ClientRequest): void {
    super.reuseSocket(socket, request)
    ;(socket as Socket).ref()
  }
}
