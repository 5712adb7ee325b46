/**
 * The HTTP client of the contract suite: sends exactly the request of a case and returns the unmodified response,
 * without retries or typed objects.
 */
import type { RawReply, Transport } from './transport.ts'

/** Any JSON, without declared types: a contract case asserts its content. */
export interface Json {
  readonly [key: string]: Json
}

export interface Reply {
  readonly status: number
  readonly headers: ReadonlyMap<string, readonly string[]>
  readonly text: string
  /** Parsed body; undefined when it is not JSON. */
  readonly json: Json
  readonly warnings: readonly string[]
}

export interface Options {
  readonly headers?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>
  /** @default application/json when there is a body */
  readonly type?: string
  readonly body?: unknown
}

export interface Event {
  readonly type: string
  readonly object: Json
}

export interface Watch {
  readonly status: number
  /** The next event; undefined when the stream ended. Rejects after 10 s. */
  next(): Promise<Event | undefined>
  /** Events up to and including the first for which `isLast` returns true. */
  until(isLast: (event: Event) => boolean): Promise<Event[]>
  close(): void
}

function target(path: string, query: Options['query'] = {}): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    for (const one of Array.isArray(value) ? value : [value]) parameters.append(name, String(one))
  }
  const text = parameters.toString()
  return text === '' ? path : `${path}${path.includes('?') ? '&' : '?'}${text}`
}

function encode(body: unknown): Buffer | undefined {
  if (body === undefined) return undefined
  if (Buffer.isBuffer(body)) return body
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
}

async function readAll(reply: RawReply): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of reply.body) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

function parse(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined as unknown as Json
  }
}

export class Client {
  readonly #transport: Transport
  readonly #headers: Readonly<Record<string, string>>

  constructor(transport: Transport, headers: Readonly<Record<string, string>> = {}) {
    this.#transport = transport
    this.#headers = headers
  }

  async #send(method: string, path: string, options: Options, signal: AbortSignal): Promise<RawReply> {
    const body = encode(options.body)
    const type = options.type ?? (body === undefined ? undefined : 'application/json')
    return await this.#transport.send({
      method,
      path: target(path, options.query),
      headers: {
        'user-agent': 'contract/1.0',
        ...this.#headers,
        ...(type !== undefined && type !== '' && { 'content-type': type }),
        ...options.headers,
      },
      body,
      signal,
    })
  }

  async request(method: string, path: string, options: Options = {}): Promise<Reply> {
    const reply = await this.#send(method, path, options, AbortSignal.timeout(20_000))
    const text = await readAll(reply)
    return {
      status: reply.status,
      headers: reply.headers,
      text,
      json: parse(text),
      warnings: reply.headers.get('warning') ?? [],
    }
  }

  async watch(path: string, options: Options = {}): Promise<Watch> {
    const abort = new AbortController()
    const reply = await this.#send(
      'GET',
      path,
      { ...options, query: { watch: 'true', ...options.query } },
      abort.signal,
    )
    const events: Event[] = []
    const waiting: (() => void)[] = []
    const state = { isEnded: false }
    const wake = (): void => {
      for (const resume of waiting.splice(0)) resume()
    }
    const read = async (): Promise<void> => {
      let rest = ''
      try {
        const decoder = new TextDecoder()
        for await (const chunk of reply.body) {
          const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
          rest = lines.pop() ?? ''
          for (const line of lines) if (line !== '') events.push(JSON.parse(line) as Event)
          wake()
        }
      } catch {
        // Closed by the server or by the client.
      }
      state.isEnded = true
      wake()
    }
    const reading = read()
    const next = async (): Promise<Event | undefined> => {
      const deadline = Date.now() + 10_000
      while (events.length === 0 && !state.isEnded) {
        await new Promise<void>((resolve) => {
          waiting.push(resolve)
          setTimeout(resolve, 250).unref()
        })
        if (Date.now() > deadline && events.length === 0 && !state.isEnded) throw new Error('no event within 10 s')
      }
      return events.shift()
    }
    return {
      status: reply.status,
      next,
      async until(isLast) {
        const seen: Event[] = []
        for (;;) {
          const event = await next()
          if (event === undefined) return seen
          seen.push(event)
          if (isLast(event)) return seen
        }
      },
      close() {
        abort.abort()
        void reading
      },
    }
  }
}
