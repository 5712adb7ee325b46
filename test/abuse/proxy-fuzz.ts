/**
 * Program of proxy-fuzz.test.ts, in a process of its own: the built-in proxy with random policies, in front of backends that
 * answer anything, and clients that send anything, over HTTP/1, h2c and h2. A victim, a host with a route and a backend of its
 * own, is asked throughout. Prints what happened as one line of JSON.
 *
 * Arguments: combinations, seed, and the longest time in ms.
 */
import { Agent, request } from 'node:http'
import {
  connect as connectHttp2,
  createSecureServer,
  createServer as createHttp2Server,
  type Http2SecureServer,
  type Http2Server,
} from 'node:http2'
import { connect, createServer as createTcpServer, type AddressInfo, type Server } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { createProxy, type Endpoint, type Ir, type Route } from '@seamark/gateway'
import { createAuthority } from '@seamark/kube/certificates'

const [count = 0, seed = 0, longestMs = 0] = process.argv.slice(2).map(Number)
/** In flight together. */
const WORKERS = 24
/** A combination that is not over by then is left alone; the proxy's own timeouts are longer. */
const PATIENCE_MS = 1_000
const ROUTES = 300

/** mulberry32. */
let state = seed
function random(): number {
  state = (state + 0x6d_2b_79_f5) | 0
  let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
}
const oneOf = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T
const some = <T>(list: readonly T[], most: number): T[] =>
  Array.from({ length: Math.floor(random() * (most + 1)) }, () => oneOf(list))

const NAMES = [
  'connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'http2-settings',
  'content-length', 'host', 'expect', 'content-type', 'cookie', 'set-cookie', 'date', 'etag', 'location', 'user-agent',
  'x-a', 'x-forwarded-for', 'x-envoy-retry-on', 'constructor', '__proto__', 'tostring', 'grpc-status', 'content-encoding',
] as const // prettier-ignore
const VALUES = [
  '', 'close', 'keep-alive', 'upgrade', 'chunked', 'gzip, chunked', 'identity', 'trailers', 'h2c', 'websocket', '0', '3',
  '-1', '99999999999999999999', '100-continue', 'content-length', 'host', 'x-a, te', 'AAMAAABkAAQAAP__', 'x\ty', '\u00E9',
  '%REQ(x-a)%', '%REQ(constructor)%', '%DOWNSTREAM_REMOTE_ADDRESS%', '%%', 'a=b; c=d',
] as const // prettier-ignore
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'PATCH', 'CONNECT', 'PROPFIND', 'X!']
const STATUSES = ['000', '001', '099', '100', '101', '102', '103', '199', '200', '200', '204', '205', '206', '301', '304', '404', '500', '503', '599', '600', '999'] // prettier-ignore
const BODIES = ['', 'abc', 'GET /admin HTTP/1.1\r\nhost: victim.test\r\n\r\n', 'x'.repeat(20_000)]

const fields = (most: number): [string, string][] => some(NAMES, most).map((name) => [name, oneOf(VALUES)])
const lines = (list: readonly (readonly [string, string])[]): string =>
  list.map(([name, value]) => `${name}: ${value}\r\n`).join('')
const chunked = (body: string, trailers: string): string =>
  `${body === '' ? '' : `${body.length.toString(16)}\r\n${body}\r\n`}0\r\n${trailers}\r\n`

/** An answer of HTTP/1: as it should be, or nearly. */
function answerText(): string {
  const body = oneOf(BODIES)
  const head = `HTTP/1.${random() < 0.1 ? '0' : '1'} ${oneOf(STATUSES)} ${oneOf(['OK', '', 'x'])}\r\n${lines(fields(3))}`
  const early = random() < 0.1 ? `HTTP/1.1 ${oneOf(['100', '103', '102'])} x\r\n\r\n` : ''
  const form = random()
  if (form < 0.4) return `${early}${head}content-length: ${body.length}\r\n\r\n${body}`
  if (form < 0.8) return `${early}${head}transfer-encoding: chunked\r\n\r\n${chunked(body, lines(fields(2)))}`
  if (form < 0.9) return `${head}\r\n${body}`
  return head.slice(0, Math.floor(random() * head.length))
}

const isVictimFault: string[] = []
/** A path of x.test whose backend, the one of the victim, answers before the body. */
const EARLY = '/early'
const EARLY_H2C = '/early-h2c'

