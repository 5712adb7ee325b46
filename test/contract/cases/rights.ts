/** What nobody may give away, and what decides whether a webhook or a rule has a say. */
import { expect } from 'vitest'
import { area, type Case, type CaseContext, merge, ok, until } from '../case.ts'
import type { Options } from '../client.ts'

const rbac = '/apis/rbac.authorization.k8s.io/v1'
const apiGroup = 'rbac.authorization.k8s.io'
const webhooks = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations'
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

/** `eve` may make roles in the namespace of the case and do these things. */
async function letEve(t: CaseContext, ...rules: object[]): Promise<void> {
  const maker = { apiGroups: [apiGroup], resources: ['roles', 'rolebindings'], verbs: ['create', 'patch'] }
  const { client, ns } = t
  const path = `${rbac}/namespaces/${ns}`
  await ok(
    client.request('POST', `${path}/roles`, { body: { metadata: { name: 'eve' }, rules: [maker, ...rules] } }),
    201,
  )
  const subjects = [{ kind: 'User', name: 'eve', apiGroup }]
  const roleRef = { kind: 'Role', name: 'eve', apiGroup }
  await ok(
    client.request('POST', `${path}/rolebindings`, { body: { metadata: { name: 'eve' }, subjects, roleRef } }),
    201,
  )
  // A real server learns of roles and bindings a moment later.
  const probe = async () =>
    await t.as('eve').request('POST', `${path}/roles?dryRun=All`, { body: { metadata: { name: 'probe' }, rules: [] } })
  await until(async () => (await probe()).status === 201, 'eve may create roles')
}

const reading = { apiGroups: [''], resources: ['secrets'], verbs: ['get'] }
const role = (name: string, ...rules: object[]) => ({ body: { metadata: { name }, rules } })

async function withWebhook(t: CaseContext, changes: object, run: () => Promise<void>): Promise<void> {
  const name = `contract-${t.ns}`
  const webhook = {
    name: 'refused.contract.dev',
    admissionReviewVersions: ['v1'],
    sideEffects: 'None',
    // Nobody listens there: whoever is asked fails.
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

/** Where the path of a Namespace object does not belong: below another namespace, whatever the verb. */
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
  ['GET', ({ ns }) => `${definitions.replace('/customres', `/namespaces/${ns}/customres`)}`],
  ['GET', ({ ns, group }) => `/apis/${group}/v1/namespaces/${ns}/widgets/a/status/more`],
  ['GET', ({ ns }) => `/api/v1/namespaces/${ns}/configmaps/a/b/c`],
  ['GET', ({ ns }) => `/api/v1/namespaces/${ns}/status/more`],
  ['GET', () => '/api/v1/configmaps/a'],
  ['GET', ({ group }) => `/apis/${group}/v1/widgets/a`],
]

export const rights: readonly Case[] = [
  ...area('B3.8 paths', {
    'a cluster-scoped object is not reachable below a namespace': async (t) => {
      await letEve(t, { apiGroups: ['*'], resources: ['*'], verbs: ['*'] })
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
    'who may not read a resource does not learn whether it exists': async (t) => {
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
    'the refusal of a namespace names it': async (t) => {
      const { status, json } = await t.as('eve').request('GET', `/api/v1/namespaces/${t.ns}`)
      expect([status, json['message']]).toEqual([
        403,
        `namespaces "${t.ns}" is forbidden: User "eve" cannot get resource "namespaces" in API group "" in the namespace "${t.ns}"`,
      ])
    },
  }),
  ...area('B3.8 RBAC escalation', {
    'who has a right may grant it': async (t) => {
      await letEve(t, reading)
      const path = `${rbac}/namespaces/${t.ns}/roles`
      await ok(t.as('eve').request('POST', path, role('same', reading)), 201)
    },
    'who lacks a right may not grant it': async (t) => {
      await letEve(t, reading)
      const more = { ...reading, verbs: ['get', 'list'] }
      const { status, json } = await t.as('eve').request('POST', `${rbac}/namespaces/${t.ns}/roles`, role('more', more))
      expect([status, json['message']]).toEqual([
        403,
        `roles.${apiGroup} "more" is forbidden: user "eve" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["secrets"], Verbs:["list"]}`,
      ])
    },
    'who may escalate may grant anything': async (t) => {
      await letEve(t, { apiGroups: [apiGroup], resources: ['roles'], verbs: ['escalate'] })
      const path = `${rbac}/namespaces/${t.ns}/roles`
      await ok(t.as('eve').request('POST', path, role('more', reading)), 201)
    },
    'a binding needs the rights of its role, or bind': async (t) => {
      await letEve(t)
      const path = `${rbac}/namespaces/${t.ns}`
      const bind = async () =>
        await t.as('eve').request('POST', `${path}/rolebindings`, {
          body: { metadata: { name: 'bound' }, roleRef: { kind: 'Role', name: 'reader', apiGroup } },
        })
      await ok(t.client.request('POST', `${path}/roles`, role('reader', reading)), 201)
      expect((await bind()).status).toBe(403)
      const rules = [
        { apiGroups: [apiGroup], resources: ['rolebindings'], verbs: ['create'] },
        { apiGroups: [apiGroup], resources: ['roles'], resourceNames: ['reader'], verbs: ['bind'] },
      ]
      const type = 'application/merge-patch+json'
      await ok(t.client.request('PATCH', `${path}/roles/eve`, { body: { rules }, type }))
      await until(async () => (await bind()).status === 201, 'eve may bind the role')
    },
  }),
  ...area('B3.8 webhooks', {
    'a condition that is false keeps a webhook out': async (t) => {
      const matchConditions = [{ name: 'never', expression: "object.metadata.name == 'other'" }]
      await withWebhook(t, { matchConditions }, async () => {
        await ok(t.client.request('POST', t.maps, { body: t.map('a') }), 201)
      })
    },
    'a condition that cannot be evaluated passes when failures are ignored': async (t) => {
      const matchConditions = [{ name: 'broken', expression: 'object.nosuch.field == 1' }]
      await withWebhook(t, { matchConditions, failurePolicy: 'Ignore' }, async () => {
        await ok(t.client.request('POST', t.maps, { body: t.map('a') }), 201)
      })
    },
    'an object selector keeps a webhook out': async (t) => {
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
    'a field that the schema does not have is refused with the definition': async (t) => {
      const body = definition('self.nosuch == 1', `never-${t.ns}`)
      const { status, json } = await t.client.request('POST', definitions, { body })
      expect(status).toBe(422)
      expect(json['message']).toContain(
        "compilation failed: ERROR: <input>:1:5: undefined field 'nosuch'\n | self.nosuch == 1\n | ....^",
      )
    },
  }),
  ...area('B3.8 pods without a kubelet', {
    'have no logs, and those that are not there are not found': async (t) => {
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
