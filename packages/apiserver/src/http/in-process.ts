/**
 * The in-process transport: the same requests and responses without sockets, as a function with the signature of
 * `fetch`.
 */
import type { ApiRequest, ApiResponse, UserInfo } from '../exchange/exchange.ts'

/** Handles requests whose body has been read. */
export type Answer = (request: ApiRequest) => Promise<ApiResponse>

/** `fetch` against the server: the host of the URL is ignored. */
export type InProcessFetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>

/** The host is ignored. */
const BASE = 'http://in-process'

interface Received {
  readonly request: ApiRequest
  readonly signal: AbortSignal
}

/** A `Request` costs more than the server's work on it, so one is made only for what needs it: a body in an uncommon form. */
async function toRequest(
  input: string | URL | Request,
  init: RequestInit | undefined,
  identity: UserInfo,
): Promise<Received> {
  const body = init?.body ?? undefined
  const isBytes = body === undefined || typeof body === 'string' || body instanceof Uint8Array
  if (input instanceof Request || !isBytes) {
    const whatwg = new Request(input instanceof Request ? input : new URL(input, BASE), init)
    return fromRequest(whatwg, init, identity)
  }
  const headers = new Headers(init?.headers)
  if (typeof body === 'string' && !headers.has('content-type')) headers.set('content-type', 'text/plain;charset=UTF-8')
  return {
    request: describeRequest(init?.method ?? 'GET', new URL(input, BASE), headers, bytesOf(body), identity),
    signal: init?.signal ?? new AbortController().signal,
  }
}

async function fromRequest(whatwg: Request, init: RequestInit | undefined, identity: UserInfo): Promise<Received> {
  const body = Buffer.from(await whatwg.arrayBuffer())
  return {
    request: describeRequest(whatwg.method, new URL(whatwg.url), whatwg.headers, body, identity),
    signal: init?.signal ?? whatwg.signal,
  }
}

function bytesOf(body: string | Uint8Array | undefined): Buffer {
  if (body === undefined) return Buffer.alloc(0)
  return typeof body === 'string' ? Buffer.from(body) : Buffer.from(body.buffer, body.byteOffset, body.byteLength)
}

function describeRequest(method: string, url: URL, headers: Headers, body: Buffer, identity: UserInfo): ApiRequest {
  return {
    method: method.toUpperCase(),
    path: url.pathname,
    query: url.searchParams,
    headers: Object.fromEntries(headers),
    body,
    identity,
  }
}

export function createFetch(answer: Answer, identity: UserInfo): InProcessFetch {
  return async (input, init) => {
    const { request, signal } = await toRequest(input, init, identity)
    signal.throwIfAborted()
    let response: ApiResponse
    try {
      response = await answer(request)
    } catch (error) {
      // The error of fetch for a broken connection.
      throw new TypeError('fetch failed', { cause: error })
    }
    signal.throwIfAborted()
    const headers = new Headers()
    for (const [name, value] of Object.entries(response.headers)) {
      for (const one of Array.isArray(value) ? value : [value]) headers.append(name, one)
    }
    const { status } = response
    if (response.kind === 'whole') {
      const hasBody = status !== 204 && status !== 304 && request.method !== 'HEAD'
      const body = hasBody ? Buffer.concat(response.body) : null
      return new Response(body, { status, headers })
    }
    return new Response(toReadable(response, signal), { status, headers })
  }
}

function toReadable(
  response: Extract<ApiResponse, { kind: 'stream' }>,
  signal: AbortSignal,
): ReadableStream<Uint8Array> {
  let stop: (() => void) | undefined
  let buffered = 0
  let isOver = false
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const finish = (error?: unknown): void => {
          if (isOver) return
          isOver = true
          if (error === undefined) controller.close()
          else controller.error(error)
          stop?.()
        }
        stop = response.start({
          write(chunk) {
            if (isOver) return
            buffered = Math.max(0, -(controller.desiredSize ?? 0))
            controller.enqueue(chunk)
          },
          get bufferedBytes() {
            return buffered
          },
          end: () => finish(),
          abort: () => finish(new TypeError('terminated')),
        })
        if (isOver) stop()
        signal.addEventListener('abort', () => finish(signal.reason), { once: true })
      },
      cancel() {
        isOver = true
        stop?.()
      },
    },
    { highWaterMark: 0, size: (chunk) => chunk?.byteLength ?? 0 },
  )
}
