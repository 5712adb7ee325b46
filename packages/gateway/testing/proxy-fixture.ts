/**
 * A built-in proxy in front of backends on this machine, for its tests. What a test starts is closed when the test ends.
 */
import { createServer, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { connect, type AddressInfo, type Server, type Socket } from 'node:net'
import { type Clock, systemClock } from '@seamark/kube'
import { onTestFinished } from 'vitest'
import type { Endpoint } from '../src/ir/endpoint.ts'
import type { Action, Cluster, Ir, Route } from '../src/ir/model.ts'
import { createProxy, type Proxy, type ProxyOptions } from '../src/proxy/proxy.ts'

type Respond = (status: number, headers?: Record<string, string>, body?: string) => void
type Behaviour = (request: IncomingMessage & { text: string }, respond: Respond, attempt: number) => void

export async function listen(server: Server): Promise<Endpoint> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => new Promise((resolve) => server.close(() => resolve())))
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port }
}

/** A closed port: an ordinary port could be given to another test. */
export const CLOSED: Endpoint = { host: '127.0.0.1', port: 1 }

export interface TestBackend extends Endpoint {
  readonly seen: { url: string; headers: IncomingHttpHeaders; body: string; method: string }[]
  /** How many requests began. */
  readonly begun: () => number
  /** How many requests ended before they were complete. */
  readonly aborted: () => number
}

export async function backend(behave: Behaviour = (_request, respond) => respond(200)): Promise<TestBackend> {
  const seen: TestBackend['seen'] = []
  let [begun, aborted] = [0, 0]
  const server = createServer((request, response) => {
    let text = ''
    begun++
    request.on('close', () => {
      if (!request.complete) aborted++
    })
    request.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    request.on('end', () => {
      seen.push({ url: request.url ?? '', headers: request.headers, body: text, method: request.method ?? '' })
      behave(
        Object.assign(request, { text }),
        (status, headers = {}, body = 'ok') => {
          response.writeHead(status, headers)
          response.end(body)
        },
        seen.length,
      )
    })
  })
  const at = await listen(server)
  onTestFinished(() => server.closeAllConnections())
  return { ...at, seen, begun: () => begun, aborted: () => aborted }
}

type Forward = Extract<Action, { kind: 'forward' }>

export function forwardTo(clusters: readonly string[], extra: Partial<Forward> = {}): Forward {
  return {
    kind: 'forward',
    backends: clusters.map((cluster) => ({ cluster, weight: 1 })),
    mirrors: [],
    hash: [],
    timeoutMs: 15_000,
    idleTimeoutMs: 0,
    hasWebsocket: false,
    ...extra,
  }
}

export function route(action: Action, extra: Partial<Route> = {}): Route {
  return {
    match: { path: { kind: 'prefix', value: '/' }, headers: [], query: [] },
    action,
    upgradesToHttps: false,
    origin: { kind: 'HTTPProxy', namespace: 'a', name: 'x', at: 'spec.routes[0]' },
    order: '',
    ...extra,
  }
}

export function irOf(routes: readonly Route[], clusters: readonly Partial<Cluster>[] = [{ name: 'one' }]): Ir {
  return {
    listeners: [{ protocol: 'http', hosts: [{ host: 'x.test', routes }] }],
    clusters: clusters.map((each) => ({
      name: 'one',
      upstream: { kind: 'endpoints', name: each.name ?? 'one' },
      protocol: 'http1',
      balancing: 'roundRobin',
      connectTimeoutMs: 2_000,
      ...each,
    })),
    certificates: [],
  }
}

export async function start(
  ir: Ir,
  endpoints: Record<string, readonly Endpoint[]>,
  options: Partial<ProxyOptions> = {},
): Promise<{ proxy: Proxy; port: number }> {
  const proxy = createProxy({
    http: { host: '127.0.0.1', port: 0 },
    endpoints: (name) => endpoints[name] ?? [],
    ...options,
  })
  proxy.apply(ir)
  const { http } = await proxy.listen()
  onTestFinished(async () => proxy.close(0))
  return { proxy, port: http?.port ?? 0 }
}

export interface Answer {
  status: number
  headers: IncomingHttpHeaders
  body: string
}

export async function ask(
  port: number,
  path = '/',
  options: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Answer> {
  return await new Promise((resolve, reject) => {
    const { method = 'GET', headers = {}, body } = options
    const call = httpRequest(
      { host: '127.0.0.1', port, path, method, headers: { host: 'x.test', ...headers }, agent: false },
      (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }))
        response.on('error', reject)
      },
    )
    call.on('error', reject)
    call.end(body)
  })
}

/** Sends octets and reads until the proxy closes the connection. */
export async function raw(port: number, octets: string): Promise<string> {
  return await new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port }, () => socket.write(octets))
    let text = ''
    socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    socket.on('close', () => resolve(text))
    socket.on('error', () => undefined)
  })
}

/** A connection to the proxy and what came back on it. */
export function openSocket(port: number): { readonly socket: Socket; readonly text: () => string } {
  const socket = connect({ host: '127.0.0.1', port })
  onTestFinished(() => void socket.destroy())
  let text = ''
  socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  return { socket, text: () => text }
}

interface ManualClock extends Clock {
  pending(): number
  advance(ms: number): void
}

/** Timers run when the test says so, and in the same turn. */
export function manualClock(): ManualClock {
  let now = 0
  const timers = new Set<{ at: number; run: () => void }>()
  return {
    now: () => systemClock.now(),
    monotonic: () => now,
    after(ms: number, run: () => void) {
      const timer = { at: now + ms, run }
      timers.add(timer)
      return () => void timers.delete(timer)
    },
    pending: () => timers.size,
    advance(ms: number) {
      now += ms
      for (const timer of timers) {
        if (timer.at > now) continue
        timers.delete(timer)
        timer.run()
      }
    },
  }
}
