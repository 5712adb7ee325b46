/**
 * One route of an HTTPProxy. A route that cannot be built (undefined) removes every route of its HTTPProxy object; a Service
 * that cannot be resolved only removes itself.
 */
import type { HTTPProxy, ProxyRoute, ProxyService } from '@seamark/kube/contour'
import type { Immutable } from '@seamark/kube/object'
import { parseGoDuration, parseTimeout } from '../../draft/durations.ts'
import { originOf } from '../../draft/origin.ts'
import { fieldNameFault, headersPolicy, type HeadersResult } from '../../draft/headers.ts'
import type { BuildSettings, Objects } from '../../draft/input.ts'
import { findCaBundle, secretKey } from '../../draft/secrets.ts'
import { clusterOf, protocolOf, resolveService } from '../../draft/services.ts'
import type { DraftSink } from '../../draft/step.ts'
import { hostTextFault, readPathText } from '../../draft/wire-text.ts'
import type { Action, Backend, Cluster, HashSource, HealthCheck, Match, Mirror, Retry, Route } from '../../ir/model.ts'
import type { ProxyVerdict } from './verdict.ts'
import { DEFAULT_IDLE_MS } from '../ingress.ts'
import { localRateLimit } from './host-policy.ts'

export interface RouteInput {
  readonly draft: DraftSink
  readonly objects: Objects
  readonly settings: BuildSettings
  readonly proxy: Immutable<HTTPProxy>
  readonly verdict: ProxyVerdict
}

/** Fields that change who may call, or with what: serving without them would be wrong. */
const UNSUPPORTED = [
  ['authPolicy', 'AuthError'],
  ['jwtVerificationPolicy', 'JWTVerificationError'],
  ['ipAllowPolicy', 'IPFilterError'],
  ['ipDenyPolicy', 'IPFilterError'],
] as const
const IGNORED = ['cookieRewritePolicies', 'internalRedirectPolicy'] as const

export function buildRoute(
  input: RouteInput,
  route: Immutable<ProxyRoute>,
  match: Match,
  isTlsEnforced: boolean,
  at: string,
): Route | undefined {
  const { verdict, proxy } = input
  const constants = { CONTOUR_NAMESPACE: proxy.metadata.namespace ?? '' }
  for (const [field, type] of UNSUPPORTED) {
    if (route[field] === undefined) continue
    verdict.error(type, 'UnsupportedField', `${at}.${field} is not supported; the HTTPProxy is not served without it`)
    return undefined
  }
  for (const field of IGNORED)
    if (route[field] !== undefined)
      verdict.warn('SpecError', 'IgnoredField', `ignoring field "${at}.${field}"; it is not supported`)

  const requestHeaders = headersPolicy(route.requestHeadersPolicy, true, constants)
  if ('fault' in requestHeaders) {
    verdict.error('RouteError', 'RequestHeadersPolicyInvalid', `${requestHeaders.fault} on request headers`)
    return undefined
  }
  const responseHeaders = headersPolicy(route.responseHeadersPolicy, false, constants)
  if ('fault' in responseHeaders) {
    verdict.error('RouteError', 'ResponseHeaderPolicyInvalid', `${responseHeaders.fault} on response headers`)
    return undefined
  }
  const rateLimit = localRateLimit(route.rateLimitPolicy?.local)
  if (rateLimit !== undefined && 'fault' in rateLimit) {
    verdict.error('RouteError', 'RateLimitPolicyNotValid', `route.rateLimitPolicy is invalid: ${rateLimit.fault}`)
    return undefined
  }
  const action = actionOf(input, route, match, requestHeaders)
  if (action === undefined) return undefined
  return {
    match,
    action,
    upgradesToHttps: isTlsEnforced && route.permitInsecure !== true,
    ...(requestHeaders.mutation !== undefined && { requestHeaders: requestHeaders.mutation }),
    ...(responseHeaders.mutation !== undefined && { responseHeaders: responseHeaders.mutation }),
    ...(rateLimit !== undefined && { rateLimit }),
    origin: originOf('HTTPProxy', proxy, at),
    order: '',
  }
}

