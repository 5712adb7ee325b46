/**
 * Forwards a request to a backend of its route: choice by weight, rewrites, header policies, timeout, mirroring. Retries are
 * decided in retries.ts.
 *
 * Guarantees: the response of one attempt only reaches the client; nothing is sent again after the first byte of a response;
 * a client that goes away ends the attempt; every path ends the response; what a callback throws ends this exchange only.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { Http2ServerRequest } from 'node:http2'
import type { LookupFunction } from 'node:net'
import type { Readable } from 'node:stream'
import type { Clock } from '@seamark/kube'
import type { Endpoint } from '../../ir/endpoint.ts'
import type { Action, Backend, Route } from '../../ir/model.ts'
import { isReservedField } from '../../ir/field-names.ts'
import { admit, admitNext, OVERFLOW } from './admission.ts'
import type { Clusters, ClusterState } from './clusters.ts'
import {
  answer,
  connectionOf,
  endToEnd,
  forwardedHeaders,
  guarded,
  writeHead,
  type Exchange,
} from '../request/exchange.ts'
import { expandVariables, mutateHeaders, type HeaderMap } from '../request/header-variables.ts'
import { findQuery } from '../request/request-facts.ts'
import { collectBody, outcomeOf, Retries } from './retries.ts'
import { sendCopies } from './mirrors.ts'
import type { ReplayBudget, ReplayShare } from './replay-budget.ts'
import { rewritePath } from '../request/rewrite.ts'
import { streamedBody, type UpstreamBody } from './body.ts'
import { InvalidAnswer, type UpstreamCall, type UpstreamResponse, type Upstreams } from './upstream.ts'

export interface ForwardDeps {
  readonly clusters: Clusters
  readonly upstreams: Upstreams
  readonly lookup: LookupFunction
  readonly replays: ReplayBudget
  readonly clock: Clock
  readonly random: () => number
}

export type ForwardAction = Extract<Action, { kind: 'forward' }>

const STREAM_TIMEOUT = 'stream timeout'

export function forward(
  deps: ForwardDeps,
  exchange: Exchange,
  route: Route,
  action: ForwardAction,
  extraResponseHeaders: HeaderMap,
): void {
  const backend = chooseBackend(action, deps.random())
  if (backend === undefined) return answer(exchange.response, 500)
  const isRetrying = action.retry !== undefined && action.retry.count > 0
  let forwarding: Forwarding | undefined
  let share: ReplayShare | undefined
  const { framing, request } = exchange
  if (framing.kind === 'none') return start(undefined)
  const onSilence = guarded(exchange.response, () => {
    const headers = { connection: 'close' }
    if (forwarding === undefined) answer(exchange.response, 408, STREAM_TIMEOUT, headers)
    else forwarding.fail(408, STREAM_TIMEOUT, headers)
  })
  watchBody(deps.clock, exchange, action.idleTimeoutMs, onSilence)
  const streamed = streamedBody(request, framing.kind === 'length' ? framing.octets : undefined)
  if (!isRetrying && action.mirrors.length === 0) return start(streamed)
  const onCollected = guarded(exchange.response, (body: Buffer | undefined) => start(body ?? streamed))
  const opened = deps.replays.open(connectionOf(exchange.request))
  share = opened
  exchange.response.once('close', () => opened.release())
  collectBody(streamed, opened, onCollected)

  function start(body: UpstreamBody | undefined): void {
    // The client may have been answered while its body was collected.
    if (backend === undefined || exchange.response.writableEnded) return
    forwarding = new Forwarding(deps, exchange, route, action, backend, extraResponseHeaders, share)
    forwarding.run(body)
  }
}

class Forwarding {
  readonly #deps: ForwardDeps
  readonly #exchange: Exchange
  readonly #route: Route
  readonly #action: ForwardAction
  readonly #backend: Backend
  readonly #extra: HeaderMap
  readonly #retries: Retries
  readonly #share: ReplayShare | undefined
  #call: UpstreamCall | undefined
  #state: ClusterState | undefined
  #isFinished = false
  #cancelTimeout: (() => void) | undefined
  #cancelTry: (() => void) | undefined
  #setCookie: string | undefined
  /** Of the attempt that runs or waits; called when its response has ended. */
  #release: (() => void) | undefined

  constructor(
    deps: ForwardDeps,
    exchange: Exchange,
    route: Route,
    action: ForwardAction,
    backend: Backend,
    extra: HeaderMap,
    share: ReplayShare | undefined,
  ) {
    this.#deps = deps
    this.#exchange = exchange
    this.#route = route
    this.#action = action
    this.#backend = backend
    this.#extra = extra
    this.#share = share
    this.#retries = new Retries(action.retry, () => this.#state)
  }

  run(body: UpstreamBody | undefined): void {
    const { response } = this.#exchange
    const { timeoutMs } = this.#action
    // The time of the response begins when the request is complete, however long its body takes.
    if (timeoutMs > 0) {
      if (body === undefined || Buffer.isBuffer(body)) this.#startTimeout(timeoutMs)
      else body.stream.once('end', () => this.#startTimeout(timeoutMs))
    }
    response.on(
      'close',
      this.#guarded(() => {
        this.#retries.end()
        this.#finish()
      }),
    )
    const headers = upstreamHeaders(this.#exchange, this.#route, this.#action, this.#backend)
    const [exchange, route, action] = [this.#exchange, this.#route, this.#action]
    sendCopies(this.#deps, { exchange, route, action }, headers, body, this.#share)
    this.#send(headers, body, undefined)
  }

  /** A callback of this exchange: what it throws ends the exchange. */
  #guarded<A extends unknown[]>(run: (...args: A) => void): (...args: A) => void {
    return guarded(this.#exchange.response, run, () => this.#end())
  }

  #send(headers: HeaderMap, body: UpstreamBody | undefined, failed: Endpoint | undefined): void {
    const { clusters, upstreams, clock } = this.#deps
    const { facts } = this.#exchange
    // A new configuration may have removed the cluster; the request ends as it began.
    const state = clusters.get(this.#backend.cluster) ?? this.#state
    this.#state = state
    const endpoint = state === undefined ? undefined : clusters.pick(state, this.#hash(), failed)
    if (state === undefined || endpoint === undefined) return this.fail(503, 'no healthy upstream')
    const sendLater = this.#guarded(() => this.#send(headers, body, failed))
    const admitted = admit(state, endpoint, this.#exchange.headerBytes, () => {
      this.#release = undefined
      if (!this.#isFinished) sendLater()
      // No endpoint may be left: the next request gets the connection.
      if (this.#isFinished) admitNext(state)
    })
    if (admitted === 'overflow') return this.fail(503, OVERFLOW)
    this.#release = admitted.release
    if (!admitted.isSent) return
    const { perTryTimeoutMs } = this.#retries
    const path = `${rewritePath(this.#action.rewrite, this.#route.match.path, facts.path)}${facts.search}`
    this.#call = upstreams.send(
      state.cluster,
      endpoint,
      { method: facts.method, path, headers, body },
      {
        onResponse: this.#guarded((response: UpstreamResponse) => {
          this.#cancelTry?.()
          if (this.#isFinished) return this.#call?.cancel()
          if (!this.#retries.take(response.status, facts.method, body)) return this.#respond(response)
          this.#endAttempt()
          // Its body may have no end, and does not count any more.
          this.#call?.cancel()
          this.#retry(headers, body, endpoint)
        }),
        onError: this.#guarded((error: Error, isStale: boolean) => {
          this.#endAttempt()
          if (this.#isFinished) return
          if (isStale && this.#retries.takeStale(facts.method, body)) return this.#send(headers, body, undefined)
          if (this.#retries.take(outcomeOf(error), facts.method, body)) return this.#retry(headers, body, endpoint)
          if (error instanceof InvalidAnswer) return this.fail(502, `upstream protocol error: ${error.message}`)
          this.fail(503, `upstream connect error or disconnect/reset before headers: ${errorCode(error)}`)
        }),
      },
    )
    if (perTryTimeoutMs !== undefined)
      this.#cancelTry = clock.after(
        perTryTimeoutMs,
        this.#guarded(() => {
          this.#call?.cancel()
          this.#endAttempt()
          if (this.#retries.take(504, facts.method, body)) this.#retry(headers, body, endpoint)
          else this.fail(504, 'upstream request timeout')
        }),
      )
  }

  #retry(headers: HeaderMap, body: UpstreamBody | undefined, failed: Endpoint): void {
    const { clock, random } = this.#deps
    this.#cancelTry = clock.after(
      this.#retries.backOffMs(random()),
      this.#guarded(() => this.#send(headers, body, failed)),
    )
  }

  #startTimeout(ms: number): void {
    if (!this.#isFinished)
      this.#cancelTimeout = this.#deps.clock.after(
        ms,
        this.#guarded(() => this.fail(504, 'upstream request timeout')),
      )
  }

  #respond({ status, headers: received, body, trailers }: UpstreamResponse): void {
    const { response, variables, request } = this.#exchange
    const headers = endToEnd(received)
    const expand = (value: string) => expandVariables(value, variables)
    mutateHeaders(headers, this.#backend.responseHeaders, expand)
    mutateHeaders(headers, this.#route.responseHeaders, expand)
    Object.assign(headers, this.#extra)
    if (this.#setCookie !== undefined) {
      const before = headers['set-cookie']
      headers['set-cookie'] = [...(Array.isArray(before) ? before : []), this.#setCookie]
    }
    if (response.destroyed) return this.#call?.cancel()
    // RFC 9110 §8.6: a message that never has a body has no length.
    if (status === 204) delete headers['content-length']
    const { trailer } = received
    if (trailer !== undefined && hasChunks(this.#exchange, status, headers)) headers['trailer'] = trailer
    writeHead(response, status, headers)
    body.on('error', () => response.destroy())
    body.on('close', () => {
      if (!body.readableEnded) response.destroy()
    })
    body.on(
      'end',
      this.#guarded(() => {
        const end = trailerFields(trailers())
        if (Object.keys(end).length > 0 && request.method !== 'HEAD') response.addTrailers(end)
        this.#cancelTimeout?.()
        response.end()
      }),
    )
    const { idleTimeoutMs } = this.#action
    if (idleTimeoutMs > 0)
      watchIdle(this.#deps.clock, body, idleTimeoutMs, () => {
        this.#call?.cancel()
        response.destroy()
      })
    body.pipe(response, { end: false })
  }

  /** Ends the attempt and answers the client. */
  fail(status: number, message: string, headers: HeaderMap = {}): void {
    if (this.#isFinished) return
    this.#end()
    answer(this.#exchange.response, status, message, headers)
  }

  #end(): void {
    this.#isFinished = true
    this.#cancelTimeout?.()
    this.#endAttempt()
    this.#call?.cancel()
  }

  /** The response ended or its client went away. */
  #finish(): void {
    if (this.#isFinished) return
    this.#isFinished = true
    this.#cancelTimeout?.()
    this.#endAttempt()
    if (!this.#exchange.response.writableFinished) this.#call?.cancel()
  }

  #endAttempt(): void {
    this.#cancelTry?.()
    this.#cancelTry = undefined
    this.#release?.()
    this.#release = undefined
  }

  #hash(): string | undefined {
    const { facts, variables } = this.#exchange
    const parts: string[] = []
    for (const source of this.#action.hash) {
      switch (source.kind) {
        case 'sourceIp':
          parts.push(variables.remoteAddress)
          break
        case 'header':
          parts.push(facts.header(source.name) ?? '')
          break
        case 'query':
          parts.push(findQuery(facts.search, source.name) ?? '')
          break
        case 'cookie': {
          let value = cookieOf(facts.header('cookie'), source.name)
          if (value === undefined) {
            value = createHash('sha256').update(randomBytes(16)).digest('hex').slice(0, 16)
            this.#setCookie = `${source.name}=${value}; Path=/; HttpOnly`
          }
          parts.push(value)
          break
        }
      }
    }
    return parts.some((part) => part !== '') ? parts.join('|') : undefined
  }
}

/** The header fields of the request as a backend gets them, with all policies applied. */
export function upstreamHeaders(exchange: Exchange, route: Route, action: ForwardAction, backend: Backend): HeaderMap {
  const { facts, variables } = exchange
  const headers = forwardedHeaders(exchange)
  const expand = (value: string) => expandVariables(value, variables)
  // A route's `set` wins over a service's, so it comes last.
  mutateHeaders(headers, backend.requestHeaders, expand)
  mutateHeaders(headers, route.requestHeaders, expand)
  const host = backend.host ?? action.host
  if (host !== undefined) headers['host'] = expand(host) || facts.authority
  return headers
}

/** Undefined for the share of the backends that cannot be resolved. */
export function chooseBackend({ backends, invalidWeight = 0 }: ForwardAction, random: number): Backend | undefined {
  if (invalidWeight === 0 && backends.length === 1) return backends[0]
  const total = backends.reduce((sum, { weight }) => sum + weight, invalidWeight)
  let at = random * total
  for (const backend of backends) {
    at -= backend.weight
    if (at < 0) return backend
  }
  return invalidWeight > 0 ? undefined : backends.at(-1)
}

/** Whether Node sends the answer in chunks, which alone can have trailers in HTTP/1: it refuses the field Trailer elsewhere. */
function hasChunks({ isHttp2, request }: Exchange, status: number, headers: HeaderMap): boolean {
  const isBodiless = request.method === 'HEAD' || status === 204 || status === 304
  return !isHttp2 && request.httpVersionMinor === 1 && !isBodiless && headers['content-length'] === undefined
}

/** Without what must not be in trailers (RFC 9110 §6.5.1), which Node would refuse after the answer has begun. */
function trailerFields(received: ReturnType<UpstreamResponse['trailers']>): Record<string, string> {
  const result: Record<string, string> = {}
  for (const [name, value] of Object.entries(received))
    if (value !== undefined && !isReservedField(name) && !name.startsWith(':')) result[name] = String(value)
  return result
}

/** Calls `stop` when a client sends nothing of the rest of its body for so long. */
function watchBody(clock: Clock, { request, isHttp2 }: Exchange, ms: number, stop: () => void): void {
  if (ms === 0) return
  if (isHttp2) {
    const { stream } = request as Http2ServerRequest
    stream.setTimeout(ms, stop)
    request.once('end', () => stream.setTimeout(0))
    return
  }
  let read = request.socket.bytesRead
  let cancel = clock.after(ms, check)
  function check(): void {
    if (request.socket.bytesRead === read) return stop()
    read = request.socket.bytesRead
    cancel = clock.after(ms, check)
  }
  for (const event of ['end', 'close']) request.once(event, () => cancel())
}

/** Calls `stop` when nothing was received for so long. */
function watchIdle(clock: Clock, body: Readable, ms: number, stop: () => void): void {
  let cancel = clock.after(ms, onIdle)
  let isActive = false
  function onIdle(): void {
    if (body.destroyed || body.readableEnded) return
    if (isActive) {
      isActive = false
      cancel = clock.after(ms, onIdle)
    } else stop()
  }
  body.on('data', () => (isActive = true))
  body.on('close', () => cancel())
}

function cookieOf(header: string | undefined, name: string): string | undefined {
  for (const part of header?.split(';') ?? []) {
    const equals = part.indexOf('=')
    if (equals > 0 && part.slice(0, equals).trim() === name) return part.slice(equals + 1).trim()
  }
  return undefined
}

function errorCode(error: Error): string {
  return (error as { code?: string }).code ?? error.message
}
