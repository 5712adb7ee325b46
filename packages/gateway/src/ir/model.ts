/**
 * The intermediate representation (IR) of the configuration of a data plane: what `build` makes of all source objects and
 * what every renderer reads. Plain JSON values in a fixed order, so that the same sources give the same bytes.
 *
 * Durations are milliseconds; 0 disables a timeout. Host names are lower case. Names of headers are lower case.
 */

/** The object that a route or listener comes from. */
export interface Origin {
  readonly kind: 'Ingress' | 'HTTPProxy' | 'HTTPRoute' | 'GRPCRoute' | 'TLSRoute' | 'GlobalIngress'
  readonly namespace: string
  readonly name: string
  /** The part of the object, e.g. `spec.routes[2]`. */
  readonly at: string
}

export interface PathMatch {
  /** `prefix` compares strings, `segment` whole path segments (`/foo` is not a prefix of `/foobar`). */
  readonly kind: 'prefix' | 'segment' | 'exact' | 'regex'
  readonly value: string
}

export interface HeaderMatch {
  /** Lower case; `:authority` is the host of the request with its port. */
  readonly name: string
  readonly kind: 'present' | 'exact' | 'contains' | 'regex'
  readonly value: string
  readonly isInverted?: boolean
  readonly ignoresCase?: boolean
  /** An inverted match of an absent header holds. @default false */
  readonly isMissingEmpty?: boolean
}

export interface QueryMatch {
  readonly name: string
  readonly kind: 'exact' | 'prefix' | 'suffix' | 'regex' | 'contains' | 'present'
  readonly value: string
  readonly ignoresCase?: boolean
}

export interface Match {
  readonly path: PathMatch
  readonly method?: string
  readonly headers: readonly HeaderMatch[]
  readonly query: readonly QueryMatch[]
}

export interface HeaderMutation {
  /** Replaces all values. Values may contain `%REQ(name)%` and the other variables of proxy/request/header-variables.ts. */
  readonly set: readonly { readonly name: string; readonly value: string }[]
  readonly add: readonly { readonly name: string; readonly value: string }[]
  readonly remove: readonly string[]
}

export interface Backend {
  /** Name of a cluster of the IR. */
  readonly cluster: string
  readonly weight: number
  readonly requestHeaders?: HeaderMutation
  readonly responseHeaders?: HeaderMutation
  /** Host that the backend sees. */
  readonly host?: string
}

export interface Mirror {
  readonly cluster: string
  /** Percent of the requests. */
  readonly percent: number
}

export interface Retry {
  readonly count: number
  /** Conditions with Envoy's names: `5xx`, `gateway-error`, `connect-failure`, `reset`, `retriable-4xx`, … */
  readonly on: readonly string[]
  readonly statusCodes: readonly number[]
  readonly perTryTimeoutMs?: number
}

export type PathRewrite =
  /** Replaces the matched prefix. */
  { readonly kind: 'prefix'; readonly value: string } | { readonly kind: 'full'; readonly value: string }

/** What the hash of consistent load balancing is taken from. */
export type HashSource =
  | { readonly kind: 'sourceIp' }
  | { readonly kind: 'header'; readonly name: string }
  | { readonly kind: 'query'; readonly name: string }
  /** A cookie that the proxy sets if the request has none. */
  | { readonly kind: 'cookie'; readonly name: string }

export type Action =
  | {
      readonly kind: 'forward'
      /** Never empty; a share of weight that no backend can take is answered with `unavailableStatus`. */
      readonly backends: readonly Backend[]
      /** Weight of the backends that cannot be resolved; these requests get 500 (Gateway API). */
      readonly invalidWeight?: number
      readonly mirrors: readonly Mirror[]
      readonly rewrite?: PathRewrite
      readonly host?: string
      readonly hash: readonly HashSource[]
      readonly retry?: Retry
      /** From the end of the request to the end of the response. @default 15 s */
      readonly timeoutMs: number
      /** Without any data in either direction. @default 5 min */
      readonly idleTimeoutMs: number
      readonly hasWebsocket: boolean
    }
  | {
      readonly kind: 'redirect'
      readonly status: number
      readonly scheme?: string
      readonly host?: string
      readonly port?: number
      readonly path?: PathRewrite
    }
  | { readonly kind: 'direct'; readonly status: number; readonly body: string }

export interface Cors {
  readonly allowOrigins: readonly { readonly kind: 'exact' | 'regex'; readonly value: string }[]
  readonly allowMethods: readonly string[]
  readonly allowHeaders: readonly string[]
  readonly exposeHeaders: readonly string[]
  readonly allowCredentials: boolean
  readonly maxAgeSeconds?: number
  /** Preflights of other origins go to the backend, as in Contour; else they are answered without any permission. */
  readonly forwardsOtherPreflights?: boolean
}

