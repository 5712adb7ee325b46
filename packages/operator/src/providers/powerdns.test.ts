import { describe, expect, it } from 'vitest'
import { ProviderError } from '../rrset/error.ts'
import { powerdnsProvider } from './powerdns.ts'

const ZONE = 'a.test.'
const zone = { id: ZONE, name: ZONE }
const signal = new AbortController().signal

/** A server that answers for every name, and returns 429 for the requests with these numbers. */
function serverOf(throttled: readonly number[] = []) {
  const log: string[] = []
  let requests = 0
  const fetch: typeof globalThis.fetch = async (input) => {
    const name = new URL(String(input)).searchParams.get('rrset_name') ?? ''
    log.push(name)
    if (throttled.includes(requests++)) return new Response('{}', { status: 429, headers: { 'retry-after': '2' } })
    const rrsets = [{ name, type: 'A', ttl: 60, records: [{ content: '192.0.2.1' }] }]
    return new Response(JSON.stringify({ rrsets }))
  }
  return { log, provider: powerdnsProvider({ name: 'pdns', url: 'http://127.0.0.1:1', apiKey: 'k', fetch }) }
}

describe('reading names from PowerDNS', () => {
  const names = new Set(['x', 'y', 'z'].map((label) => `${label}.${ZONE}`))

  it('waits for the rate limiter before every request after the first', async () => {
    const { log, provider } = serverOf()
    const turn = async () => void log.push('turn')
    expect(await provider.read(zone, names, signal, turn)).toHaveLength(3)
    expect(log).toEqual([`x.${ZONE}`, 'turn', `y.${ZONE}`, 'turn', `z.${ZONE}`])
  })

  it('repeats only the throttled request, after the delay that the server requested', async () => {
    const { log, provider } = serverOf([1])
    const turns: (ProviderError | undefined)[] = []
    const found = await provider.read(zone, names, signal, async (throttled) => void turns.push(throttled))
    expect(found.map(({ name }) => name)).toEqual([...names])
    expect(log).toEqual(['x', 'y', 'y', 'z'].map((label) => `${label}.${ZONE}`))
    expect(turns.map((turn) => turn?.retryAfterMs)).toEqual([undefined, 2000, undefined])
  })

  it('fails when the server keeps throttling', async () => {
    const { log, provider } = serverOf(Array.from({ length: 50 }, (_, index) => index))
    await expect(provider.read(zone, names, signal, async () => undefined)).rejects.toMatchObject({ code: 'Throttled' })
    expect(log).toHaveLength(5)
  })
})

describe('PowerDNS', () => {
  const answering = (status: number, body: unknown, zones?: readonly string[]) => {
    const paths: string[] = []
    const fetch: typeof globalThis.fetch = async (input) => {
      paths.push(new URL(String(input)).search)
      return new Response(JSON.stringify(body), { status })
    }
    const options = { name: 'pdns', url: 'http://127.0.0.1:1', apiKey: 'k', fetch }
    return { paths, provider: powerdnsProvider({ ...options, ...(zones !== undefined && { zones }) }) }
  }
  const setOf = (label: string, disabled = false) => ({
    name: `${label}.${ZONE}`,
    type: 'A',
    ttl: 60,
    records: [{ content: '192.0.2.1' }, { content: '192.0.2.2', disabled }],
  })

  it('that ignores the name in a request is asked once for the whole zone', async () => {
    const { paths, provider } = answering(200, { rrsets: ['w', 'x', 'y', 'z'].map((label) => setOf(label)) })
    const names = new Set([`x.${ZONE}`, `y.${ZONE}`])
    for (const queries of [[`?rrset_name=${encodeURIComponent(`x.${ZONE}`)}`], ['']]) {
      expect((await provider.read(zone, names, signal)).map(({ name }) => name)).toEqual([...names])
      expect(paths.splice(0)).toEqual(queries)
    }
  })

  it('shows a set with disabled records as one that is never changed', async () => {
    const { provider } = answering(200, { rrsets: [setOf('x', true), setOf('y')] })
    const found = await provider.read(zone, 'all', signal)
    expect(found.map(({ opaque }) => opaque)).toEqual(['disabled records', undefined])
  })

  it('serves only the configured zones', async () => {
    const all = ['a.test.', 'b.test.'].map((name) => ({ id: name, name }))
    expect(await answering(200, all, ['b.test.']).provider.zones(signal)).toEqual([all[1]])
    expect(await answering(200, all).provider.zones(signal)).toEqual(all)
  })

  it('that fails during a change may have made it', async () => {
    const to = { name: `x.${ZONE}`, type: 'A', ttl: 60, values: ['192.0.2.1'] }
    const change = answering(500, { error: 'backend' }).provider.apply(zone, [{ from: undefined, to }], signal)
    await expect(change).rejects.toMatchObject({ code: 'ProviderUnavailable', outcome: 'unknown' })
  })
})
