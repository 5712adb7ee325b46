import { describe, expect, it } from 'vitest'
import { retry } from './retry.ts'
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
