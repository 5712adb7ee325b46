/**
 * What the manager asks the API server of its own cluster for, by the part of a capability that needs it. `test/chart` runs each
 * part under exactly these rights, and compares them with the audit log of a kube-apiserver in both directions.
 */
import type { Right } from './right.ts'

/** A setting of the manager that switches a part on: it has the value, or, without one, is not empty. */
export interface Condition {
  readonly setting: string
  readonly is?: boolean | string
}

export interface Part {
  readonly when: readonly Condition[]
  readonly rights: readonly Right[]
}

const READ = ['get', 'list', 'watch']
const FOLLOW = ['list', 'watch']

const CORE = ''
const INGRESS = 'networking.k8s.io'
const GATEWAY = 'gateway.networking.k8s.io'
const CONTOUR = 'projectcontour.io'
const FORMER_CONTOUR = 'contour.heptio.com'
const ROUTE = 'route.openshift.io'
const CERTIFICATES = 'cert-manager.io'
const ENDPOINTS = 'externaldns.k8s.io'
const BALANCE = 'loadbalancer.gardener.cloud'
const FLEET = 'seamark.io'
const CRDS = 'apiextensions.k8s.io'
const WEBHOOKS = 'admissionregistration.k8s.io'

type Row = readonly [group: string, resources: string, verbs: readonly string[], why: string, more?: Partial<Right>]

/** Resources are separated by blanks. */
function rows(place: Right['place'], ...list: readonly Row[]): Right[] {
  return list.flatMap(([group, resources, verbs, why, more]) =>
    resources.split(' ').map((resource) => ({ group, resource, verbs, place, why, ...more })),
  )
}

const ASKED_BY_SERVER = { isAskedByServer: true }
const RARE = { isRare: true }
const RARE_WHY = 'a cache that contradicts what was written, or came back short, decides nothing'
const OWNERS_WHY = 'owner references to it, where the API server guards them (OpenShift)'

const manager: Right[] = [
  ...rows(
    'home',
    ['coordination.k8s.io', 'leases', ['get', 'create', 'update'], 'the Lease of the replica that writes'],
    [
      CORE,
      'configmaps',
      [...READ, 'create', 'patch'],
      'the kill switch, approvals, what is held, and Events about the configuration',
    ],
    [
      ENDPOINTS,
      'dnsendpoints',
      FOLLOW,
      'records that the page shows, where no capability reads those of all namespaces',
    ],
  ),
  ...rows(
    'cluster',
    [
      'coordination.k8s.io',
      'leases',
      ['list'],
      'other managers of the same objects are looked for before the first write',
    ],
    [
      CORE,
      'configmaps',
      ['get'],
      'the lock of older versions of dnslb-controller-manager, which is such a manager',
      { names: ['dnslb-controller-manager-lease'] },
    ],
    ['events.k8s.io', 'events', ['create', 'patch'], 'reports on the objects that they are about'],
    [
      'events.k8s.io',
      'events',
      ['list', 'watch'],
      'what was reported minutes before a restart is not reported again; the history of the page',
    ],
    [
      CRDS,
      'customresourcedefinitions',
      READ,
      'kinds that are installed later, and what their schemas allow',
      { isOptional: true },
    ],
  ),
]

