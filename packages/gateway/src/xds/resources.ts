/**
 * All resources of a configuration, and the objects that a resource comes from. Pure: the same IR gives the same bytes.
 * Endpoints are apart, because they change without a build.
 */
import { addressOf, type ListenAddresses } from '../ir/listen-addresses.ts'
import type { Ir, Listener, Origin, Route, VirtualHost } from '../ir/model.ts'
import { clusterResource, secretName, secretResource } from './clusters.ts'
import { listenerName, listenerResource } from './listeners.ts'
import { Memo } from './memo.ts'
import { routeConfigurations, type RouteConfiguration } from './routes.ts'
import type { Resource, ResourceMap, ResourceType } from './resource.ts'

/** Resources by type and name. */
type Resources = Readonly<Record<Exclude<ResourceType, 'endpoints'>, ResourceMap>>

export interface Translation {
  readonly resources: Resources
  readonly ir: Ir
  readonly hostsOf: ReadonlyMap<string, readonly VirtualHost[]>
}

/** What a translator keeps between two configurations, so that the cost is proportional to the change. */
export class TranslationMemo {
  readonly clusters = new Memo<Resource>()
  readonly chains = new Memo<Uint8Array>()
  readonly routes = { parts: new Memo<Uint8Array>(), resources: new Memo<Resource>() }

  advance(): void {
    for (const each of [this.clusters, this.chains, this.routes.parts, this.routes.resources]) each.advance()
  }
}

/** @param memo of the translations before; changes only how long it takes */
export function translate(ir: Ir, addresses: ListenAddresses, memo = new TranslationMemo()): Translation {
  memo.advance()
  const listeners: Resource[] = []
  const routes: RouteConfiguration[] = []
  for (const listener of allListeners(ir)) {
    const address = addressOf(addresses, listener)
    if (address === undefined) continue
    listeners.push(listenerResource(listener, address, memo.chains))
    routes.push(...routeConfigurations(listener, memo.routes))
  }
  return {
    ir,
    hostsOf: new Map(routes.map(({ resource, hosts }) => [resource.name, hosts])),
    resources: {
      // The name of a cluster contains a hash of its content.
      cluster: byName(ir.clusters.map((each) => memo.clusters.get(each.name, () => clusterResource(each)))),
      secret: byName(ir.certificates.map(secretResource)),
      listener: byName(listeners),
      route: byName(routes.map(({ resource }) => resource)),
    },
  }
}

/** The main listeners are open also without any host. */
function allListeners({ listeners }: Ir): Listener[] {
  const isMain = (protocol: string) => (each: Listener) => each.protocol === protocol && each.port === undefined
  const main = (['http', 'https'] as const).map(
    (protocol): Listener => listeners.find(isMain(protocol)) ?? { protocol, hosts: [] },
  )
  return [...main, ...listeners.filter(({ port }) => port !== undefined)]
}

function byName(resources: readonly Resource[]): ResourceMap {
  return new Map(resources.map((resource) => [resource.name, resource]))
}

/**
 * The objects that a rejected resource comes from. Of a route configuration, which contains the routes of many objects,
 * only those whose host differs from the accepted configuration.
 */
export function ownersOf(
  type: ResourceType,
  name: string,
  rejected: Translation,
  accepted: Translation | undefined,
): Origin[] {
  const routes = (hosts: readonly VirtualHost[], isWanted: (route: Route) => boolean = () => true): Origin[] =>
    hosts.flatMap((host) => host.routes.filter(isWanted).map(({ origin }) => origin))
  const allHosts = rejected.ir.listeners.flatMap(({ hosts }) => hosts)
  switch (type) {
    case 'cluster':
    case 'endpoints':
      return distinct(routes(allHosts, (route) => refersTo(route, name)))
    case 'secret':
      return distinct(routes(allHosts.filter(({ tls }) => tls !== undefined && secretName(tls.certificate) === name)))
    case 'listener':
      return distinct(
        routes(
          changedHosts(tlsHosts(rejected, name), accepted === undefined ? [] : tlsHosts(accepted, name), withoutRoutes),
        ),
      )
    case 'route':
      return distinct(
        routes(changedHosts(rejected.hostsOf.get(name) ?? [], accepted?.hostsOf.get(name) ?? [], JSON.stringify)),
      )
  }
}

/** Hosts of which the listener with this name contains something. */
function tlsHosts({ ir }: Translation, name: string): readonly VirtualHost[] {
  return ir.listeners.find((each) => each.protocol === 'https' && listenerName(each) === name)?.hosts ?? []
}

/** What a listener contains of a host. */
function withoutRoutes({ host, tls, tcp }: VirtualHost): string {
  return JSON.stringify([host, tls, tcp])
}

function changedHosts(
  now: readonly VirtualHost[],
  before: readonly VirtualHost[],
  contentOf: (host: VirtualHost) => string,
): readonly VirtualHost[] {
  const known = new Set(before.map(contentOf))
  return now.filter((host) => !known.has(contentOf(host)))
}

function refersTo({ action }: Route, cluster: string): boolean {
  return (
    action.kind === 'forward' &&
    (action.backends.some((each) => each.cluster === cluster) ||
      action.mirrors.some((each) => each.cluster === cluster))
  )
}

function distinct(origins: readonly Origin[]): Origin[] {
  return [...new Map(origins.map((origin) => [`${origin.kind} ${origin.namespace}/${origin.name}`, origin])).values()]
}
