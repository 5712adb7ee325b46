/** Gateway API: the fields that decide which host names an HTTPRoute serves, and which Secrets a Gateway uses. */
import { kind, type Obj } from '@seamark/kube/object'

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

export interface Gateway extends Obj {
  spec?: { gatewayClassName?: string; listeners?: Listener[] }
  status?: { addresses?: { type?: string; value: string }[] }
}

export const Gateway = kind<Gateway>({
  group: 'gateway.networking.k8s.io',
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

export interface HTTPRoute extends Obj {
  spec?: { parentRefs?: ParentRef[]; hostnames?: string[] }
  status?: {
    parents?: {
      parentRef: ParentRef
      conditions?: { type: string; status: string; reason?: string }[]
    }[]
  }
}

export const HTTPRoute = kind<HTTPRoute>({
  group: 'gateway.networking.k8s.io',
  version: 'v1',
  kind: 'HTTPRoute',
  plural: 'httproutes',
  namespaced: true,
})

export interface ReferenceGrant extends Obj {
  spec?: {
    from?: { group: string; kind: string; namespace: string }[]
    to?: { group: string; kind: string; name?: string }[]
  }
}

export const ReferenceGrant = kind<ReferenceGrant>({
  group: 'gateway.networking.k8s.io',
  version: 'v1beta1',
  kind: 'ReferenceGrant',
  plural: 'referencegrants',
  namespaced: true,
})