const publish: Right[] = rows(
  'cluster',
  [CORE, 'services', FOLLOW, 'addresses of load balancers; Services that name a host'],
  [CORE, 'namespaces', FOLLOW, 'their labels, which the listeners of Gateways select by'],
  [INGRESS, 'ingresses', FOLLOW, 'hosts that are declared'],
  [GATEWAY, 'gateways httproutes', FOLLOW, 'hosts that are declared'],
  [GATEWAY, 'referencegrants', FOLLOW, 'which namespaces may refer to a Secret of another one'],
  [CONTOUR, 'httpproxies', FOLLOW, 'hosts that are declared'],
  [FORMER_CONTOUR, 'ingressroutes', FOLLOW, 'hosts that are declared'],
  [ROUTE, 'routes', FOLLOW, 'hosts that are declared'],
  [INGRESS, 'ingressclasses', FOLLOW, 'which objects are roots of a fleet, and left to it'],
  [GATEWAY, 'gatewayclasses', FOLLOW, 'which objects are roots of a fleet, and left to it'],
  [BALANCE, 'dnsloadbalancers', FOLLOW, 'hosts that a load balancer publishes'],
  [CORE, 'services', ['patch'], 'the finalizer of a source whose objects are in another namespace'],
  [INGRESS, 'ingresses', ['patch'], 'the finalizer of a source whose objects are in another namespace'],
  [GATEWAY, 'gateways httproutes', ['patch'], 'the finalizer of a source whose objects are in another namespace'],
  [CONTOUR, 'httpproxies', ['patch'], 'the finalizer of a source whose objects are in another namespace'],
  [FORMER_CONTOUR, 'ingressroutes', ['patch'], 'the finalizer of a source whose objects are in another namespace'],
  [ROUTE, 'routes', ['patch'], 'the finalizer of a source whose objects are in another namespace'],
  [CORE, 'services', ['get'], RARE_WHY, RARE],
  [INGRESS, 'ingresses', ['get'], RARE_WHY, RARE],
  [GATEWAY, 'gateways httproutes', ['get'], RARE_WHY, RARE],
  [CONTOUR, 'httpproxies', ['get'], RARE_WHY, RARE],
  [FORMER_CONTOUR, 'ingressroutes', ['get'], RARE_WHY, RARE],
  [ROUTE, 'routes', ['get'], RARE_WHY, RARE],
  [CONTOUR, 'httpproxies/status', ['patch'], 'the condition seamark.io/Published'],
  [CORE, 'services/finalizers', ['update'], OWNERS_WHY, ASKED_BY_SERVER],
  [INGRESS, 'ingresses/finalizers', ['update'], OWNERS_WHY, ASKED_BY_SERVER],
  [GATEWAY, 'gateways/finalizers httproutes/finalizers', ['update'], OWNERS_WHY, ASKED_BY_SERVER],
  [CONTOUR, 'httpproxies/finalizers', ['update'], OWNERS_WHY, ASKED_BY_SERVER],
  [FORMER_CONTOUR, 'ingressroutes/finalizers', ['update'], OWNERS_WHY, ASKED_BY_SERVER],
  [ROUTE, 'routes/finalizers', ['update'], OWNERS_WHY, ASKED_BY_SERVER],
  [ENDPOINTS, 'dnsendpoints', [...READ, 'create', 'patch', 'delete'], 'records of the hosts'],
  [CERTIFICATES, 'certificates', [...READ, 'create', 'patch', 'delete'], 'certificates of the hosts'],
  [CONTOUR, 'tlscertificatedelegations', [...READ, 'create', 'patch', 'delete'], 'certificates in another namespace'],
)

const wildcard: Right[] = rows(
  'home',
  [CORE, 'secrets', READ, 'the kubeconfigs of registered clusters: they are selected by a label, which RBAC cannot do'],
  [CORE, 'secrets/finalizers', ['update'], OWNERS_WHY, ASKED_BY_SERVER],
  [ENDPOINTS, 'dnsendpoints', [...READ, 'create', 'patch', 'delete'], 'the wildcard record of each cluster'],
  [ENDPOINTS, 'dnsendpoints/status', ['patch'], 'what is reported on it, where its schema has conditions', RARE],
)

const localNodes: Right[] = rows('cluster', [CORE, 'nodes', FOLLOW, 'the nodes of the cluster of the manager'])

const fleet: Right[] = [
  ...rows('home', [
    CORE,
    'secrets',
    FOLLOW,
    'the kubeconfigs of members: they are selected by a label, which RBAC cannot do',
  ]),
  ...rows(
    'cluster',
    [
      CORE,
      'namespaces',
      ['get'],
      'the UID of kube-system, by which members recognise their hub',
      { names: ['kube-system'] },
    ],
    [CORE, 'services', FOLLOW, 'labels that name the clusters of a root'],
    [INGRESS, 'ingresses', [...READ, 'patch'], 'roots, their finalizer and what they report'],
    [GATEWAY, 'httproutes', [...READ, 'patch'], 'roots, their finalizer and what they report'],
    [ROUTE, 'routes', [...READ, 'patch'], 'roots, their finalizer and what they report'],
    [INGRESS, 'ingresses/finalizers', ['update'], OWNERS_WHY, ASKED_BY_SERVER],
    [GATEWAY, 'httproutes/finalizers', ['update'], OWNERS_WHY, ASKED_BY_SERVER],
    [ROUTE, 'routes/finalizers', ['update'], OWNERS_WHY, ASKED_BY_SERVER],
    [FLEET, 'globalingresses/finalizers clusters/finalizers', ['update'], OWNERS_WHY, ASKED_BY_SERVER],
    [INGRESS, 'ingresses/status', ['patch'], 'the addresses of a root'],
    [GATEWAY, 'httproutes/status', ['update'], 'the conditions of a root, beside those of others'],
    [ROUTE, 'routes/status', ['update'], 'the conditions of a root, beside those of others'],
    [INGRESS, 'ingressclasses', READ, 'which objects are roots'],
    [GATEWAY, 'gatewayclasses gateways', READ, 'which objects are roots'],
    [FLEET, 'clusters', ['get'], RARE_WHY, RARE],
    [FLEET, 'clusters', [...FOLLOW, 'patch'], 'members, and the finalizer of one that has leaves'],
    [FLEET, 'clusters/status', ['patch'], 'whether a member is ready, and what it serves'],
    [FLEET, 'globalingresspolicies', READ, 'where roots are placed'],
    [FLEET, 'domainverifications', FOLLOW, 'domains that a namespace has proven to have'],
    [FLEET, 'domainverifications/status', ['patch'], 'the token, and whether it was found'],
    [FLEET, 'globalingresses leafingresses', [...READ, 'create', 'patch', 'delete'], 'what is decided about a root'],
    [FLEET, 'hostclaims', [...READ, 'create', 'update', 'delete'], 'which root has a host'],
    [FLEET, 'globalingresses/status leafingresses/status', ['patch'], 'what became of it on members'],
    [
      BALANCE,
      'dnsloadbalancers dnsloadbalancerendpoints',
      [...READ, 'create', 'patch', 'delete'],
      'the records of a root',
    ],
  ),
]