function actionOf(
  input: RouteInput,
  route: Immutable<ProxyRoute>,
  match: Match,
  headers: HeadersResult,
): Action | undefined {
  const { verdict } = input
  const { services = [], requestRedirectPolicy: redirect, directResponsePolicy: direct } = route
  const count = Number(services.length > 0) + Number(redirect !== undefined) + Number(direct !== undefined)
  if (count !== 1) {
    const message =
      'must set exactly one of route.services or route.requestRedirectPolicy or route.directResponsePolicy'
    verdict.error('RouteError', 'RouteActionCountNotValid', message)
    return undefined
  }
  if (direct !== undefined) return { kind: 'direct', status: direct.statusCode, body: direct.body ?? '' }
  if (redirect !== undefined) {
    if (redirect.path !== undefined && redirect.prefix !== undefined) {
      const message = 'route.requestRedirectPolicy is invalid: cannot specify both redirect path and redirect prefix'
      verdict.error('RouteError', 'RequestRedirectPolicy', message)
      return undefined
    }
    return redirectOf(redirect, verdict)
  }
  return forwardOf(input, route, match, headers)
}

function redirectOf(
  redirect: NonNullable<Immutable<ProxyRoute['requestRedirectPolicy']>>,
  verdict: ProxyVerdict,
): Action | undefined {
  const { scheme, hostname, port, statusCode = 302 } = redirect
  const refuse = (fault: string): undefined => {
    verdict.error('RouteError', 'RequestRedirectPolicy', `route.requestRedirectPolicy is invalid: ${fault}`)
  }
  const hostFault = hostname === undefined ? undefined : hostTextFault(hostname)
  if (hostFault !== undefined) return refuse(`hostname ${hostFault}`)
  const text = redirect.path ?? redirect.prefix
  const path = text === undefined ? undefined : readPathText(text)
  if (path !== undefined && 'fault' in path)
    return refuse(`${redirect.path === undefined ? 'prefix' : 'path'} ${path.fault}`)
  return {
    kind: 'redirect',
    status: statusCode,
    ...(scheme !== undefined && { scheme }),
    ...(hostname !== undefined && { host: hostname }),
    ...(port !== undefined && { port }),
    ...(path !== undefined && { path: { kind: redirect.path === undefined ? 'prefix' : 'full', value: path.value } }),
  }
}

function forwardOf(
  input: RouteInput,
  route: Immutable<ProxyRoute>,
  match: Match,
  headers: HeadersResult,
): Action | undefined {
  const { verdict, settings } = input
  const timeoutMs = parseTimeout(route.timeoutPolicy?.response, settings.timeoutMs)
  const idleTimeoutMs = parseTimeout(route.timeoutPolicy?.idle, DEFAULT_IDLE_MS)
  if (typeof timeoutMs !== 'number') return refuseTimeout(verdict, 'response', timeoutMs.fault)
  if (typeof idleTimeoutMs !== 'number') return refuseTimeout(verdict, 'idle', idleTimeoutMs.fault)
  const rewrite = rewriteOf(route, match, verdict)
  if (rewrite === 'invalid') return undefined
  const healthCheck = healthCheckOf(route.healthCheckPolicy)
  if (healthCheck !== undefined && 'fault' in healthCheck) {
    verdict.error('RouteError', 'HealthCheckPolicyInvalid', healthCheck.fault)
    return undefined
  }
  const { hash, balancing } = balancingOf(route, verdict)
  const backends: Backend[] = []
  const mirrors: Mirror[] = []
  for (const service of route.services ?? []) {
    const backend = backendOf(input, service, { balancing, healthCheck, routeHost: headers.host })
    if (backend === 'invalid') return undefined
    if (backend === 'unresolved') continue
    if (service.mirror !== true) {
      backends.push(backend)
      continue
    }
    if (mirrors.length > 0) {
      verdict.error('ServiceError', 'OnlyOneMirror', 'only one service per route may be nominated as mirror')
      return undefined
    }
    mirrors.push({
      cluster: backend.cluster,
      percent: service.weight === undefined || service.weight === 0 ? 100 : service.weight,
    })
  }
  if (backends.length === 0) return { kind: 'direct', status: 503, body: '' }
  if (backends.reduce((sum, { weight }) => sum + weight, 0) > MAX_WEIGHT) {
    verdict.error('ServiceError', 'WeightsTooLarge', `the weights of the services of a route exceed ${MAX_WEIGHT}`)
    return undefined
  }
  const retry = retryOf(route.retryPolicy)
  return {
    kind: 'forward',
    backends: withEqualWeights(backends),
    mirrors: mirrors.length === 0 ? NONE : mirrors,
    ...(rewrite.value !== undefined && { rewrite: { kind: 'prefix', value: rewrite.value } }),
    ...(headers.host !== undefined && { host: headers.host }),
    hash,
    ...(retry !== undefined && { retry }),
    timeoutMs,
    idleTimeoutMs,
    hasWebsocket: route.enableWebsockets === true,
  }
}

