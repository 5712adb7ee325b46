/** What applies to all routes of a root HTTPProxy: local rate limits, CORS, and what is not supported. */
import { STATUS_CODES } from 'node:http'
import type { CorsPolicy, LocalRateLimit, VirtualHost } from '@seamark/kube/contour'
import type { Immutable } from '@seamark/kube/object'
import { corsFault } from '../../draft/cors.ts'
import { parseGoDuration } from '../../draft/durations.ts'
import { fieldNameFault } from '../../draft/headers.ts'
import { headerValueFault } from '../../draft/wire-text.ts'
import type { Cors, RateLimit } from '../../ir/model.ts'
import { regexFault } from '../../ir/regex.ts'
import type { ProxyVerdict } from './verdict.ts'

const UNITS_MS: Readonly<Record<string, number>> = { second: 1_000, minute: 60_000, hour: 3_600_000 }

/** Registered, but unknown to Envoy. */
const OTHER_STATUSES = [418, 425, 451, 509]

/** Whether Envoy can answer with a status: with another one it rejects the routes of every other object. */
export function isKnownStatus(status: number): boolean {
  return STATUS_CODES[status] !== undefined && !OTHER_STATUSES.includes(status)
}

export function localRateLimit(
  policy: Immutable<LocalRateLimit> | undefined,
): RateLimit | { fault: string } | undefined {
  if (policy === undefined) return undefined
  const { requests, unit, burst = 0, responseStatusCode = 0, responseHeadersToAdd = [] } = policy
  if (!(requests > 0)) return { fault: `invalid requests value ${requests} in local rate limit policy` }
  const intervalMs = UNITS_MS[unit]
  if (intervalMs === undefined) return { fault: `invalid unit "${unit}" in local rate limit policy` }
  if (responseStatusCode !== 0 && !isKnownStatus(responseStatusCode))
    return { fault: `responseStatusCode ${responseStatusCode} is not one that Envoy knows, such as 429 or 503` }
  for (const { name, value } of responseHeadersToAdd) {
    const fault = fieldNameFault(name) ?? headerValueFault(value)
    if (fault !== undefined)
      return { fault: `invalid header ${JSON.stringify(name)} in local rate limit policy: ${fault}` }
  }
  return {
    tokens: requests,
    burst: requests + burst,
    intervalMs,
    status: responseStatusCode === 0 ? 429 : responseStatusCode,
    headers: responseHeadersToAdd.map(({ name, value }) => ({ name: name.toLowerCase(), value })),
  }
}

function corsPolicy(policy: Immutable<CorsPolicy> | undefined): Cors | { fault: string } | undefined {
  if (policy === undefined) return undefined
  if (policy.allowOrigin.length === 0) return { fault: 'invalid allowed origin configuration with length 0' }
  if (policy.allowMethods.length === 0) return { fault: 'invalid allowed methods configuration with length 0' }
  const allowOrigins: Cors['allowOrigins'][number][] = []
  for (const value of policy.allowOrigin) {
    if (value === '') return { fault: 'an allowed origin is empty' }
    const isExact = value === '*' || /^[a-z][a-z0-9+.-]*:\/\/[^/?#\\^*()[\]|+]+$/i.test(value)
    if (!isExact && regexFault(value) !== undefined)
      return {
        fault: `invalid allowed origin "${value}": allowed origin is invalid exact match and invalid regex match`,
      }
    allowOrigins.push({ kind: isExact ? 'exact' : 'regex', value })
  }
  const maxAgeMs = policy.maxAge === undefined || policy.maxAge === '' ? undefined : parseGoDuration(policy.maxAge)
  if (policy.maxAge !== undefined && policy.maxAge !== '' && maxAgeMs === undefined)
    return { fault: `unable to parse max age string "${policy.maxAge}"` }
  const cors: Cors = {
    allowOrigins,
    allowMethods: [...policy.allowMethods],
    allowHeaders: [...(policy.allowHeaders ?? [])],
    exposeHeaders: [...(policy.exposeHeaders ?? [])],
    allowCredentials: policy.allowCredentials === true,
    forwardsOtherPreflights: true,
    ...(maxAgeMs !== undefined && { maxAgeSeconds: Math.round(maxAgeMs / 1_000) }),
  }
  const fault = corsFault(cors)
  return fault === undefined ? cors : { fault }
}

const UNSUPPORTED = [
  ['authorization', 'AuthError'],
  ['jwtProviders', 'JWTVerificationError'],
  ['ipAllowPolicy', 'IPFilterError'],
  ['ipDenyPolicy', 'IPFilterError'],
] as const

/** Features without which the host must not be served. */
export function isSupported(virtualhost: Immutable<VirtualHost>, verdict: ProxyVerdict): boolean {
  for (const [field, type] of UNSUPPORTED) {
    const value = virtualhost[field]
    if (value === undefined || (Array.isArray(value) && value.length === 0)) continue
    const message = `Spec.VirtualHost.${field} is not supported; the host is not served without it`
    verdict.error(type, 'UnsupportedField', message)
    return false
  }
  return true
}

export function hostPolicy(
  { corsPolicy: cors, rateLimitPolicy }: Immutable<VirtualHost>,
  verdict: ProxyVerdict,
): { cors?: Cors; rateLimit?: RateLimit } | undefined {
  const builtCors = corsPolicy(cors)
  if (builtCors !== undefined && 'fault' in builtCors) {
    verdict.error('CORSError', 'PolicyDidNotParse', `Spec.VirtualHost.CORSPolicy: ${builtCors.fault}`)
    return undefined
  }
  const rateLimit = localRateLimit(rateLimitPolicy?.local)
  if (rateLimit !== undefined && 'fault' in rateLimit) {
    const message = `Spec.VirtualHost.RateLimitPolicy is invalid: ${rateLimit.fault}`
    verdict.error('VirtualHostError', 'RateLimitPolicyNotValid', message)
    return undefined
  }
  return { ...(builtCors !== undefined && { cors: builtCors }), ...(rateLimit !== undefined && { rateLimit }) }
}
