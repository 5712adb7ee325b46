/**
 * What is known about a member cluster, from its caches. `unknown` when it cannot be read: unknown is not empty.
 */
import {
  type Cluster,
  EndpointSlice,
  type Index,
  type Kind,
  type Manager,
  NotSynced,
  type Obj,
  Service,
} from '@seamark/kube'
import type { Immutable, Key, Stored } from '@seamark/kube/object'
import { Gateway } from '@seamark/kube/gateway-api'
import type { LeafAddress } from '../../api/leaf-ingress.ts'
import type { MemberRegistry } from '../../clusters/member-registry.ts'
import type { BackendFact } from '../decide/placement.ts'
import { leafAddresses } from '../roots/root-kind.ts'
import { countReady, SERVICE_NAME_LABEL } from './ready-endpoints.ts'

/** On a trimmed EndpointSlice: the number of ready endpoints. */
const READY_ANNOTATION = 'seamark.io/ready'

/** Only what is counted: slices of a large cluster have hundreds of thousands of addresses. */
export function trimSlice(slice: EndpointSlice): EndpointSlice {
  const ready = countReady(slice)
  const { name, namespace, uid, resourceVersion, labels } = slice.metadata
  const service = labels?.[SERVICE_NAME_LABEL] ?? ''
  delete slice.endpoints
  slice.metadata = {
    ...(name !== undefined && { name }),
    ...(namespace !== undefined && { namespace }),
    ...(uid !== undefined && { uid }),
    ...(resourceVersion !== undefined && { resourceVersion }),
    labels: { [SERVICE_NAME_LABEL]: service },
    annotations: { [READY_ANNOTATION]: String(ready) },
  }
  return slice
}

export class MemberViews {
  readonly #manager: Manager
  readonly #registry: Pick<MemberRegistry, 'isRead'>
  readonly #slicesByService: Index<EndpointSlice>

  constructor(manager: Manager, registry: Pick<MemberRegistry, 'isRead'>) {
    this.#manager = manager
    this.#registry = registry
    this.#slicesByService = manager.index(EndpointSlice, 'fleetService', ({ metadata }) => [
      `${metadata.namespace}/${metadata.labels?.[SERVICE_NAME_LABEL] ?? ''}`,
    ])
  }

  /** Undefined: it is not registered, or cannot be read now. */
  readable(name: string): Cluster | undefined {
    const member = this.#manager.fleet.members.get(name)
    return member?.reachability.type === 'reachable' ? member.cluster : undefined
  }

  /** Whether the member is known not to be readable; false while its first contact is pending. */
  isLost(name: string): boolean {
    const member = this.#manager.fleet.members.get(name)
    return member === undefined ? this.#registry.isRead : member.reachability.type === 'unreachable'
  }

  /** `unknown`: the member cannot be read, or the kind is not synced yet. */
  find<T extends Obj>(name: string, kind: Kind<T>, key: Key): Immutable<Stored<T>> | undefined | 'unknown' {
    const cluster = this.readable(name)
    if (cluster === undefined) return 'unknown'
    return orUnknown(() => cluster.informers.get(kind, key))
  }

  /** From the API server of the member, not from its cache. Throws when it cannot be read. */
  async readLive<T extends Obj>(
    name: string,
    kind: Kind<T>,
    key: Key,
    signal: AbortSignal,
  ): Promise<Immutable<Stored<T>> | undefined> {
    const cluster = this.readable(name)
    if (cluster === undefined) throw new NotSynced(`cluster ${name} cannot be read`)
    return (await cluster.client.find(kind, key, { signal })) as Immutable<Stored<T>> | undefined
  }

  backendOf(name: string, namespace: string, services: readonly string[]): BackendFact {
    const missing: string[] = []
    for (const service of services) {
      const found = this.find(name, Service, `${namespace}/${service}`)
      if (found === 'unknown') return { state: 'unknown' }
      if (found === undefined) missing.push(service)
    }
    if (missing.length === 0) return { state: 'present' }
    return { state: 'missing', services: missing, isAnyPresent: missing.length < services.length }
  }

  /** Ready endpoints of the Services; undefined: unknown, or no Service has slices. */
  endpointsReady(name: string, namespace: string, services: readonly string[]): number | undefined {
    const cluster = this.readable(name)
    if (cluster === undefined || services.length === 0) return undefined
    const own = orUnknown(() =>
      [...new Set(services)].flatMap((service) => [
        ...cluster.informers.by(this.#slicesByService, `${namespace}/${service}`),
      ]),
    )
    if (own === 'unknown' || own.length === 0) return undefined
    return own.reduce((sum, { metadata }) => sum + Number(metadata.annotations?.[READY_ANNOTATION] ?? 0), 0)
  }

  gatewayAddresses(name: string, namespace: string, gateway: string): readonly LeafAddress[] | undefined {
    const found = this.find(name, Gateway, `${namespace}/${gateway}`)
    if (found === undefined || found === 'unknown') return undefined
    const { addresses = [] } = found.status ?? {}
    return leafAddresses(
      addresses.map(({ type, value }) => (type === 'Hostname' ? { hostname: value } : { ip: value })),
    )
  }
}

function orUnknown<T>(read: () => T): T | 'unknown' {
  try {
    return read()
  } catch (error) {
    if (error instanceof NotSynced) return 'unknown'
    throw error
  }
}