async function listen(server: Server | Http2Server | Http2SecureServer): Promise<Endpoint> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port }
}

function http2Answers<S extends Http2Server | Http2SecureServer>(server: S): S {
  server.on('sessionError', () => undefined)
  server.on('stream', (stream) => {
    stream.on('error', () => undefined)
    stream.resume()
    const headers: Record<string, string | number> = { ':status': Number(oneOf(STATUSES)) }
    for (const [name, value] of fields(3)) headers[name] = value
    try {
      stream.respond(headers, { waitForTrailers: random() < 0.3 })
      stream.on('wantTrailers', () => {
        try {
          stream.sendTrailers(Object.fromEntries(fields(2)))
        } catch {
          stream.close()
        }
      })
      stream.end(oneOf(BODIES))
    } catch {
      if (random() < 0.5) stream.respond({ ':status': 200 })
      stream.close(Math.floor(random() * 14))
    }
  })
  return server
}

const authority = await createAuthority({ commonName: 'fuzz' })
const leaf = await authority.issue({ commonName: 'x.test', dnsNames: ['x.test', 'victim.test'], usages: 'server' })
const pair = { cert: leaf.certPem, key: leaf.keyPem }
const endpoints: Record<string, Endpoint[]> = {
  http1: [
    await listen(
      createTcpServer((socket) => {
        socket.on('error', () => undefined)
        socket.on('data', () => {
          socket.write(Buffer.from(answerText(), 'latin1'))
          if (random() < 0.3) socket.end()
        })
      }),
    ),
  ],
  h2c: [await listen(http2Answers(createHttp2Server()))],
  h2: [await listen(http2Answers(createSecureServer(pair)))],
  // Answers at the head of the request.
  victimH2c: [
    await listen(
      createHttp2Server((_received, response) => void response.end('victim')).on('sessionError', () => undefined),
    ),
  ],
  victim: [
    await listen(
      (await import('node:http')).createServer((received, response) => {
        if (received.url !== '/victim' && received.url !== EARLY)
          isVictimFault.push(`${received.method} ${received.url} reached the victim`)
        response.end('victim')
      }),
    ),
  ],
}

const mutation = () => ({
  set: fields(2).map(([name, value]) => ({ name, value })),
  add: fields(2).map(([name, value]) => ({ name, value })),
  remove: some(NAMES, 2),
})
const base = {
  upgradesToHttps: false,
  order: '',
  origin: { kind: 'HTTPProxy', namespace: 'a', name: 'x', at: '' },
} as const
const match = (value: string) => ({ path: { kind: 'segment', value }, headers: [], query: [] }) as const

function fuzzedRoute(index: number): Route {
  const name = oneOf(NAMES)
  const kind = oneOf(['present', 'contains', 'exact', 'regex'] as const)
  const action = random()
  return {
    ...base,
    match: {
      ...match(`/${index}`),
      headers: random() < 0.1 ? [{ name, kind, value: 'a', isInverted: true, isMissingEmpty: true }] : [],
    },
    ...(random() < 0.7 && { requestHeaders: mutation() }),
    ...(random() < 0.7 && { responseHeaders: mutation() }),
    ...(random() < 0.1 && {
      rateLimit: { tokens: 1, burst: 1, intervalMs: 1_000, status: 429, headers: mutation().set },
    }),
    action:
      action < 0.05
        ? { kind: 'direct', status: oneOf([200, 204, 304, 99, 600]), body: oneOf(BODIES) }
        : action < 0.1
          ? { kind: 'redirect', status: 302 }
          : {
              kind: 'forward',
              backends: [{ cluster: oneOf(['http1', 'h2c', 'h2']), weight: 1 }],
              mirrors: random() < 0.2 ? [{ cluster: oneOf(['http1', 'h2c', 'h2']), percent: 100 }] : [],
              hash: random() < 0.2 ? [{ kind: 'cookie', name: 'c' }] : [],
              ...(random() < 0.3 && {
                retry: { count: 2, on: ['5xx', 'reset'], statusCodes: [], perTryTimeoutMs: 200 },
              }),
              timeoutMs: 800,
              idleTimeoutMs: 800,
              hasWebsocket: random() < 0.5,
            },
  }
}

