import { describe, expect, it } from 'vitest'
import { Backoff, poll, retry } from './retry.ts'
import { fakeClock } from './testing/clock.ts'

describe('retry', () => {
  it('repeats a failed attempt after waits that double up to their limit', async () => {
    const clock = fakeClock()
    const startedAt = clock.monotonic()
    const at: number[] = []
    const result = retry(
      async () => {
        at.push(clock.monotonic() - startedAt)
        if (at.length < 5) throw new Error('not yet')
        return 'done'
      },
      { clock, baseMs: 100, limitMs: 300, isFinal: () => false },
    )
    await clock.advance(2_000)
    expect(await result).toBe('done')
    expect(at).toEqual([0, 100, 300, 600, 900])
  })

  it('rejects with the error that is final', async () => {
    const options = { clock: fakeClock(), baseMs: 0, isFinal: (_: unknown, attempts: number) => attempts === 1 }
    await expect(retry(async () => Promise.reject(new Error('forbidden')), options)).rejects.toThrow('forbidden')
  })

  it('makes no further attempt when the signal aborts during a wait', async () => {
    const clock = fakeClock()
    const stop = new AbortController()
    let attempts = 0
    const result = retry(
      async () => {
        attempts++
        throw new Error('down')
      },
      { clock, baseMs: 1_000, signal: stop.signal, isFinal: () => false },
    )
    await clock.advance(10)
    stop.abort()
    await expect(result).rejects.toThrow('down')
    expect(attempts).toBe(1)
  })
})

describe('Backoff', () => {
  it('starts again with the first wait after a reset', async () => {
    const clock = fakeClock()
    const backoff = new Backoff({ clock, baseMs: 100 })
    for (const _ of [1, 2]) await Promise.all([backoff.wait(), clock.advance(1_000)])
    backoff.reset()
    let isOver = false
    const waiting = backoff.wait().then(() => (isOver = true))
    await clock.advance(99)
    expect(isOver).toBe(false)
    await clock.advance(1)
    await waiting
    expect(isOver).toBe(true)
  })
})

describe('poll', () => {
  it('checks at once and then after each interval, until there is a value', async () => {
    const clock = fakeClock()
    const startedAt = clock.monotonic()
    const at: number[] = []
    const result = poll(
      () => {
        at.push(clock.monotonic() - startedAt)
        return at.length === 3 ? 'there' : undefined
      },
      { clock, intervalMs: 100 },
    )
    await clock.advance(1_000)
    expect(await result).toBe('there')
    expect(at).toEqual([0, 100, 200])
  })

  it('ends without a value at the timeout, with a check after the last interval', async () => {
    const clock = fakeClock()
    let checks = 0
    const result = poll(async () => void checks++, { clock, intervalMs: 100, timeoutMs: 250 })
    await clock.advance(1_000)
    expect(await result).toBeUndefined()
    expect(checks).toBe(4)
  })

  it('checks no more when the signal aborts during an interval', async () => {
    const clock = fakeClock()
    const stop = new AbortController()
    let checks = 0
    const result = poll(() => void checks++, { clock, intervalMs: 1_000, signal: stop.signal })
    await clock.advance(10)
    stop.abort()
    expect(await result).toBeUndefined()
    expect(checks).toBe(1)
  })
})
