/**
 * Where listeners are bound. The main listener of each protocol has the address of `--http-listen` or `--https-listen`; any
 * other port of a Gateway has an address of its own: the one that is configured for it, or the host of the main listener and
 * the port itself plus an offset.
 */
import type { Listener } from './model.ts'

export interface ListenAddress {
  readonly host: string
  readonly port: number
}

export interface ListenAddresses {
  readonly http?: ListenAddress
  readonly https?: ListenAddress
  /** By port of a Gateway. */
  readonly ports?: Readonly<Record<number, ListenAddress>>
  /** Added to a port that `ports` does not contain. @default 0 */
  readonly portOffset?: number
}

/** Where the main listeners are bound. */
export interface ProxyAddresses {
  readonly http?: ListenAddress
  readonly https?: ListenAddress
}

/** Identifies a listener: `http` and `https` are the main ones, `http:8081` is that of another port of a Gateway. */
export type ListenerId = Listener['protocol'] | `${Listener['protocol']}:${number}`

/** Why a listener cannot be bound, as a message. */
export type PortFaults = ReadonlyMap<ListenerId, string>

type Identity = Pick<Listener, 'protocol' | 'port'>

export function listenerIdOf({ protocol, port }: Identity): ListenerId {
  return port === undefined ? protocol : `${protocol}:${port}`
}

export function parseListenerId(id: ListenerId): Identity {
  const [protocol = '', port] = id.split(':')
  return { protocol: protocol === 'https' ? 'https' : 'http', ...(port !== undefined && { port: Number(port) }) }
}

/** Undefined: the listener cannot be bound, because its protocol is off or the port is beyond 65535. */
export function addressOf(addresses: ListenAddresses, { protocol, port }: Identity): ListenAddress | undefined {
  const main = addresses[protocol]
  if (port === undefined || main === undefined) return main
  const own = addresses.ports?.[port]
  if (own !== undefined) return own
  const bound = port + (addresses.portOffset ?? 0)
  return bound > 0 && bound <= 65_535 ? { host: main.host, port: bound } : undefined
}

/** Whether two listeners cannot be bound at the same time. Port 0 is a free port of the system's choice. */
export function isSameAddress(a: ListenAddress, b: ListenAddress): boolean {
  if (a.port !== b.port || a.port === 0) return false
  return a.host === b.host || isWildcard(a.host) || isWildcard(b.host)
}

export function formatAddress({ host, port }: ListenAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

function isWildcard(host: string): boolean {
  return host === '::' || host === '0.0.0.0'
}