const routes = Array.from({ length: ROUTES }, (_, index) => fuzzedRoute(index))
const victimRoute: Route = {
  ...base,
  match: { path: { kind: 'prefix', value: '/' }, headers: [], query: [] },
  action: {
    kind: 'forward',
    backends: [{ cluster: 'victim', weight: 1 }],
    mirrors: [],
    hash: [],
    timeoutMs: 5_000,
    idleTimeoutMs: 0,
    hasWebsocket: false,
  },
}
const earlyRoute = (value: string, cluster: string): Route => ({
  ...victimRoute,
  match: match(value),
  action: { ...victimRoute.action, backends: [{ cluster, weight: 1 }] } as Route['action'],
})
const earlyRoutes = [earlyRoute(EARLY, 'victim'), earlyRoute(EARLY_H2C, 'victimH2c')]
const tls = { certificate: 'leaf', minVersion: '1.2', maxVersion: '1.3' } as const
const ir: Ir = {
  listeners: (['http', 'https'] as const).map((protocol) => ({
    protocol,
    hosts: [
      { host: 'victim.test', routes: [victimRoute], ...(protocol === 'https' && { tls }) },
      { host: 'x.test', routes: [...routes, ...earlyRoutes], ...(protocol === 'https' && { tls }) },
    ],
  })),
  clusters: (
    [
      ['http1', 'http1'],
      ['h2c', 'h2c'],
      ['h2', 'h2'],
      ['victim', 'http1'],
      ['victimH2c', 'h2c'],
    ] as const
  ).map(([name, protocol]) => ({
    name,
    upstream: { kind: 'endpoints', name },
    protocol,
    balancing: 'roundRobin',
    connectTimeoutMs: 1_000,
  })),
  certificates: [{ name: 'leaf', chain: pair.cert, key: pair.key }],
}

const local = { host: '127.0.0.1', port: 0 }
const proxy = createProxy({
  http: local,
  https: local,
  endpoints: (name) => endpoints[name] ?? [],
  isRefused: () => undefined,
})
proxy.apply(ir)
const { http, https } = await proxy.listen()
const ports = { http: http?.port ?? 0, https: https?.port ?? 0 }

function overHttp1(isTls: boolean): Promise<void> {
  const body = oneOf(BODIES)
  const target =
    random() < 0.9 ? `/${Math.floor(random() * ROUTES)}/x` : oneOf(['*', '/a#b', 'http://x.test/1', '//', '/%zz'])
  const head = `${oneOf(METHODS)} ${target} HTTP/${oneOf(['1.1', '1.1', '1.1', '1.1', '1.0', '2.0', '0.9'])}\r\nhost: x.test\r\n${lines(fields(3))}`
  const form = random()
  const octets =
    form < 0.4
      ? `${head}\r\n`
      : form < 0.6
        ? `${head}content-length: ${body.length}\r\n\r\n${body}`
        : form < 0.9
          ? `${head}transfer-encoding: chunked\r\n\r\n${chunked(body, lines(fields(1)))}`
          : head.slice(0, Math.floor(random() * head.length))
  return new Promise((resolve) => {
    const socket = isTls
      ? connectTls({ host: '127.0.0.1', port: ports.https, servername: 'x.test', rejectUnauthorized: false })
      : connect({ host: '127.0.0.1', port: ports.http })
    const timer = setTimeout(() => socket.destroy(), oneOf([5, 100, PATIENCE_MS]))
    socket.on('error', () => undefined)
    socket.once('data', () => socket.end())
    socket.once('close', () => {
      clearTimeout(timer)
      resolve()
    })
    socket.write(Buffer.from(octets, 'latin1'))
  })
}

function overHttp2(isTls: boolean): Promise<void> {
  return new Promise((resolve) => {
    const session = isTls
      ? connectHttp2(`https://127.0.0.1:${ports.https}`, { servername: 'x.test', rejectUnauthorized: false })
      : connectHttp2(`http://127.0.0.1:${ports.http}`)
    const timer = setTimeout(() => session.destroy(), oneOf([20, 100, PATIENCE_MS]))
    session.on('error', () => undefined)
    session.once('close', () => {
      clearTimeout(timer)
      resolve()
    })
    try {
      const headers: Record<string, string> = {}
      for (const [name, value] of fields(3)) headers[name] = value
      headers[':method'] = oneOf(METHODS)
      headers[':authority'] = 'x.test'
      if (headers[':method'] !== 'CONNECT') headers[':path'] = `/${Math.floor(random() * ROUTES)}/x`
      const stream = session.request(headers, { endStream: random() < 0.3 })
      stream.on('error', () => undefined)
      stream.once('close', () => session.close())
      stream.resume()
      if (random() < 0.9) stream.end(oneOf(BODIES))
      else stream.close(8)
    } catch {
      session.close()
    }
  })
}

