/**
 * Endpoints of Services from EndpointSlices. They bypass `build`: a pod that comes or goes changes addresses, not routes.
 *
 * Only ready TCP endpoints count, by the name of the port; the first address of each; duplicates over slices once. Addresses
 * that no pod can have (loopback, link-local, cloud metadata) are dropped: the right to write EndpointSlices must not reach
 * the node through the data plane.
 */
import { addressGuard, EndpointSlice, type AddressGuard } from '@seamark/kube'
import type { Immutable } from '@seamark/kube/object'
import type { Endpoint } from '../ir/endpoint.ts'
import { withoutNulls } from '../draft/nulls.ts'
import { compareTexts } from '../ir/route-order.ts'

const SERVICE_LABEL = 'kubernetes.io/service-name'

/** `namespace/service` of a slice; undefined if it belongs to none. */
export function serviceOf({ metadata }: Immutable<EndpointSlice>): string | undefined {
  const name = metadata.labels?.[SERVICE_LABEL]
  return name === undefined || name === '' ? undefined : `${metadata.namespace ?? ''}/${name}`
}

/** Of thousands of Services without a ready pod. */
const NONE: readonly Endpoint[] = []

export function endpointsOf(
  slices: readonly Immutable<EndpointSlice>[],
  portName: string,
  isRefused: AddressGuard = addressGuard(),
): readonly Endpoint[] {
  const found = new Map<string, Endpoint>()
  for (const { addressType, endpoints = [], ports = [] } of slices.map((each) => withoutNulls(each))) {
    if (addressType === 'FQDN') continue
    const { port } = ports.find(({ name = '', protocol = 'TCP' }) => name === portName && protocol === 'TCP') ?? {}
    if (port === undefined) continue
    for (const { addresses, conditions } of endpoints) {
      const [host] = addresses
      if (host === undefined || conditions?.ready === false || isRefused(host) !== undefined) continue
      found.set(`${host} ${port}`, { host, port })
    }
  }
  if (found.size === 0) return NONE
  return [...found].toSorted(([a], [b]) => compareTexts(a, b)).map(([, endpoint]) => endpoint)
}

/** Endpoints by `namespace/service/portName`, of the Services that routes use. */
export class EndpointTable {
  readonly #byName = new Map<string, readonly Endpoint[]>()
  /** A Service has few: a list takes a third of the memory of a Set. */
  readonly #portsOf = new Map<string, string[]>()
  readonly #isRefused: AddressGuard

  constructor(isRefused: AddressGuard) {
    this.#isRefused = isRefused
  }

  get(name: string): readonly Endpoint[] {
    return this.#byName.get(name) ?? NONE
  }

  /** Makes the table contain exactly these names; new ones are read, others keep what they have. */
  setNames(names: Iterable<string>, read: (service: string) => readonly Immutable<EndpointSlice>[]): void {
    const wanted = new Set(names)
    this.#portsOf.clear()
    for (const name of this.#byName.keys()) if (!wanted.has(name)) this.#byName.delete(name)
    for (const name of wanted) {
      const slash = name.lastIndexOf('/')
      const [service, port] = [name.slice(0, slash), name.slice(slash + 1)]
      const ports = this.#portsOf.get(service)
      if (ports === undefined) this.#portsOf.set(service, [port])
      else ports.push(port)
      if (!this.#byName.has(name)) this.#byName.set(name, endpointsOf(read(service), port, this.#isRefused))
    }
  }

  /** Reads a Service again; returns the names whose endpoints changed. */
  refresh(service: string, slices: readonly Immutable<EndpointSlice>[]): string[] {
    return (this.#portsOf.get(service) ?? []).flatMap((port) => {
      const name = `${service}/${port}`
      const now = endpointsOf(slices, port, this.#isRefused)
      if (JSON.stringify(now) === JSON.stringify(this.get(name))) return []
      this.#byName.set(name, now)
      return [name]
    })
  }
}
