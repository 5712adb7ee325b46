import { describe, expect, it } from 'vitest'
import { corednsProvider } from './coredns.ts'

const ZONE = 'a.test.'
const zone = { id: ZONE, name: ZONE }
const { signal } = new AbortController()

/** A gateway of etcd that is empty at revision 7. `fail` gives the response for a request, or undefined. */
function etcdOf(fail: (path: string, count: number) => Response | undefined = () => undefined) {
  const calls: { path: string; body: Record<string, unknown>; token: string | null }[] = []
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const path = new URL(String(input)).pathname.replace('/v3/', '')
    const body = JSON.parse(String(init?.body)) as Record<string, unknown>
    calls.push({ path, body, token: new Headers(init?.headers).get('authorization') })
    const failed = fail(path, calls.length)
    if (failed !== undefined) return failed
    if (path === 'auth/authenticate') return Response.json({ token: `token-${calls.length}` })
    return Response.json(path === 'kv/txn' ? { succeeded: true } : { header: { revision: '7' } })
  }
  const options = { name: 'coredns', url: 'http://127.0.0.1:1', zones: [ZONE], fetch }
  return { calls, provider: corednsProvider({ ...options, credentials: { username: 'u', password: 'p' } }) }
}

describe('CoreDNS by etcd', () => {
  it('authenticates again when its token expired', async () => {
    let isExpired = false
    const { calls, provider } = etcdOf((path) =>
      isExpired && path === 'kv/range'
        ? Response.json({ error: 'etcdserver: invalid auth token' }, { status: 401 })
        : undefined,
    )
    await provider.zones(signal)
    isExpired = true
    await expect(provider.zones(signal)).rejects.toMatchObject({ code: 'CredentialsInvalid' })
    isExpired = false
    await provider.zones(signal)
    expect(calls.map(({ path, token }) => `${path} ${token ?? ''}`.trim())).toEqual([
      'auth/authenticate',
      'kv/range token-1',
      'kv/range token-1',
      'auth/authenticate',
      'kv/range token-4',
    ])
  })

  it('writes only when nothing below the name changed since it was read', async () => {
    let isMoved = false
    const { calls, provider } = etcdOf((path) =>
      isMoved && path === 'kv/txn' ? Response.json({ succeeded: false }) : undefined,
    )
    const batch = [{ from: undefined, to: { name: `www.${ZONE}`, type: 'A', ttl: 60, values: ['192.0.2.1'] } }]
    await provider.apply(zone, batch, signal)
    expect(calls.at(-1)?.body['compare']).toMatchObject([{ target: 'MOD', result: 'LESS', mod_revision: '8' }])
    isMoved = true
    await expect(provider.apply(zone, batch, signal)).rejects.toMatchObject({ code: 'BaseMoved', outcome: 'moved' })
  })

  it('waits for the rate limiter before every name after the first', async () => {
    let turns = 0
    const { provider } = etcdOf()
    const names = new Set(['x', 'y', 'z'].map((label) => `${label}.${ZONE}`))
    await provider.read(zone, names, signal, async () => void turns++)
    expect(turns).toBe(2)
  })
})
