/** Authorization: paths and tokens; request limits; conditions of webhooks and rules. */
import { expect } from 'vitest'
import { area, type Case, type CaseContext, jsonPatch, merge, names, ok, until } from '../case.ts'
import type { Json, Options } from '../client.ts'
import { grantEve } from './escalation.ts'

const rbac = '/apis/rbac.authorization.k8s.io/v1'
const webhooks = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations'
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

async function withWebhook(t: CaseContext, changes: object, run: () => Promise<void>): Promise<void> {
  const name = `contract-${t.ns}`
  const webhook = {
    name: 'refused.contract.dev',
    admissionReviewVersions: ['v1'],
    sideEffects: 'None',
    // Nothing listens on this address: a call of the webhook fails.
    clientConfig: { url: 'https://127.0.0.1:1/' },
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': t.ns } },
    rules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }],
    ...changes,
  }
  await ok(t.client.request('POST', webhooks, { body: { metadata: { name }, webhooks: [webhook] } }), 201)
  try {
    await run()
  } finally {
    await t.client.request('DELETE', `${webhooks}/${name}`)
  }
}

function definition(rule: string, name: string): object {
  const properties = {
    tags: { type: 'object', maxProperties: 3, additionalProperties: { type: 'integer' } },
    steps: { type: 'array', maxItems: 3, items: { type: 'string', maxLength: 9 } },
  }
  const spec = { type: 'object', properties, 'x-kubernetes-validations': [{ rule, message: 'not so' }] }
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } }
  return {
    metadata: { name: `${name}.rights.dev` },
    spec: {
      group: 'rights.dev',
      scope: 'Namespaced',
      names: { plural: name, kind: `K${name}` },
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  }
}

/** A token of the ServiceAccount `robot`, which is created when absent. */
async function issueToken(t: CaseContext, spec: object): Promise<string> {
  const path = `/api/v1/namespaces/${t.ns}/serviceaccounts`
  const created = await t.client.request('POST', path, { body: { metadata: { name: 'robot' } } })
  expect([201, 409]).toContain(created.status)
  const { status } = await ok(t.client.request('POST', `${path}/robot/token`, { body: { spec } }), 201)
  return String((status as Json)['token'])
}

async function reviewToken(t: CaseContext, spec: object): Promise<Json> {
  const path = '/apis/authentication.k8s.io/v1/tokenreviews'
  return (await ok(t.client.request('POST', path, { body: { spec } }), 201))['status'] as Json
}

