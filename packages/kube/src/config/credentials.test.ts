import { describe, expect, it } from 'vitest'
import {
  replaceableCredentials,
  staticCredentials,
  impersonationHeaders,
  refreshingCredentials,
  type LoadedCredential,
} from './credentials.ts'
import { fakeClock } from '../testing/clock.ts'

function loader(more: Partial<LoadedCredential> = {}) {
  const state = { loads: 0, isBroken: false, running: 0, most: 0 }
  const load = async (): Promise<LoadedCredential> => {
    state.loads++
    state.running++
    state.most = Math.max(state.most, state.running)
    await new Promise((resolve) => setImmediate(resolve))
    state.running--
    if (state.isBroken) throw new Error('no new credential')
    return { headers: { authorization: `Bearer ${state.loads}` }, tls: {}, ...more }
  }
  return { state, load }
}

const bearer = (headers: Readonly<Record<string, string | readonly string[]>>) => headers['authorization']

describe('a credential that changes', () => {
  it('is loaded once for concurrent callers', async () => {
    const { state, load } = loader()
    const credentials = refreshingCredentials(load, fakeClock())
    await Promise.all(Array.from({ length: 10 }, async () => credentials.headers()))
    expect([state.loads, state.most]).toEqual([1, 1])
  })

  it('is renewed in the background before it expires, without delaying requests', async () => {
    const clock = fakeClock()
    const { state, load } = loader({ refreshInMs: 60_000, validForMs: 120_000 })
    const credentials = refreshingCredentials(load, clock)
    await credentials.headers()
    await clock.advance(60_000)
    expect(bearer(await credentials.headers())).toBe('Bearer 1')
    await clock.advance(0)
    expect(bearer(await credentials.headers())).toBe('Bearer 2')
    expect(state.loads).toBe(2)
  })

  it('is waited for once it has expired', async () => {
    const clock = fakeClock()
    const { load } = loader({ validForMs: 1000 })
    const credentials = refreshingCredentials(load, clock)
    await credentials.headers()
    await clock.advance(1000)
    expect(bearer(await credentials.headers())).toBe('Bearer 2')
  })

  it('is kept when its renewal fails, and the next attempt is delayed', async () => {
    const clock = fakeClock()
    const { state, load } = loader({ refreshInMs: 60_000 })
    const credentials = refreshingCredentials(load, clock)
    await credentials.headers()
    state.isBroken = true
    await clock.advance(60_000)
    for (let call = 0; call < 5; call++) {
      expect(bearer(await credentials.headers())).toBe('Bearer 1')
      await clock.advance(1)
    }
    expect(state.loads).toBe(2)
    await clock.advance(10_000)
    await credentials.headers()
    expect(state.loads).toBe(3)
  })

  it('that was never valid, or has expired, fails with the reason', async () => {
    const clock = fakeClock()
    const { state, load } = loader({ validForMs: 1000 })
    state.isBroken = true
    const credentials = refreshingCredentials(load, clock)
    await expect(credentials.headers()).rejects.toThrow('no new credential')
    state.isBroken = false
    await credentials.headers()
    state.isBroken = true
    await clock.advance(2000)
    await expect(credentials.headers()).rejects.toThrow('no new credential')
  })

  it('is loaded again after a 401, once for all rejected requests', async () => {
    const clock = fakeClock()
    const { state, load } = loader()
    const credentials = refreshingCredentials(load, clock)
    const used = await credentials.headers()
    credentials.invalidate(used)
    credentials.invalidate(used)
    await credentials.headers()
    // A late 401 for the old credential does not discard the new one.
    credentials.invalidate(used)
    await credentials.headers()
    expect(state.loads).toBe(2)
  })

  it('that is rejected repeatedly is not loaded on every request', async () => {
    const clock = fakeClock()
    const { state, load } = loader()
    const credentials = refreshingCredentials(load, clock)
    for (let round = 0; round < 20; round++) credentials.invalidate(await credentials.headers())
    expect(state.loads).toBe(2)
    await clock.advance(10_000)
    credentials.invalidate(await credentials.headers())
    await credentials.headers()
    expect(state.loads).toBe(3)
  })

  it('keeps the last valid one when the load after a 401 fails', async () => {
    const { state, load } = loader()
    const credentials = refreshingCredentials(load, fakeClock())
    const used = await credentials.headers()
    state.isBroken = true
    credentials.invalidate(used)
    expect(await credentials.headers()).toBe(used)
  })

  it('changes its TLS version only when the material changed', async () => {
    const clock = fakeClock()
    let cert = 'one'
    const credentials = refreshingCredentials(async () => ({ headers: {}, tls: { cert }, validForMs: 1000 }), clock)
    await credentials.headers()
    const first = credentials.tls()
    await clock.advance(1000)
    await credentials.headers()
    expect(credentials.tls()).toBe(first)
    cert = 'two'
    await clock.advance(1000)
    await credentials.headers()
    expect(credentials.tls().version).toBe(first.version + 1)
  })
})

describe('impersonation', () => {
  it('sends user, groups, uid and extra', () => {
    const extra = new Map([['Example.com/Scopes', ['a', 'b']]])
    expect(impersonationHeaders({ user: 'jo', groups: ['dev', 'ops'], uid: '7', extra })).toEqual({
      'impersonate-user': 'jo',
      'impersonate-group': ['dev', 'ops'],
      'impersonate-uid': '7',
      'impersonate-extra-example.com%2fscopes': ['a', 'b'],
    })
    expect(impersonationHeaders(undefined)).toEqual({})
  })
})

describe('credentials that are replaced', () => {
  it('are those of the next request, and keep the TLS version unless the material differs', () => {
    const credentials = replaceableCredentials(staticCredentials({ authorization: 'one' }, { ca: 'ca' }))
    const first = credentials.tls().version
    credentials.replace(staticCredentials({ authorization: 'two' }, { ca: 'ca' }))
    expect(credentials.headers()).toEqual({ authorization: 'two' })
    expect(credentials.tls().version).toBe(first)
    credentials.replace(staticCredentials({}, { ca: 'ca', cert: 'cert', key: 'key' }))
    const second = credentials.tls()
    expect(second).toMatchObject({ ca: 'ca', cert: 'cert', key: 'key' })
    expect(second.version).toBeGreaterThan(first)
    expect(credentials.tls()).toBe(second)
    credentials.replace(staticCredentials({}, { ca: 'other' }))
    expect(credentials.tls().version).toBeGreaterThan(second.version)
  })
})
