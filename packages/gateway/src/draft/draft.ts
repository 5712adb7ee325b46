/**
 * The IR under construction. Sources add hosts, routes, clusters and certificates in the order Ingress, HTTPProxy, Gateway
 * API: a later kind replaces an equal match of an earlier one, and within a kind the first one added stays. Whoever loses a
 * match is reported.
 */
import type {
  Action,
  Certificate,
  Cluster,
  Ir,
  Listener,
  Origin,
  RateLimit,
  Route,
  TcpForwarding,
  TlsTermination,
  VirtualHost,
} from '../ir/model.ts'
import { rankOf } from './origin.ts'
import { claimantOf, settleTls, type TlsClaim } from './tls-claims.ts'
import { isOnePart, sortInParts, type Parts } from './turns.ts'
import { parseListenerId, type ListenerId } from '../ir/listen-addresses.ts'
import { compareRoutes, compareTexts, matchKey } from '../ir/route-order.ts'

/** A finding about an object that has no field in its status; becomes an Event. */
export interface Finding {
  readonly origin: Omit<Origin, 'at'>
  readonly reason: string
  readonly message: string
}

interface HostDraft {
  readonly routes: Map<string, Route>
  /** Of the routes that a listener of a Gateway serves, by the key of the route. */
  gateways?: Map<string, string>
  /** In the order in which they were made. */
  readonly claims: TlsClaim[]
  /** Decided by `settle`. */
  tls?: TlsTermination
  group?: string
  tcp?: TcpForwarding
  /** Who the forwarding comes from. */
  tcpOrigin?: Origin
  /** Served without routes: every request is answered with 404. */
  isReserved?: boolean
  rateLimit?: RateLimit
}

/** Hosts in one part of the work. */
const PART = 50

export interface RouteConflict {
  readonly host: string
  readonly winner: Route
  readonly loser: Route
}

/** A termination, client validation or passthrough that another object decides. */
export interface TlsConflict {
  readonly loser: Origin
  readonly message: string
}

