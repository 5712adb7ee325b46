import { describe, expect, it } from 'vitest'
import { createApiServer } from '../index.ts'

const api = '/apis/rbac.authorization.k8s.io/v1'
const apiGroup = 'rbac.authorization.k8s.io'
const eve = { name: 'eve', groups: ['system:authenticated'] }
const may = (verbs: string[], ...resources: string[]) => ({ apiGroups: ['', apiGroup], resources, verbs })

/** A server on which eve has these permissions everywhere. */
async function serverFor(...rules: object[]) {
  const server = createApiServer({ authorization: 'RBAC', controllers: false })
  const post = (send: typeof server.fetch) => async (path: string, body: object) => {
    const headers = { 'content-type': 'application/json' }
    const answer = await send(`${api}/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: answer.status, message: ((await answer.json()) as { message?: string }).message }
  }
  const asAdmin = post(server.fetch)
  await asAdmin('clusterroles', { metadata: { name: 'eve' }, rules })
  const subjects = [{ kind: 'User', name: 'eve', apiGroup }]
  await asAdmin('clusterrolebindings', { metadata: { name: 'eve' }, subjects, roleRef: roleRef('eve') })
  await asAdmin('clusterroles', { metadata: { name: 'secrets' }, rules: [may(['get'], 'secrets')] })
  return { asAdmin, asEve: post(server.fetchAs(eve)) }
}

const roleRef = (name: string) => ({ apiGroup, kind: 'ClusterRole', name })
const role = (name: string, ...rules: object[]) => ({ metadata: { name }, rules })
const binding = (name: string) => ({ metadata: { name }, roleRef: roleRef(name) })
const maker = may(['create'], 'clusterroles', 'clusterrolebindings')

describe('a role or binding', () => {
  it('may grant the permissions of its author', async () => {
    const { asEve } = await serverFor(maker, may(['get', 'list'], 'secrets'))
    expect((await asEve('clusterroles', role('less', may(['get'], 'secrets')))).status).toBe(201)
    expect((await asEve('clusterrolebindings', binding('secrets'))).status).toBe(201)
  })

  it('may not grant more, and the error lists the missing permissions', async () => {
    const { asEve } = await serverFor(maker, may(['get'], 'secrets'))
    const { status, message } = await asEve(
      'clusterroles',
      role('more', may(['get', 'list', 'watch'], 'secrets', 'pods')),
    )
    expect(status).toBe(403)
    expect(message).toContain(
      '"more" is forbidden: user "eve" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n',
    )
    expect(message).toContain('{APIGroups:[""], Resources:["secrets"], Verbs:["list" "watch"]}')
    expect(message).toContain('{APIGroups:[""], Resources:["pods"], Verbs:["get" "list" "watch"]}')
    const other = await serverFor(maker)
    expect((await other.asEve('clusterrolebindings', binding('secrets'))).status).toBe(403)
  })

  it('may not extend a permission on named objects to all or other names', async () => {
    const named = (...resourceNames: string[]) => ({ ...may(['get'], 'secrets'), resourceNames })
    const { asEve } = await serverFor(maker, named('mine', 'ours'))
    expect((await asEve('clusterroles', role('same', named('mine')))).status).toBe(201)
    const { status, message } = await asEve('clusterroles', role('all', may(['get'], 'secrets')))
    expect(status).toBe(403)
    expect(message).toContain('{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}')
    expect((await asEve('clusterroles', role('other', named('theirs')))).message).toContain('ResourceNames:["theirs"]')
    expect((await asEve('clusterrolebindings', binding('secrets'))).status).toBe(403)
  })

  it('may grant anything when its author has the verb escalate or bind', async () => {
    const { asEve } = await serverFor(maker, may(['escalate', 'bind'], 'clusterroles'))
    expect((await asEve('clusterroles', role('all', may(['*'], '*')))).status).toBe(201)
    expect((await asEve('clusterrolebindings', binding('secrets'))).status).toBe(201)
  })

  it('is not restricted for system:masters', async () => {
    const { asAdmin } = await serverFor()
    expect((await asAdmin('clusterroles', role('all', may(['*'], '*')))).status).toBe(201)
  })
})