/** Of all services of a route, as in Envoy. */
const MAX_WEIGHT = 2 ** 32 - 1

function refuseTimeout(verdict: ProxyVerdict, name: string, fault: string): undefined {
  const message = `route.timeoutPolicy failed to parse: error parsing ${name} timeout: ${fault}`
  verdict.error('RouteError', 'TimeoutPolicyNotValid', message)
}

function backendOf(
  { draft, objects, settings, proxy, verdict }: RouteInput,
  service: Immutable<ProxyService>,
  route: { balancing: Cluster['balancing']; healthCheck: HealthCheck | undefined; routeHost: string | undefined },
): Backend | 'invalid' | 'unresolved' {
  const { namespace = '' } = proxy.metadata
  if (!(service.port >= 1 && service.port <= 65_535)) {
    const message = `service "${service.name}": port must be in the range 1-65535`
    verdict.error('ServiceError', 'ServicePortInvalid', message)
    return 'invalid'
  }
  const resolved = resolveService(objects, settings, `${namespace}/${service.name}`, service.port)
  if ('fault' in resolved) {
    const message = `Spec.Routes unresolved service reference: ${resolved.fault}`
    verdict.error('ServiceError', 'ServiceUnresolvedReference', message)
    return 'unresolved'
  }
  const protocol = service.protocol === undefined ? protocolOf(resolved) : service.protocol
  if (protocol !== 'http1' && protocol !== 'h2c' && protocol !== 'h2' && protocol !== 'tls') {
    verdict.error('ServiceError', 'UnsupportedProtocol', `unsupported protocol: ${protocol}`)
    return 'invalid'
  }
  const constants = {
    CONTOUR_NAMESPACE: namespace,
    CONTOUR_SERVICE_NAME: service.name,
    CONTOUR_SERVICE_PORT: String(service.port),
  }
  const requestHeaders = headersPolicy(service.requestHeadersPolicy, true, constants)
  if ('fault' in requestHeaders) {
    verdict.error('ServiceError', 'RequestHeadersPolicyInvalid', `${requestHeaders.fault} on request headers`)
    return 'invalid'
  }
  const responseHeaders = headersPolicy(service.responseHeadersPolicy, false, constants)
  if ('fault' in responseHeaders) {
    verdict.error('ServiceError', 'ResponseHeadersPolicyInvalid', `${responseHeaders.fault} on response headers`)
    return 'invalid'
  }
  for (const field of ['slowStartPolicy', 'cookieRewritePolicies'] as const)
    if (service[field] !== undefined)
      verdict.warn('SpecError', 'IgnoredField', `ignoring field "services.${field}"; it is not supported`)

  let validation: { ca: string; subjectNames: string[] } | undefined
  const isTls = protocol === 'tls' || protocol === 'h2'
  if (isTls && service.validation !== undefined) {
    const { caSecret = '', subjectName, subjectNames } = service.validation
    const key = secretKey(caSecret, namespace)
    const found = findCaBundle(objects, key, namespace)
    if ('fault' in found) {
      if (found.isForbidden === true) {
        const message = `service.UpstreamValidation.CACertificate Secret "${key}" is not configured for certificate delegation`
        verdict.error('TLSError', 'CACertificateNotDelegated', message)
      } else {
        const message = `Service [${service.name}:${service.port}] TLS upstream validation policy error: ${found.fault}`
        verdict.error('ServiceError', 'TLSUpstreamValidation', message)
      }
      return 'invalid'
    }
    const names = subjectNames ?? (subjectName === undefined || subjectName === '' ? [] : [subjectName])
    if (names.length === 0) {
      const message = `Service [${service.name}:${service.port}] TLS upstream validation policy error: missing subject alternative name`
      verdict.error('ServiceError', 'TLSUpstreamValidation', message)
      return 'invalid'
    }
    validation = { ca: found.ca, subjectNames: [...names] }
  }
  const sni = requestHeaders.host ?? route.routeHost
  const cluster = clusterOf(resolved, settings, {
    protocol,
    balancing: route.balancing,
    ...(isTls && { tls: { ...(sni !== undefined && { sni }), ...(validation !== undefined && { validation }) } }),
    ...(route.healthCheck !== undefined && { healthCheck: route.healthCheck }),
  })
  return {
    cluster: draft.addCluster(cluster),
    weight: service.weight ?? 0,
    ...(requestHeaders.mutation !== undefined && { requestHeaders: requestHeaders.mutation }),
    ...(responseHeaders.mutation !== undefined && { responseHeaders: responseHeaders.mutation }),
    ...(requestHeaders.host !== undefined && { host: requestHeaders.host }),
  }
}

