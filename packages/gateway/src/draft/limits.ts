/**
 * How much of the data plane one object and one namespace may take. What is counted is known before anything is built, and
 * objects are counted from the oldest on: a younger one never takes the place of an older one.
 */

/** Of a root HTTPProxy with everything that it includes, an Ingress, or a route of the Gateway API on all its hosts. */
export const MAX_ROUTES_OF_ROOT = 20_000
export const MAX_ROUTES_OF_NAMESPACE = 100_000
/**
 * Octets of JSON of those routes with the conditions of the includes that lead to them: an include repeats both, and what is
 * built is some times as large.
 */
export const MAX_ROUTE_BYTES_OF_ROOT = 8 * 2 ** 20
export const MAX_ROUTE_BYTES_OF_NAMESPACE = 32 * 2 ** 20
/** Regular expressions. */
export const MAX_PATTERNS_OF_OBJECT = 1_000
export const MAX_PATTERNS_OF_NAMESPACE = 20_000
/** Includes of a root, which its tree follows: also those without a route take time. */
export const MAX_INCLUDES = 10_000

export interface LimitFault {
  readonly reason: 'TooManyRoutes' | 'RoutesTooLarge' | 'TooManyPatterns'
  readonly message: string
}

/** What the objects of a build take so far. */
export class Allowance {
  readonly #routes = new Map<string, number>()
  readonly #routeBytes = new Map<string, number>()
  readonly #patterns = new Map<string, number>()

  /**
   * Why the object may not have so many routes, of which nothing is counted then.
   * @param bytes of the routes together, where they may be larger than the object
   */
  takeRoutes(namespace: string, count: number, bytes = 0): LimitFault | undefined {
    if (count > MAX_ROUTES_OF_ROOT)
      return { reason: 'TooManyRoutes', message: `it has ${count} routes, more than ${MAX_ROUTES_OF_ROOT}` }
    const total = (this.#routes.get(namespace) ?? 0) + count
    if (total > MAX_ROUTES_OF_NAMESPACE)
      return {
        reason: 'TooManyRoutes',
        message: `with older objects, namespace ${namespace} has more than ${MAX_ROUTES_OF_NAMESPACE} routes`,
      }
    if (bytes > MAX_ROUTE_BYTES_OF_ROOT)
      return {
        reason: 'RoutesTooLarge',
        message: `its routes and their conditions have more than ${mebibytes(MAX_ROUTE_BYTES_OF_ROOT)}`,
      }
    const totalBytes = (this.#routeBytes.get(namespace) ?? 0) + bytes
    if (totalBytes > MAX_ROUTE_BYTES_OF_NAMESPACE)
      return {
        reason: 'RoutesTooLarge',
        message: `with older objects, the routes of namespace ${namespace} and their conditions have more than ${mebibytes(MAX_ROUTE_BYTES_OF_NAMESPACE)}`,
      }
    this.#routes.set(namespace, total)
    this.#routeBytes.set(namespace, totalBytes)
    return undefined
  }

  /** The same for regular expressions. */
  takePatterns(namespace: string, count: number): LimitFault | undefined {
    if (count > MAX_PATTERNS_OF_OBJECT)
      return {
        reason: 'TooManyPatterns',
        message: `it has ${count} regular expressions, more than ${MAX_PATTERNS_OF_OBJECT}`,
      }
    if (count === 0) return undefined
    const total = (this.#patterns.get(namespace) ?? 0) + count
    if (total > MAX_PATTERNS_OF_NAMESPACE)
      return {
        reason: 'TooManyPatterns',
        message: `with older objects, namespace ${namespace} has more than ${MAX_PATTERNS_OF_NAMESPACE} regular expressions`,
      }
    this.#patterns.set(namespace, total)
    return undefined
  }
}

function mebibytes(bytes: number): string {
  return `${bytes / 2 ** 20} MiB`
}