export class Draft {
  readonly conflicts: RouteConflict[] = []
  readonly tlsConflicts: TlsConflict[] = []
  readonly findings: Finding[] = []
  readonly #clusters = new Map<string, Cluster>()
  readonly #certificates = new Map<string, Certificate>()
  /** By listener; the main ones are always there. */
  readonly #hosts = new Map<ListenerId, Map<string, HostDraft>>([
    ['http', new Map()],
    ['https', new Map()],
  ])

  /** A listener that is served also without hosts: every request is answered with 404. */
  addListener(listener: ListenerId): void {
    this.#listener(listener)
  }

  addCluster(cluster: Cluster): string {
    this.#clusters.set(cluster.name, cluster)
    return cluster.name
  }

  addCertificate(certificate: Certificate): string {
    this.#certificates.set(certificate.name, certificate)
    return certificate.name
  }

  /** @param gateway whose listener serves the route */
  addRoute(listener: ListenerId, host: string, route: Route, gateway?: string): void {
    const draft = this.#host(listener, host)
    const { routes } = draft
    const key = matchKey(route.match)
    const other = routes.get(key)
    const isReplaced = other !== undefined && rankOf(other.origin) < rankOf(route.origin)
    if (other === undefined || isReplaced) {
      routes.set(key, route)
      if (gateway !== undefined) (draft.gateways ??= new Map()).set(key, gateway)
    }
    if (other === undefined) return
    const [winner, loser] = isReplaced ? [route, other] : [other, route]
    this.conflicts.push({ host, winner, loser })
  }

  /**
   * Asks for a termination of TLS; `settle` decides among all of the host.
   * @param group hosts that share connections
   * @param gateway whose listener has these settings
   */
  claimTls(
    host: string,
    tls: TlsTermination,
    origin: Origin,
    {
      group,
      gateway,
      listener = 'https',
    }: { readonly group?: string; readonly gateway?: string; readonly listener?: ListenerId } = {},
  ): void {
    const { claims } = this.#host(listener, host)
    // A Gateway claims once for each of its routes.
    if (claims.some((each) => each.tls === tls && each.group === group)) return
    claims.push({ tls, origin, ...(group !== undefined && { group }), ...(gateway !== undefined && { gateway }) })
  }

  report(finding: Finding): void {
    this.findings.push(finding)
  }

  /** The first forwarding of a host stays; returns false if another one exists. */
  setTcp(host: string, tcp: TcpForwarding, origin: Origin, listener: ListenerId = 'https'): boolean {
    const draft = this.#host(listener, host)
    if (draft.tcp !== undefined) return false
    draft.tcp = tcp
    draft.tcpOrigin = origin
    return true
  }

  /** Requests for this host are answered with 404 unless a route takes them: no less specific host may. */
  reserveHost(listener: ListenerId, host: string): void {
    this.#host(listener, host).isReserved = true
  }

  setRateLimit(listener: ListenerId, host: string, rateLimit: RateLimit): void {
    this.#host(listener, host).rateLimit = rateLimit
  }

  /** Decides the TLS of every host; after everything was added. */
  *settle(): Parts<void> {
    const plain = this.#hostsOver('http')
    // Only there is TLS claimed.
    const secure = this.#hostsOver('https')
    const required = requiredClients(secure)
    for (const drafts of secure) {
      let count = 0
      for (const [host, draft] of drafts) {
        if (++count % PART === 0) yield
        if (draft.claims.length === 0) continue
        const { conflicts, clients, ...settled } = settleTls(host, draft, required.get(host))
        this.tlsConflicts.push(...conflicts)
        Object.assign(draft, settled)
        if (draft.tcp !== undefined && settled.isForwarded !== true) delete draft.tcp
        if (clients === undefined) continue
        const { claimant, refused } = clients
        for (const [key, route] of draft.routes)
          if (refused.has(claimantOf(route.origin, draft.gateways?.get(key)))) draft.routes.delete(key)
        // Over plain HTTP there is no certificate of a client; the object that asks for it may permit that itself.
        for (const hosts of plain) requireHttps(hosts.get(host), claimant)
      }
    }
  }

  #hostsOver(protocol: Listener['protocol']): ReadonlyMap<string, HostDraft>[] {
    return [...this.#hosts].filter(([id]) => parseListenerId(id).protocol === protocol).map(([, drafts]) => drafts)
  }

  /** After `settle`. */
  *toIr(): Parts<Ir> {
    const listeners: Listener[] = []
    for (const [id, drafts] of this.#hosts) {
      const { protocol, port } = parseListenerId(id)
      const hosts = yield* hostsOf(protocol, drafts)
      listeners.push({
        protocol,
        ...(port !== undefined && { port }),
        hosts: yield* sortInParts(hosts, (a, b) => compareTexts(a.host, b.host)),
      })
    }
    listeners.sort(compareListeners)
    yield
    const used = usedNames(listeners)
    return {
      listeners,
      clusters: pick(this.#clusters, used.clusters),
      certificates: pick(this.#certificates, used.certificates),
    }
  }

  #listener(id: ListenerId): Map<string, HostDraft> {
    let hosts = this.#hosts.get(id)
    if (hosts === undefined) this.#hosts.set(id, (hosts = new Map()))
    return hosts
  }

  #host(listener: ListenerId, host: string): HostDraft {
    const hosts = this.#listener(listener)
    let draft = hosts.get(host)
    if (draft === undefined) hosts.set(host, (draft = { routes: new Map(), claims: [] }))
    return draft
  }
}

/** The claims that require client certificates of a host, of all ports. */
function requiredClients(listeners: readonly ReadonlyMap<string, HostDraft>[]): Map<string, TlsClaim[]> {
  const required = new Map<string, TlsClaim[]>()
  for (const drafts of listeners)
    for (const [host, { claims }] of drafts)
      for (const claim of claims) {
        if (claim.tls.clientValidation?.isOptional !== false) continue
        const others = required.get(host)
        if (others === undefined) required.set(host, [claim])
        else others.push(claim)
      }
  return required
}

/** The main listeners first. */
function compareListeners(a: Listener, b: Listener): number {
  const isMain = ({ port }: Listener) => (port === undefined ? 0 : 1)
  return isMain(a) - isMain(b) || compareTexts(a.protocol, b.protocol) || (a.port ?? 0) - (b.port ?? 0)
}

