import { fakeClock } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import { createApiServer } from '../index.ts'

const accounts = '/api/v1/namespaces/default/serviceaccounts'
const rbac = '/apis/rbac.authorization.k8s.io/v1'
const reviews = '/apis/authentication.k8s.io/v1/tokenreviews'

function setUp() {
  const clock = fakeClock()
  const schedule = (delayMs: number, task: () => void) => ({ cancel: clock.after(delayMs, task) })
  const server = createApiServer({
    authorization: 'RBAC',
    controllers: false,
    clock: { now: () => clock.now(), monotonic: () => clock.monotonic(), schedule },
  })
  const send = async (method: string, path: string, body: unknown = {}) => {
    const headers = { 'content-type': 'application/json' }
    const response = await server.fetch(path, { method, headers, body: JSON.stringify(body) })
    return (await response.json()) as { status: Record<string, unknown> }
  }
  const isValid = async (token: string): Promise<boolean> => {
    return (await send('POST', reviews, { spec: { token } })).status['authenticated'] === true
  }
  return { clock, server, send, isValid }
}

describe('a ServiceAccount token', () => {
  it('is valid until it expires, with its signature only, and for its own account only', async () => {
    const { clock, server, send, isValid } = setUp()
    await send('POST', accounts, { metadata: { name: 'robot' } })
    const issue = async () => String((await send('POST', `${accounts}/robot/token`)).status['token'])
    const token = await issue()
    expect(await isValid(token)).toBe(true)
    const [head = '', claims = '', signature = ''] = token.split('.')
    const forged = Buffer.from(Buffer.from(claims, 'base64url').toString().replaceAll('robot', 'other'))
    expect(await isValid(`${head}.${forged.toString('base64url')}.${signature}`)).toBe(false)
    expect(await isValid(`${head}.${claims}.${Buffer.alloc(64, 1).toString('base64url')}`)).toBe(false)
    await clock.advance(3_600_000)
    expect(await isValid(token)).toBe(false)
    const second = await issue()
    expect(await isValid(second)).toBe(true)
    await send('DELETE', `${accounts}/robot`)
    await send('POST', accounts, { metadata: { name: 'robot' } })
    expect(await isValid(second)).toBe(false)
    await server.close()
  })
})

describe('a permission', () => {
  it('follows changes of its role, and covers neither subresources nor accounts of other namespaces', async () => {
    const { server, send } = setUp()
    const asRobot = (namespace: string) =>
      server.fetchAs({ name: `system:serviceaccount:${namespace}:robot`, groups: ['system:authenticated'] })
    const read = async (path: string, namespace = 'default') => (await asRobot(namespace)(path)).status
    const role = (verbs: string[]) => ({
      metadata: { name: 'reader' },
      rules: [{ apiGroups: [''], resources: ['nodes'], verbs }],
    })
    await send('POST', `${rbac}/clusterroles`, role(['list']))
    await send('POST', `${rbac}/clusterrolebindings`, {
      metadata: { name: 'reader' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'reader' },
      subjects: [{ kind: 'ServiceAccount', name: 'robot', namespace: 'default' }],
    })
    expect(await read('/api/v1/nodes')).toBe(200)
    expect(await read('/api/v1/nodes', 'other')).toBe(403)
    expect(await read('/api/v1/nodes/a')).toBe(403)
    await send('PUT', `${rbac}/clusterroles/reader`, role(['get']))
    expect(await read('/api/v1/nodes')).toBe(403)
    expect(await read('/api/v1/nodes/a')).toBe(404)
    expect(await read('/api/v1/nodes/a/status')).toBe(403)
    await server.close()
  })
})
