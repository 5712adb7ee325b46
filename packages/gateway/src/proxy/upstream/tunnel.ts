/** Connections that are passed on unread after they are set up: WebSockets and other upgrades, and TLS passthrough. */
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { connect, type LookupFunction, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { HOP_BY_HOP } from '../../ir/field-names.ts'
import type { TcpForwarding } from '../../ir/model.ts'
import { admit } from './admission.ts'
import type { Clusters } from './clusters.ts'
import type { HeaderMap } from '../request/header-variables.ts'
import { refuse, STATUS_TEXTS } from '../request/refusal.ts'
import { faultOf, tlsOptions } from './upstream.ts'

/** A callback of a tunnel: what it throws ends the connection and not the process. */
export function guardedTunnel<A extends unknown[]>(socket: Duplex, run: (...args: A) => void): (...args: A) => void {
  return (...args) => {
    try {
      run(...args)
    } catch {
      refuse(socket, 502)
    }
  }
}

/** Forwards a TLS connection to a backend of the host. */
export function tunnelTcp(
  { clusters, random, lookup }: { clusters: Clusters; random: () => number; lookup: LookupFunction },
  socket: Socket,
  { backends, invalidWeight = 0 }: TcpForwarding,
): void {
  const total = backends.reduce((sum, { weight }) => sum + weight, invalidWeight)
  let at = random() * total
  const backend = backends.find(({ weight }) => (at -= weight) < 0) ?? (invalidWeight > 0 ? undefined : backends.at(-1))
  const state = backend === undefined ? undefined : clusters.get(backend.cluster)
  const endpoint = state === undefined ? undefined : clusters.pick(state)
  if (state === undefined || endpoint === undefined) return void socket.destroy()
  const admitted = admit(state, endpoint, 0)
  if (admitted === 'overflow') return void socket.destroy()
  socket.once('close', admitted.release)
  const { host, port } = endpoint
  let upstream: Socket
  try {
    upstream = connect({ host, port, noDelay: true, lookup })
  } catch {
    // An address that is none.
    return void socket.destroy()
  }
  upstream.setTimeout(state.cluster.connectTimeoutMs, () => upstream.destroy())
  upstream.once('connect', () => upstream.setTimeout(0))
  join(socket, upstream)
}

export interface UpgradeTarget {
  readonly clusters: Clusters
  readonly lookup: LookupFunction
  readonly cluster: string
  readonly method: string
  readonly path: string
  readonly headers: HeaderMap
  readonly headerBytes: number
}

/** Forwards an HTTP/1.1 upgrade; an answer other than 101 is passed on and the connection closed. */
export function tunnelUpgrade(target: UpgradeTarget, socket: Duplex, head: Buffer): void {
  const { clusters, method, path, headers, lookup } = target
  const state = clusters.get(target.cluster)
  const endpoint = state === undefined ? undefined : clusters.pick(state)
  if (state === undefined || endpoint === undefined) return refuse(socket, 503)
  const admitted = admit(state, endpoint, target.headerBytes)
  if (admitted === 'overflow') return refuse(socket, 503)
  socket.once('close', admitted.release)
  const { cluster } = state
  // HTTP/2 backends get upgrades over HTTP/1.1, which their servers offer beside.
  const isTls = cluster.protocol === 'tls' || cluster.protocol === 'h2'
  const options = {
    host: endpoint.host,
    port: endpoint.port,
    method,
    path,
    headers,
    setHost: false,
    agent: false as const,
    lookup,
  }
  const request = isTls ? httpsRequest({ ...options, ...tlsOptions(cluster, endpoint.host) }) : httpRequest(options)
  request.setTimeout(cluster.connectTimeoutMs + UPGRADE_TIMEOUT_MS, () => request.destroy(new Error('timeout')))
  socket.on('error', () => request.destroy())
  socket.on('close', () => request.destroy())
  request.on('error', () => refuse(socket, 503))
  const onResponse = guardedTunnel(socket, (response: IncomingMessage) => {
    response.on('error', () => socket.destroy())
    const { statusCode = 0, headers: received } = response
    if (faultOf(statusCode, received['transfer-encoding']) !== undefined) {
      request.destroy()
      return refuse(socket, 502)
    }
    socket.write(headText(statusCode, response.rawHeaders, true), 'latin1')
    response.pipe(socket)
  })
  request.on('response', onResponse)
  const onUpgrade = guardedTunnel(socket, (response: IncomingMessage, upstream: Duplex, upstreamHead: Buffer) => {
    ;(upstream as Socket).setTimeout(0)
    socket.write(headText(101, response.rawHeaders, false), 'latin1')
    if (upstreamHead.length > 0) socket.write(upstreamHead)
    if (head.length > 0) upstream.write(head)
    join(socket, upstream)
  })
  request.on('upgrade', onUpgrade)
  request.end()
}

const UPGRADE_TIMEOUT_MS = 15_000

/** Header fields were checked by the parser that read them; they are written as they came. */
function headText(status: number, rawHeaders: readonly string[], closes: boolean): string {
  let text = `HTTP/1.1 ${status} ${STATUS_TEXTS[status] ?? 'Status'}\r\n`
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    if (closes && HOP_BY_HOP.has(name.toLowerCase())) continue
    text += `${name}: ${rawHeaders[at + 1] ?? ''}\r\n`
  }
  return `${text}${closes ? 'connection: close\r\n' : ''}\r\n`
}

function join(a: Duplex, b: Duplex): void {
  for (const [from, to] of [
    [a, b],
    [b, a],
  ] as const) {
    from.on('error', () => to.destroy())
    from.on('close', () => to.destroy())
    from.pipe(to)
  }
}
