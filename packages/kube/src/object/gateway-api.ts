/** Gateway API: the fields that the operator and the gateway read or write. */
import type { Condition } from './conditions.ts'
import { kind, type Obj } from './object.ts'

const GROUP = 'gateway.networking.k8s.io'

type RouteCondition = Partial<Condition> & { type: string; status: 'True' | 'False' | 'Unknown' }

export interface GatewayClass extends Obj {
  spec?: { controllerName?: string; parametersRef?: unknown }
  status?: { conditions?: Condition[]; supportedFeatures?: { name: string }[] }
}

export const GatewayClass = kind<GatewayClass>({
  group: GROUP,
  version: 'v1',
  kind: 'GatewayClass',
  plural: 'gatewayclasses',
  namespaced: false,
})

/** A reference to a CA bundle: a ConfigMap or Secret with the key `ca.crt`. */
export interface CaCertificateRef {
  group?: string
  kind?: string
  name: string
  namespace?: string
}

/** How certificates of clients are verified. */
export interface FrontendValidation {
  caCertificateRefs?: CaCertificateRef[]
  /** `AllowValidOnly` or `AllowInsecureFallback`. */
  mode?: string
}

export interface Listener {
  name: string
  hostname?: string
  port: number
  protocol: string
  tls?: { mode?: string; certificateRefs?: { group?: string; kind?: string; name: string; namespace?: string }[] }
  allowedRoutes?: {
    namespaces?: {
      from?: string
      selector?: {
        matchLabels?: Record<string, string>
        matchExpressions?: { key: string; operator: string; values?: string[] }[]
      }
    }
    kinds?: { group?: string; kind: string }[]
  }
}

export interface ListenerStatus {
  name: string
  supportedKinds: { group?: string; kind: string }[]
  attachedRoutes: number
  conditions: Condition[]
}

export interface Gateway extends Obj {
  spec?: {
    gatewayClassName?: string
    listeners?: Listener[]
    addresses?: { type?: string; value?: string }[]
    tls?: {
      frontend?: {
        default?: { validation?: FrontendValidation }
        perPort?: { port: number; tls?: { validation?: FrontendValidation } }[]
      }
    }
  }
  status?: {
    addresses?: { type?: string; value: string }[]
    conditions?: Condition[]
    listeners?: ListenerStatus[]
  }
}

export const Gateway = kind<Gateway>({
  group: GROUP,
  version: 'v1',
  kind: 'Gateway',
  plural: 'gateways',
  namespaced: true,
})

export interface ParentRef {
  group?: string
  kind?: string
  namespace?: string
  name: string
  sectionName?: string
  port?: number
}

export interface RouteParentStatus {
  parentRef: ParentRef
  controllerName?: string
  conditions?: RouteCondition[]
}

export interface BackendRef {
  group?: string
  kind?: string
  name: string
  namespace?: string
  port?: number
  weight?: number
  filters?: RouteFilter[]
}

export interface HeaderFilter {
  set?: { name: string; value: string }[]
  add?: { name: string; value: string }[]
  remove?: string[]
}

export interface PathModifier {
  type: string
  replaceFullPath?: string
  replacePrefixMatch?: string
}

export interface RouteFilter {
  type: string
  requestHeaderModifier?: HeaderFilter
  responseHeaderModifier?: HeaderFilter
  requestMirror?: { backendRef: BackendRef; percent?: number; fraction?: { numerator: number; denominator?: number } }
  requestRedirect?: { scheme?: string; hostname?: string; path?: PathModifier; port?: number; statusCode?: number }
  urlRewrite?: { hostname?: string; path?: PathModifier }
  cors?: {
    allowOrigins?: string[]
    allowCredentials?: boolean
    allowMethods?: string[]
    allowHeaders?: string[]
    exposeHeaders?: string[]
    maxAge?: number
  }
  extensionRef?: unknown
}

export interface HTTPRouteMatch {
  path?: { type?: string; value?: string }
  headers?: { type?: string; name: string; value: string }[]
  queryParams?: { type?: string; name: string; value: string }[]
  method?: string
}

export interface HTTPRouteRule {
  name?: string
  matches?: HTTPRouteMatch[]
  filters?: RouteFilter[]
  backendRefs?: BackendRef[]
  timeouts?: { request?: string; backendRequest?: string }
  retry?: { codes?: number[]; attempts?: number; backoff?: string }
}

export interface HTTPRoute extends Obj {
  spec?: { parentRefs?: ParentRef[]; hostnames?: string[]; rules?: HTTPRouteRule[] }
  status?: { parents?: RouteParentStatus[] }
}

export const HTTPRoute = kind<HTTPRoute>({
  group: GROUP,
  version: 'v1',
  kind: 'HTTPRoute',
  plural: 'httproutes',
  namespaced: true,
})

export interface GRPCRoute extends Obj {
  spec?: {
    parentRefs?: ParentRef[]
    hostnames?: string[]
    rules?: {
      matches?: {
        method?: { type?: string; service?: string; method?: string }
        headers?: { type?: string; name: string; value: string }[]
      }[]
      filters?: RouteFilter[]
      backendRefs?: BackendRef[]
    }[]
  }
  status?: { parents?: RouteParentStatus[] }
}

export const GRPCRoute = kind<GRPCRoute>({
  group: GROUP,
  version: 'v1',
  kind: 'GRPCRoute',
  plural: 'grpcroutes',
  namespaced: true,
})

export interface TLSRoute extends Obj {
  spec?: {
    parentRefs?: ParentRef[]
    hostnames?: string[]
    rules?: { name?: string; backendRefs?: BackendRef[] }[]
  }
  status?: { parents?: RouteParentStatus[] }
}

export const TLSRoute = kind<TLSRoute>({
  group: GROUP,
  version: 'v1',
  kind: 'TLSRoute',
  plural: 'tlsroutes',
  namespaced: true,
})

export interface BackendTLSPolicy extends Obj {
  spec?: {
    targetRefs?: { group?: string; kind?: string; name: string; sectionName?: string }[]
    validation?: {
      caCertificateRefs?: CaCertificateRef[]
      wellKnownCACertificates?: string
      hostname?: string
      subjectAltNames?: { type: string; hostname?: string; uri?: string }[]
    }
  }
  status?: { ancestors?: { ancestorRef: ParentRef; controllerName?: string; conditions?: RouteCondition[] }[] }
}

export const BackendTLSPolicy = kind<BackendTLSPolicy>({
  group: GROUP,
  version: 'v1',
  kind: 'BackendTLSPolicy',
  plural: 'backendtlspolicies',
  namespaced: true,
})

export interface ReferenceGrant extends Obj {
  spec?: {
    from?: { group: string; kind: string; namespace: string }[]
    to?: { group: string; kind: string; name?: string }[]
  }
}

export const ReferenceGrant = kind<ReferenceGrant>({
  group: GROUP,
  version: 'v1beta1',
  kind: 'ReferenceGrant',
  plural: 'referencegrants',
  namespaced: true,
})
