/** The default cluster roles and bindings of every cluster. */
import type { ApiObject, Json } from '../codec/object-shape.ts'

const apiVersion = 'rbac.authorization.k8s.io/v1'
const group = 'rbac.authorization.k8s.io'
const labels = { 'kubernetes.io/bootstrapping': 'rbac-defaults' }
const annotations = { 'rbac.authorization.kubernetes.io/autoupdate': 'true' }

const all = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']
const write = ['create', 'delete', 'deletecollection', 'patch', 'update']
const read = ['get', 'list', 'watch']

function rule(apiGroups: string[], resources: string[], verbs: string[]): Json {
  return { apiGroups, resources, verbs }
}

function role(name: string, rules: Json[], aggregatesTo?: string): ApiObject {
  const aggregate =
    aggregatesTo === undefined ? {} : { [`rbac.authorization.k8s.io/aggregate-to-${aggregatesTo}`]: 'true' }
  return {
    apiVersion,
    kind: 'ClusterRole',
    metadata: { name, labels: { ...labels, ...aggregate }, annotations },
    rules,
  }
}

function aggregated(name: string, extraLabels: Record<string, string> = {}): ApiObject {
  const matchLabels = { [`rbac.authorization.k8s.io/aggregate-to-${name}`]: 'true' }
  return {
    apiVersion,
    kind: 'ClusterRole',
    metadata: { name, labels: { ...labels, ...extraLabels }, annotations },
    aggregationRule: { clusterRoleSelectors: [{ matchLabels }] },
    rules: null,
  }
}

function binding(name: string, groups: string[]): ApiObject {
  return {
    apiVersion,
    kind: 'ClusterRoleBinding',
    metadata: { name, labels, annotations },
    roleRef: { apiGroup: group, kind: 'ClusterRole', name },
    subjects: groups.map((subject) => ({ apiGroup: group, kind: 'Group', name: subject })),
  }
}

const coreView = [
  'configmaps',
  'endpoints',
  'persistentvolumeclaims',
  'persistentvolumeclaims/status',
  'pods',
  'replicationcontrollers',
  'replicationcontrollers/scale',
  'serviceaccounts',
  'services',
  'services/status',
]
const coreEdit = [
  'configmaps',
  'events',
  'persistentvolumeclaims',
  'replicationcontrollers',
  'replicationcontrollers/scale',
  'secrets',
  'serviceaccounts',
  'services',
]
const coreStatus = [
  'bindings',
  'events',
  'limitranges',
  'namespaces/status',
  'pods/log',
  'pods/status',
  'replicationcontrollers/status',
  'resourcequotas',
  'resourcequotas/status',
  'namespaces',
]
const appsEdit = [
  'daemonsets',
  'deployments',
  'deployments/rollback',
  'deployments/scale',
  'replicasets',
  'replicasets/scale',
  'statefulsets',
  'statefulsets/scale',
]
const appsView = [
  ...appsEdit,
  'controllerrevisions',
  'daemonsets/status',
  'deployments/status',
  'replicasets/status',
  'statefulsets/status',
]
const nonResource = [
  '/api',
  '/api/*',
  '/apis',
  '/apis/*',
  '/healthz',
  '/livez',
  '/openapi',
  '/openapi/*',
  '/readyz',
  '/version',
  '/version/',
]
const publicInfo = ['/healthz', '/livez', '/readyz', '/version', '/version/']

export const bootstrapRoles: readonly ApiObject[] = [
  role('cluster-admin', [
    { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
    { nonResourceURLs: ['*'], verbs: ['*'] },
  ]),
  aggregated('admin'),
  aggregated('edit', { 'rbac.authorization.k8s.io/aggregate-to-admin': 'true' }),
  aggregated('view', { 'rbac.authorization.k8s.io/aggregate-to-edit': 'true' }),
  role(
    'system:aggregate-to-admin',
    [
      rule(['authorization.k8s.io'], ['localsubjectaccessreviews'], ['create']),
      rule([group], ['rolebindings', 'roles'], all),
    ],
    'admin',
  ),
  role(
    'system:aggregate-to-edit',
    [
      rule([''], ['pods/attach', 'pods/exec', 'pods/portforward', 'pods/proxy', 'secrets', 'services/proxy'], read),
      rule([''], ['serviceaccounts'], ['impersonate']),
      rule([''], ['pods', 'pods/attach', 'pods/exec', 'pods/portforward', 'pods/proxy'], write),
      rule([''], ['pods/eviction'], ['create']),
      rule([''], coreEdit, write),
      rule([''], ['serviceaccounts/token'], ['create']),
      rule(['apps'], appsEdit, write),
      rule(['autoscaling'], ['horizontalpodautoscalers'], write),
      rule(['batch'], ['cronjobs', 'jobs'], write),
      rule(['networking.k8s.io'], ['ingresses', 'networkpolicies'], write),
      rule(['policy'], ['poddisruptionbudgets'], write),
      rule(['coordination.k8s.io'], ['leases'], all),
    ],
    'edit',
  ),
  role(
    'system:aggregate-to-view',
    [
      rule([''], coreView, read),
      rule([''], coreStatus, read),
      rule(['discovery.k8s.io'], ['endpointslices'], read),
      rule(['apps'], appsView, read),
      rule(['autoscaling'], ['horizontalpodautoscalers', 'horizontalpodautoscalers/status'], read),
      rule(['batch'], ['cronjobs', 'cronjobs/status', 'jobs', 'jobs/status'], read),
      rule(['networking.k8s.io'], ['ingresses', 'ingresses/status', 'networkpolicies'], read),
      rule(['policy'], ['poddisruptionbudgets', 'poddisruptionbudgets/status'], read),
    ],
    'view',
  ),
  role('system:basic-user', [
    rule(['authorization.k8s.io'], ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'], ['create']),
    rule(['authentication.k8s.io'], ['selfsubjectreviews'], ['create']),
  ]),
  role('system:discovery', [{ nonResourceURLs: nonResource, verbs: ['get'] }]),
  role('system:public-info-viewer', [{ nonResourceURLs: publicInfo, verbs: ['get'] }]),
  role('system:auth-delegator', [
    rule(['authentication.k8s.io'], ['tokenreviews'], ['create']),
    rule(['authorization.k8s.io'], ['subjectaccessreviews'], ['create']),
  ]),
  binding('cluster-admin', ['system:masters']),
  binding('system:basic-user', ['system:authenticated']),
  binding('system:discovery', ['system:authenticated']),
  binding('system:public-info-viewer', ['system:authenticated', 'system:unauthenticated']),
]
