/**
 * The built-in proxy: serves the IR with nothing but Node.
 *
 * Flow: `apply` swaps the route table; requests that arrive afterwards use it, requests in flight end as they began.
 * Guarantees: ports open only after the first `apply`; no configuration closes an established connection; `close` lets
 * requests in flight finish within the grace period.
 */
import { createServer as createHttpServer, type Server as HttpServer } from 'node:http'
import type { AddressInfo, Server, Socket } from 'node:net'
import { systemClock, type Clock } from '@seamark/kube'
import type { Certificate, Ir } from '../ir/model.ts'
import { matchKey } from '../ir/route-order.ts'
import { Clusters, type EndpointSource } from './clusters.ts'
import { handleRequest, handleUpgrade, type HandlerDeps } from './handler.ts'
import { HealthChecks } from './health.ts'
import { RateLimits } from './local-policy.ts'
import { createRouteTable } from './route-table.ts'
import { createTlsFront, type TlsFront } from './tls-front.ts'
import { tunnelTcp } from './tunnel.ts'
import { Upstreams } from './upstream.ts'

export interface ListenAddress {
  readonly host: string
  readonly port: number
}

export interface ProxyOptions {
  readonly http?: ListenAddress
  readonly https?: ListenAddress
  readonly endpoints: EndpointSource
  readonly clock?: Clock
  readonly random?: () => number
  /** All header fields of a request together. @default 60 KiB */
  readonly maxHeaderBytes?: number
  /** Time for a client to send its header fields. @default 15 s */
  readonly headersTimeoutMs?: number
}

export interface Proxy {
  apply(ir: Ir): void
  /** Opens the ports; call after the first `apply`. */
  listen(): Promise<ProxyAddresses>
  readonly addresses: ProxyAddresses
  close(graceMs?: number): Promise<void>
}

export interface ProxyAddresses {
  readonly http?: ListenAddress
  readonly https?: ListenAddress
}

const EMPTY: Ir = { listeners: [], clusters: [], certificates: [] }

export function createProxy(options: ProxyOptions): Proxy {
  const { clock = systemClock, random = Math.random } = options
  const limits = {
    maxHeaderBytes: options.maxHeaderBytes ?? 61_440,
    headersTimeoutMs: options.headersTimeoutMs ?? 15_000,
    helloTimeoutMs: options.headersTimeoutMs ?? 15_000,
  }
  let table = createRouteTable(EMPTY)
  let certificates: ReadonlyMap<string, Certificate> = new Map()
  let isConfigured = false
  const addresses: { http?: ListenAddress; https?: ListenAddress } = {}
  const clusters = new Clusters(options.endpoints, random)
  const upstreams = new Upstreams()
  const health = new HealthChecks(clusters, clock)
  const rateLimits = new RateLimits(clock)
  const deps: HandlerDeps = { clusters, upstreams, clock, random, rateLimits, table: () => table }
  const sockets = new Set<Socket>()

  const http: HttpServer | undefined =
    options.http === undefined
      ? undefined
      : createHttpServer(
          { maxHeaderSize: limits.maxHeaderBytes, requireHostHeader: true, noDelay: true },
          (request, response) => handleRequest(deps, 'http', request, response),
        )
  if (http !== undefined) {
    http.headersTimeout = limits.headersTimeoutMs
    http.requestTimeout = 0
    http.keepAliveTimeout = 60_000
    // Counted in readExchange: Node would silently drop the fields beyond its limit.
    http.maxHeadersCount = 0
    http.on('upgrade', (request, socket, head) => handleUpgrade(deps, 'http', request, socket, head))
    http.on('connect', (_request, socket) => socket.destroy())
  }
  const tls: TlsFront | undefined =
    options.https === undefined
      ? undefined
      : createTlsFront({
          limits,
          findHost: (name) => table.https.find(name)?.host,
          findCertificate: (name) => certificates.get(name),
          onRequest: (request, response) => handleRequest(deps, 'https', request, response),
          onUpgrade: (request, socket, head) => handleUpgrade(deps, 'https', request, socket, head),
          onTunnel: (socket, host) => tunnelTcp(deps, socket, host.tcp?.backends ?? []),
        })
  for (const server of [http, tls?.server])
    server?.on('connection', (socket: Socket) => {
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket))
    })

  return {
    addresses,
    apply(ir) {
      isConfigured = true
      clusters.update(ir.clusters)
      certificates = new Map(ir.certificates.map((each) => [each.name, each]))
      table = createRouteTable(ir)
      rateLimits.retain(limitKeys(ir))
      health.update()
    },
    async listen() {
      if (!isConfigured) throw new Error('the proxy has no configuration yet and must not answer')
      if (http !== undefined && options.http !== undefined) addresses.http = await open(http, options.http)
      if (tls !== undefined && options.https !== undefined) addresses.https = await open(tls.server, options.https)
      return addresses
    },
    async close(graceMs = 2_000) {
      health.close()
      const closed = Promise.all([http, tls?.server].map(async (server) => server !== undefined && shut(server)))
      http?.closeIdleConnections()
      for (const each of tls?.secureServers() ?? []) closeIdle(each)
      await Promise.race([closed, new Promise<void>((resolve) => clock.after(graceMs, resolve))])
      for (const socket of sockets) socket.destroy()
      upstreams.close()
      await closed
    },
  }
}

function closeIdle(server: object): void {
  const { closeIdleConnections } = server as { closeIdleConnections?: () => void }
  closeIdleConnections?.call(server)
}

async function open(server: Server | HttpServer, { host, port }: ListenAddress): Promise<ListenAddress> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, () => {
      server.off('error', reject)
      resolve()
    })
  })
  const address = server.address() as AddressInfo
  return { host: address.address, port: address.port }
}

async function shut(server: Server | HttpServer): Promise<void> {
  if (!server.listening) return
  await new Promise<void>((resolve) => server.close(() => resolve()))
}

function limitKeys(ir: Ir): ReadonlySet<string> {
  const keys = new Set<string>()
  for (const { hosts } of ir.listeners)
    for (const { host, rateLimit, routes } of hosts) {
      if (rateLimit !== undefined) keys.add(host)
      for (const route of routes) if (route.rateLimit !== undefined) keys.add(`${host} ${matchKey(route.match)}`)
    }
  return keys
}