const tlsSecrets: Right[] = rows('cluster', [
  CORE,
  'secrets',
  FOLLOW,
  'TLS Secrets with the label seamark.io/sync: "true" in any namespace, which RBAC cannot select by',
])

const balance: Right[] = rows(
  'cluster',
  [CORE, 'services', [...FOLLOW, 'patch'], 'annotated objects, and their finalizer'],
  [INGRESS, 'ingresses', [...FOLLOW, 'patch'], 'annotated objects, and their finalizer'],
  [GATEWAY, 'gateways', [...FOLLOW, 'patch'], 'annotated objects, and their finalizer'],
  [BALANCE, 'dnsloadbalancers', FOLLOW, 'names with endpoints'],
  [BALANCE, 'dnsloadbalancers', ['get'], RARE_WHY, RARE],
  [BALANCE, 'dnsloadbalancers/status', ['patch'], 'what is published, and why'],
  [BALANCE, 'dnsloadbalancers/finalizers', ['update'], OWNERS_WHY, ASKED_BY_SERVER],
  [BALANCE, 'dnsloadbalancerendpoints', [...READ, 'create', 'patch', 'delete'], 'endpoints of annotated objects'],
  [BALANCE, 'dnsloadbalancerendpoints/status', ['patch'], 'what the probes say'],
  [ENDPOINTS, 'dnsendpoints', [...READ, 'create', 'patch', 'delete'], 'records of the names'],
)

const records: Right[] = [
  ...rows(
    'home',
    [CORE, 'configmaps', ['update'], 'the state of the guards, and applied plans'],
    [CORE, 'configmaps', ['delete'], 'the oldest of many applied plans', RARE],
    [CORE, 'secrets', ['get'], 'credentials of DNS providers, by the names that the configuration gives'],
  ),
  ...rows(
    'cluster',
    [
      CORE,
      'namespaces',
      ['get'],
      'the UID of kube-system, which ownership markers contain',
      { names: ['kube-system'] },
    ],
    [ENDPOINTS, 'dnsendpoints', FOLLOW, 'what is served'],
    [ENDPOINTS, 'dnsendpoints/status', ['patch'], 'whether it is served'],
  ),
]

const dns: Right[] = [
  ...rows(
    'home',
    [CORE, 'configmaps', ['update'], 'the zones'],
    [CORE, 'configmaps', ['delete'], 'the former snapshot of a large zone', RARE],
    [CORE, 'secrets', ['get'], 'TSIG keys, by the names that the configuration gives'],
  ),
  ...rows(
    'cluster',
    [
      CORE,
      'namespaces',
      ['get'],
      'the UID of kube-system, which ownership markers contain',
      { names: ['kube-system'] },
    ],
    [ENDPOINTS, 'dnsendpoints', FOLLOW, 'what is served'],
    [ENDPOINTS, 'dnsendpoints/status', ['patch'], 'whether it is served'],
  ),
]

const gateway: Right[] = rows(
  'cluster',
  [CORE, 'secrets', FOLLOW, 'certificates, which are in the namespaces of the routes'],
  [CORE, 'configmaps', FOLLOW, 'authorities of backends, which are in the namespaces of the routes'],
  [CORE, 'services namespaces', FOLLOW, 'backends, and labels of namespaces'],
  ['discovery.k8s.io', 'endpointslices', FOLLOW, 'addresses of backends'],
  [INGRESS, 'ingresses', FOLLOW, 'routes'],
  [INGRESS, 'ingresses/status', ['patch'], 'the addresses of the data plane'],
  [CONTOUR, 'httpproxies tlscertificatedelegations', FOLLOW, 'routes'],
  [CONTOUR, 'httpproxies/status', ['patch'], 'whether a route is valid'],
  [
    GATEWAY,
    'gatewayclasses gateways httproutes grpcroutes tlsroutes backendtlspolicies referencegrants',
    FOLLOW,
    'routes',
  ],
  [
    GATEWAY,
    'gatewayclasses/status gateways/status httproutes/status grpcroutes/status tlsroutes/status backendtlspolicies/status',
    ['patch'],
    'whether a route is accepted',
  ],
)

