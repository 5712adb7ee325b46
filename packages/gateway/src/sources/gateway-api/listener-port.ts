/**
 * Which listener of the data plane serves a port of a Gateway. Port 80 (or else the first port with protocol HTTP) is served
 * by the main HTTP listener, port 443 (or else the first port with HTTPS or TLS) by the main HTTPS listener; every other port
 * has a listener of its own, which all Gateways with this port and protocol share.
 *
 * Gateways are read oldest first: a port that an older one uses in another way is not available to a younger one.
 */
import type { Gateway, Listener as ListenerSpec } from '@seamark/kube/gateway-api'
import { keyOf, type Immutable } from '@seamark/kube/object'
import {
  addressOf,
  formatAddress,
  isSameAddress,
  listenerIdOf,
  type ListenAddress,
  type ListenAddresses,
  type ListenerId,
} from '../../ir/listen-addresses.ts'

interface Bound {
  readonly id: ListenerId
  readonly address: ListenAddress
  /** For messages. */
  readonly usedBy: string
}

export type PortClaim = { readonly id: ListenerId } | { readonly unavailable: string }

export class ListenerPorts {
  readonly #addresses: ListenAddresses
  readonly #bound: Bound[]

  constructor(addresses: ListenAddresses) {
    this.#addresses = addresses
    this.#bound = (['http', 'https'] as const).flatMap((id) => {
      const address = addresses[id]
      return address === undefined ? [] : [{ id, address, usedBy: `the main ${id.toUpperCase()} listener` }]
    })
  }

  claim(gateway: Immutable<Gateway>, { port, protocol }: Immutable<ListenerSpec>): PortClaim {
    const own = protocol === 'HTTP' ? 'http' : 'https'
    if (port === mainPort(gateway, own)) return { id: own }
    const id = listenerIdOf({ protocol: own, port })
    if (this.#bound.some((each) => each.id === id)) return { id }
    const address = addressOf(this.#addresses, { protocol: own, port })
    if (address === undefined) return { unavailable: `port ${port} has no address; choose one with ${advice(port)}` }
    const other = this.#bound.find((each) => isSameAddress(each.address, address))
    if (other !== undefined) {
      const what = `${formatAddress(address)} is the address of ${other.usedBy}`
      return { unavailable: `port ${port} cannot be served: ${what}; choose another with ${advice(port)}` }
    }
    this.#bound.push({ id, address, usedBy: `port ${port} (${protocol}) of Gateway ${keyOf(gateway)}` })
    return { id }
  }
}

function advice(port: number): string {
  return `--listener-address ${port}=HOST:PORT`
}

const MAIN_PORTS = { http: 80, https: 443 } as const
const PROTOCOLS = { http: ['HTTP'], https: ['HTTPS', 'TLS'] } as const

function mainPort({ spec }: Immutable<Gateway>, id: 'http' | 'https'): number | undefined {
  const protocols: readonly string[] = PROTOCOLS[id]
  const ports = (spec?.listeners ?? []).filter(({ protocol }) => protocols.includes(protocol)).map(({ port }) => port)
  return ports.includes(MAIN_PORTS[id]) ? MAIN_PORTS[id] : ports[0]
}
