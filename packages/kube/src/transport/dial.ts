/**
 * Opens a connected, verified socket to an API server: directly, through an HTTP CONNECT proxy or through SOCKS5. Names
 * are resolved here, and with a guard the connection is made to an address that the guard has checked.
 *
 * Guarantees: one deadline for lookup, connect, proxy and TLS together; a failed dial leaves no socket open.
 */
import { lookup as dnsLookup, type LookupAddress } from 'node:dns'
import { once } from 'node:events'
import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import type { AddressGuard } from '../config/address-guard.ts'
import type { TlsMaterial } from '../config/credentials.ts'
import { messageOf, TransportError } from '../errors.ts'

export interface DialTarget {
  readonly server: URL
  readonly tls: TlsMaterial
  /** ALPN protocols to offer. */
  readonly protocols: readonly string[]
  readonly proxyUrl?: string
  readonly guard?: AddressGuard
  /** @default 10 s */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

const TIMEOUT_MS = 10_000

export async function dial(target: DialTarget): Promise<Socket | TLSSocket> {
  const { server, timeoutMs = TIMEOUT_MS, signal } = target
  const opened: Socket[] = []
  let fail: (error: Error) => void = () => undefined
  const failed = new Promise<never>((_resolve, reject) => (fail = reject))
  const timer = setTimeout(() => fail(new Error(`no connection within ${timeoutMs} ms`)), timeoutMs)
  const onAbort = () => fail(new Error('aborted'))
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([establish(target, (socket) => opened.push(socket)), failed])
  } catch (cause) {
    for (const socket of opened) socket.on('error', () => undefined).destroy()
    throw new TransportError('CONNECT', `cannot connect to ${server.host}: ${messageOf(cause)}`, {
      cause,
      unprocessed: true,
    })
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
  }
}

async function establish(target: DialTarget, keep: (socket: Socket) => void): Promise<Socket | TLSSocket> {
  const { server, proxyUrl } = target
  const host = hostOf(server)
  const port = portOf(server)
  const raw = proxyUrl === undefined ? await openTcp(host, port, target.guard, keep) : await tunnel(target, keep)
  if (server.protocol === 'http:') return raw
  return startTls(raw, host, target.tls, target.protocols, keep)
}

async function openTcp(host: string, port: number, guard: AddressGuard | undefined, keep: (socket: Socket) => void) {
  const refusal = guard !== undefined && isIP(host) !== 0 ? guard(host) : undefined
  if (refusal !== undefined) throw new Error(refusal)
  const socket = connectTcp({
    host,
    port,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: 30_000,
    ...(guard !== undefined && { lookup: guardedLookup(guard) }),
  })
  keep(socket)
  await once(socket, 'connect')
  return socket
}

/** Rejects the name if any of its addresses is rejected: mixed results indicate a DNS rebinding attack. */
function guardedLookup(guard: AddressGuard): LookupFunction {
  return (hostname, options, callback) => {
    dnsLookup(hostname, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
      const refusal =
        error === null ? addresses.map(({ address }) => guard(address)).find((why) => why !== undefined) : undefined
      const [first] = addresses ?? []
      if (error !== null) callback(error, '', 0)
      else if (refusal !== undefined) callback(new Error(refusal), '', 0)
      else if (options.all === true) callback(null, addresses)
      else callback(null, first?.address ?? '', first?.family ?? 4)
    })
  }
}

async function startTls(
  socket: Socket,
  host: string,
  tls: TlsMaterial,
  protocols: readonly string[],
  keep: (socket: Socket) => void,
): Promise<TLSSocket> {
  const serverName = tls.serverName ?? (isIP(host) === 0 ? host : undefined)
  const secure = connectTls({
    socket,
    host,
    ALPNProtocols: [...protocols],
    rejectUnauthorized: tls.insecure !== true,
    ...(serverName !== undefined && { servername: serverName }),
    ...(tls.ca !== undefined && { ca: tls.ca }),
    ...(tls.cert !== undefined && { cert: tls.cert }),
    ...(tls.key !== undefined && { key: tls.key }),
  })
  keep(secure)
  await once(secure, 'secureConnect')
  return secure
}