const globalGateway: Right[] = rows(
  'cluster',
  [CORE, 'secrets', FOLLOW, 'certificates, which are in the namespaces of the roots'],
  [FLEET, 'globalingresses', FOLLOW, 'hosts, and the clusters behind them'],
  [INGRESS, 'ingresses', FOLLOW, 'the certificates that roots name'],
  [CONTOUR, 'tlscertificatedelegations', FOLLOW, 'certificates of other namespaces'],
  ['discovery.k8s.io', 'endpointslices', FOLLOW, 'addresses of backends'],
)

const envoy: Right[] = rows(
  'home',
  [CORE, 'secrets', ['create'], 'the certificates of the xDS port and of Envoys; create cannot be limited to a name'],
  [CORE, 'secrets', ['get', 'update'], 'the same', { names: ['{{ .name }}-xds', '{{ .name }}-xds-client'] }],
)

const admission: Right[] = [
  ...rows(
    'home',
    [CORE, 'secrets', ['create'], 'the certificate of the webhooks; create cannot be limited to a name'],
    [CORE, 'secrets', ['get', 'update'], 'the same', { names: ['{{ .name }}-admission'] }],
  ),
  ...rows('cluster', [
    WEBHOOKS,
    'validatingwebhookconfigurations',
    ['get', 'patch'],
    'their CA bundles',
    { names: ['{{ .name }}'] },
  ]),
]

const LOAD_BALANCER_CRDS = ['dnsloadbalancers', 'dnsloadbalancerendpoints', 'dnsproviders'].map(
  (plural) => `${plural}.${BALANCE}`,
)

const balanceAdmission: Right[] = rows(
  'cluster',
  [
    WEBHOOKS,
    'mutatingwebhookconfigurations validatingwebhookconfigurations',
    ['get', 'patch'],
    'their CA bundles',
    { names: ['{{ .name }}-balance'] },
  ],
  [
    CRDS,
    'customresourcedefinitions',
    ['get', 'patch'],
    'the CA bundle of their conversion',
    { names: LOAD_BALANCER_CRDS },
  ],
)

const dashboard: Right[] = rows(
  'cluster',
  ['authentication.k8s.io', 'tokenreviews', ['create'], 'who reads the page, by the token that is given'],
  ['authorization.k8s.io', 'subjectaccessreviews', ['create'], 'what that person may see'],
)

const installCRDs: Right[] = rows('cluster', [
  CRDS,
  'customresourcedefinitions',
  ['get', 'create', 'patch'],
  "the CRDs of Seamark's own kinds, which the manager creates and keeps current",
])

const on = (capability: string): Condition => ({ setting: `${capability}.enabled`, is: true })

/** In the order of the documents. */
export const MANAGER_PARTS = {
  manager: { when: [], rights: manager },
  publish: { when: [on('publish')], rights: publish },
  wildcard: { when: [on('wildcard')], rights: wildcard },
  'wildcard.localCluster': { when: [on('wildcard'), { setting: 'wildcard.localCluster' }], rights: localNodes },
  fleet: { when: [on('fleet')], rights: fleet },
  'fleet.tlsSecrets': { when: [on('fleet'), { setting: 'fleet.tlsSecrets', is: true }], rights: tlsSecrets },
  balance: { when: [on('balance')], rights: balance },
  records: { when: [on('records')], rights: records },
  dns: { when: [{ setting: 'dns.listen' }], rights: dns },
  gateway: { when: [on('gateway'), { setting: 'gateway.mode', is: 'cluster' }], rights: gateway },
  'gateway.global': { when: [on('gateway'), { setting: 'gateway.mode', is: 'global' }], rights: globalGateway },
  'gateway.envoy': { when: [on('gateway'), { setting: 'gateway.xdsSecret' }], rights: envoy },
  admission: { when: [{ setting: 'admission.address' }], rights: admission },
  'admission.balance': { when: [{ setting: 'admission.address' }, on('balance')], rights: balanceAdmission },
  dashboard: { when: [{ setting: 'dashboard.certFile' }], rights: dashboard },
  installCRDs: { when: [{ setting: 'installCRDs', is: true }], rights: installCRDs },
} as const satisfies Readonly<Record<string, Part>>

export type PartName = keyof typeof MANAGER_PARTS

/** The parts that a configuration has on. */
export function partsOf(valueAt: (setting: string) => unknown): PartName[] {
  const holds = ({ setting, is }: Condition): boolean => {
    const value = valueAt(setting)
    return is === undefined
      ? !(value === '' || value === undefined || (Array.isArray(value) && value.length === 0))
      : value === is
  }
  return (Object.keys(MANAGER_PARTS) as PartName[]).filter((part) => MANAGER_PARTS[part].when.every(holds))
}