function definitionOf(plural: string, definedGroup: string, annotations: object = {}): object {
  const schema = { openAPIV3Schema: { type: 'object' } }
  return {
    metadata: { name: `${plural}.${definedGroup}`, annotations },
    spec: {
      group: definedGroup,
      scope: 'Cluster',
      names: { plural, kind: 'ClusterRole' },
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  }
}

/** Invalid paths of Namespace objects: below another namespace, with any verb. */
const misplaced: readonly (readonly [method: string, path: (t: CaseContext) => string, options?: Options])[] = [
  ['GET', ({ ns }) => `/api/v1/namespaces/${ns}/namespaces`],
  ['GET', ({ ns }) => `/api/v1/namespaces/${ns}/namespaces/default`],
  ['GET', ({ ns }) => `/api/v1/namespaces/${ns}/namespaces/${ns}`],
  ['GET', ({ ns }) => `/api/v1/namespaces/${ns}/namespaces/default/status`],
  ['POST', ({ ns }) => `/api/v1/namespaces/${ns}/namespaces`, { body: { metadata: { name: 'taken' } } }],
  [
    'PATCH',
    ({ ns }) => `/api/v1/namespaces/${ns}/namespaces/default`,
    { body: { metadata: { labels: { taken: 'yes' } } }, ...merge },
  ],
  ['DELETE', ({ ns }) => `/api/v1/namespaces/${ns}/namespaces/default`],
  ['DELETE', ({ ns }) => `/api/v1/namespaces/${ns}/namespaces`],
  ['GET', ({ ns }) => `/api/v1/namespaces/${ns}/nodes`],
  ['GET', ({ ns }) => `${rbac}/namespaces/${ns}/clusterroles/admin`],
  ['GET', ({ ns }) => definitions.replace('/customres', `/namespaces/${ns}/customres`)],
  ['GET', ({ ns, group }) => `/apis/${group}/v1/namespaces/${ns}/widgets/a/status/more`],
  ['GET', ({ ns }) => `/api/v1/namespaces/${ns}/configmaps/a/b/c`],
  ['GET', ({ ns }) => `/api/v1/namespaces/${ns}/status/more`],
  ['GET', () => '/api/v1/configmaps/a'],
  ['GET', ({ group }) => `/apis/${group}/v1/widgets/a`],
]

export const rights: readonly Case[] = [
  ...area('B3.8 paths', {
    'a cluster-scoped object is not reachable below a namespace': async (t) => {
      await grantEve(t, { apiGroups: ['*'], resources: ['*'], verbs: ['*'] })
      for (const [method, path, options] of misplaced) {
        for (const client of [t.client, t.as('eve')]) {
          const { status } = await client.request(method, path(t), options)
          const isOutside = !path(t).includes(`/namespaces/${t.ns}/`)
          expect([method, path(t), status]).toEqual([method, path(t), client !== t.client && isOutside ? 403 : 404])
        }
      }
      const { json } = await t.client.request('GET', '/api/v1/namespaces/default')
      expect(json['metadata']).toMatchObject({ labels: { 'kubernetes.io/metadata.name': 'default' } })
      expect(json['metadata']).not.toHaveProperty('labels.taken')
      expect(json['status']).toEqual({ phase: 'Active' })
    },
    'an escaped slash separates segments': async (t) => {
      await ok(t.client.request('POST', t.maps, { body: t.map('a') }), 201)
      const { json } = await t.client.request('GET', `/api/v1/namespaces/${t.ns}%2Fconfigmaps%2Fa`)
      expect(json['metadata']).toMatchObject({ name: 'a', namespace: t.ns })
    },
    'an unauthorized user cannot find out whether a resource exists': async (t) => {
      const eve = t.as('eve')
      const paths = [
        '/api/v1/secrets',
        '/api/v1/nosuch',
        '/apis/apps/v1/nosuch',
        '/apis/apps/v7/deployments',
        `/apis/${t.group}/v1/widgets`,
        `/apis/${t.group}/v1/nosuch`,
        '/apis/nosuch.dev/v1/things',
        `/apis/nosuch.dev/v1/namespaces/${t.ns}/things/a`,
      ]
      for (const path of paths) {
        const { status, json } = await eve.request('GET', path)
        expect([path, status, json['reason']]).toEqual([path, 403, 'Forbidden'])
      }
    },
    'the error for a namespace contains its name': async (t) => {
      const { status, json } = await t.as('eve').request('GET', `/api/v1/namespaces/${t.ns}`)
      expect([status, json['message']]).toEqual([
        403,
        `namespaces "${t.ns}" is forbidden: User "eve" cannot get resource "namespaces" in API group "" in the namespace "${t.ns}"`,
      ])
    },
  }),
  ...area('B3.8 tokens', {
    'a token is valid for its own audiences only': async (t) => {
      const other = await issueToken(t, { audiences: ['vault', 'backup'] })
      const own = await issueToken(t, {})
      const wrong = (text: unknown) => String(text).replaceAll(/https:[^"]*/g, 'SERVER')
      const asked = [{ token: other }, { token: other, audiences: ['x'] }, { token: own, audiences: ['vault'] }]
      const errors: string[] = []
      for (const spec of asked) {
        const status = await reviewToken(t, spec)
        expect(status['authenticated'] ?? false).toBe(false)
        errors.push(wrong(status['error']))
      }
      expect(errors).toEqual([
        '[invalid bearer token, token audiences ["vault" "backup"] is invalid for the target audiences ["SERVER"]]',
        '[invalid bearer token, token audiences ["vault" "backup"] is invalid for the target audiences ["x"]]',
        '[invalid bearer token, token audiences ["SERVER"] is invalid for the target audiences ["vault"]]',
      ])
      const accepted = await reviewToken(t, { token: other, audiences: ['x', 'backup'] })
      expect([accepted['authenticated'], accepted['audiences']]).toEqual([true, ['backup']])
      const plain = await reviewToken(t, { token: own })
      expect([plain['authenticated'], wrong(plain['audiences'])]).toEqual([true, 'SERVER'])
    },
    'a token is bound to an object that exists': async (t) => {
      const pods = `/api/v1/namespaces/${t.ns}/pods`
      const pod = (name: string, serviceAccountName: string) => ({
        body: { metadata: { name }, spec: { serviceAccountName, containers: [{ name: 'c', image: 'i' }] } },
      })
      await issueToken(t, {})
      const path = `/api/v1/namespaces/${t.ns}/serviceaccounts`
      await ok(t.client.request('POST', path, { body: { metadata: { name: 'other' } } }), 201)
      const { uid } = (await ok(t.client.request('POST', pods, pod('mine', 'robot')), 201))['metadata'] as Json
      await ok(t.client.request('POST', pods, pod('theirs', 'other')), 201)
      const refusal = async (boundObjectRef: object): Promise<unknown[]> => {
        const options = { body: { spec: { boundObjectRef: { apiVersion: 'v1', ...boundObjectRef } } } }
        const { status, json } = await t.client.request('POST', `${path}/robot/token`, options)
        return [status, json['message']]
      }
      expect(await refusal({ kind: 'Pod', name: 'absent' })).toEqual([404, 'pods "absent" not found'])
      expect(await refusal({ kind: 'Secret', name: 'absent' })).toEqual([404, 'secrets "absent" not found'])
      expect(await refusal({ kind: 'Node', name: 'absent' })).toEqual([404, 'nodes "absent" not found'])
      expect(await refusal({ kind: 'ConfigMap', name: 'a' })).toEqual([
        400,
        'cannot bind token to object of type /v1, Kind=ConfigMap',
      ])
      expect(await refusal({ kind: 'Pod', name: 'theirs' })).toEqual([
        400,
        'cannot bind token for serviceaccount "robot" to pod running with different serviceaccount name.',
      ])
      expect(await refusal({ kind: 'Pod', name: 'mine', uid: 'wrong' })).toEqual([
        409,
        'Operation cannot be fulfilled on Pod "mine": the UID in the bound object reference (wrong) does not match the UID in record. The object might have been deleted and then recreated',
      ])
      const token = await issueToken(t, { boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'mine' } })
      const review = await reviewToken(t, { token })
      expect(review).toMatchObject({
        authenticated: true,
        user: {
          extra: { 'authentication.kubernetes.io/pod-name': ['mine'], 'authentication.kubernetes.io/pod-uid': [uid] },
        },
      })
      // kube-apiserver caches valid tokens for some seconds.
      if (t.isReal) return
      await ok(t.client.request('DELETE', `${pods}/mine?gracePeriodSeconds=0`))
      expect((await reviewToken(t, { token }))['authenticated'] ?? false).toBe(false)
    },
  }),
  ...area('B3.7 protected groups', {
    'a definition needs an approval': async (t) => {
      const body = definitionOf('clusterroles', 'rbac.authorization.k8s.io')
      const { status, json } = await t.client.request('POST', definitions, { body })
      expect([status, json['message']]).toEqual([
        422,
        'CustomResourceDefinition.apiextensions.k8s.io "clusterroles.rbac.authorization.k8s.io" is invalid: metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111',
      ])
      const annotations = { 'api-approved.kubernetes.io': 'yes' }
      const vague = await t.client.request('POST', definitions, {
        body: definitionOf('clusterroles', 'rbac.authorization.k8s.io', annotations),
      })
      expect([vague.status, vague.json['message']]).toEqual([
        422,
        'CustomResourceDefinition.apiextensions.k8s.io "clusterroles.rbac.authorization.k8s.io" is invalid: metadata.annotations[api-approved.kubernetes.io]: Invalid value: "yes": protected groups must have approval annotation "api-approved.kubernetes.io" with either a URL or a reason starting with "unapproved", see https://github.com/kubernetes/enhancements/pull/1111',
      ])
    },
    'a definition with the name of a built-in resource does not affect it': async (t) => {
      const annotations = { 'api-approved.kubernetes.io': 'unapproved, a test' }
      const role = `${rbac}/clusterroles/admin`
      const before = await ok(t.client.request('GET', role))
      const body = definitionOf('clusterroles', 'rbac.authorization.k8s.io', annotations)
      await ok(t.client.request('POST', definitions, { body }), 201)
      const path = `${definitions}/clusterroles.rbac.authorization.k8s.io`
      const isEstablished = async (): Promise<boolean> =>
        JSON.stringify((await ok(t.client.request('GET', path)))['status'] ?? {}).includes('InitialNamesAccepted')
      await until(isEstablished, 'the definition is established')
      await ok(t.client.request('DELETE', path))
      await until(async () => (await t.client.request('GET', path)).status === 404, 'the definition is gone')
      expect(await ok(t.client.request('GET', role))).toEqual(before)
      expect(names(await ok(t.client.request('GET', `${rbac}/clusterroles`)))).toContain('cluster-admin')
    },
  }),
  ...area('B3.4 limits', {
    'copies of a JSON patch are bounded': async (t) => {
      const annotations = { a: 'x'.repeat(1000) }
      await ok(t.client.request('POST', t.maps, { body: { metadata: { name: 'a', annotations } } }), 201)
      const bomb = Array.from({ length: 40 }, (_, index) => ({
        op: 'copy',
        from: '/metadata',
        path: `/metadata/c${index}`,
      }))
      const { status, json } = await t.client.request('PATCH', `${t.maps}/a`, { body: bomb, ...jsonPatch })
      expect([status, json['message']]).toEqual([422, 'the server rejected our request due to an error in our request'])
    },
    'an object above the limit of etcd is rejected': async (t) => {
      const free = t.widget('large', {
        metadata: { name: 'large', annotations: {} },
        spec: { size: 1, free: { note: 'x'.repeat(2e6) } },
      })
      const { status, json } = await t.client.request('POST', t.widgets, { body: free })
      expect([status, json['message']]).toEqual([500, 'etcdserver: request is too large'])
    },
  }),
  ...area('B3.8 webhooks', {
    'a false condition excludes a webhook': async (t) => {
      const matchConditions = [{ name: 'never', expression: "object.metadata.name == 'other'" }]
      await withWebhook(t, { matchConditions }, async () => {
        await ok(t.client.request('POST', t.maps, { body: t.map('a') }), 201)
      })
    },
    'a condition that cannot be evaluated admits the request when failures are ignored': async (t) => {
      const matchConditions = [{ name: 'broken', expression: 'object.nosuch.field == 1' }]
      await withWebhook(t, { matchConditions, failurePolicy: 'Ignore' }, async () => {
        await ok(t.client.request('POST', t.maps, { body: t.map('a') }), 201)
      })
    },
    'an object selector excludes a webhook': async (t) => {
      await withWebhook(t, { objectSelector: { matchLabels: { watched: 'yes' } } }, async () => {
        await ok(t.client.request('POST', t.maps, { body: t.map('a') }), 201)
      })
    },
  }),
  ...area('B3.7 rules', {
    'loops over two variables run': async (t) => {
      const rule = "self.tags.all(k, v, k != 'bad' && v > 0) && self.steps.all(i, s, i < 2 || s == 'end')"
      const body = definition(rule, 'pairs')
      const created = await t.client.request('POST', definitions, { body })
      expect(created.status === 409 || created.status === 201, created.text).toBe(true)
      const path = `/apis/rights.dev/v1/namespaces/${t.ns}/pairs`
      await until(async () => (await t.client.request('GET', path)).status === 200, 'the resource is served')
      const object = (name: string, spec: object) => ({
        body: { apiVersion: 'rights.dev/v1', kind: 'Kpairs', metadata: { name }, spec },
      })
      const good = { tags: { a: 1 }, steps: ['x', 'y', 'end'] }
      await ok(t.client.request('POST', path, object('good', good)), 201)
      for (const bad of [{ tags: { bad: 1 } }, { tags: { a: 0 } }, { steps: ['x', 'y', 'z'] }]) {
        const { status, text } = await t.client.request('POST', path, object('bad', { ...good, ...bad }))
        expect(status, text).toBe(422)
      }
    },
    'a rule with an undeclared field is rejected with the definition': async (t) => {
      const body = definition('self.nosuch == 1', `never-${t.ns}`)
      const { status, json } = await t.client.request('POST', definitions, { body })
      expect(status).toBe(422)
      expect(json['message']).toContain(
        "compilation failed: ERROR: <input>:1:5: undefined field 'nosuch'\n | self.nosuch == 1\n | ....^",
      )
    },
  }),
  ...area('B3.8 pods without a kubelet', {
    'have no logs, and absent pods are not found': async (t) => {
      const pods = `/api/v1/namespaces/${t.ns}/pods`
      const spec = { containers: [{ name: 'c', image: 'i', resources: { requests: { cpu: '2000m' } } }] }
      const { json } = await t.client.request('POST', pods, { body: { metadata: { name: 'p' }, spec } })
      expect(JSON.stringify(json['spec'])).toContain('"requests":{"cpu":"2"}')
      expect((await t.client.request('GET', `${pods}/p/log`)).status).toBe(204)
      const { status, json: missing } = await t.client.request('GET', `${pods}/none/log`)
      expect([status, missing['message']]).toEqual([404, 'pods "none" not found'])
    },
  }),
]
