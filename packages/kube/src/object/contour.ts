/**
 * Contour's kinds, and that of its predecessor: the fields that the operator and the gateway read or write. The upstream
 * schemas define the rest, and unknown fields are preserved because whole objects are never sent back.
 */
import { kind, type Obj } from './object.ts'
import type { Condition } from './conditions.ts'

export interface HeaderValue {
  name: string
  value: string
}

export interface HeadersPolicy {
  set?: HeaderValue[]
  remove?: string[]
}

export interface HeaderMatchCondition {
  name: string
  present?: boolean
  notpresent?: boolean
  contains?: string
  notcontains?: string
  exact?: string
  notexact?: string
  regex?: string
  ignoreCase?: boolean
  treatMissingAsEmpty?: boolean
}

export interface QueryParameterMatchCondition {
  name: string
  exact?: string
  prefix?: string
  suffix?: string
  regex?: string
  contains?: string
  ignoreCase?: boolean
  present?: boolean
}

export interface MatchCondition {
  prefix?: string
  exact?: string
  regex?: string
  header?: HeaderMatchCondition
  queryParameter?: QueryParameterMatchCondition
}

export interface ProxyInclude {
  name: string
  namespace?: string
  conditions?: MatchCondition[]
}

export interface LoadBalancerPolicy {
  strategy?: string
  requestHashPolicies?: {
    terminal?: boolean
    hashSourceIP?: boolean
    headerHashOptions?: { headerName?: string }
    queryParameterHashOptions?: { parameterName?: string }
  }[]
}

export interface ProxyService {
  name: string
  port: number
  weight?: number
  mirror?: boolean
  protocol?: string
  healthPort?: number
  requestHeadersPolicy?: HeadersPolicy
  responseHeadersPolicy?: HeadersPolicy
  validation?: { caSecret?: string; subjectName?: string; subjectNames?: string[] }
  cookieRewritePolicies?: unknown[]
  slowStartPolicy?: unknown
}

export interface LocalRateLimit {
  requests: number
  unit: string
  burst?: number
  responseStatusCode?: number
  responseHeadersToAdd?: HeaderValue[]
}

export interface ProxyRoute {
  conditions?: MatchCondition[]
  services?: ProxyService[]
  enableWebsockets?: boolean
  permitInsecure?: boolean
  timeoutPolicy?: { response?: string; idle?: string; idleConnection?: string }
  retryPolicy?: { count?: number; perTryTimeout?: string; retryOn?: string[]; retriableStatusCodes?: number[] }
  healthCheckPolicy?: {
    path: string
    host?: string
    intervalSeconds?: number
    timeoutSeconds?: number
    unhealthyThresholdCount?: number
    healthyThresholdCount?: number
    expectedStatuses?: { start: number; end: number }[]
  }
  loadBalancerPolicy?: LoadBalancerPolicy
  pathRewritePolicy?: { replacePrefix?: { prefix?: string; replacement: string }[] }
  requestHeadersPolicy?: HeadersPolicy
  responseHeadersPolicy?: HeadersPolicy
  requestRedirectPolicy?: {
    scheme?: string
    hostname?: string
    port?: number
    statusCode?: number
    path?: string
    prefix?: string
  }
  directResponsePolicy?: { statusCode: number; body?: string }
  rateLimitPolicy?: { local?: LocalRateLimit; global?: unknown }
  cookieRewritePolicies?: unknown[]
  authPolicy?: unknown
  jwtVerificationPolicy?: unknown
  internalRedirectPolicy?: unknown
  ipAllowPolicy?: unknown[]
  ipDenyPolicy?: unknown[]
}

export interface CorsPolicy {
  allowCredentials?: boolean
  allowOrigin: string[]
  allowMethods: string[]
  allowHeaders?: string[]
  exposeHeaders?: string[]
  maxAge?: string
}

export interface VirtualHost {
  fqdn?: string
  tls?: {
    secretName?: string
    passthrough?: boolean
    minimumProtocolVersion?: string
    maximumProtocolVersion?: string
    clientValidation?: {
      caSecret?: string
      skipClientCertValidation?: boolean
      optionalClientCertificate?: boolean
      crlSecret?: string
    }
    enableFallbackCertificate?: boolean
  } | null
  corsPolicy?: CorsPolicy
  rateLimitPolicy?: { local?: LocalRateLimit; global?: unknown }
  authorization?: unknown
  jwtProviders?: unknown[]
  ipAllowPolicy?: unknown[]
  ipDenyPolicy?: unknown[]
}

export interface TcpProxy {
  services?: ProxyService[]
  include?: { name: string; namespace?: string }
  includes?: { name: string; namespace?: string }
  loadBalancerPolicy?: LoadBalancerPolicy
  healthCheckPolicy?: unknown
}

/** An error or warning inside the condition `Valid`. */
export interface SubCondition {
  type: string
  status: string
  reason: string
  message: string
}

export interface DetailedCondition extends Partial<Condition> {
  type: string
  status: 'True' | 'False' | 'Unknown'
  errors?: SubCondition[]
  warnings?: SubCondition[]
}

export interface HTTPProxy extends Obj {
  spec?: {
    virtualhost?: VirtualHost | null
    ingressClassName?: string
    routes?: ProxyRoute[]
    includes?: ProxyInclude[]
    tcpproxy?: TcpProxy | null
  }
  status?: {
    currentStatus?: string
    description?: string
    conditions?: DetailedCondition[]
    loadBalancer?: { ingress?: { ip?: string; hostname?: string }[] }
  }
}

export const HTTPProxy = kind<HTTPProxy>({
  group: 'projectcontour.io',
  version: 'v1',
  kind: 'HTTPProxy',
  plural: 'httpproxies',
  namespaced: true,
})

export interface IngressRouteService {
  name: string
  port: number
  weight?: number
  healthCheck?: NonNullable<ProxyRoute['healthCheckPolicy']>
  strategy?: string
  validation?: NonNullable<ProxyService['validation']>
}

/** Removed from Contour in 1.7, still found in clusters that were never migrated. Same `virtualhost` block. */
export interface IngressRoute extends Obj {
  spec?: {
    virtualhost?: VirtualHost | null
    routes?: {
      match: string
      services?: IngressRouteService[]
      delegate?: { name: string; namespace?: string }
      enableWebsockets?: boolean
      permitInsecure?: boolean
      prefixRewrite?: string
      timeoutPolicy?: { request?: string }
      retryPolicy?: { count?: number; perTryTimeout?: string }
    }[]
    tcpproxy?: { services?: IngressRouteService[]; delegate?: { name: string; namespace?: string } }
  }
}

export const IngressRoute = kind<IngressRoute>({
  group: 'contour.heptio.com',
  version: 'v1beta1',
  kind: 'IngressRoute',
  plural: 'ingressroutes',
  namespaced: true,
})

export interface TLSCertificateDelegation extends Obj {
  spec: { delegations: { secretName: string; targetNamespaces: string[] }[] }
}

export const TLSCertificateDelegation = kind<TLSCertificateDelegation>({
  group: 'projectcontour.io',
  version: 'v1',
  kind: 'TLSCertificateDelegation',
  plural: 'tlscertificatedelegations',
  namespaced: true,
})