/** Leaves in the middle of its body, after the answer: a FIN or a reset of the connection. */
function leaveHttp1(): Promise<void> {
  const [declared, path] = [1 + Math.floor(random() * 400), oneOf([EARLY, EARLY_H2C])]
  const framing = oneOf([`content-length: ${declared}`, 'transfer-encoding: chunked'])
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port: ports.http, allowHalfOpen: true })
    const timer = setTimeout(() => socket.destroy(), PATIENCE_MS)
    socket.on('error', () => undefined)
    socket.once('data', () => oneOf([() => socket.end(), () => socket.resetAndDestroy(), () => socket.destroy()])())
    socket.once('end', () => socket.destroy())
    socket.once('close', () => {
      clearTimeout(timer)
      resolve()
    })
    socket.write(`POST ${path} HTTP/1.1\r\nhost: x.test\r\n${framing}\r\n\r\n${declared > 1 ? '1' : ''}`)
  })
}

/** Leaves in the middle of its body, after the answer: RST_STREAM, or the end of the connection. */
function leaveHttp2(): Promise<void> {
  return new Promise((resolve) => {
    const session = connectHttp2(`http://127.0.0.1:${ports.http}`)
    const timer = setTimeout(() => session.destroy(), PATIENCE_MS)
    session.on('error', () => undefined)
    session.once('close', () => {
      clearTimeout(timer)
      resolve()
    })
    const headers = { ':method': 'POST', ':authority': 'x.test', ':path': oneOf([EARLY, EARLY_H2C]) }
    const length = random() < 0.7 ? { 'content-length': 2 + Math.floor(random() * 400) } : {}
    const stream = session.request({ ...headers, ...length }, { endStream: false })
    const code = Math.floor(random() * 14)
    stream.on('error', () => undefined)
    stream.once('close', () => session.close())
    stream.once('response', () => (random() < 0.8 ? stream.close(code) : session.destroy()))
    stream.resume().write('1')
  })
}

const latencies: number[] = []
let failed = 0
const agent = new Agent({ keepAlive: true, maxSockets: 1 })
async function askVictim(): Promise<void> {
  const began = performance.now()
  await new Promise<void>((resolve) => {
    const end = (isOk: boolean): void => {
      if (!isOk) failed++
      resolve()
    }
    const options = { host: '127.0.0.1', port: ports.http, path: '/victim', agent, headers: { host: 'victim.test' } }
    const call = request(options, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part: string) => (text += part))
      response.on('end', () => end(response.statusCode === 200 && text === 'victim'))
      response.on('error', () => end(false))
    })
    call.on('error', () => end(false))
    call.end()
  })
  latencies.push(performance.now() - began)
}

async function watchVictim(isOver: () => boolean): Promise<{ p99Ms: number; maxMs: number; requests: number }> {
  latencies.length = 0
  while (!isOver()) {
    await askVictim()
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  const sorted = latencies.toSorted((a, b) => a - b)
  const at = (share: number): number => Math.round(sorted[Math.floor((sorted.length - 1) * share)] ?? 0)
  return { p99Ms: at(0.99), maxMs: at(1), requests: sorted.length }
}

const quietUntil = performance.now() + 2_000
const quiet = await watchVictim(() => performance.now() > quietUntil)

let done = 0
let isOver = false
const startedAt = performance.now()
const watching = watchVictim(() => isOver)
async function work(): Promise<void> {
  while (done < count && performance.now() - startedAt < longestMs) {
    done++
    const way = random()
    if (random() < 0.2) await (way < 0.5 ? leaveHttp1() : leaveHttp2())
    else
      await (way < 0.4
        ? overHttp1(false)
        : way < 0.6
          ? overHttp1(true)
          : way < 0.85
            ? overHttp2(false)
            : overHttp2(true))
  }
}
await Promise.all(Array.from({ length: WORKERS }, work))
isOver = true
const attacked = await watching
agent.destroy()
process.stdout.write(
  `${JSON.stringify({ done, failed, peakMib: Math.round(process.resourceUsage().maxRSS / 1024), quiet, attacked, faults: isVictimFault.slice(0, 5), seconds: Math.round((performance.now() - startedAt) / 1_000) })}\n`,
)
process.exit(0)
