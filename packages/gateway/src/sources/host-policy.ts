/** Local rate limits and CORS policies of HTTPProxy. */
import type { CorsPolicy, LocalRateLimit } from '@seamark/kube/contour'
import type { Immutable } from '@seamark/kube/object'
import { parseGoDuration } from '../build/durations.ts'
import type { Cors, RateLimit } from '../ir/model.ts'
import { regexFault } from '../ir/regex.ts'

const UNITS_MS: Readonly<Record<string, number>> = { second: 1_000, minute: 60_000, hour: 3_600_000 }

export function localRateLimit(
  policy: Immutable<LocalRateLimit> | undefined,
): RateLimit | { fault: string } | undefined {
  if (policy === undefined) return undefined
  const { requests, unit, burst = 0, responseStatusCode = 0, responseHeadersToAdd = [] } = policy
  if (!(requests > 0)) return { fault: `invalid requests value ${requests} in local rate limit policy` }
  const intervalMs = UNITS_MS[unit]
  if (intervalMs === undefined) return { fault: `invalid unit "${unit}" in local rate limit policy` }
  return {
    tokens: requests,
    burst: requests + burst,
    intervalMs,
    status: responseStatusCode === 0 ? 429 : responseStatusCode,
    headers: responseHeadersToAdd.map(({ name, value }) => ({ name: name.toLowerCase(), value })),
  }
}

export function corsPolicy(policy: Immutable<CorsPolicy> | undefined): Cors | { fault: string } | undefined {
  if (policy === undefined) return undefined
  if (policy.allowOrigin.length === 0) return { fault: 'invalid allowed origin configuration with length 0' }
  if (policy.allowMethods.length === 0) return { fault: 'invalid allowed methods configuration with length 0' }
  const allowOrigins: Cors['allowOrigins'][number][] = []
  for (const value of policy.allowOrigin) {
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
  return {
    allowOrigins,
    allowMethods: [...policy.allowMethods],
    allowHeaders: [...(policy.allowHeaders ?? [])],
    exposeHeaders: [...(policy.exposeHeaders ?? [])],
    allowCredentials: policy.allowCredentials === true,
    ...(maxAgeMs !== undefined && { maxAgeSeconds: Math.round(maxAgeMs / 1_000) }),
  }
}
