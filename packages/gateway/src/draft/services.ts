/** Resolves the Services behind routes to clusters of the IR. */
import { isIP } from 'node:net'
import { addressGuard, Service, type ServicePort } from '@seamark/kube'
import type { Immutable } from '@seamark/kube/object'
import type { CircuitBreakers, Cluster } from '../ir/model.ts'
import { nameCluster } from '../ir/names.ts'
import type { BuildSettings, Objects } from './input.ts'

export interface ResolvedService {
  readonly service: Immutable<Service>
  readonly port: Immutable<ServicePort>
  readonly key: string
}

/** Everything about a cluster that the route decides. */
export type ClusterPolicy = Omit<Cluster, 'name' | 'upstream' | 'connectTimeoutMs' | 'circuitBreakers'>

export type Resolution = ResolvedService | { readonly fault: string }

const LOCAL_NAMES = new Set(['localhost', 'localhost.localdomain'])
const isRefused = addressGuard()

/** @param port number, or name (Ingress only) */
export function resolveService(
  objects: Objects,
  settings: BuildSettings,
  key: string,
  port: number | string,
): Resolution {
  const service = objects.get(Service, key)
  if (service === undefined) return { fault: `service "${key}" not found` }
  const isExternal = service.spec?.type === 'ExternalName'
  const ports = service.spec?.ports ?? []
  const found = ports.find((each) => (typeof port === 'number' ? each.port === port : each.name === port))
  // An ExternalName Service needs no ports: the number of the route is the port of the name.
  const resolved = found ?? (isExternal && ports.length === 0 && typeof port === 'number' ? { port } : undefined)
  if (resolved === undefined) return { fault: `port "${port}" on service "${key}" not matched` }
  if (resolved.protocol !== undefined && resolved.protocol !== 'TCP')
    return { fault: `unsupported service protocol "${resolved.protocol}"` }
  if (isExternal) {
    const fault = externalNameFault(service, settings, key)
    if (fault !== undefined) return { fault }
  }
  return { service, port: resolved, key }
}

function externalNameFault(
  { spec }: Immutable<Service>,
  { allowsExternalNames }: BuildSettings,
  key: string,
): string | undefined {
  if (!allowsExternalNames)
    return `${key} is an ExternalName service, these are not currently enabled; see --enable-external-name-service`
  const name = (spec?.externalName ?? '').replace(/\.$/, '').toLowerCase()
  if (name === '') return `${key} is an ExternalName service without a name`
  if (LOCAL_NAMES.has(name) || name.endsWith('.localhost'))
    return `${key} is an ExternalName service that points to localhost, this is not allowed`
  const refused = isIP(name) === 0 ? undefined : isRefused(name)
  return refused === undefined ? undefined : `${key} is an ExternalName service: ${refused}`
}

/** Clusters that were made for a Service, newest first. */
interface KnownCluster {
  readonly id: string
  readonly cluster: Cluster
  readonly next: KnownCluster | undefined
  readonly count: number
}

/** By Service: objects are immutable, and hashing takes longer than the rest of a route. */
const known = new WeakMap<Immutable<Service>, KnownCluster>()
/** Per Service; policies that are gone must not fill the memory. */
const MAX_KNOWN = 32

export function clusterOf(resolved: ResolvedService, settings: BuildSettings, policy: ClusterPolicy): Cluster {
  const { service, port } = resolved
  const { protocol, balancing, tls, healthCheck } = policy
  const rest = tls === undefined && healthCheck === undefined ? '' : JSON.stringify([tls, healthCheck])
  const id = `${port.port} ${settings.connectTimeoutMs} ${protocol} ${balancing} ${rest}`
  const first = known.get(service)
  for (let each = first; each !== undefined; each = each.next) if (each.id === id) return each.cluster
  const next = first !== undefined && first.count < MAX_KNOWN ? first : undefined
  const cluster = newCluster(resolved, settings, policy)
  known.set(service, { id, cluster, next, count: (next?.count ?? 0) + 1 })
  return cluster
}

function newCluster(
  { service, port, key }: ResolvedService,
  { connectTimeoutMs }: BuildSettings,
  policy: ClusterPolicy,
): Cluster {
  const { type, externalName = '' } = service.spec ?? {}
  const circuitBreakers = circuitBreakersOf(service)
  return nameCluster(`${key}/${port.port}`, {
    upstream:
      type === 'ExternalName'
        ? { kind: 'dns', host: externalName.replace(/\.$/, ''), port: port.port }
        : { kind: 'endpoints', name: `${key}/${port.name ?? ''}` },
    ...policy,
    ...(circuitBreakers !== undefined && { circuitBreakers }),
    connectTimeoutMs,
  })
}

const PROTOCOL_ANNOTATION = 'projectcontour.io/upstream-protocol.'
const APP_PROTOCOLS: Readonly<Record<string, Cluster['protocol']>> = {
  'kubernetes.io/h2c': 'h2c',
  'kubernetes.io/ws': 'http1',
  http: 'http1',
  https: 'tls',
}

/** The protocol that the Service asks for: appProtocol of its port, else Contour's annotations. */
export function protocolOf({ service, port }: ResolvedService): Cluster['protocol'] {
  if (port.appProtocol !== undefined && Object.hasOwn(APP_PROTOCOLS, port.appProtocol))
    return APP_PROTOCOLS[port.appProtocol] ?? 'http1'
  for (const [protocol, ports] of listedPorts(service))
    if (ports.has(String(port.port)) || (port.name !== undefined && ports.has(port.name))) return protocol
  return 'http1'
}

const NONE: ListedPorts = []

type ListedPorts = readonly (readonly [Cluster['protocol'], ReadonlySet<string>])[]

const listed = new WeakMap<Immutable<Service>, ListedPorts>()

/** Ports by number or name. Read once: thousands of routes may lead to the Service, and annotations have up to 256 KiB. */
function listedPorts(service: Immutable<Service>): ListedPorts {
  const { annotations } = service.metadata
  if (annotations === undefined) return NONE
  let ports = listed.get(service)
  if (ports === undefined) {
    ports = (['h2', 'h2c', 'tls'] as const).flatMap((protocol) => {
      const names = annotations[`${PROTOCOL_ANNOTATION}${protocol}`]?.split(',').map((name) => name.trim())
      return names === undefined ? [] : [[protocol, new Set(names)] as const]
    })
    listed.set(service, ports)
  }
  return ports
}

const BREAKER_ANNOTATIONS = {
  maxConnections: 'projectcontour.io/max-connections',
  maxPendingRequests: 'projectcontour.io/max-pending-requests',
  maxRequests: 'projectcontour.io/max-requests',
  maxRetries: 'projectcontour.io/max-retries',
} as const

function circuitBreakersOf({ metadata }: Immutable<Service>): CircuitBreakers | undefined {
  const annotations = metadata.annotations
  if (annotations === undefined) return undefined
  const found = Object.entries(BREAKER_ANNOTATIONS).flatMap(([field, annotation]) => {
    const value = Number(annotations[annotation])
    return Number.isInteger(value) && value > 0 ? [[field, value] as const] : []
  })
  return found.length === 0 ? undefined : Object.fromEntries(found)
}
