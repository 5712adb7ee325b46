/**
 * The built-in proxy: serves the IR with nothing but Node.
 *
 * Flow: `apply` swaps the route table; requests that arrive afterwards use it, requests in flight end as they began.
 * Guarantees: ports open only after the first `apply`; no configuration closes an established connection, also not one that
 * removes a listener; `close` announces the end on every connection before it closes idle ones, and lets requests in flight finish
 * within the grace period.
 */
import { ServerResponse } from 'node:http'
import type { Server, Socket } from 'node:net'
import {
  addressGuard,
  ConnectionTable,
  systemClock,
  type AddressGuard,
  type Clock,
  type ConnectionLimits,
} from '@seamark/kube'
import type { EndpointSource } from '../ir/endpoint.ts'
import {
  addressOf,
  listenerIdOf,
  parseListenerId,
  type ListenAddress,
  type ListenAddresses,
  type ListenerId,
  type PortFaults,
  type ProxyAddresses,
} from '../ir/listen-addresses.ts'
import type { Certificate, Ir, Route } from '../ir/model.ts'
import { matchKey } from '../ir/route-order.ts'
import type { DataPlaneCounters } from '../ir/data-plane.ts'
import { PROXY_LIMITS } from './listen/client-connections.ts'
import { Clusters } from './upstream/clusters.ts'
import { Fronts } from './listen/fronts.ts'
import { handleRequest, handleUpgrade, type HandlerDeps } from './handler.ts'
import { guardedLookup } from './upstream/guarded-lookup.ts'
import { HealthChecks } from './upstream/health.ts'
import { ReplayBudget, type ReplayLimits } from './upstream/replay-budget.ts'
import { connectionOf, isGone, type ProxyResponse } from './request/exchange.ts'
import { RequestBudget, type RequestLimits } from './request/request-budget.ts'
import { RateLimits } from './request/local-policy.ts'
import { createPlainFront } from './listen/plain-front.ts'
import { RequestTurns } from './listen/request-turns.ts'
import { createRouteTable, ListenerTable } from './request/route-table.ts'
import { createTlsFront } from './listen/tls-front.ts'
import { tunnelTcp } from './upstream/tunnel.ts'
import { Upstreams } from './upstream/upstream.ts'

export interface ProxyOptions extends ListenAddresses {
  readonly endpoints: EndpointSource
  /** Checks what names of backends resolve to. @default loopback, link-local and metadata addresses are refused */
  readonly isRefused?: AddressGuard
  readonly clock?: Clock
  readonly random?: () => number
  /** All header fields of a request together. @default 60 KiB */
  readonly maxHeaderBytes?: number
  /** Of the connections of clients. @default 10 000, 5 000 of an address, 15 s for a header, 60 s between requests */
  readonly limits?: Partial<ConnectionLimits>
  /** Of bodies that are kept for retries and mirrors. @default 64 MiB, 4 MiB of a connection */
  readonly replayLimits?: ReplayLimits
  /** Of requests in flight. @default 10 000 with 64 MiB of header fields, half of it of an address */
  readonly requestLimits?: RequestLimits
  /** Called when the listeners that cannot be bound change; the main ones are not among them, `listen` rejects. */
  readonly onPortFaults?: (faults: PortFaults) => void
  /** Called for each request that is answered with 500 because of the cost of its conditions, with the route that took most steps. */
  readonly onRegexExceeded?: (route: Route) => void
}

/** Of a stop, for clients to send their next request, which is answered with the end of the connection. */
const ANNOUNCE_MS = 1_000

export interface Proxy {
  apply(ir: Ir): void
  /** Opens the ports; call after the first `apply`. Those of Gateways besides the main ones follow the configuration. */
  listen(): Promise<ProxyAddresses>
  readonly addresses: ProxyAddresses
  /** Where the listener of another port of a Gateway is bound; undefined if it is not. */
  addressOf(id: ListenerId): ListenAddress | undefined
  counters(): Required<Pick<DataPlaneCounters, 'answers' | 'connections'>>
  close(graceMs?: number): Promise<void>
}

/** From 200 on; `other` is what no RFC has. */
const STATUS_CLASSES = ['2xx', '3xx', '4xx', '5xx', 'other']
const EMPTY: Ir = { listeners: [], clusters: [], certificates: [] }
/** Of a listener that was removed and has established connections. */
const NO_HOSTS = new ListenerTable({ protocol: 'http', hosts: [] })