function requireHttps(draft: HostDraft | undefined, claimant: string): void {
  for (const [key, route] of draft?.routes ?? []) {
    const isItsOwn = claimantOf(route.origin, draft?.gateways?.get(key)) === claimant
    if (!isItsOwn && !route.upgradesToHttps) draft?.routes.set(key, upgraded(route))
  }
}

const upgradedRoutes = new WeakMap<Route, Route>()

/** The same object for the same route: a host with the same routes is the same in the next build. */
function upgraded(route: Route): Route {
  let known = upgradedRoutes.get(route)
  if (known === undefined) upgradedRoutes.set(route, (known = { ...route, upgradesToHttps: true }))
  return known
}

function* hostsOf(protocol: Listener['protocol'], drafts: ReadonlyMap<string, HostDraft>): Parts<VirtualHost[]> {
  const hosts: VirtualHost[] = []
  let count = 0
  for (const [host, draft] of drafts) {
    if (++count % PART === 0) yield
    if (!isServed(protocol, draft)) continue
    const known = knownHost(host, draft)
    if (known !== undefined) {
      hosts.push(known)
      continue
    }
    const routes = draft.tcp === undefined ? [...draft.routes.values()] : []
    hosts.push(
      newHost(host, draft, isOnePart(routes) ? routes.sort(compareRoutes) : yield* sortInParts(routes, compareRoutes)),
    )
  }
  return hosts
}

function isServed(protocol: Listener['protocol'], { routes, tls, tcp, isReserved }: HostDraft): boolean {
  if (routes.size === 0 && tcp === undefined && isReserved !== true) return false
  // Without a certificate nothing of the host is served over TLS.
  return protocol === 'http' || tls !== undefined || tcp !== undefined
}

/** Of the last build by the first route: a host with the same parts is the same object, also for xDS. */
const knownHosts = new WeakMap<Route, VirtualHost>()

function knownHost(host: string, draft: HostDraft): VirtualHost | undefined {
  const [first] = draft.routes.values()
  const known = first === undefined ? undefined : knownHosts.get(first)
  return known?.host === host && hasParts(known, draft) ? known : undefined
}

function hasParts(known: VirtualHost, { routes, tls, group, tcp, rateLimit }: HostDraft): boolean {
  if (known.tls !== tls || known.group !== group || known.tcp !== tcp || known.rateLimit !== rateLimit) return false
  // Connections that are passed on have no routes; else the order of routes follows from what they are.
  if (tcp !== undefined) return true
  if (known.routes.length !== routes.size) return false
  const wanted = new Set(routes.values())
  return known.routes.every((route) => wanted.has(route))
}

function newHost(host: string, draft: HostDraft, routes: readonly Route[]): VirtualHost {
  const { tls, group, tcp, rateLimit } = draft
  const virtualHost = {
    host,
    routes,
    ...(tls !== undefined && { tls }),
    ...(group !== undefined && { group }),
    ...(tcp !== undefined && { tcp }),
    ...(rateLimit !== undefined && { rateLimit }),
  }
  const [first] = draft.routes.values()
  if (first !== undefined) knownHosts.set(first, virtualHost)
  return virtualHost
}

/** What no host refers to any more, because its route lost, is not part of the configuration. */
function usedNames(listeners: readonly Listener[]): { clusters: Set<string>; certificates: Set<string> } {
  const [clusters, certificates] = [new Set<string>(), new Set<string>()]
  for (const { hosts } of listeners)
    for (const { routes, tls, tcp } of hosts) {
      if (tls !== undefined) certificates.add(tls.certificate)
      if (tcp !== undefined) for (const { cluster } of tcp.backends) clusters.add(cluster)
      for (const { action } of routes) addClusters(action, clusters)
    }
  return { clusters, certificates }
}

function addClusters(action: Action, clusters: Set<string>): void {
  if (action.kind !== 'forward') return
  for (const { cluster } of action.backends) clusters.add(cluster)
  for (const { cluster } of action.mirrors) clusters.add(cluster)
}

function pick<T extends { readonly name: string }>(all: ReadonlyMap<string, T>, names: ReadonlySet<string>): T[] {
  return [...all.values()].filter(({ name }) => names.has(name)).toSorted((a, b) => compareTexts(a.name, b.name))
}
