/**
 * Tokens of the built-in kinds used by this project, typed only as far as they are used.
 */
import { kind, type Obj } from './object.ts'

export interface Namespace extends Obj {
  spec?: { finalizers?: string[] }
  status?: { phase?: 'Active' | 'Terminating' }
}
export const Namespace = kind<Namespace>({
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  namespaced: false,
})

export interface LoadBalancerIngress {
  ip?: string
  hostname?: string
}

export interface ServicePort {
  name?: string
  port: number
  protocol?: 'TCP' | 'UDP' | 'SCTP'
  targetPort?: number | string
  appProtocol?: string
  nodePort?: number
}

export interface Service extends Obj {
  spec?: {
    type?: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName'
    clusterIP?: string
    externalName?: string
    externalIPs?: string[]
    loadBalancerClass?: string
    selector?: Record<string, string>
    ports?: ServicePort[]
  }
  status?: { loadBalancer?: { ingress?: LoadBalancerIngress[] } }
}
export const Service = kind<Service>({
  group: '',
  version: 'v1',
  kind: 'Service',
  plural: 'services',
  namespaced: true,
})

export interface Secret extends Obj {
  type?: string
  /** Base64. */
  data?: Record<string, string>
  stringData?: Record<string, string>
  immutable?: boolean
}
export const Secret = kind<Secret>({ group: '', version: 'v1', kind: 'Secret', plural: 'secrets', namespaced: true })

export interface ConfigMap extends Obj {
  data?: Record<string, string>
  binaryData?: Record<string, string>
  immutable?: boolean
}
export const ConfigMap = kind<ConfigMap>({
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  namespaced: true,
})

export interface Node extends Obj {
  spec?: {
    unschedulable?: boolean
    taints?: { key: string; value?: string; effect: string }[]
    providerID?: string
  }
  status?: {
    addresses?: { type: 'InternalIP' | 'ExternalIP' | 'Hostname' | 'InternalDNS' | 'ExternalDNS'; address: string }[]
    conditions?: { type: string; status: 'True' | 'False' | 'Unknown'; reason?: string; message?: string }[]
  }
}
export const Node = kind<Node>({ group: '', version: 'v1', kind: 'Node', plural: 'nodes', namespaced: false })

export interface Lease extends Obj {
  spec?: {
    holderIdentity?: string
    leaseDurationSeconds?: number
    /** RFC 3339 with microseconds. */
    acquireTime?: string
    renewTime?: string
    leaseTransitions?: number
  }
}
export const Lease = kind<Lease>({
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  namespaced: true,
})

export interface ObjectReference {
  apiVersion?: string
  kind?: string
  name?: string
  namespace?: string
  uid?: string
  resourceVersion?: string
  fieldPath?: string
}

export interface Event extends Obj {
  /** RFC 3339 with microseconds. */
  eventTime: string
  reportingController?: string
  reportingInstance?: string
  action?: string
  reason?: string
  regarding?: ObjectReference
  related?: ObjectReference
  note?: string
  type?: 'Normal' | 'Warning'
  series?: { count: number; lastObservedTime: string }
}
export const Event = kind<Event>({
  group: 'events.k8s.io',
  version: 'v1',
  kind: 'Event',
  plural: 'events',
  namespaced: true,
})

export interface CustomResourceDefinitionVersion {
  name: string
  served: boolean
  storage: boolean
  schema?: { openAPIV3Schema?: Record<string, unknown> }
  deprecated?: boolean
  deprecationWarning?: string
  subresources?: { status?: Record<string, never> }
  additionalPrinterColumns?: { name: string; type: string; jsonPath: string; description?: string; priority?: number }[]
}

export interface WebhookClientConfig {
  url?: string
  service?: { namespace: string; name: string; path?: string; port?: number }
  /** Base64 of a PEM bundle. */
  caBundle?: string
}

export interface CustomResourceDefinition extends Obj {
  spec: {
    group: string
    scope: 'Namespaced' | 'Cluster'
    names: {
      kind: string
      plural: string
      singular?: string
      listKind?: string
      shortNames?: string[]
      categories?: string[]
    }
    versions: CustomResourceDefinitionVersion[]
    conversion?: {
      strategy: 'None' | 'Webhook'
      webhook?: { clientConfig?: WebhookClientConfig; conversionReviewVersions: string[] }
    }
  }
  status?: { conditions?: { type: string; status: 'True' | 'False' | 'Unknown'; reason?: string }[] }
}
export const CustomResourceDefinition = kind<CustomResourceDefinition>({
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
})

export interface IngressBackend {
  service?: { name: string; port?: { name?: string; number?: number } }
}

export interface Ingress extends Obj {
  spec?: {
    ingressClassName?: string
    defaultBackend?: IngressBackend
    tls?: { hosts?: string[]; secretName?: string }[]
    rules?: {
      host?: string
      http?: {
        paths: { path?: string; pathType: 'Exact' | 'Prefix' | 'ImplementationSpecific'; backend: IngressBackend }[]
      }
    }[]
  }
  status?: { loadBalancer?: { ingress?: LoadBalancerIngress[] } }
}
export const Ingress = kind<Ingress>({
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'Ingress',
  plural: 'ingresses',
  namespaced: true,
})

export interface IngressClass extends Obj {
  spec?: { controller?: string }
}
export const IngressClass = kind<IngressClass>({
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'IngressClass',
  plural: 'ingressclasses',
  namespaced: false,
})

export interface EndpointSlice extends Obj {
  addressType?: 'IPv4' | 'IPv6' | 'FQDN'
  endpoints?: {
    addresses: string[]
    conditions?: { ready?: boolean; serving?: boolean; terminating?: boolean }
  }[]
  ports?: { name?: string; port?: number; protocol?: string; appProtocol?: string }[]
}
export const EndpointSlice = kind<EndpointSlice>({
  group: 'discovery.k8s.io',
  version: 'v1',
  kind: 'EndpointSlice',
  plural: 'endpointslices',
  namespaced: true,
})
