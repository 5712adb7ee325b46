/** OpenShift's `Route`: host, the routers that admitted it, and the Secret of its certificate. */
import { kind, type Obj } from '@seamark/kube/object'

export interface Route extends Obj {
  spec?: {
    host?: string
    tls?: { termination?: string; externalCertificate?: { name?: string } }
  }
  status?: {
    ingress?: {
      host?: string
      routerName?: string
      routerCanonicalHostname?: string
      conditions?: { type: string; status: string }[]
    }[]
  }
}

export const Route = kind<Route>({
  group: 'route.openshift.io',
  version: 'v1',
  kind: 'Route',
  plural: 'routes',
  namespaced: true,
})