async function tunnel(target: DialTarget, keep: (socket: Socket) => void): Promise<Socket> {
  const proxy = new URL(target.proxyUrl ?? '')
  const isSocks = proxy.protocol === 'socks5:' || proxy.protocol === 'socks5h:'
  if (!isSocks && proxy.protocol !== 'http:' && proxy.protocol !== 'https:') {
    throw new Error(`proxy-url must be http, https or socks5, not ${proxy.protocol}`)
  }
  const raw = await openTcp(hostOf(proxy), portOf(proxy, isSocks ? 1080 : undefined), undefined, keep)
  const socket =
    proxy.protocol === 'https:' ? await startTls(raw, hostOf(proxy), { version: 0 }, ['http/1.1'], keep) : raw
  await (isSocks ? socksConnect(socket, proxy, target.server) : httpConnect(socket, proxy, target.server))
  return socket
}

async function httpConnect(socket: Socket, proxy: URL, server: URL): Promise<void> {
  const authority = `${server.hostname}:${portOf(server)}`
  const login =
    proxy.username === '' ? undefined : `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`
  const auth = login === undefined ? '' : `Proxy-Authorization: Basic ${Buffer.from(login).toString('base64')}\r\n`
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${auth}\r\n`)
  const head = await readUntil(socket, (bytes) => {
    const end = bytes.indexOf('\r\n\r\n')
    return end < 0 ? undefined : end + 4
  })
  const status = /^HTTP\/1\.[01] (\d{3})/.exec(head.toString('latin1'))?.[1]
  if (status !== '200') throw new Error(`the proxy ${proxy.host} answered CONNECT with ${status ?? 'no HTTP status'}`)
}

/** RFC 1928, RFC 1929; the proxy resolves the name. */
async function socksConnect(socket: Socket, proxy: URL, server: URL): Promise<void> {
  const hasLogin = proxy.username !== ''
  socket.write(Buffer.from(hasLogin ? [5, 2, 0, 2] : [5, 1, 0]))
  const [, method] = await readBytes(socket, 2)
  if (method === 2 && hasLogin) {
    const name = Buffer.from(decodeURIComponent(proxy.username))
    const password = Buffer.from(decodeURIComponent(proxy.password))
    socket.write(Buffer.concat([Buffer.from([1, name.length]), name, Buffer.from([password.length]), password]))
    const [, status] = await readBytes(socket, 2)
    if (status !== 0) throw new Error(`the proxy ${proxy.host} refused the login`)
  } else if (method !== 0) throw new Error(`the proxy ${proxy.host} offers no login method that we have`)
  const host = Buffer.from(hostOf(server))
  const port = portOf(server)
  socket.write(Buffer.concat([Buffer.from([5, 1, 0, 3, host.length]), host, Buffer.from([port >> 8, port & 255])]))
  const [, reply, , type] = await readBytes(socket, 4)
  if (reply !== 0) throw new Error(`the proxy ${proxy.host} could not connect (SOCKS reply ${reply})`)
  const rest = type === 1 ? 4 : type === 4 ? 16 : ((await readBytes(socket, 1))[0] ?? 0)
  await readBytes(socket, rest + 2)
}

const MAX_HEAD_BYTES = 16 * 1024

async function readBytes(socket: Socket, count: number): Promise<Buffer> {
  return readUntil(socket, (bytes) => (bytes.length < count ? undefined : count))
}

/** Reads exactly up to the position returned by `endOf`; the remaining bytes belong to the tunnel and are put back. */
async function readUntil(socket: Socket, endOf: (bytes: Buffer) => number | undefined): Promise<Buffer> {
  let bytes = Buffer.alloc(0)
  for (;;) {
    const chunk = socket.read() as Buffer | null
    if (chunk !== null) bytes = Buffer.concat([bytes, chunk])
    const end = endOf(bytes)
    if (end !== undefined) {
      if (bytes.length > end) socket.unshift(bytes.subarray(end))
      return bytes.subarray(0, end)
    }
    if (bytes.length > MAX_HEAD_BYTES) throw new Error('the proxy answers with too long a head')
    if (socket.readableEnded || socket.destroyed) throw new Error('the proxy closed the connection')
    if (chunk === null) await Promise.race([once(socket, 'readable'), once(socket, 'end')])
  }
}

function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '')
}

function portOf(url: URL, fallback = url.protocol === 'http:' ? 80 : 443): number {
  return url.port === '' ? fallback : Number(url.port)
}
