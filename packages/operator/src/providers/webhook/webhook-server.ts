/**
 * Serves one of our providers to ExternalDNS through its webhook protocol.
 *
 * ExternalDNS has its own plan and registry, so no guards apply here. The server accepts only names of the served zones
 * and bodies of bounded size, processes one request of changes at a time, compares before each write, and never changes a
 * set that the protocol cannot represent (an alias, a routing policy, a key of another writer). Large requests
 * are processed in slices, so that other requests are answered meanwhile.
 *
 * The protocol has no authentication. The server listens on loopback by default, and a web page in a browser of the same
 * machine cannot use it: requests with an `Origin` are refused (cross-site requests), as are those for an unknown host
 * name (DNS rebinding) and bodies of a type that a page may send without a preflight request.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, isIP } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { ProviderError } from '../../rrset/error.ts'
import { isWithin, type ObservedRRset, sameValues, setKey, shown } from '../../rrset/rrset.ts'
import type { SetChange } from '../../rrset/set-change.ts'
import type { Provider, ProviderZone } from '../provider.ts'
import {
  changesSchema,
  endpointSchema,
  fromEndpoint,
  MEDIA_TYPE,
  toEndpoint,
  unparsedEndpointsSchema,
  type WebhookEndpoint,
} from './webhook-endpoint.ts'

export interface WebhookServerOptions {
  readonly provider: Provider
  readonly listen: { readonly address: string; readonly port: number }
  /** Zones to serve, by name. @default all of the provider */
  readonly zones?: readonly string[]
  readonly defaultTtl?: number
  /** Accepted host names of requests, beside localhost and IP addresses. @default none */
  readonly hosts?: readonly string[]
  /** Called with each failure, for the log: the response of the protocol is only a status. */
  readonly onError?: (error: unknown) => void
}

export interface WebhookServer {
  readonly url: string
  close(): Promise<void>
}

/** Bytes of one body: some 200 000 changes. */
export const MAX_BODY = 32 * 1024 * 1024
/** Bytes of all bodies whose requests are not answered yet: requests of changes wait for each other. */
export const MAX_BODIES = 64 * 1024 * 1024
/** Changes that are processed in one turn of the event loop: some milliseconds. */
const SLICE = 500
/** Types that a page of another origin cannot send without a preflight request, which this server never grants. */
const BODY_TYPES: ReadonlySet<string> = new Set(['application/external.dns.webhook+json', 'application/json'])

interface RequestedChange {
  readonly from?: ObservedRRset
  readonly to?: ObservedRRset
}