/** A token bucket of each proxy process. */
export interface RateLimit {
  readonly tokens: number
  readonly burst: number
  readonly intervalMs: number
  readonly status: number
  readonly headers: readonly { readonly name: string; readonly value: string }[]
}

export interface Route {
  readonly match: Match
  readonly action: Action
  /** Requests over plain HTTP are redirected to HTTPS before the action. */
  readonly upgradesToHttps: boolean
  readonly requestHeaders?: HeaderMutation
  readonly responseHeaders?: HeaderMutation
  readonly cors?: Cors
  readonly rateLimit?: RateLimit
  readonly origin: Origin
  /** Order among routes that are otherwise equally specific: text order; age, name and rule of Gateway API routes. */
  readonly order: string
}

export interface TlsTermination {
  /** Name of a certificate of the IR. */
  readonly certificate: string
  readonly minVersion: TlsVersion
  readonly maxVersion: TlsVersion
  readonly clientValidation?: ClientValidation
}

export type TlsVersion = '1.2' | '1.3'

export interface ClientValidation {
  /** PEM bundle; empty: any certificate is accepted. */
  readonly ca: string
  readonly isOptional: boolean
}

export interface VirtualHost {
  /** A name, `*.name`, or `*` for every host. */
  readonly host: string
  /** Most specific first. */
  readonly routes: readonly Route[]
  /** Only on the HTTPS listener. */
  readonly tls?: TlsTermination
  /** A TLS connection for one host of a group carries requests for all of them; without one, for its own host only. */
  readonly group?: string
  /** TLS connections are forwarded unread, or after termination if `tls` is set, to these backends; `routes` is empty. */
  readonly tcp?: TcpForwarding
  readonly rateLimit?: RateLimit
}

export interface TcpForwarding {
  /** Never empty. */
  readonly backends: readonly Backend[]
  /** Weight of the backends that cannot be resolved; these connections are closed (Gateway API). */
  readonly invalidWeight?: number
}

export interface Listener {
  readonly protocol: 'http' | 'https'
  /** The port of a Gateway that this listener is for. Undefined: the main listener of the protocol. */
  readonly port?: number
  /** Sorted by host. */
  readonly hosts: readonly VirtualHost[]
}

export interface HealthCheck {
  readonly path: string
  readonly host: string
  readonly intervalMs: number
  readonly timeoutMs: number
  readonly unhealthyThreshold: number
  readonly healthyThreshold: number
  /** Half-open ranges. Empty: 200. */
  readonly expectedStatuses: readonly { readonly start: number; readonly end: number }[]
}

export interface CircuitBreakers {
  readonly maxConnections?: number
  readonly maxPendingRequests?: number
  readonly maxRequests?: number
  readonly maxRetries?: number
}

export interface UpstreamTls {
  readonly sni?: string
  /** Undefined: the certificate of the backend is not verified. `subjectNames`: DNS names or URIs, one of which it must have. */
  readonly validation?: { readonly ca: string; readonly subjectNames: readonly string[] }
}

export type Upstream =
  /** Ready endpoints of a Service port; `name` is `namespace/service/portName`. */
  | { readonly kind: 'endpoints'; readonly name: string }
  | { readonly kind: 'dns'; readonly host: string; readonly port: number }
  /** Addresses or names of other clusters' gateways. Those of the lowest priority with a healthy one get the requests. */
  | { readonly kind: 'addresses'; readonly addresses: readonly WeightedAddress[] }

export interface WeightedAddress {
  readonly host: string
  readonly port: number
  /** A positive integer. */
  readonly weight: number
  /** 0 is used first. Without gaps. */
  readonly priority: number
}

export interface Cluster {
  readonly name: string
  readonly upstream: Upstream
  readonly protocol: 'http1' | 'h2c' | 'tls' | 'h2'
  readonly tls?: UpstreamTls
  readonly balancing: 'roundRobin' | 'leastRequest' | 'random' | 'hash'
  readonly healthCheck?: HealthCheck
  readonly circuitBreakers?: CircuitBreakers
  readonly connectTimeoutMs: number
}

/** A serving certificate; the name contains a hash of the content, so that a rotation is a new name. */
export interface Certificate {
  readonly name: string
  readonly chain: string
  readonly key: string
}

export interface Ir {
  /** The main ones, `http` and `https`; then those of other ports of Gateways, by protocol and port. */
  readonly listeners: readonly Listener[]
  readonly clusters: readonly Cluster[]
  readonly certificates: readonly Certificate[]
}
