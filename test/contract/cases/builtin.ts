/** Built-in kinds: defaults, allocation, validation; access (B3.6, B3.8). */
import { expect } from 'vitest'
import { answers, area, type CaseContext, merge, ok, until } from '../case.ts'
import type { Json } from '../client.ts'

const service = (name: string, spec: object): object => ({
  metadata: { name },
  spec: { ports: [{ port: 80 }], ...spec },
})
const rbac = 'rbac.authorization.k8s.io/v1'
const review = (t: CaseContext, spec: object): object => ({
  apiVersion: 'authorization.k8s.io/v1',
  kind: 'SubjectAccessReview',
  spec: { user: 'jane', resourceAttributes: { namespace: t.ns, verb: 'get', resource: 'secrets' }, ...spec },
})
const deployment = {
  metadata: { name: 'd' },
  spec: {
    selector: { matchLabels: { a: 'b' } },
    template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'nginx' }] } },
  },
}

/** Lets jane read ConfigMaps, and waits until the server's authorizer has the role. */
async function bind(t: CaseContext): Promise<void> {
  await ok(
    t.client.request('POST', `/apis/${rbac}/namespaces/${t.ns}/roles`, {
      body: {
        metadata: { name: 'reader' },
        rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list'] }],
      },
    }),
    201,
  )
  await ok(
    t.client.request('POST', `/apis/${rbac}/namespaces/${t.ns}/rolebindings`, {
      body: {
        metadata: { name: 'reader' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' },
        subjects: [{ kind: 'User', name: 'jane' }],
      },
    }),
    201,
  )
  await until(async () => (await t.as('jane').request('GET', t.maps)).status === 200, 'jane may list ConfigMaps')
}

export const builtin = [
  ...area('B3.6 services', {
    'get a cluster IP and defaults': async (t) => {
      const created = await ok(
        t.client.request('POST', t.services, { body: service('s', { selector: { a: 'b' } }) }),
        201,
      )
      expect(created['spec']).toMatchObject({
        type: 'ClusterIP',
        sessionAffinity: 'None',
        internalTrafficPolicy: 'Cluster',
        ipFamilies: ['IPv4'],
        ipFamilyPolicy: 'SingleStack',
        ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }],
      })
      const { clusterIP, clusterIPs } = created['spec'] as Record<string, unknown>
      expect(String(clusterIP)).toMatch(/^10\.\d+\.\d+\.\d+$/)
      expect(clusterIPs).toEqual([clusterIP])
    },
    'headless services keep None': async (t) => {
      expect(
        await ok(
          t.client.request('POST', t.services, { body: service('s', { clusterIP: 'None', selector: { a: 'b' } }) }),
          201,
        ),
      ).toMatchObject({ spec: { clusterIP: 'None', clusterIPs: ['None'] } })
    },
    'NodePorts are allocated': async (t) => {
      const created = await ok(t.client.request('POST', t.services, { body: service('s', { type: 'NodePort' }) }), 201)
      const port = Number((((created['spec'] as Json)['ports'] as unknown as Json[])[0] as Json)['nodePort'])
      expect(port).toBeGreaterThanOrEqual(30_000)
      expect(port).toBeLessThanOrEqual(32_767)
    },
    'LoadBalancers allocate node ports and stay pending': async (t) => {
      expect(
        await ok(t.client.request('POST', t.services, { body: service('s', { type: 'LoadBalancer' }) }), 201),
      ).toMatchObject({
        spec: { allocateLoadBalancerNodePorts: true, externalTrafficPolicy: 'Cluster' },
        status: { loadBalancer: {} },
      })
    },
    'two services have two addresses': async (t) => {
      const [a, b] = [
        await ok(t.client.request('POST', t.services, { body: service('a', {}) }), 201),
        await ok(t.client.request('POST', t.services, { body: service('b', {}) }), 201),
      ]
      expect((a['spec'] as Json)['clusterIP']).not.toBe((b['spec'] as Json)['clusterIP'])
    },
    'an update keeps the address': async (t) => {
      const created = await ok(t.client.request('POST', t.services, { body: service('s', {}) }), 201)
      const updated = await ok(
        t.client.request('PUT', `${t.services}/s`, { body: { ...service('s', { selector: { x: 'y' } }) } }),
      )
      expect((updated['spec'] as Json)['clusterIP']).toBe((created['spec'] as Json)['clusterIP'])
    },
    'an address may not change': async (t) => {
      await ok(t.client.request('POST', t.services, { body: service('s', {}) }), 201)
      const reply = await t.client.request('PATCH', `${t.services}/s`, {
        ...merge,
        body: { spec: { clusterIP: '10.0.9.77', clusterIPs: ['10.0.9.77'] } },
      })
      expect(reply.json['message']).toBe(
        'Service "s" is invalid: spec.clusterIPs[0]: Invalid value: ["10.0.9.77"]: may not change once set',
      )
    },
  }),
  ...area('B3 built-in defaults', {
    Deployments: async (t) => {
      expect(await ok(t.client.request('POST', t.deployments, { body: deployment }), 201)).toMatchObject({
        metadata: { generation: 1 },
        spec: {
          replicas: 1,
          revisionHistoryLimit: 10,
          progressDeadlineSeconds: 600,
          strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } },
          template: {
            spec: {
              restartPolicy: 'Always',
              dnsPolicy: 'ClusterFirst',
              terminationGracePeriodSeconds: 30,
              containers: [{ imagePullPolicy: 'Always', terminationMessagePath: '/dev/termination-log' }],
            },
          },
        },
        status: {},
      })
    },
    'scale of a Deployment': async (t) => {
      await ok(t.client.request('POST', t.deployments, { body: deployment }), 201)
      expect(
        await ok(t.client.request('PATCH', `${t.deployments}/d/scale`, { ...merge, body: { spec: { replicas: 3 } } })),
      ).toMatchObject({ kind: 'Scale', spec: { replicas: 3 } })
      expect(await ok(t.client.request('GET', `${t.deployments}/d`))).toMatchObject({
        spec: { replicas: 3 },
        metadata: { generation: 2 },
      })
    },
    'Secrets are Opaque, stringData becomes data': async (t) => {
      const created = await ok(
        t.client.request('POST', `/api/v1/namespaces/${t.ns}/secrets`, {
          body: { metadata: { name: 's' }, stringData: { a: 'x' } },
        }),
        201,
      )
      expect(created).toMatchObject({ type: 'Opaque', data: { a: 'eA==' } })
      expect(created).not.toHaveProperty('stringData')
    },
    'RoleBindings name the API group': async (t) => {
      const created = await ok(
        t.client.request('POST', `/apis/${rbac}/namespaces/${t.ns}/rolebindings`, {
          body: {
            metadata: { name: 'b' },
            roleRef: { kind: 'Role', name: 'r' },
            subjects: [{ kind: 'Group', name: 'g' }],
          },
        }),
        201,
      )
      expect(created).toMatchObject({
        roleRef: { apiGroup: 'rbac.authorization.k8s.io' },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io' }],
      })
    },
    'an Event is the same in both APIs': async (t) => {
      await ok(
        t.client.request('POST', `/api/v1/namespaces/${t.ns}/events`, {
          body: {
            metadata: { name: 'e' },
            involvedObject: { kind: 'ConfigMap', name: 'a', namespace: t.ns },
            message: 'seen',
            reason: 'Tested',
            type: 'Normal',
          },
        }),
        201,
      )
      expect(await ok(t.client.request('GET', `/apis/events.k8s.io/v1/namespaces/${t.ns}/events/e`))).toMatchObject({
        apiVersion: 'events.k8s.io/v1',
        note: 'seen',
        regarding: { name: 'a' },
      })
    },
    'a Lease takes micro times and conflicts on old versions': async (t) => {
      const leases = `/apis/coordination.k8s.io/v1/namespaces/${t.ns}/leases`
      const lease = await ok(
        t.client.request('POST', leases, {
          body: {
            metadata: { name: 'l' },
            spec: { holderIdentity: 'a', leaseDurationSeconds: 15, renewTime: '2026-01-01T00:00:00.123456Z' },
          },
        }),
        201,
      )
      expect((lease['spec'] as Json)['renewTime']).toBe('2026-01-01T00:00:00.123456Z')
      await ok(t.client.request('PUT', `${leases}/l`, { body: { ...lease, spec: { holderIdentity: 'b' } } }))
      expect(
        (await t.client.request('PUT', `${leases}/l`, { body: { ...lease, spec: { holderIdentity: 'c' } } })).status,
      ).toBe(409)
    },
    'an immutable ConfigMap cannot be changed': async (t) => {
      await ok(t.client.request('POST', t.maps, { body: t.map('i', { data: { a: '1' }, immutable: true }) }), 201)
      const reply = await t.client.request('PATCH', `${t.maps}/i`, { ...merge, body: { data: { a: '2' } } })
      expect(reply.json['message']).toBe(
        'ConfigMap "i" is invalid: data: Forbidden: field is immutable when `immutable` is set',
      )
    },
  }),
  ...answers('B3 built-in validation', {
    'a Service without ports': [
      'POST',
      (t) => t.services,
      () => ({ body: { metadata: { name: 's' }, spec: {} } }),
      422,
      'Service "s" is invalid: spec.ports: Required value',
    ],
    'a Service name with a dot': [
      'POST',
      (t) => t.services,
      () => ({ body: service('a.b', {}) }),
      422,
      'Service "a.b" is invalid: metadata.name: Invalid value: "a.b": must not contain dots',
    ],
    'a port out of range': [
      'POST',
      (t) => t.services,
      () => ({ body: service('s', { ports: [{ port: 70_000 }] }) }),
      422,
      /spec\.ports\[0\]\.port: Invalid value: 70000: must be between 1 and 65535, inclusive/,
    ],
    'an unknown Service type': [
      'POST',
      (t) => t.services,
      () => ({ body: service('s', { type: 'Foo' }) }),
      422,
      /spec\.type: Unsupported value: "Foo": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"/,
    ],
    'a ConfigMap key with a space': [
      'POST',
      (t) => t.maps,
      () => ({ body: { metadata: { name: 'a' }, data: { 'bad key': 'x' } } }),
      422,
      /data\[bad key\]: Invalid value: "bad key": a valid config key must consist of/,
    ],
    'a ConfigMap key in data and binaryData': [
      'POST',
      (t) => t.maps,
      () => ({ body: { metadata: { name: 'a' }, data: { k: 'x' }, binaryData: { k: 'AAAA' } } }),
      422,
      'ConfigMap "a" is invalid: data[k]: Invalid value: "k": duplicate of key present in binaryData',
    ],
    'a Secret that is not base64': [
      'POST',
      (t) => `/api/v1/namespaces/${t.ns}/secrets`,
      () => ({ body: { metadata: { name: 's' }, data: { a: '!' } } }),
      400,
      'Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte 0',
    ],
    'an Ingress without rules': [
      'POST',
      (t) => `/apis/networking.k8s.io/v1/namespaces/${t.ns}/ingresses`,
      () => ({ body: { metadata: { name: 'i' }, spec: {} } }),
      422,
      'Ingress.networking.k8s.io "i" is invalid: spec: Invalid value: null: either `defaultBackend` or `rules` must be specified',
    ],
    'a Role without verbs': [
      'POST',
      (t) => `/apis/${rbac}/namespaces/${t.ns}/roles`,
      () => ({ body: { metadata: { name: 'r' }, rules: [{ apiGroups: [''], resources: ['pods'], verbs: [] }] } }),
      422,
      'Role.rbac.authorization.k8s.io "r" is invalid: rules[0].verbs: Required value: verbs must contain at least one value',
    ],
    'a Deployment whose selector does not match its template': [
      'POST',
      (t) => t.deployments,
      () => ({ body: { ...deployment, spec: { ...deployment.spec, selector: { matchLabels: { x: 'y' } } } } }),
      422,
      /spec\.template\.metadata\.labels: Invalid value: \{"a":"b"\}: `selector` does not match template `labels`/,
    ],
  }),
  ...area('B3.8 access', {
    'SelfSubjectAccessReview: the administrator is allowed': async (t) => {
      const answer = await ok(
        t.client.request('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
          body: { spec: { resourceAttributes: { verb: 'create', resource: 'configmaps' } } },
        }),
        201,
      )
      expect(answer['status']).toMatchObject({ allowed: true })
    },
    'SubjectAccessReview: a user without roles is not allowed': async (t) => {
      expect(
        (
          await ok(
            t.client.request('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', { body: review(t, {}) }),
            201,
          )
        )['status'],
      ).toMatchObject({ allowed: false })
    },
    'SubjectAccessReview: a role allows its rules': async (t) => {
      await bind(t)
      const ask = async (verb: string, resource: string): Promise<unknown> =>
        (
          (
            await ok(
              t.client.request('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', {
                body: review(t, { resourceAttributes: { namespace: t.ns, verb, resource } }),
              }),
              201,
            )
          )['status'] as Json
        )['allowed']
      expect(await ask('get', 'configmaps')).toBe(true)
      expect(await ask('delete', 'configmaps')).toBe(false)
      expect(await ask('get', 'secrets')).toBe(false)
    },
    'SubjectAccessReview: a role applies in its namespace only': async (t) => {
      await bind(t)
      const body = review(t, { resourceAttributes: { namespace: 'default', verb: 'get', resource: 'configmaps' } })
      expect(
        (await ok(t.client.request('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', { body }), 201))[
          'status'
        ],
      ).toMatchObject({ allowed: false })
    },
    'SelfSubjectReview returns the impersonated user': async (t) => {
      const answer = await ok(
        t.as('jane', 'team').request('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', { body: {} }),
        201,
      )
      expect((answer['status'] as Json)['userInfo']).toMatchObject({
        username: 'jane',
        groups: ['team', 'system:authenticated'],
      })
    },
    'an impersonated user without roles is Forbidden': async (t) => {
      const reply = await t.as('jane').request('GET', `/api/v1/namespaces/${t.ns}/secrets/s`)
      expect(reply.json).toMatchObject({
        code: 403,
        reason: 'Forbidden',
        message: `secrets "s" is forbidden: User "jane" cannot get resource "secrets" in API group "" in the namespace "${t.ns}"`,
      })
    },
    'an impersonated user has the permissions of a role': async (t) => {
      await bind(t)
      await ok(t.as('jane').request('GET', t.maps))
      expect((await t.as('jane').request('DELETE', `${t.maps}/a`)).status).toBe(403)
    },
    'a user without roles may not list at the cluster scope': async (t) => {
      expect((await t.as('jane').request('GET', '/api/v1/nodes')).json['message']).toBe(
        'nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope',
      )
    },
    'discovery is allowed to authenticated users': async (t) =>
      void (await ok(t.as('jane', 'system:authenticated').request('GET', '/api'))),
    'a ServiceAccount token is issued': async (t) => {
      await ok(
        t.client.request('POST', `/api/v1/namespaces/${t.ns}/serviceaccounts`, {
          body: { metadata: { name: 'robot' } },
        }),
        201,
      )
      const answer = await ok(
        t.client.request('POST', `/api/v1/namespaces/${t.ns}/serviceaccounts/robot/token`, { body: { spec: {} } }),
        201,
      )
      expect(answer).toMatchObject({ kind: 'TokenRequest', apiVersion: 'authentication.k8s.io/v1' })
      expect(String((answer['status'] as Json)['token']).split('.')).toHaveLength(3)
    },
    'a TokenReview authenticates an issued token': async (t) => {
      await ok(
        t.client.request('POST', `/api/v1/namespaces/${t.ns}/serviceaccounts`, {
          body: { metadata: { name: 'robot' } },
        }),
        201,
      )
      const { token } = (
        await ok(
          t.client.request('POST', `/api/v1/namespaces/${t.ns}/serviceaccounts/robot/token`, { body: { spec: {} } }),
          201,
        )
      )['status'] as Json
      const answer = await ok(
        t.client.request('POST', '/apis/authentication.k8s.io/v1/tokenreviews', { body: { spec: { token } } }),
        201,
      )
      expect(answer['status']).toMatchObject({
        authenticated: true,
        user: { username: `system:serviceaccount:${t.ns}:robot` },
      })
    },
    'a TokenReview of an invalid token is not authenticated': async (t) => {
      const answer = await ok(
        t.client.request('POST', '/apis/authentication.k8s.io/v1/tokenreviews', {
          body: { spec: { token: 'nonsense' } },
        }),
        201,
      )
      expect((answer['status'] as Json)['authenticated'] ?? false).toBe(false)
    },
  }),
]
