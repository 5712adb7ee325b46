import { describe, expect, it } from 'vitest'
import type { HostAnswers, PublishedLeaf } from '../decide/dns-presence.ts'
import { AnswerCheck, type AnswerFacts } from './answer-check.ts'

const HOST = 'shop.example.com'
const leaf = (value: string, hasWeight = true): PublishedLeaf => ({
  addresses: [{ type: 'IPAddress', value }],
  hasWeight,
})
const EU = leaf('192.0.2.1')
const US = leaf('192.0.2.2')

/** One server, and what it answers; undefined: nothing comes back. */
function serve(initial: readonly string[] | undefined) {
  const state = { values: initial, asked: 0 }
  const check = new AnswerCheck({
    ask: async (hosts): Promise<HostAnswers[]> => {
      state.asked++
      const values = state.values === undefined ? undefined : new Set(state.values)
      return hosts.map((host) => ({ host, servers: [{ server: 'ns1', values }] }))
    },
  })
  const { signal } = new AbortController()
  const look = async (atMs: number, more: Partial<AnswerFacts> = {}) =>
    check.check(
      { uid: 'u', hosts: [HOST], published: [EU], before: 'right', known: undefined, nowMs: atMs, ...more },
      signal,
    )
  return { state, look }
}

describe('the answers of the servers of a root', () => {
  it('are asked once while nothing changes, and again after five minutes', async () => {
    const { state, look } = serve(['192.0.2.1'])
    expect(await look(0)).toEqual({ answered: ['192.0.2.1'], fault: undefined, isPending: false, againAtMs: 300_000 })
    await look(299_999)
    expect(state.asked).toBe(1)
    await look(300_000)
    expect(state.asked).toBe(2)
  })

  it('are asked at once when what is published changed, and soon while they differ', async () => {
    const { state, look } = serve(['192.0.2.1'])
    await look(0)
    expect(await look(10, { published: [US] })).toEqual({
      answered: ['192.0.2.1'],
      fault: undefined,
      isPending: false,
      againAtMs: 2_010,
    })
    state.values = ['192.0.2.2']
    expect(await look(2_010, { published: [US] })).toMatchObject({ answered: ['192.0.2.2'], fault: undefined })
    expect(state.asked).toBe(3)
  })

  it('are a fault when they differ for longer than a change needs, and at once where the condition says so already', async () => {
    const { state, look } = serve(['192.0.2.1', '192.0.2.9'])
    const fault = 'ns1 answers 192.0.2.1, 192.0.2.9 for shop.example.com instead of 192.0.2.1'
    expect(await look(0)).toMatchObject({ fault: undefined })
    expect(await look(5_000)).toMatchObject({ answered: ['192.0.2.1', '192.0.2.9'], fault })
    state.values = ['192.0.2.1']
    expect(await look(7_000, { before: undefined })).toMatchObject({ fault: undefined })
    const missing = 'ns1 answers nothing for shop.example.com instead of 192.0.2.1'
    expect(await serve([]).look(0, { before: 'wrong' })).toMatchObject({ fault: missing, isPending: false })
  })

  it('of a host that is published for the first time are no fault while they may be on their way', async () => {
    const { look } = serve([])
    expect(await look(0, { before: undefined })).toMatchObject({ fault: undefined, isPending: true })
    const fault = 'ns1 answers nothing for shop.example.com instead of 192.0.2.1'
    expect(await look(5_000, { before: undefined })).toMatchObject({ fault, isPending: false })
  })

  it('lack a leaf that is published: a fault, unless its weight is 0', async () => {
    const { look } = serve(['192.0.2.1'])
    expect(await look(0, { published: [EU, US], before: 'wrong' })).toMatchObject({
      fault: 'ns1 answers 192.0.2.1 for shop.example.com instead of 192.0.2.1, 192.0.2.2',
    })
    expect(await look(1, { published: [EU, leaf('192.0.2.2', false)], before: 'wrong' })).toMatchObject({
      fault: undefined,
    })
  })

  it('of a server that is silent change nothing that was known', async () => {
    const { state, look } = serve(['192.0.2.1'])
    await look(0)
    state.values = undefined
    expect(await look(300_000)).toMatchObject({ answered: ['192.0.2.1'], fault: undefined })
    expect(await serve(undefined).look(0)).toMatchObject({ answered: undefined, fault: undefined })
  })

  it('are asked soon again while a server is silent: what it answers now is not known', async () => {
    const { state, look } = serve(['192.0.2.1'])
    await look(0)
    state.values = undefined
    expect(await look(10, { published: [EU, US] })).toMatchObject({ answered: ['192.0.2.1'], againAtMs: 2_010 })
    state.values = ['192.0.2.1', '192.0.2.2']
    expect(await look(2_010, { published: [EU, US] })).toMatchObject({ answered: ['192.0.2.1', '192.0.2.2'] })
    state.values = undefined
    await look(302_010, { published: [EU, US] })
    expect(await look(362_010, { published: [EU, US] })).toMatchObject({ againAtMs: 422_010 })
  })

  it('are not judged where a leaf has a name: what it resolves to is not known', async () => {
    const { look } = serve(['192.0.2.1'])
    const published: PublishedLeaf[] = [{ addresses: [{ type: 'Hostname', value: 'lb.example.net' }], hasWeight: true }]
    expect(await look(0, { published, before: 'wrong' })).toMatchObject({ fault: undefined })
  })
})