/** All weights zero: equal shares. */
function withEqualWeights(backends: readonly Backend[]): Backend[] {
  return backends.some(({ weight }) => weight > 0)
    ? [...backends]
    : backends.map((backend) => ({ ...backend, weight: 1 }))
}

function rewriteOf(route: Immutable<ProxyRoute>, match: Match, verdict: ProxyVerdict): { value?: string } | 'invalid' {
  const replacements = route.pathRewritePolicy?.replacePrefix ?? []
  if (replacements.length === 0) return {}
  if (match.path.kind !== 'prefix') {
    const message = 'cannot specify prefix replacements without a prefix condition'
    verdict.error('PrefixReplaceError', 'MustHavePrefix', message)
    return 'invalid'
  }
  const prefixes = new Set<string>()
  for (const { prefix = '' } of replacements) {
    if (prefixes.has(prefix)) {
      if (prefix === '') verdict.error('PrefixReplaceError', 'AmbiguousReplacement', 'ambiguous prefix replacement')
      else verdict.error('PrefixReplaceError', 'DuplicateReplacement', `duplicate replacement prefix '${prefix}'`)
      return 'invalid'
    }
    prefixes.add(prefix)
  }
  const exact = replacements.find(({ prefix = '' }) => prefix !== '' && prefix === match.path.value)
  const fallback = replacements.find(({ prefix = '' }) => prefix === '')
  const text = (exact ?? fallback)?.replacement
  if (text === undefined) return {}
  const path = readPathText(text)
  if ('value' in path) return path
  verdict.error('PrefixReplaceError', 'ReplacementNotValid', `replacement ${path.fault}`)
  return 'invalid'
}

/** What Envoy accepts at most, or a day. 0 is the default of the field. */
const HEALTH_CHECK_LIMITS = [
  ['intervalSeconds', 86_400],
  ['timeoutSeconds', 86_400],
  ['unhealthyThresholdCount', 10_000],
  ['healthyThresholdCount', 10_000],
] as const

