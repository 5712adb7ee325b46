/**
 * The HTTP requests of the page. Order: Host and Origin, method, then the shell (no data, no token) or the API (on loopback without
 * a token, elsewhere what the holder of the token may read). Nothing here changes anything.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { API_VERSION } from '../api/state.ts'
import { isSameOrigin, type Reach } from './address.ts'
import type { Asset, Assets } from './assets.ts'
import type { Model } from './model.ts'
import type { Pages } from './pages.ts'
import { ALL_RIGHTS, type Question, type Rights, type Session, type Sessions } from './rights.ts'
import { send } from './stream.ts'

export interface HandlerDeps {
  readonly reach: Reach
  /** False: whoever reaches it may read what the manager reads. */
  readonly needsToken: boolean
  readonly scheme: 'http' | 'https'
  /** Undefined: the page was not built. */
  readonly assets: Assets | undefined
  /** Undefined: what it shows is not known yet. */
  readonly model: () => { readonly model: Model; readonly pages: Pages } | undefined
  readonly sessions: Sessions
  /** Ends streams when the server stops. */
  readonly signal: AbortSignal
  readonly onError: (error: unknown) => void
  /** A token that has expired, or lost rights, ends its stream after so long. @default 60 s */
  readonly recheckMs?: number
}

const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

const HEADERS = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
}

/** Permalinks of the views: all of them are the shell. */
const VIEWS = /^\/(?:(?:hosts|clusters|zones)(?:\/[^/]*)?|plan|history)?\/?$/
const RECHECK_MS = 60_000
const MAX_TARGET_LENGTH = 8_192

