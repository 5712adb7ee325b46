/**
 * Opens the connections of probes: name resolution, address guard, connect, TLS.
 *
 * Guarantees (server-side request forgery): every resolved address is checked by the guard, and the connection is made to
 * the address that was checked, so a name cannot lead elsewhere the second time (DNS rebinding). Of several addresses the
 * permitted ones are tried in turn; IPv4 first. Time limits are the caller's: it destroys the socket in progress by its signal.
 */
import { promises as dns } from 'node:dns'
import { isIP, connect as netConnect, type Socket } from 'node:net'
import { connect as tlsConnect } from 'node:tls'
import type { AddressGuard, StopSignal } from '@seamark/kube'
import { hostOnly } from './policy.ts'
import { ProbeFailure } from './probe-failure.ts'

export type ProbePhase = 'resolve' | 'connect' | 'tls' | 'headers' | 'body'

export interface ConnectionDeps {
  /** Addresses of a name. Rejects with a c-ares or getaddrinfo error code. */
  readonly resolve: (name: string) => Promise<readonly string[]>
  /** Starts a TCP connection; emits `connect` or `error`. */
  readonly connect: (address: string, port: number) => Socket
  readonly guard: AddressGuard
}

export interface ConnectionRequest {
  readonly host: string
  /** @default those that the resolver has */
  readonly addresses?: readonly string[]
  readonly port: number
  readonly tls: { readonly serverName: string | undefined; readonly verify: boolean; readonly ca?: string } | undefined
}

const RESOLVE_TIMEOUT_MS = 2_000

/**
 * c-ares, not getaddrinfo: slow lookups would block the four threads that all of libuv shares.
 * @param server `ADDRESS` or `ADDRESS:PORT`; empty: the servers of the machine
 */
export function systemResolver(server = ''): ConnectionDeps['resolve'] {
  const resolver = new dns.Resolver({ timeout: RESOLVE_TIMEOUT_MS, tries: 2 })
  if (server !== '') resolver.setServers([server])
  return async (name) => {
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    const found = [v4, v6].flatMap((result) => (result.status === 'fulfilled' ? result.value : []))
    if (found.length === 0 && v4.status === 'rejected') throw v4.reason
    return found
  }
}

export const systemConnect: ConnectionDeps['connect'] = (address, port) =>
  netConnect({ host: address, port, noDelay: true })

/** Calls `enter` as each phase begins. Rejects with a ProbeFailure. */
export async function openConnection(
  deps: ConnectionDeps,
  request: ConnectionRequest,
  signal: StopSignal,
  enter: (phase: ProbePhase) => void,
): Promise<Socket> {
  const addresses = await permittedAddresses(deps, request, signal, enter)
  let failure: ProbeFailure | undefined
  for (const address of addresses) {
    signal.throwIfAborted()
    try {
      enter('connect')
      const socket = await untilEvent(deps.connect(address, request.port), 'connect', signal)
      if (request.tls === undefined) return socket
      enter('tls')
      return await handshake(socket, request.tls, signal)
    } catch (error) {
      failure = ProbeFailure.from(error)
    }
  }
  throw failure ?? new ProbeFailure('NameUnresolved', `${request.host} has no address`)
}

async function permittedAddresses(
  { resolve, guard }: ConnectionDeps,
  request: ConnectionRequest,
  signal: StopSignal,
  enter: (phase: ProbePhase) => void,
): Promise<readonly string[]> {
  const host = hostOnly(request.host)
  let addresses = request.addresses ?? [host]
  if (request.addresses === undefined && isIP(host) === 0) {
    enter('resolve')
    try {
      addresses = await unlessAborted(resolve(host), signal)
    } catch (error) {
      throw ProbeFailure.fromResolver(host, error)
    }
  }
  const refusals: string[] = []
  const permitted = addresses.filter((address) => {
    const refusal = guard(address)
    if (refusal !== undefined) refusals.push(refusal)
    return refusal === undefined
  })
  if (permitted.length === 0 && refusals.length > 0) {
    throw new ProbeFailure('AddressDenied', `the prober does not connect there: ${refusals.join('; ')}`)
  }
  return permitted
}

/** A resolver may never answer; its late answer is dropped. */
async function unlessAborted<T>(pending: Promise<T>, signal: StopSignal): Promise<T> {
  return await new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(new ProbeFailure('TimedOut', 'aborted'))
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    pending.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

async function handshake(
  socket: Socket,
  { serverName, verify, ca }: NonNullable<ConnectionRequest['tls']>,
  signal: StopSignal,
): Promise<Socket> {
  const secured = tlsConnect({
    socket,
    rejectUnauthorized: verify,
    ALPNProtocols: ['http/1.1'],
    ...(serverName !== undefined && { servername: serverName }),
    ...(ca !== undefined && { ca }),
  })
  try {
    return await untilEvent(secured, 'secureConnect', signal)
  } catch (error) {
    socket.destroy()
    throw ProbeFailure.fromTls(error)
  }
}

async function untilEvent<S extends Socket>(
  socket: S,
  event: 'connect' | 'secureConnect',
  signal: StopSignal,
): Promise<S> {
  await new Promise<void>((resolve, reject) => {
    const settle = (error?: unknown) => {
      socket.removeListener(event, onReady)
      socket.removeListener('error', settle)
      socket.removeListener('close', onClose)
      signal.removeEventListener('abort', onAbort)
      if (error === undefined) return resolve()
      // An error after this one has no other listener and would end the process.
      socket.on('error', () => undefined)
      socket.destroy()
      reject(error)
    }
    const onReady = () => settle()
    const onClose = () => settle(new ProbeFailure('Reset', 'the connection was closed before it was established'))
    const onAbort = () => settle(new ProbeFailure('TimedOut', 'aborted'))
    socket.once(event, onReady)
    socket.once('error', settle)
    socket.once('close', onClose)
    signal.addEventListener('abort', onAbort)
    if (signal.aborted) onAbort()
  })
  return socket
}