function healthCheckOf(
  policy: Immutable<ProxyRoute['healthCheckPolicy']>,
): HealthCheck | { fault: string } | undefined {
  if (policy === undefined) return undefined
  const expectedStatuses = policy.expectedStatuses ?? []
  for (const { start, end } of expectedStatuses) {
    if (start < 100 || start > 599)
      return { fault: 'invalid expected status range: start must be in the range [100, 599]' }
    if (end < 101 || end > 600) return { fault: 'invalid expected status range: end must be in the range [101, 600]' }
  }
  for (const { start, end } of expectedStatuses)
    if (start >= end) return { fault: `invalid expected status range: start ${start} is not below end ${end}` }
  const path = readPathText(policy.path)
  if ('fault' in path) return { fault: `invalid health check path: ${path.fault}` }
  if (!path.value.startsWith('/')) return { fault: 'invalid health check path: it must start with /' }
  for (const [field, most] of HEALTH_CHECK_LIMITS) {
    const value = policy[field] ?? 0
    if (value < 0 || value > most)
      return { fault: `invalid health check ${field}: it must be in the range [1, ${most}]` }
  }
  const { host = 'contour-envoy-healthcheck' } = policy
  const hostFault = hostTextFault(host)
  if (hostFault !== undefined) return { fault: `invalid health check host: ${hostFault}` }
  return {
    path: path.value,
    host,
    intervalMs: (policy.intervalSeconds || 10) * 1_000,
    timeoutMs: (policy.timeoutSeconds || 2) * 1_000,
    unhealthyThreshold: policy.unhealthyThresholdCount || 3,
    healthyThreshold: policy.healthyThresholdCount || 2,
    expectedStatuses: expectedStatuses.map(({ start, end }) => ({ start, end })),
  }
}

function retryOf(policy: Immutable<ProxyRoute['retryPolicy']>): Retry | undefined {
  if (policy === undefined) return undefined
  const { count = 0, perTryTimeout = '', retryOn = [], retriableStatusCodes = [] } = policy
  const perTry = parseGoDuration(perTryTimeout)
  return {
    // -1 is documented as "no retries", 0 and absent as Envoy's default of one.
    count: count < 0 ? 0 : Math.max(count, 1),
    on: retryOn.length === 0 ? ['5xx'] : [...retryOn],
    statusCodes: [...retriableStatusCodes],
    ...(perTry !== undefined && perTry > 0 && { perTryTimeoutMs: perTry }),
  }
}

/** Shared: most routes have neither, and a cluster has thousands of routes. */
const NONE: readonly never[] = []

interface Balancing {
  readonly hash: readonly HashSource[]
  readonly balancing: Cluster['balancing']
}

const ROUND_ROBIN: Balancing = { hash: NONE, balancing: 'roundRobin' }

function balancingOf({ loadBalancerPolicy: policy }: Immutable<ProxyRoute>, verdict: ProxyVerdict): Balancing {
  switch (policy?.strategy) {
    case 'WeightedLeastRequest':
      return { hash: NONE, balancing: 'leastRequest' }
    case 'Random':
      return { hash: NONE, balancing: 'random' }
    case 'Cookie':
      return { hash: [{ kind: 'cookie', name: 'X-Contour-Session-Affinity' }], balancing: 'hash' }
    case 'RequestHash': {
      const hash: HashSource[] = []
      const ignore = (message: string) => verdict.warn('SpecError', 'IgnoredField', message)
      for (const { hashSourceIP, headerHashOptions, queryParameterHashOptions } of policy.requestHashPolicies ?? []) {
        const header = headerHashOptions?.headerName?.toLowerCase()
        const query = queryParameterHashOptions?.parameterName?.toLowerCase()
        const count = [hashSourceIP === true, headerHashOptions !== undefined, queryParameterHashOptions !== undefined]
        const source: HashSource | undefined =
          hashSourceIP === true
            ? { kind: 'sourceIp' }
            : header !== undefined && header !== ''
              ? { kind: 'header', name: header }
              : query !== undefined && query !== ''
                ? { kind: 'query', name: query }
                : undefined
        if (count.filter(Boolean).length !== 1 || source === undefined)
          ignore(
            'ignoring invalid request hash policy, must set exactly one of hashSourceIP or headerHashOptions or queryParameterHashOptions',
          )
        else if (source.kind === 'header' && fieldNameFault(source.name) !== undefined)
          ignore(`ignoring invalid request hash policy, ${JSON.stringify(header)} is no name of a header field`)
        else if (hash.some((each) => JSON.stringify(each) === JSON.stringify(source)))
          ignore('ignoring invalid request hash policy, the same attribute is specified multiple times')
        else hash.push(source)
      }
      if (hash.length > 0) return { hash, balancing: 'hash' }
      ignore('ignoring invalid request hash policy options, setting load balancer strategy to default RoundRobin')
      return { hash, balancing: 'roundRobin' }
    }
    case undefined:
    default:
      return ROUND_ROBIN
  }
}
