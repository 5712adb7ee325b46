/**
 * How many endpoints the DNSEndpoints of a namespace may request, and one of them. Pure.
 *
 * An object beyond a limit is refused as a whole, with a code; what is published for it stays as it is, and so does its claim.
 * The oldest objects of a namespace are within the limit, so a new object never displaces one that is served.
 */
import { type Aged, compareAge } from '@seamark/dialects'

export interface EndpointLimits {
  readonly perObject: number
  readonly perNamespace: number
}

export const DEFAULT_ENDPOINT_LIMITS: EndpointLimits = { perObject: 5_000, perNamespace: 20_000 }

export interface EndpointCount {
  readonly uid: string
  readonly age: Aged
  readonly endpoints: number
}

/** The objects of one namespace that are beyond a limit, by UID, with what to do. */
export function findOverLimit(objects: Iterable<EndpointCount>, limits: EndpointLimits): Map<string, string> {
  const over = new Map<string, string>()
  const counted: EndpointCount[] = []
  let sum = 0
  for (const object of objects) {
    const { uid, age, endpoints } = object
    if (endpoints > limits.perObject) {
      over.set(
        uid,
        `DNSEndpoint ${age.namespace}/${age.name} has ${endpoints} endpoints, at most ${limits.perObject} are served; split it, or raise records.dnsEndpoints.maxPerObject`,
      )
      continue
    }
    counted.push(object)
    sum += endpoints
  }
  if (sum <= limits.perNamespace) return over
  let used = 0
  for (const { uid, age, endpoints } of counted.sort((a, b) => compareAge(a.age, b.age))) {
    if (used + endpoints <= limits.perNamespace) {
      used += endpoints
      continue
    }
    over.set(
      uid,
      `namespace ${age.namespace} requests more than ${limits.perNamespace} endpoints, and older objects are served first; remove some, or raise records.dnsEndpoints.maxPerNamespace`,
    )
  }
  return over
}