/** What a client is told. */
class Refusal extends Error {
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

export function pageHandler(deps: HandlerDeps): RequestListener {
  return (request, response) => {
    answer(request, response, deps).catch((error: unknown) => {
      if (response.headersSent) return void response.destroy()
      if (error instanceof Refusal) return refuse(request, response, error)
      deps.onError(error)
      refuse(request, response, new Refusal(503, 'Unavailable', 'what is asked for cannot be read now; try again'))
    })
  }
}

async function answer(request: IncomingMessage, response: ServerResponse, deps: HandlerDeps): Promise<void> {
  const { reach, scheme, assets } = deps
  const { host, origin } = request.headers
  if (!reach.isAllowed(host)) throw new Refusal(421, 'MisdirectedRequest', 'this server is not reached by that host')
  if (!isSameOrigin(origin, scheme, host)) throw new Refusal(403, 'Forbidden', 'requests of other origins are refused')
  if (request.method !== 'GET' && request.method !== 'HEAD')
    throw new Refusal(405, 'MethodNotAllowed', 'the page reads; commands write')
  const { path, query } = parseTarget(request)
  if (path === '/api' || path.startsWith('/api/')) return answerApi({ request, response, path, query }, deps)
  const asset = assets === undefined ? undefined : assetOf(path, assets)
  if (asset !== undefined) return sendAsset(request, response, asset)
  if (assets === undefined && (VIEWS.test(path) || path === '/page.js'))
    throw new Refusal(503, 'NotBuilt', 'the page is not built; run npm run build')
  throw new Refusal(404, 'NotFound', 'there is no such page')
}

function assetOf(path: string, { html, script, style, icon }: Assets): Asset | undefined {
  if (VIEWS.test(path)) return html
  return { '/page.js': script, '/page.css': style, '/icon.svg': icon, '/favicon.ico': icon }[path]
}

interface Call {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly path: string
  readonly query: URLSearchParams
}

async function answerApi(call: Call, deps: HandlerDeps): Promise<void> {
  const { request, response, path, query } = call
  const session = await sessionOf(request, deps)
  const found = deps.model()
  if (found === undefined)
    throw new Refusal(503, 'NotReady', 'the objects of the cluster have not been read yet; try again')
  const { model, pages } = found
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  const signal = AbortSignal.any([gone.signal, deps.signal])
  const rightsTo = async (questions: readonly Question[] = model.questions()): Promise<Rights> =>
    session === undefined ? ALL_RIGHTS : session.ensure(questions, signal)
  const [, , version, kind = '', name, sub, ...rest] = path.split('/')
  if (version !== 'v1' || rest.length > 0) throw new Refusal(404, 'NotFound', 'there is no such resource')
  if (kind === 'hosts' && name !== undefined && name !== '') {
    const host = decode(name).toLowerCase().replace(/\.$/, '')
    const visible = model.visibleTo(await rightsTo())
    if (sub !== undefined && sub !== 'route') throw new Refusal(404, 'NotFound', 'there is no such resource')
    const page =
      sub === 'route'
        ? await pages.route(host, query, visible, signal)
        : await pages.host(host, visible, rightsTo, signal)
    if (page === undefined) throw new Refusal(404, 'NotFound', 'no such host is known, or you may not read it')
    return sendJson(request, response, page)
  }
  if (name !== undefined) throw new Refusal(404, 'NotFound', 'there is no such resource')
  switch (kind) {
    case 'stream':
      return stream(call, session, deps, model)
    case 'state': {
      const { pieces } = model.state(model.visibleTo(await rightsTo()))
      begin(response, 200, 'application/json')
      if (request.method === 'HEAD') return void response.end()
      for (const piece of pieces) if (!(await send(response, piece, signal))) return
      return void response.end()
    }
    case 'plan':
      return sendJson(request, response, await pages.plan(model.visibleTo(await rightsTo()), await rightsTo(), signal))
    case 'records':
      return sendJson(request, response, await pages.records(query, await rightsTo(), signal))
    case 'history':
      return sendJson(request, response, model.history(model.visibleTo(await rightsTo())))
  }
  throw new Refusal(404, 'NotFound', 'there is no such resource')
}

/** Undefined: no token is needed. */
async function sessionOf(
  request: IncomingMessage,
  { needsToken, sessions }: HandlerDeps,
): Promise<Session | undefined> {
  if (!needsToken) return undefined
  const { authorization = '' } = request.headers
  const token = /^Bearer +([\x21-\x7e]+)$/i.exec(authorization)?.[1]
  const needed = new Refusal(
    401,
    'Unauthorized',
    'a bearer token of the cluster is needed, such as kubectl create token',
  )
  if (token === undefined) throw needed
  const session = await sessions.of(token)
  if (session === undefined) throw new Refusal(401, 'Unauthorized', 'the token is not valid, or has expired')
  return session
}

async function stream(
  { request, response }: Call,
  session: Session | undefined,
  deps: HandlerDeps,
  model: Model,
): Promise<void> {
  let rights = session === undefined ? ALL_RIGHTS : await session.ensure(model.questions(), deps.signal)
  let lastId = request.headers['last-event-id']?.toString()
  response.setHeader('x-accel-buffering', 'no')
  begin(response, 200, 'text/event-stream')
  if (request.method === 'HEAD') return void response.end()
  response.flushHeaders()
  request.socket.setNoDelay(true)
  while (!deps.signal.aborted && !response.destroyed) {
    const changed = new AbortController()
    const recheck = (): void => {
      rightsNow(request, deps, model).then(
        (now) => {
          if (now === undefined || now.key !== rights.key) changed.abort(now)
        },
        // The API server is away: what was allowed a minute ago is shown, and no new data comes.
        () => undefined,
      )
    }
    const timer = session === undefined ? undefined : setInterval(recheck, deps.recheckMs ?? RECHECK_MS)
    await model.channelOf(rights).serve(response, lastId, AbortSignal.any([deps.signal, changed.signal]))
    clearInterval(timer)
    if (!changed.signal.aborted) break
    const next = await rightsNow(request, deps, model).catch(() => undefined)
    if (next === undefined) {
      response.write('event: end\ndata: {"message":"the token is not valid any more"}\n\n')
      break
    }
    rights = next
    lastId = undefined
  }
  response.end()
}

/** Undefined: the token is not valid any more. */
async function rightsNow(request: IncomingMessage, deps: HandlerDeps, model: Model): Promise<Rights | undefined> {
  const session = await sessionOf(request, deps).catch((error: unknown) => {
    if (error instanceof Refusal) return 'refused' as const
    throw error
  })
  if (session === 'refused') return undefined
  return session === undefined ? ALL_RIGHTS : session.ensure(model.questions(), deps.signal)
}

/** A request target may be any text, including `//`: it is split, not parsed as a URL. */
function parseTarget({ url = '' }: IncomingMessage): { readonly path: string; readonly query: URLSearchParams } {
  if (url.length > MAX_TARGET_LENGTH) throw new Refusal(414, 'URITooLong', 'the target of the request is too long')
  const at = url.indexOf('?')
  const path = at < 0 ? url : url.slice(0, at)
  return { path, query: new URLSearchParams(at < 0 ? '' : url.slice(at + 1)) }
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    throw new Refusal(400, 'BadRequest', 'the path is not percent-encoded UTF-8')
  }
}

function begin(response: ServerResponse, status: number, type: string): void {
  response.writeHead(status, { ...HEADERS, 'content-type': type, 'cache-control': 'no-store' })
}

function sendJson(request: IncomingMessage, response: ServerResponse, value: unknown): void {
  begin(response, 200, 'application/json')
  response.end(request.method === 'HEAD' ? undefined : JSON.stringify(value))
}

function sendAsset({ method, headers }: IncomingMessage, response: ServerResponse, { body, type, etag }: Asset): void {
  const common = { ...HEADERS, etag, 'cache-control': 'no-cache' }
  if (headers['if-none-match'] === etag) return void response.writeHead(304, common).end()
  response.writeHead(200, { ...common, 'content-type': type, 'content-length': body.length })
  response.end(method === 'HEAD' ? undefined : body)
}

function refuse({ method, url = '' }: IncomingMessage, response: ServerResponse, refusal: Refusal): void {
  const { status, code, message } = refusal
  if (status === 405) response.setHeader('allow', 'GET, HEAD')
  if (status === 401) response.setHeader('www-authenticate', 'Bearer')
  // A body is not read.
  if (status === 405 || status === 421) response.setHeader('connection', 'close')
  const isApi = url.startsWith('/api')
  begin(response, status, isApi ? 'application/json' : 'text/plain; charset=utf-8')
  const text = isApi ? JSON.stringify({ apiVersion: API_VERSION, kind: 'Error', code, message }) : `${message}\n`
  response.end(method === 'HEAD' ? undefined : text)
}
