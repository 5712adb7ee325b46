import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { GroupedCalls } from './grouped-calls.ts'

const never = new AbortController().signal

/** Groups of letters; each waits until it is released. */
function letterGroups(limit = 10) {
  const groups: string[] = []
  const signals: AbortSignal[] = []
  const releases: (() => void)[] = []
  const calls = new GroupedCalls<string, string>({
    keyOf: (letter) => letter.slice(0, 1),
    limit,
    async perform(letters, signal) {
      groups.push(letters.join(' '))
      signals.push(signal)
      await new Promise<void>((resolve) => releases.push(resolve))
      if (letters.includes('fail')) throw new Error('no connection')
      return new Map(
        letters.map((letter) => [letter.slice(0, 1), letter === 'bad' ? new Error('refused') : letter.toUpperCase()]),
      )
    },
  })
  const turn = async () => new Promise((resolve) => setImmediate(resolve))
  return {
    calls,
    groups,
    signals,
    async release() {
      await turn()
      releases.shift()?.()
      await turn()
    },
  }
}

describe('grouped calls', () => {
  it('are performed together when they are made while an earlier group is under way', async () => {
    const the = letterGroups()
    const first = the.calls.call('a', never)
    await Promise.resolve()
    await Promise.resolve()
    const others = ['b', 'c'].map(async (letter) => the.calls.call(letter, never))
    await the.release()
    expect(await first).toBe('A')
    await the.release()
    expect(await Promise.all(others)).toEqual(['B', 'C'])
    expect(the.groups).toEqual(['a', 'b c'])
  })

  it('fail alone when the service refuses one of them, and together when it refuses all', async () => {
    const the = letterGroups()
    const outcomes = Promise.allSettled(['a', 'bad'].map(async (letter) => the.calls.call(letter, never)))
    await the.release()
    expect(await outcomes).toMatchObject([{ value: 'A' }, { reason: { message: 'refused' } }])
    const failed = Promise.allSettled(['a', 'fail'].map(async (letter) => the.calls.call(letter, never)))
    await the.release()
    expect(await failed).toMatchObject([
      { reason: { message: 'no connection' } },
      { reason: { message: 'no connection' } },
    ])
  })

  it('with the same key, or beyond the limit, are in the next group', async () => {
    const the = letterGroups(2)
    const all = Promise.all(['a1', 'a2', 'b', 'c'].map(async (letter) => the.calls.call(letter, never)))
    for (let group = 0; group < 2; group++) await the.release()
    expect(await all).toEqual(['A1', 'A2', 'B', 'C'])
    expect(the.groups).toEqual(['a1 b', 'a2 c'])
  })

  it('are aborted when the signals of all of them are', async () => {
    const the = letterGroups()
    const [one, two] = [new AbortController(), new AbortController()]
    const all = Promise.all([the.calls.call('a', one.signal), the.calls.call('b', two.signal)])
    await Promise.resolve()
    await Promise.resolve()
    one.abort()
    expect(the.signals[0]?.aborted).toBe(false)
    two.abort()
    expect(the.signals[0]?.aborted).toBe(true)
    await the.release()
    await all
  })

  it('are performed with an aborted signal when those of all of them were aborted before', async () => {
    const the = letterGroups()
    const call = the.calls.call('a', AbortSignal.abort(new Error('stopped')))
    await the.release()
    expect(await call).toBe('A')
    expect(the.signals[0]?.reason).toEqual(new Error('stopped'))
  })

  it('leave no listener on their signals', async () => {
    const the = letterGroups()
    const { signal } = new AbortController()
    for (const letter of ['a', 'fail']) {
      const outcome = Promise.allSettled([the.calls.call(letter, signal)])
      await the.release()
      await outcome
    }
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('fail when the service returns no result for them', async () => {
    const calls = new GroupedCalls({ keyOf: String, limit: 10, perform: async () => new Map([['a', 'A']]) })
    const outcomes = await Promise.allSettled(['a', 'b'].map(async (letter) => calls.call(letter, never)))
    expect(outcomes).toMatchObject([{ value: 'A' }, { reason: { message: 'the group has no result for b' } }])
  })
})
