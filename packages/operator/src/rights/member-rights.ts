/** What the manager asks a registered cluster for: the roles that `seamark cluster add` creates there. */
import type { Right } from './right.ts'

const FOLLOW = ['list', 'watch']
const WRITE = ['get', ...FOLLOW, 'create', 'patch', 'delete']

const row = (group: string, resource: string, verbs: readonly string[], why: string): Right => ({
  group,
  resource,
  verbs,
  place: 'cluster',
  why,
})

/** Without one that is not optional a member is not ready. */
export const MEMBER_ROLE: readonly Right[] = [
  row('networking.k8s.io', 'ingresses', WRITE, 'leaves'),
  row('gateway.networking.k8s.io', 'httproutes', WRITE, 'leaves'),
  row('route.openshift.io', 'routes', WRITE, 'leaves'),
  {
    ...row(
      'route.openshift.io',
      'routes/custom-host',
      ['create', 'patch'],
      'the host of a leaf, which OpenShift guards',
    ),
    isAskedByServer: true,
  },
  row('gateway.networking.k8s.io', 'gateways', FOLLOW, 'the addresses of leaves'),
  row('discovery.k8s.io', 'endpointslices', FOLLOW, 'whether a backend has an address'),
  row('', 'services', FOLLOW, 'the backends of leaves'),
  { ...row('', 'services', ['get'], 'a cache that came back short decides nothing'), isRare: true },
  row('', 'namespaces', ['get'], 'who the cluster is, by the UID of kube-system'),
  {
    ...row(
      'apiextensions.k8s.io',
      'customresourcedefinitions',
      FOLLOW,
      'to notice at once that a kind of roots is installed; else it is looked for from time to time',
    ),
    isOptional: true,
    isRare: true,
  },
]

/** With `seamark cluster add --create-namespaces`. */
export const MEMBER_NAMESPACES: readonly Right[] = [
  row('', 'namespaces', ['create'], 'the namespace of a leaf, where it is not there'),
]

/** With `seamark cluster add --wildcard`, in a role of its own. */
export const WILDCARD_ROLE: readonly Right[] = [row('', 'nodes', FOLLOW, 'addresses of ready nodes')]

/** In each namespace whose TLS Secrets are copied (examples/fleet/member-tls.yaml). */
export const MEMBER_TLS_ROLE: readonly Right[] = [
  {
    ...row('', 'secrets', ['get', 'create', 'patch', 'delete'], 'copies of TLS Secrets, with fleet.tlsSecrets'),
    place: 'home',
  },
  { ...row('', 'secrets', ['list'], 'copies that no leaf names any more'), place: 'home', isRare: true },
]
