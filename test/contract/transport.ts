/**
 * Transports of contract cases: in process, HTTP, HTTPS with HTTP/2 (also for the shipped program and a real
 * kube-apiserver). Each is one function from request to response.
 */
import { connect, type ClientHttp2Session, constants } from 'node:http2'
import type { ApiServer } from '@seamark/apiserver'

interface RawRequest {
  readonly method: string
  /** Including the query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | undefined
  readonly signal: AbortSignal
}

export interface RawReply {
  readonly status: number
  readonly headers: ReadonlyMap<string, readonly string[]>
  readonly body: AsyncIterable<Uint8Array>
}

export interface Transport {
  send(request: RawRequest): Promise<RawReply>
  close(): Promise<void>
}

function fromFetch(
  fetchLike: (path: string, init: RequestInit) => Promise<Response>,
  close: () => Promise<void>,
): Transport {
  return {
    async send({ method, path, headers, body, signal }) {
      const init: RequestInit = {
        method,
        headers,
        signal,
        ...(body !== undefined && { body: new Uint8Array(body) }),
      }
      const response = await fetchLike(path, init)
      const all = new Map<string, string[]>()
      for (const [name, value] of response.headers)
        all.set(name, [...(all.get(name) ?? []), ...(name === 'warning' ? splitWarnings(value) : [value])])
      return { status: response.status, headers: all, body: response.body ?? empty() }
    },
    close,
  }
}

/** fetch joins repeated headers with a comma. */
function splitWarnings(value: string): string[] {
  return value.split(/, (?=299 - ")/)
}

async function* empty(): AsyncGenerator<Uint8Array> {
  // No body.
}

export function inProcess(server: ApiServer): Transport {
  return fromFetch(
    async (path, init) => await server.fetch(path, init),
    async () => undefined,
  )
}

export function http(url: string): Transport {
  return fromFetch(
    async (path, init) => await fetch(`${url}${path}`, init),
    async () => undefined,
  )
}

export interface Credentials {
  readonly ca: string
  readonly cert?: string
  readonly key?: string
}

export function http2(url: string, credentials: Credentials): Transport {
  const session: ClientHttp2Session = connect(url, { ...credentials, settings: { initialWindowSize: 4 * 1024 * 1024 } })
  session.on('error', () => undefined)
  return {
    async send({ method, path, headers, body, signal }) {
      const stream = session.request(
        { ':method': method, ':path': path, ...headers },
        { endStream: body === undefined },
      )
      stream.on('error', () => undefined)
      signal.addEventListener('abort', () => stream.close(constants.NGHTTP2_CANCEL), { once: true })
      if (body !== undefined) stream.end(body)
      return await new Promise((resolve, reject) => {
        stream.once('error', reject)
        stream.once('close', () => reject(new Error('the stream closed without an answer')))
        stream.once('response', (answer) => {
          const all = new Map<string, string[]>()
          for (const [name, value] of Object.entries(answer)) {
            if (value === undefined || name.startsWith(':')) continue
            const values = Array.isArray(value) ? value : [value]
            all.set(name, name === 'warning' ? values.flatMap(splitWarnings) : values)
          }
          resolve({ status: Number(answer[':status']), headers: all, body: stream })
        })
      })
    },
    async close() {
      session.destroy()
    },
  }
}

/** Adds `headers` to every request that does not set them itself. */
export function withHeaders(transport: Transport, headers: Readonly<Record<string, string>>): Transport {
  return {
    send: async (request) => await transport.send({ ...request, headers: { ...headers, ...request.headers } }),
    close: async () => await transport.close(),
  }
}
