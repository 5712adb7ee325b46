import { describe, expect, it } from 'vitest'
import { createApiServer } from '../index.ts'

const bob = { name: 'bob', groups: ['system:authenticated'] }

describe('impersonation with RBAC', () => {
  const server = createApiServer({ authorization: 'RBAC', controllers: false })
  const asBob = server.fetchAs(bob)
  const post = async (path: string, body: unknown) =>
    server.fetch(`http://server${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })

  async function whoAmI(headers: Record<string, string>): Promise<{ status: number; body: Record<string, unknown> }> {
    const response = await asBob('http://server/apis/authentication.k8s.io/v1/selfsubjectreviews', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: '{}',
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }

  it('is rejected without permission to impersonate that user, with the message of kube-apiserver', async () => {
    const { status, body } = await whoAmI({ 'impersonate-user': 'admin' })
    expect(status).toBe(403)
    expect(body['message']).toBe(
      'users "admin" is forbidden: User "bob" cannot impersonate resource "users" in API group "" at the cluster scope',
    )
  })

  it('is granted user by user and group by group', async () => {
    const api = '/apis/rbac.authorization.k8s.io/v1'
    const rules = [{ apiGroups: [''], resources: ['users'], resourceNames: ['ann'], verbs: ['impersonate'] }]
    await post(`${api}/clusterroles`, { metadata: { name: 'be-ann' }, rules })
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'be-ann' }
    const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'bob' }]
    await post(`${api}/clusterrolebindings`, { metadata: { name: 'be-ann' }, roleRef, subjects })

    expect((await whoAmI({ 'impersonate-user': 'ann' })).status).toBe(201)
    expect((await whoAmI({ 'impersonate-user': 'eve' })).status).toBe(403)
    expect((await whoAmI({ 'impersonate-user': 'ann', 'impersonate-group': 'system:masters' })).status).toBe(403)
  })
})
