/**
 * The other direction: ExternalDNS uses one of our providers through its webhook protocol.
 *
 * ExternalDNS brings its own plan and registry, so nothing is guarded here but the edge: only names of the served zones,
 * bodies of bounded size, one change at a time per zone, and a compare before each write. Listens on loopback unless told
 * otherwise, because the protocol knows no authentication.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ProviderError } from '../rrset/error.ts'
import { isWithin, type ObservedRRset, sameValues, setKey } from '../rrset/rrset.ts'
import type { SetChange } from '../rrset/set-change.ts'
import type { Provider, ProviderZone } from './provider.ts'
import {
  changesSchema,
  endpointsSchema,
  fromEndpoint,
  MEDIA_TYPE,
  toEndpoint,
  type WebhookEndpoint,
} from './webhook-endpoint.ts'

export interface WebhookServerOptions {
  readonly provider: Provider
  readonly listen: { readonly address: string; readonly port: number }
  /** Zones to serve, by name. @default all of the provider */
  readonly zones?: readonly string[]
  readonly defaultTtl?: number
  /** What went wrong, for the log: the protocol's answer is a bare status. */
  readonly onError?: (error: unknown) => void
}

export interface WebhookServer {
  readonly url: string
  close(): Promise<void>
}

const MAX_BODY = 32 * 1024 * 1024

export async function startWebhookServer(options: WebhookServerOptions): Promise<WebhookServer> {
  const { provider, defaultTtl = 300 } = options
  const stopping = new AbortController()
  let tail: Promise<unknown> = Promise.resolve()

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
    const wanted = [
      ...(changes.create ?? []).map((endpoint) => ({ to: fromEndpoint(endpoint, defaultTtl) })),
      ...(changes.updateNew ?? []).map((endpoint) => ({ to: fromEndpoint(endpoint, defaultTtl) })),
      ...(changes.delete ?? []).map((endpoint) => ({ from: fromEndpoint(endpoint, defaultTtl) })),
    ] as { from?: ObservedRRset; to?: ObservedRRset }[]
    const byZone = new Map<ProviderZone, { from?: ObservedRRset; to?: ObservedRRset }[]>()
    for (const change of wanted) {
      const zone = zoneOf((change.to ?? change.from)?.name ?? '', zones)
      byZone.set(zone, [...(byZone.get(zone) ?? []), change])
    }
    for (const [zone, list] of byZone) await applyToZone(zone, list)
  }
  const applyToZone = async (
    zone: ProviderZone,
    list: readonly { from?: ObservedRRset; to?: ObservedRRset }[],
  ): Promise<void> => {
    const names = new Set(list.map(({ from, to }) => (to ?? from)?.name ?? ''))
    const present = new Map((await provider.read(zone, names, stopping.signal)).map((set) => [setKey(set), set]))
    const batch: SetChange[] = []
    for (const { from, to } of list) {
      const subject = to ?? from
      const there = subject === undefined ? undefined : present.get(setKey(subject))
      if (to !== undefined) batch.push({ from: there, to })
      // A delete names the values it expects; what has others is not what was meant.
      else if (there !== undefined && from !== undefined && sameValues(there.values, from.values))
        batch.push({ from: there, to: undefined })
    }
    const size = provider.capabilities.isAtomic ? provider.capabilities.maxChanges : 1
    for (let at = 0; at < batch.length; at += size)
      await provider.apply(zone, batch.slice(at, at + size), stopping.signal)
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
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
      const body = await readJson(request)
      const turn = tail.then(async () => applyChanges(body))
      tail = turn.catch(() => undefined)
      await turn
      return send(204)
    }
    // Nothing to adjust: what a provider cannot say, it leaves alone.
    if (path === '/adjustendpoints' && request.method === 'POST')
      return send(200, endpointsSchema.parse(await readJson(request)) ?? [])
    return send(404)
  }

  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      options.onError?.(error)
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

/** 4xx is permanent for ExternalDNS, 5xx is tried again. */
function statusOf(error: unknown): number {
  if (!(error instanceof ProviderError)) return error instanceof Error && error.name === 'ZodError' ? 400 : 500
  return error.outcome === 'rejected' ? 400 : 500
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    size += (chunk as Buffer).length
    if (size > MAX_BODY) throw new ProviderError('RecordRejected', 'rejected', 'the body is too large')
    chunks.push(chunk as Buffer)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8')) as unknown
  } catch (cause) {
    throw new ProviderError('RecordRejected', 'rejected', 'the body is not JSON', { cause })
  }
}
