/**
 * The built-in proxy: serves the IR with nothing but Node.
 *
 * Flow: `apply` swaps the route table; requests that arrive afterwards use it, requests in flight end as they began.
 * Guarantees: ports open only after the first `apply`; no configuration closes an established connection; `close` lets
 * requests in flight finish within the grace period.
 */
import type { AddressInfo, Server, Socket } from 'node:net'
import { addressGuard, systemClock, type AddressGuard, type Clock } from '@seamark/kube'
import type { Certificate, Ir } from '../ir/model.ts'
import { matchKey } from '../ir/route-order.ts'
import { ClientConnections } from './client-connections.ts'
import { Clusters, type EndpointSource } from './clusters.ts'
import { handleRequest, handleUpgrade, type HandlerDeps } from './handler.ts'
import { guardedLookup } from './guarded-lookup.ts'
import { HealthChecks } from './health.ts'
import { RateLimits } from './local-policy.ts'
import { createPlainFront } from './plain-front.ts'
import { createRouteTable } from './route-table.ts'
import { createTlsFront } from './tls-front.ts'
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
  /** Checks what names of backends resolve to. @default loopback, link-local and metadata addresses are refused */
  readonly isRefused?: AddressGuard
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

/** Of connections without a request. */
const IDLE_TIMEOUT_MS = 60_000

const EMPTY: Ir = { listeners: [], clusters: [], certificates: [] }

export function createProxy(options: ProxyOptions): Proxy {
  const { clock = systemClock, random = Math.random, maxHeaderBytes = 61_440, headersTimeoutMs = 15_000 } = options
  let table = createRouteTable(EMPTY)
  let certificates: ReadonlyMap<string, Certificate> = new Map()
  let isConfigured = false
  const addresses: { http?: ListenAddress; https?: ListenAddress } = {}
  const clusters = new Clusters(options.endpoints, random)
  const lookup = guardedLookup(options.isRefused ?? addressGuard())
  const upstreams = new Upstreams(lookup)
  const health = new HealthChecks(clusters, clock, lookup)
  const rateLimits = new RateLimits(clock)
  const deps: HandlerDeps = { clusters, upstreams, lookup, clock, random, rateLimits, table: () => table }
  const sockets = new Set<Socket>()

  const connections = new ClientConnections({ headersTimeoutMs, idleTimeoutMs: IDLE_TIMEOUT_MS })
  const http =
    options.http === undefined
      ? undefined
      : createPlainFront({
          connections,
          maxHeaderBytes,
          keepAliveTimeoutMs: IDLE_TIMEOUT_MS,
          onRequest: (request, response) => handleRequest(deps, 'http', request, response),
          onUpgrade: (request, socket, head) => handleUpgrade(deps, 'http', request, socket, head),
        })
  const https =
    options.https === undefined
      ? undefined
      : createTlsFront({
          connections,
          limits: { maxHeaderBytes, helloTimeoutMs: headersTimeoutMs },
          findHost: (name) => table.https.find(name)?.host,
          findCertificate: (name) => certificates.get(name),
          onRequest: (request, response) => handleRequest(deps, 'https', request, response),
          onUpgrade: (request, socket, head) => handleUpgrade(deps, 'https', request, socket, head),
          onTunnel: (socket, host) => tunnelTcp(deps, socket, host.tcp ?? { backends: [] }),
        })
  for (const server of [http, https])
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
      if (https !== undefined && options.https !== undefined) addresses.https = await open(https, options.https)
      return addresses
    },
    async close(graceMs = 2_000) {
      health.close()
      const closed = Promise.all([http, https].map(async (server) => server !== undefined && shut(server)))
      connections.closeIdle()
      await Promise.race([closed, new Promise<void>((resolve) => clock.after(graceMs, resolve))])
      for (const socket of sockets) socket.destroy()
      connections.close()
      upstreams.close()
      await closed
    },
  }
}

async function open(server: Server, { host, port }: ListenAddress): Promise<ListenAddress> {
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

async function shut(server: Server): Promise<void> {
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
