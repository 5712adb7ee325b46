/**
 * How many requests are in flight, and how many octets their targets and header fields have: of all clients, and of one address.
 * A request counts until its answer, or the tunnel that it became, has ended; what does not fit is refused.
 */
import { networkOf } from '@seamark/kube'

export interface RequestLimits {
  readonly maxRequests: number
  readonly maxHeaderBytes: number
  /** The same of one IPv4 address, or IPv6 network of 64 bits. A load balancer before the proxy may be one for all clients. */
  readonly maxRequestsOfAddress: number
  readonly maxHeaderBytesOfAddress: number
}

export const REQUEST_LIMITS: RequestLimits = {
  maxRequests: 10_000,
  maxHeaderBytes: 64 * 1_048_576,
  maxRequestsOfAddress: 5_000,
  maxHeaderBytesOfAddress: 32 * 1_048_576,
}

interface Usage {
  requests: number
  bytes: number
}

export class RequestBudget {
  readonly #limits: RequestLimits
  readonly #all: Usage = { requests: 0, bytes: 0 }
  readonly #byNetwork = new Map<string, Usage>()

  constructor(limits: RequestLimits = REQUEST_LIMITS) {
    this.#limits = limits
  }

  /** How to release what the request takes; undefined: there is no room. */
  take(address: string, bytes: number): (() => void) | undefined {
    const { maxRequests, maxHeaderBytes, maxRequestsOfAddress, maxHeaderBytesOfAddress } = this.#limits
    const network = networkOf(address)
    const own = this.#byNetwork.get(network) ?? { requests: 0, bytes: 0 }
    if (!fits(this.#all, bytes, maxRequests, maxHeaderBytes)) return undefined
    if (!fits(own, bytes, maxRequestsOfAddress, maxHeaderBytesOfAddress)) return undefined
    this.#byNetwork.set(network, own)
    for (const usage of [this.#all, own]) {
      usage.requests++
      usage.bytes += bytes
    }
    return () => {
      for (const usage of [this.#all, own]) {
        usage.requests--
        usage.bytes -= bytes
      }
      if (own.requests === 0) this.#byNetwork.delete(network)
    }
  }
}

function fits({ requests, bytes }: Usage, more: number, maxRequests: number, maxBytes: number): boolean {
  return requests < maxRequests && bytes + more <= maxBytes
}

/** Octets of the target and the header fields of a request. */
export function headerBytesOf({ url = '', rawHeaders }: { url?: string | undefined; rawHeaders: string[] }): number {
  let bytes = url.length
  for (const text of rawHeaders) bytes += text.length
  return bytes
}
