/** Policies that the proxy itself enforces: CORS and local rate limits. */
import type { Clock } from '@seamark/kube'
import type { Cors, RateLimit } from '../../ir/model.ts'
import { fullMatcher, requestSteps, type Steps } from '../../ir/regex.ts'
import type { HeaderMap } from './header-variables.ts'
import type { RequestFacts } from './request-facts.ts'

/** Throws StepsExceeded. Headers for the response, and whether the request is a preflight that is answered here. */
export function applyCors(cors: Cors, request: RequestFacts): { headers: HeaderMap; isPreflight: boolean } {
  const origin = request.header('origin')
  const method = request.header('access-control-request-method')
  const isPreflight = request.method === 'OPTIONS' && method !== undefined
  if (origin === undefined) return { headers: {}, isPreflight: false }
  if (!isAllowed(cors, origin))
    return { headers: {}, isPreflight: isPreflight && cors.forwardsOtherPreflights !== true }
  const headers: HeaderMap = { 'access-control-allow-origin': origin }
  if (cors.allowCredentials) headers['access-control-allow-credentials'] = 'true'
  if (cors.exposeHeaders.length > 0) headers['access-control-expose-headers'] = cors.exposeHeaders.join(',')
  if (!isPreflight) return { headers, isPreflight }
  const allow = (list: readonly string[], asked: string | undefined) =>
    // With credentials a browser takes the asterisk for a name: what it asked for is named instead.
    list.includes('*') && cors.allowCredentials && asked !== undefined ? asked : list.join(',')
  headers['access-control-allow-methods'] = allow(cors.allowMethods, method)
  if (cors.allowHeaders.length > 0)
    headers['access-control-allow-headers'] = allow(cors.allowHeaders, request.header('access-control-request-headers'))
  if (cors.maxAgeSeconds !== undefined) headers['access-control-max-age'] = String(cors.maxAgeSeconds)
  return { headers, isPreflight }
}

/** Compiled once: they belong to their policy. */
const origins = new WeakMap<Cors, readonly ((origin: string, steps: Steps) => boolean)[]>()

function isAllowed(cors: Cors, origin: string): boolean {
  let tests = origins.get(cors)
  if (tests === undefined) {
    tests = cors.allowOrigins.map(({ kind, value }) =>
      kind === 'exact' ? (text) => value === '*' || value === text : fullMatcher(value),
    )
    origins.set(cors, tests)
  }
  const steps = requestSteps()
  return tests.some((test) => test(origin, steps))
}

interface Bucket {
  tokens: number
  filledAt: number
}

/** Token buckets by key; buckets of limits that are gone are dropped with `retain`. */
export class RateLimits {
  readonly #clock: Clock
  readonly #buckets = new Map<string, Bucket>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Takes a token; false if none is left. */
  take(key: string, { tokens, burst, intervalMs }: RateLimit): boolean {
    const now = this.#clock.monotonic()
    let bucket = this.#buckets.get(key)
    if (bucket === undefined) this.#buckets.set(key, (bucket = { tokens: burst, filledAt: now }))
    const intervals = Math.floor((now - bucket.filledAt) / intervalMs)
    if (intervals > 0) {
      bucket.tokens = Math.min(burst, bucket.tokens + intervals * tokens)
      bucket.filledAt += intervals * intervalMs
    }
    if (bucket.tokens < 1) return false
    bucket.tokens--
    return true
  }

  retain(keys: ReadonlySet<string>): void {
    for (const key of this.#buckets.keys()) if (!keys.has(key)) this.#buckets.delete(key)
  }
}
