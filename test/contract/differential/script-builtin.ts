/** Built-in kinds with specific behaviour: defaults, allocation, validation and reviews. */
import { asTable, get, patch, post, put, remove, type Step } from './step.ts'

const core = '/api/v1/namespaces/diff'
const deployments = '/apis/apps/v1/namespaces/diff/deployments'
const ingresses = '/apis/networking.k8s.io/v1/namespaces/diff/ingresses'
const leases = '/apis/coordination.k8s.io/v1/namespaces/diff/leases'

const deployment = {
  metadata: { name: 'web' },
  spec: {
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'c', image: 'nginx:1' }] } },
  },
}

const rule = (path: object) => ({ host: 'shop.test', http: { paths: [path] } })
const backend = { service: { name: 'web', port: { number: 80 } } }
const review = (resource: string, verb: string) => ({
  spec: { resourceAttributes: { namespace: 'diff', verb, resource } },
})

export const builtinSteps: readonly Step[] = [
  post(`${core}/services`, { metadata: { name: 'web' }, spec: { selector: { app: 'web' }, ports: [{ port: 80 }] } }),
  post(`${core}/services`, {
    metadata: { name: 'headless' },
    spec: { clusterIP: 'None', ports: [{ name: 'a', port: 80, targetPort: 'http' }] },
  }),
  post(`${core}/services`, { metadata: { name: 'node' }, spec: { type: 'NodePort', ports: [{ port: 80 }] } }),
  post(`${core}/services`, { metadata: { name: 'out' }, spec: { type: 'ExternalName', externalName: 'example.test' } }),
  post(`${core}/services`, { metadata: { name: 'none' }, spec: {} }),
  post(`${core}/services`, { metadata: { name: 'two' }, spec: { ports: [{ port: 80 }, { port: 81 }] } }),
  get(`${core}/services`, asTable),
  patch('strategic', `${core}/services/web`, {
    spec: {
      ports: [
        { port: 443, name: 'tls' },
        { port: 80, name: 'plain' },
      ],
    },
  }),
  patch('strategic', `${core}/services/web`, { spec: { ports: [{ $patch: 'delete', port: 80 }] } }),
  // Outside the range, so that it is never the address that the server chose.
  patch('merge', `${core}/services/web`, { spec: { clusterIP: '10.0.9.77' } }),
  patch('merge', `${core}/services/web/status`, { status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } } }),
  remove(`${core}/services/web`),

  post(`${core}/secrets`, { metadata: { name: 's' }, stringData: { user: 'me' }, data: { pass: 'c2VjcmV0' } }),
  post(`${core}/secrets`, { metadata: { name: 'bad' }, data: { pass: 'not base64!' } }),
  post(`${core}/secrets`, { metadata: { name: 'tls' }, type: 'kubernetes.io/tls', data: { 'tls.crt': '' } }),
  patch('merge', `${core}/secrets/s`, { type: 'other' }),
  patch('merge', `${core}/secrets/s`, { immutable: true }),
  patch('merge', `${core}/secrets/s`, { data: { pass: null } }),
  get(`${core}/secrets?fieldSelector=type=Opaque`),
  get(`${core}/secrets`, asTable),

  post(deployments, deployment, { as: 'web' }),
  post(deployments, {
    ...deployment,
    metadata: { name: 'bad' },
    spec: { ...deployment.spec, selector: { matchLabels: { app: 'other' } } },
  }),
  get(deployments, asTable),
  patch('strategic', `${deployments}/web`, {
    spec: { template: { spec: { containers: [{ name: 'd', image: 'busybox' }] } } },
  }),
  patch('strategic', `${deployments}/web`, {
    spec: {
      template: {
        spec: { $setElementOrder: undefined, containers: [{ name: 'c', env: [{ name: 'A', value: '1' }] }] },
      },
    },
  }),
  patch('apply', `${deployments}/web?fieldManager=one`, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web' },
    spec: { template: { spec: { containers: [{ name: 'c', image: 'nginx:2' }] } } },
  }),
  patch('merge', `${deployments}/web`, { spec: { selector: { matchLabels: { app: 'changed' } } } }),
  patch('merge', `${deployments}/web`, { spec: { replicas: -1 } }),
  get(`${deployments}/web/scale`),
  patch('merge', `${deployments}/web/scale`, { spec: { replicas: 3 } }),
  put(`${deployments}/web/status`, (seen) => ({
    ...seen('web'),
    metadata: { name: 'web' },
    status: { replicas: 3, observedGeneration: 1 },
  })),
  remove(`${deployments}/web`, { propagationPolicy: 'Background' }),

  post(ingresses, { metadata: { name: 'i' }, spec: { rules: [rule({ path: '/', pathType: 'Prefix', backend })] } }),
  post(ingresses, { metadata: { name: 'bad' }, spec: { rules: [rule({ path: 'x', pathType: 'Prefix', backend })] } }),
  post(ingresses, { metadata: { name: 'bad' }, spec: {} }),
  patch('merge', `${ingresses}/i/status`, {
    status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }, { hostname: 'lb.test' }] } },
  }),
  get(ingresses, asTable),
  remove(ingresses),

  post(leases, { metadata: { name: 'l' }, spec: { holderIdentity: 'me', leaseDurationSeconds: 15 } }, { as: 'lease' }),
  post(leases, { metadata: { name: 'bad' }, spec: { leaseDurationSeconds: -1 } }),
  put(`${leases}/l`, (seen) => ({ ...seen('lease'), spec: { holderIdentity: 'you', leaseDurationSeconds: 15 } })),
  put(`${leases}/l`, (seen) => ({ ...seen('lease'), spec: { holderIdentity: 'they', leaseDurationSeconds: 15 } })),
  get(leases, asTable),

  post(`${core}/events`, {
    metadata: { name: 'e' },
    involvedObject: { kind: 'ConfigMap', name: 'a', namespace: 'diff' },
    reason: 'Tested',
    message: 'seen',
    type: 'Normal',
  }),
  get(`${core}/events?fieldSelector=involvedObject.name=a,reason=Tested`),
  get('/apis/events.k8s.io/v1/namespaces/diff/events/e'),
  get(`${core}/events?fieldSelector=message=seen`),

  post(`${core}/serviceaccounts`, { metadata: { name: 'robot' } }),
  get(`${core}/serviceaccounts/robot`),
  post('/apis/rbac.authorization.k8s.io/v1/namespaces/diff/roles', {
    metadata: { name: 'reader' },
    rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list'] }],
  }),
  post('/apis/rbac.authorization.k8s.io/v1/namespaces/diff/roles', {
    metadata: { name: 'bad' },
    rules: [{ verbs: [] }],
  }),
  post('/apis/rbac.authorization.k8s.io/v1/namespaces/diff/rolebindings', {
    metadata: { name: 'reader' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' },
    subjects: [{ kind: 'User', name: 'jane' }],
  }),
  post('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', review('configmaps', 'create')),
  post('/apis/authorization.k8s.io/v1/subjectaccessreviews', {
    spec: { ...review('secrets', 'get').spec, user: 'jane' },
  }),
  post('/apis/authorization.k8s.io/v1/subjectaccessreviews', { spec: {} }),
  get(`${core}/configmaps/none`, { headers: { 'impersonate-user': 'jane' } }),
  get(`${core}/secrets/s`, { headers: { 'impersonate-user': 'jane' } }),
  get(`${core}/secrets`, { headers: { 'impersonate-user': 'jane' } }),
]