export function createProxy(options: ProxyOptions): Proxy {
  const { clock = systemClock, random = Math.random, maxHeaderBytes = 61_440 } = options
  const limits = { ...PROXY_LIMITS, ...options.limits }
  let table = createRouteTable(EMPTY)
  let certificates: ReadonlyMap<string, Certificate> = new Map()
  let isConfigured = false
  const addresses: { http?: ListenAddress; https?: ListenAddress } = {}
  const clusters = new Clusters(options.endpoints, random)
  const lookup = guardedLookup(options.isRefused ?? addressGuard())
  const upstreams = new Upstreams(lookup)
  const health = new HealthChecks(clusters, clock, lookup)
  const rateLimits = new RateLimits(clock)
  const { onRegexExceeded } = options
  const deps = {
    clusters,
    upstreams,
    lookup,
    replays: new ReplayBudget(options.replayLimits),
    budget: new RequestBudget(options.requestLimits),
    clock,
    random,
    rateLimits,
    ...(onRegexExceeded !== undefined && { onRegexExceeded }),
  }
  const sockets = new Set<Socket>()
  /** Requests that were answered in full, by class of the status. */
  const answers = new Map<string, number>(STATUS_CLASSES.map((each) => [each, 0]))
  function countAnswer(this: ProxyResponse): void {
    const statusClass = STATUS_CLASSES[Math.floor(this.statusCode / 100) - 2] ?? 'other'
    answers.set(statusClass, (answers.get(statusClass) ?? 0) + 1)
  }

  const turns = new RequestTurns()
  const handle: typeof handleRequest = (own, protocol, request, response) => {
    response.once('finish', countAnswer)
    // A client that goes away before its turn, or in the middle of its request.
    request.on('error', () => undefined)
    response.on('error', () => undefined)
    turns.run(connectionOf(request), () => {
      if (isGone(request)) return
      // So that the client sends its next request elsewhere, and none into a connection that is being closed.
      if (isEnding && response instanceof ServerResponse) response.shouldKeepAlive = false
      handleRequest(own, protocol, request, response)
    })
  }

  const connections = new ConnectionTable(limits)

  function createFront(id: ListenerId): Server {
    const { protocol } = parseListenerId(id)
    const ownTable: HandlerDeps['table'] =
      id === 'http' || id === 'https' ? () => table[id] : () => table.find(id) ?? NO_HOSTS
    const own: HandlerDeps = { ...deps, table: ownTable }
    const server =
      protocol === 'http'
        ? createPlainFront({
            connections,
            maxHeaderBytes,
            keepAliveTimeoutMs: limits.idleTimeoutMs,
            onRequest: (request, response) => handle(own, 'http', request, response),
            onUpgrade: (request, socket, head) => handleUpgrade(own, 'http', request, socket, head),
          })
        : createTlsFront({
            connections,
            turns,
            limits: { maxHeaderBytes },
            findHost: (name) => ownTable().find(name)?.host,
            findCertificate: (name) => certificates.get(name),
            onRequest: (request, response) => handle(own, 'https', request, response),
            onUpgrade: (request, socket, head) => handleUpgrade(own, 'https', request, socket, head),
            onTunnel: (socket, host) => tunnelTcp(deps, socket, host.tcp ?? { backends: [] }),
          })
    server.on('connection', (socket: Socket) => {
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket))
    })
    return server
  }

  const fronts = new Fronts({
    create: createFront,
    addressOf: (id) => addressOf(options, parseListenerId(id)),
    clock,
    onFaults: (faults) => options.onPortFaults?.(faults),
  })
  let isOpen = false
  let isEnding = false
  let otherListeners: ReadonlySet<ListenerId> = new Set()

  return {
    addresses,
    addressOf: (id) => fronts.addressOf(id),
    apply(ir) {
      isConfigured = true
      clusters.update(ir.clusters)
      certificates = new Map(ir.certificates.map((each) => [each.name, each]))
      table = createRouteTable(ir)
      rateLimits.retain(limitKeys(ir))
      health.update()
      otherListeners = new Set(ir.listeners.filter(({ port }) => port !== undefined).map(listenerIdOf))
      if (isOpen) void fronts.update(otherListeners)
    },
    async listen() {
      if (!isConfigured) throw new Error('the proxy has no configuration yet and must not answer')
      for (const id of ['http', 'https'] as const) {
        const address = options[id]
        if (address !== undefined) addresses[id] = await fronts.openMain(createFront(id), address)
      }
      isOpen = true
      await fronts.update(otherListeners)
      return addresses
    },
    counters: () => ({ answers, connections: sockets.size }),
    async close(graceMs = 2_000) {
      health.close()
      isOpen = false
      isEnding = true
      const closed = fronts.close()
      const within = async (ms: number) =>
        Promise.race([closed, new Promise<void>((resolve) => clock.after(ms, resolve))])
      connections.announceEnd()
      const announceMs = Math.min(ANNOUNCE_MS, graceMs)
      await within(announceMs)
      connections.closeIdle()
      await within(graceMs - announceMs)
      for (const socket of sockets) socket.destroy()
      connections.close()
      upstreams.close()
      await closed
    },
  }
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
