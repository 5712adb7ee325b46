/**
 * The IR under construction. Sources add hosts, routes, clusters and certificates in the order Ingress, HTTPProxy, Gateway
 * API: a later kind replaces an equal match of an earlier one, and within a kind the first one added stays. Whoever loses a
 * match is reported.
 */
import { keyOf, type Immutable, type Obj } from '@seamark/kube/object'
import type {
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
  tls?: TlsTermination
  group?: string
  tcp?: TcpForwarding
  /** Served without routes: every request is answered with 404. */
  isReserved?: boolean
  rateLimit?: RateLimit
}

export interface RouteConflict {
  readonly host: string
  readonly winner: Route
  readonly loser: Route
}

export class Draft {
  readonly conflicts: RouteConflict[] = []
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

  addRoute(listener: ListenerId, host: string, route: Route): void {
    const { routes } = this.#host(listener, host)
    const key = matchKey(route.match)
    const other = routes.get(key)
    if (other === undefined) {
      routes.set(key, route)
      return
    }
    const isReplaced = rankOf(other.origin) < rankOf(route.origin)
    if (isReplaced) routes.set(key, route)
    const [winner, loser] = isReplaced ? [route, other] : [other, route]
    this.conflicts.push({ host, winner, loser })
  }

  /**
   * The first termination of a host stays; returns false if another one exists.
   * @param group hosts that share connections
   */
  setTls(host: string, tls: TlsTermination, group?: string, listener: ListenerId = 'https'): boolean {
    const draft = this.#host(listener, host)
    if (draft.tls !== undefined) return JSON.stringify(draft.tls) === JSON.stringify(tls)
    draft.tls = tls
    if (group !== undefined) draft.group = group
    return true
  }

  /** As `setTls`; another termination of the host is reported by `conflict`. */
  claimTls(host: string, tls: TlsTermination, conflict?: Finding): void {
    if (!this.setTls(host, tls) && conflict !== undefined) this.report(conflict)
  }

  report(finding: Finding): void {
    this.findings.push(finding)
  }

  /** The first forwarding of a host stays; returns false if another one exists. */
  setTcp(host: string, tcp: TcpForwarding, listener: ListenerId = 'https'): boolean {
    const draft = this.#host(listener, host)
    if (draft.tcp !== undefined) return false
    draft.tcp = tcp
    return true
  }

  /** Requests for this host are answered with 404 unless a route takes them: no less specific host may. */
  reserveHost(listener: ListenerId, host: string): void {
    this.#host(listener, host).isReserved = true
  }

  setRateLimit(listener: ListenerId, host: string, rateLimit: RateLimit): void {
    this.#host(listener, host).rateLimit = rateLimit
  }

  toIr(): Ir {
    const listeners = [...this.#hosts].map(([id, drafts]): Listener => {
      const { protocol, port } = parseListenerId(id)
      const hosts = [...drafts]
        .filter(([, { routes, tcp, isReserved }]) => routes.size > 0 || tcp !== undefined || isReserved === true)
        .map(([host, draft]) => hostOf(host, draft))
        // Without a certificate nothing of the host is served over TLS.
        .filter((host) => protocol === 'http' || host.tls !== undefined || host.tcp !== undefined)
      return {
        protocol,
        ...(port !== undefined && { port }),
        hosts: hosts.toSorted((a, b) => compareTexts(a.host, b.host)),
      }
    })
    listeners.sort(compareListeners)
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
    if (draft === undefined) hosts.set(host, (draft = { routes: new Map() }))
    return draft
  }
}

/** The main listeners first. */
function compareListeners(a: Listener, b: Listener): number {
  const isMain = ({ port }: Listener) => (port === undefined ? 0 : 1)
  return isMain(a) - isMain(b) || compareTexts(a.protocol, b.protocol) || (a.port ?? 0) - (b.port ?? 0)
}

export function originOf(kind: Origin['kind'], object: Immutable<Obj>, at: string): Origin {
  const { namespace = '', name = '' } = object.metadata
  return { kind, namespace, name, at }
}

export function describeOrigin(origin: Omit<Origin, 'at'>): string {
  return `${origin.kind} ${keyOf({ metadata: origin })}`
}

function rankOf(origin: Origin): number {
  switch (origin.kind) {
    case 'Ingress':
    case 'GlobalIngress':
      return 0
    case 'HTTPProxy':
      return 1
    case 'HTTPRoute':
    case 'GRPCRoute':
    case 'TLSRoute':
      return 2
  }
}

interface KnownHost {
  readonly draft: HostDraft
  readonly virtualHost: VirtualHost
}

/** Of the last build by the first route: a host with the same parts is the same object, also for xDS. */
const knownHosts = new WeakMap<Route, KnownHost>()

function hostOf(host: string, draft: HostDraft): VirtualHost {
  const first = draft.routes.values().next().value
  if (first === undefined) return newHost(host, draft)
  const known = knownHosts.get(first)
  if (known?.virtualHost.host === host && hasSameParts(known.draft, draft)) return known.virtualHost
  const virtualHost = newHost(host, draft)
  knownHosts.set(first, { draft, virtualHost })
  return virtualHost
}

function hasSameParts(a: HostDraft, b: HostDraft): boolean {
  if (a.tls !== b.tls || a.group !== b.group || a.tcp !== b.tcp || a.rateLimit !== b.rateLimit) return false
  if (a.routes.size !== b.routes.size) return false
  const others = b.routes.values()
  for (const route of a.routes.values()) if (route !== others.next().value) return false
  return true
}

function newHost(host: string, { routes, tls, group, tcp, rateLimit }: HostDraft): VirtualHost {
  return {
    host,
    routes: tcp === undefined ? [...routes.values()].sort(compareRoutes) : [],
    ...(tls !== undefined && { tls }),
    ...(group !== undefined && { group }),
    ...(tcp !== undefined && { tcp }),
    ...(rateLimit !== undefined && { rateLimit }),
  }
}

/** What no host refers to any more, because its route lost, is not part of the configuration. */
function usedNames(listeners: readonly Listener[]): { clusters: Set<string>; certificates: Set<string> } {
  const [clusters, certificates] = [new Set<string>(), new Set<string>()]
  for (const { hosts } of listeners)
    for (const { routes, tls, tcp } of hosts) {
      if (tls !== undefined) certificates.add(tls.certificate)
      for (const { cluster } of tcp?.backends ?? []) clusters.add(cluster)
      for (const { action } of routes) {
        if (action.kind !== 'forward') continue
        for (const { cluster } of action.backends) clusters.add(cluster)
        for (const { cluster } of action.mirrors) clusters.add(cluster)
      }
    }
  return { clusters, certificates }
}

function pick<T extends { readonly name: string }>(all: ReadonlyMap<string, T>, names: ReadonlySet<string>): T[] {
  return [...all.values()].filter(({ name }) => names.has(name)).toSorted((a, b) => compareTexts(a.name, b.name))
}