export async function startWebhookServer(options: WebhookServerOptions): Promise<WebhookServer> {
  const { provider, defaultTtl = 300 } = options
  const stopping = new AbortController()
  let tail: Promise<unknown> = Promise.resolve()
  let bodyBytes = 0

  /** Reads the body, and counts it until `work` is done. */
  const withBody = async (request: IncomingMessage, work: (body: unknown) => Promise<void>): Promise<void> => {
    let counted = 0
    const count = (bytes: number): void => {
      if (bodyBytes + bytes > MAX_BODIES)
        throw new ProviderError('Throttled', 'later', 'too many bytes of requests wait for an answer')
      bodyBytes += bytes
      counted += bytes
    }
    try {
      await work(await readJson(request, count))
    } finally {
      bodyBytes -= counted
    }
  }
  const servedZones = async (): Promise<ProviderZone[]> => {
    const all = await provider.zones(stopping.signal)
    return all.filter(({ name }) => options.zones?.includes(name) ?? true)
  }
  const zoneOf = (name: string, zones: readonly ProviderZone[]): ProviderZone => {
    const found = zones.filter((zone) => isWithin(name, zone.name)).sort((a, b) => b.name.length - a.name.length)[0]
    if (found === undefined)
      throw new ProviderError('NoMatchingZone', 'rejected', `${name} is in no zone that is served here`)
    return found
  }
  const listRecords = async (): Promise<WebhookEndpoint[]> => {
    const endpoints: WebhookEndpoint[] = []
    for (const zone of await servedZones()) {
      const sets = await provider.read(zone, 'all', stopping.signal)
      for (const set of sets) if (set.opaque === undefined && set.type !== 'SOA') endpoints.push(toEndpoint(set))
    }
    return endpoints
  }
  const applyChanges = async (body: unknown): Promise<void> => {
    const changes = changesSchema.parse(body)
    const zones = await servedZones()
    const byZone = new Map<ProviderZone, RequestedChange[]>()
    const collect = async (list: readonly unknown[] | null | undefined, side: 'from' | 'to') => {
      await eachSlice(list ?? [], (item) => {
        const set = fromEndpoint(endpointSchema.parse(item), defaultTtl)
        const zone = zoneOf(set.name, zones)
        const ofZone = byZone.get(zone)
        if (ofZone === undefined) byZone.set(zone, [{ [side]: set }])
        else ofZone.push({ [side]: set })
      })
    }
    await collect(changes.create, 'to')
    await collect(changes.updateNew, 'to')
    await collect(changes.delete, 'from')
    const opaque: string[] = []
    for (const [zone, list] of byZone) opaque.push(...(await applyToZone(zone, list)))
    if (opaque.length > 0)
      throw new ProviderError(
        'BaseMoved',
        'moved',
        `not changed: ${opaque.slice(0, 10).join(', ')}; remove it from the zone, or exclude the name in ExternalDNS`,
      )
  }
  /** Returns the sets that must not be changed. */
  const applyToZone = async (zone: ProviderZone, list: readonly RequestedChange[]): Promise<string[]> => {
    const names = new Set(list.map(({ from, to }) => (to ?? from)?.name ?? ''))
    const present = new Map((await provider.read(zone, names, stopping.signal)).map((set) => [setKey(set), set]))
    const batch: SetChange[] = []
    const opaque: string[] = []
    for (const { from, to } of list) {
      const subject = to ?? from
      const there = subject === undefined ? undefined : present.get(setKey(subject))
      if (there?.opaque !== undefined) opaque.push(`${setKey(there)} is ${there.opaque}`)
      else if (to !== undefined) batch.push({ from: there, to })
      // A delete contains the expected values; a set with other values is not the intended one.
      else if (there !== undefined && from !== undefined && sameValues(there.values, from.values))
        batch.push({ from: there, to: undefined })
    }
    let processed = 0
    for (let at = 0; at < batch.length;) {
      const part = firstPart(batch, at)
      await provider.apply(zone, part, stopping.signal)
      at += part.length
      processed += part.length
      if (processed >= SLICE) {
        processed = 0
        await setImmediate()
      }
    }
    return opaque
  }
  /** As many changes from `at` on as the provider accepts in one call. */
  const firstPart = (batch: readonly SetChange[], at: number): readonly SetChange[] => {
    const { isAtomic, maxChanges } = provider.capabilities
    let part = batch.slice(at, at + (isAtomic ? maxChanges : 1))
    while (part.length > 1 && provider.fits?.(part) === false) part = part.slice(0, Math.ceil(part.length / 2))
    return part
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const refusal = refusalOf(request, options.hosts ?? [])
    if (refusal !== undefined) {
      options.onError?.(new Error(refusal.why))
      // The body is not read: the connection cannot be reused.
      response.setHeader('connection', 'close')
      response.statusCode = refusal.status
      response.end()
      return
    }
    const path = (request.url ?? '/').split('?')[0]
    const send = (status: number, body?: unknown) => {
      response.statusCode = status
      if (body !== undefined) response.setHeader('content-type', MEDIA_TYPE)
      response.end(body === undefined ? undefined : JSON.stringify(body))
    }
    if (path === '/healthz') return send(200, 'ok')
    if (path === '/' && request.method === 'GET') {
      const zones = await servedZones()
      return send(200, { include: zones.map(({ name }) => name.slice(0, -1)) })
    }
    if (path === '/records' && request.method === 'GET') return send(200, await listRecords())
    if (path === '/records' && request.method === 'POST') {
      await withBody(request, async (body) => {
        const turn = tail.then(async () => applyChanges(body))
        tail = turn.catch(() => undefined)
        await turn
      })
      return send(204)
    }
    // Nothing to adjust: a provider does not change what it cannot represent.
    if (path === '/adjustendpoints' && request.method === 'POST') {
      const endpoints: WebhookEndpoint[] = []
      await withBody(request, async (body) => {
        const given = unparsedEndpointsSchema.parse(body) ?? []
        await eachSlice(given, (item) => endpoints.push(endpointSchema.parse(item)))
      })
      return send(200, endpoints)
    }
    return send(404)
  }

  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      options.onError?.(error)
      // Otherwise the unread rest of the body would be taken for the next request.
      if (!request.complete) response.setHeader('connection', 'close')
      response.statusCode = statusOf(error)
      response.end()
    })
  })
  server.requestTimeout = 30_000
  server.listen(options.listen.port, options.listen.address)
  await once(server, 'listening')
  const { address, port } = server.address() as AddressInfo
  return {
    url: `http://${address.includes(':') ? `[${address}]` : address}:${port}`,
    async close() {
      stopping.abort()
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Why a request is refused, or undefined. */
function refusalOf(
  { headers, method }: IncomingMessage,
  hosts: readonly string[],
): { readonly status: number; readonly why: string } | undefined {
  const { origin } = headers
  if (origin !== undefined || (headers['sec-fetch-site'] ?? 'none') !== 'none')
    return { status: 403, why: `a request of a web page was refused (Origin ${shown(String(origin))})` }
  const host = hostNameOf(headers.host ?? '')
  if (host !== 'localhost' && isIP(host) === 0 && !hosts.includes(host))
    return { status: 421, why: `a request for host '${shown(host)}' was refused; --host allows a name` }
  const type = (headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  if (method === 'POST' && !BODY_TYPES.has(type))
    return { status: 415, why: `a body of type '${shown(type)}' was refused; the protocol's is ${MEDIA_TYPE}` }
  return undefined
}

/** `name`, `name:port`, `[::1]:port` without port and brackets. */
function hostNameOf(host: string): string {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(host) ?? []
  return (bracketed ?? plain ?? host).toLowerCase()
}

/** Calls `work` for each item and yields to other requests after each slice. */
async function eachSlice<T>(items: readonly T[], work: (item: T) => void): Promise<void> {
  for (let at = 0; at < items.length; at += SLICE) {
    for (const item of items.slice(at, at + SLICE)) work(item)
    await setImmediate()
  }
}

/** ExternalDNS treats 4xx as permanent and retries 5xx. */
function statusOf(error: unknown): number {
  if (!(error instanceof ProviderError)) return error instanceof Error && error.name === 'ZodError' ? 400 : 500
  return error.outcome === 'rejected' ? 400 : 500
}

async function readJson(request: IncomingMessage, count: (bytes: number) => void): Promise<unknown> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    size += (chunk as Buffer).length
    count((chunk as Buffer).length)
    if (size > MAX_BODY) throw new ProviderError('RecordRejected', 'rejected', 'the body is too large')
    chunks.push(chunk as Buffer)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8')) as unknown
  } catch (cause) {
    throw new ProviderError('RecordRejected', 'rejected', 'the body is not JSON', { cause })
  }
}
