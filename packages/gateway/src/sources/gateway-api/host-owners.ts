/**
 * Which listener of a port owns a host, over all Gateways: the one with the more specific hostname, whatever routes it
 * has within its own Gateway, and where it has a route for the host among several; of several with one hostname the oldest that has one. What belongs to another listener is not served.
 */
import { findGrantFault } from '@seamark/dialects'
import type { BuildSettings } from '../../draft/input.ts'
import type { ListenerId } from '../../ir/listen-addresses.ts'
import type { ServedListener } from './listener.ts'

export class HostOwners {
  readonly #settings: BuildSettings
  /** By listener of the data plane and hostname; the oldest. */
  readonly #listeners = new Map<ListenerId, Map<string, ServedListener>>()
  /** By listener of the data plane, hostname and host of a route; the oldest. */
  readonly #declared = new Map<string, Map<string, ServedListener>>()

  /** @param listeners oldest first */
  constructor(settings: BuildSettings, listeners: Iterable<ServedListener>) {
    this.#settings = settings
    for (const listener of listeners) {
      if (!listener.isServing || !this.#isGranted(listener)) continue
      const byHost = this.#listeners.get(listener.id) ?? new Map<string, ServedListener>()
      this.#listeners.set(listener.id, byHost)
      if (!byHost.has(listener.host)) byHost.set(listener.host, listener)
    }
  }

  /** A route attaches to a listener for a host. */
  declare(listener: ServedListener, host: string): void {
    const key = `${listener.id} ${listener.host}`
    const hosts = this.#declared.get(key) ?? new Map<string, ServedListener>()
    this.#declared.set(key, hosts)
    const oldest = hosts.get(host)
    if (oldest === undefined || listener.order < oldest.order) hosts.set(host, listener)
  }

  /** The listener that a host of a listener belongs to, if it is another one. */
  otherOwner(own: ServedListener, host: string): ServedListener | undefined {
    const byHost = this.#listeners.get(own.id)
    for (const pattern of patternsOf(host)) {
      const other = byHost?.get(pattern)
      if (other === undefined || other.host === own.host || !covers(own.host, other.host)) continue
      if (other.gateway === own.gateway) return other
      // A listener of another Gateway that nobody uses for the host does not take it off the air.
      const user = this.#declarer(own.id, other.host, host)
      if (user !== undefined && user.gateway !== own.gateway) return user
    }
    const older = this.#declarer(own.id, own.host, host)
    return older !== undefined && older.order < own.order && older.gateway !== own.gateway ? older : undefined
  }

  /** The oldest listener with this hostname that has a route for the host. */
  #declarer(id: ListenerId, hostname: string, host: string): ServedListener | undefined {
    const declared = this.#declared.get(`${id} ${hostname}`)
    let oldest: ServedListener | undefined
    for (const pattern of patternsOf(host)) {
      // A route without a hostname is for what nobody declares.
      const found = pattern === '*' && host !== '*' ? undefined : declared?.get(pattern)
      if (found !== undefined && (oldest === undefined || found.order < oldest.order)) oldest = found
    }
    return oldest
  }

  /** Whether names of the listener that have no route are its own, to be answered with 404 and its certificate. */
  ownsRest(own: ServedListener): boolean {
    if (!this.#isGranted(own)) return false
    for (const other of this.#declared.get(`${own.id} ${own.host}`)?.values() ?? [])
      if (other.order < own.order && other.gateway !== own.gateway) return false
    return true
  }

  /** Hosts of more specific listeners of the same port, which routes of this one must not take. */
  moreSpecificHosts(own: ServedListener, host: string): string[] {
    if (!host.startsWith('*')) return []
    const others: string[] = []
    for (const other of this.#listeners.get(own.id)?.keys() ?? [])
      if (other !== host && covers(host, other)) others.push(other)
    return others
  }

  /** A Gateway takes no name that is not granted to its namespace; every name is when nothing is granted to anybody. */
  #isGranted({ gateway, host }: ServedListener): boolean {
    const [namespace = ''] = gateway.split('/')
    return findGrantFault(this.#settings.grants, namespace, host) === undefined
  }
}

/** Every pattern that covers the host, most specific first. */
function* patternsOf(host: string): Generator<string> {
  yield host
  const name = host.startsWith('*.') ? host.slice(2) : host
  for (
    let dot = host.startsWith('*.') ? name.indexOf('.') : host.indexOf('.');
    dot >= 0;
    dot = name.indexOf('.', dot + 1)
  )
    yield `*${name.slice(dot)}`
  if (host !== '*') yield '*'
}

/** `*.x` covers every name below x, of any depth. */
export function covers(pattern: string, name: string): boolean {
  if (pattern === '*' || pattern === name) return true
  return pattern.startsWith('*.') && name.endsWith(pattern.slice(1)) && name !== pattern.slice(2)
}
