/** Escalation: nobody grants permissions, or takes an identity, that they do not have. */
import { expect } from 'vitest'
import { area, type Case, type CaseContext, merge, ok, until } from '../case.ts'

const rbac = '/apis/rbac.authorization.k8s.io/v1'
const apiGroup = 'rbac.authorization.k8s.io'

/** Grants `eve` the creation of roles in the namespace of the case and these permissions. */
export async function grantEve(t: CaseContext, ...rules: object[]): Promise<void> {
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
  // kube-apiserver applies roles and bindings with a delay.
  const probe = async () =>
    await t.as('eve').request('POST', `${path}/roles?dryRun=All`, { body: { metadata: { name: 'probe' }, rules: [] } })
  await until(async () => (await probe()).status === 201, 'eve may create roles')
}

const reading = { apiGroups: [''], resources: ['secrets'], verbs: ['get'] }
const role = (name: string, ...rules: object[]) => ({ body: { metadata: { name }, rules } })

export const escalation: readonly Case[] = [
  ...area('B3.8 RBAC escalation', {
    'a user may grant own permissions': async (t) => {
      await grantEve(t, reading)
      const path = `${rbac}/namespaces/${t.ns}/roles`
      await ok(t.as('eve').request('POST', path, role('same', reading)), 201)
    },
    'a user may not grant missing permissions': async (t) => {
      await grantEve(t, reading)
      const more = { ...reading, verbs: ['get', 'list'] }
      const { status, json } = await t.as('eve').request('POST', `${rbac}/namespaces/${t.ns}/roles`, role('more', more))
      expect([status, json['message']]).toEqual([
        403,
        `roles.${apiGroup} "more" is forbidden: user "eve" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["secrets"], Verbs:["list"]}`,
      ])
    },
    'a user with the verb escalate may grant anything': async (t) => {
      await grantEve(t, { apiGroups: [apiGroup], resources: ['roles'], verbs: ['escalate'] })
      const path = `${rbac}/namespaces/${t.ns}/roles`
      await ok(t.as('eve').request('POST', path, role('more', reading)), 201)
    },
    'a user may not grant paths, or the rules of roles to come by an aggregation': async (t) => {
      const user = `eve-${t.ns}`
      const metadata = { name: `contract-${user}` }
      const rules = [{ apiGroups: [apiGroup], resources: ['clusterroles'], verbs: ['create', 'patch'] }]
      const subjects = [{ kind: 'User', name: user, apiGroup }]
      const roleRef = { kind: 'ClusterRole', name: metadata.name, apiGroup }
      const roles = `${rbac}/clusterroles`
      await ok(t.client.request('POST', roles, { body: { metadata, rules } }), 201)
      try {
        await ok(
          t.client.request('POST', `${rbac}/clusterrolebindings`, { body: { metadata, subjects, roleRef } }),
          201,
        )
        const create = async (fields: object) =>
          await t.as(user).request('POST', `${roles}?dryRun=All`, {
            body: { metadata: { name: `${metadata.name}-new` }, ...fields },
          })
        await until(async () => (await create({ rules: [] })).status === 201, 'the user may create roles')
        const refused = `clusterroles.${apiGroup} "${metadata.name}-new" is forbidden: user "${user}" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n`
        const paths = await create({ rules: [{ nonResourceURLs: ['/metrics', '/debug/*'], verbs: ['get'] }] })
        expect([paths.status, paths.json['message']]).toEqual([
          403,
          `${refused}{NonResourceURLs:["/debug/*"], Verbs:["get"]}\n{NonResourceURLs:["/metrics"], Verbs:["get"]}`,
        ])
        const aggregationRule = { clusterRoleSelectors: [{ matchLabels: { never: 'there' } }] }
        const aggregated = await create({ aggregationRule })
        expect([aggregated.status, aggregated.json['message']]).toEqual([
          403,
          expect.stringContaining('must have cluster-admin'),
        ])
        // The same when a role that is there becomes one.
        const empty = { metadata: { name: `${metadata.name}-new` }, rules: [] }
        await ok(t.client.request('POST', roles, { body: empty }), 201)
        const changed = await t
          .as(user)
          .request('PATCH', `${roles}/${metadata.name}-new`, { body: { aggregationRule }, ...merge })
        expect(changed.status).toBe(403)
      } finally {
        await t.client.request('DELETE', `${rbac}/clusterrolebindings/${metadata.name}`)
        for (const name of [metadata.name, `${metadata.name}-new`]) await t.client.request('DELETE', `${roles}/${name}`)
      }
    },
    'a user may change nothing of a role with missing permissions': async (t) => {
      await grantEve(t)
      const path = `${rbac}/namespaces/${t.ns}/roles`
      await ok(t.client.request('POST', path, role('more', reading)), 201)
      const change = async (metadata: object) =>
        (await t.as('eve').request('PATCH', `${path}/more`, { body: { metadata }, ...merge })).status
      expect(await change({ labels: { a: 'b' } })).toBe(403)
      expect(await change({ finalizers: ['contract.dev/held'] })).toBe(200)
      expect(await change({ finalizers: null })).toBe(200)
    },
    'a binding requires the permissions of its role, or the verb bind': async (t) => {
      await grantEve(t)
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
  ...area('B3.8 impersonation', {
    'groups and other attributes without a user are not impersonated': async (t) => {
      const refusal = async (headers: Record<string, string>) => {
        const { status, json } = await t.client.request('GET', t.maps, { headers })
        return [status, json['message']]
      }
      const text = (fields: string) =>
        `requested &user.DefaultInfo{Name:"", ${fields}} without impersonating a user name`
      expect(await refusal({ 'impersonate-group': 'readers' })).toEqual([
        400,
        text('UID:"", Groups:[]string{"readers"}, Extra:map[string][]string(nil)'),
      ])
      expect(await refusal({ 'impersonate-uid': 'u1' })).toEqual([
        400,
        text('UID:"u1", Groups:[]string(nil), Extra:map[string][]string(nil)'),
      ])
      expect(await refusal({ 'impersonate-extra-scopes': 'view' })).toEqual([
        400,
        text('UID:"", Groups:[]string(nil), Extra:map[string][]string{"scopes":[]string{"view"}}'),
      ])
    },
  }),
]
