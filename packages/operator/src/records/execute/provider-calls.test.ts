import { getEventListeners } from 'node:events'
import { createLimiter } from '@seamark/kube'
import { fakeClock } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import { memoryProvider } from '../../providers/memory.ts'
import type { Provider, Turn } from '../../providers/provider.ts'
import { ProviderError } from '../../rrset/error.ts'
import { createKillSwitch } from '../../process/kill-switch.ts'
import { ZONE } from '../../../testing/plan-fixture.ts'
import { createProviderCalls } from './provider-calls.ts'

const zone = { id: ZONE, name: ZONE }
const signal = new AbortController().signal

function callsOf(read: (turn: Turn, signal: AbortSignal) => Promise<void>) {
  const clock = fakeClock()
  const limiter = createLimiter({ perSecond: 2, clock, random: () => 0.5 })
  const provider: Provider = {
    ...memoryProvider({ zones: [ZONE] }),
    async read(_zone, _names, given, turn) {
      if (turn === undefined) throw new Error('no turn was given')
      await read(turn, given)
      return []
    },
  }
  const calls = createProviderCalls({ provider, limiter, killSwitch: createKillSwitch(), clock })
  return { clock, limiter, calls }
}

describe('a call of many requests', () => {
  it('applies the rate limit to every page, and may take longer than the time-out of one request', async () => {
    let pages = 1
    const { clock, calls } = callsOf(async (turn) => {
      while (pages < 67) {
        await turn()
        pages++
      }
    })
    const done = calls.read(zone, 'all', signal)
    await clock.advance(10_000)
    // Two per second, the first one immediately.
    expect(pages).toBeGreaterThan(15)
    expect(pages).toBeLessThanOrEqual(21)
    await clock.advance(30_000)
    await expect(done).resolves.toEqual([])
    expect(pages).toBe(67)
  })

  it('is aborted when one of its requests gets no response', async () => {
    const { clock, calls } = callsOf(async (turn) => {
      await turn()
      await new Promise(() => {})
    })
    const done = calls.read(zone, 'all', signal).catch((error: unknown) => error)
    await clock.advance(31_000)
    expect(await done).toMatchObject({ code: 'OutcomeUnknown' })
  })

  it('slows down when a page is throttled, and continues from that page', async () => {
    const { clock, limiter, calls } = callsOf(async (turn) => {
      await turn(new ProviderError('Throttled', 'later', 'Rate exceeded'))
      expect(limiter.rate).toBeLessThan(2)
    })
    const done = calls.read(zone, 'all', signal)
    await clock.advance(10_000)
    await expect(done).resolves.toEqual([])
  })
})

describe('a call', () => {
  it('that is stopped while it waits for the rate limit is not sent', async () => {
    let sent = 0
    const { clock, calls } = callsOf(async () => void sent++)
    const stop = new AbortController()
    await calls.read(zone, 'all', stop.signal)
    const second = calls.read(zone, 'all', stop.signal).catch((error: unknown) => error)
    stop.abort()
    await clock.advance(10_000)
    expect(await second).toMatchObject({ code: 'OutcomeUnknown', outcome: 'later' })
    expect(sent).toBe(1)
  })

  it('that ended leaves neither a timer nor a listener', async () => {
    let isFailing = false
    const { clock, calls } = callsOf(async () => {
      if (isFailing) throw new ProviderError('RecordRejected', 'rejected', 'no')
    })
    const stop = new AbortController()
    await calls.read(zone, 'all', stop.signal)
    isFailing = true
    const second = calls.read(zone, 'all', stop.signal).catch((error: unknown) => error)
    await clock.advance(1_000)
    expect(await second).toMatchObject({ code: 'RecordRejected' })
    expect([clock.pending, getEventListeners(stop.signal, 'abort').length]).toEqual([0, 0])
  })

  it('without a response in time is aborted, so that its connection is released', async () => {
    let given: AbortSignal | undefined
    const { clock, calls } = callsOf(async (_turn, inner) => {
      given = inner
      await new Promise(() => {})
    })
    const done = calls.read(zone, 'all', signal).catch((error: unknown) => error)
    await clock.advance(31_000)
    expect(await done).toMatchObject({ code: 'OutcomeUnknown', outcome: 'unknown' })
    expect(given?.aborted).toBe(true)
  })
})

describe('a service that fails', () => {
  it('is asked once a minute after five failures, and at once when that is requested', async () => {
    let isDown = true
    let sent = 0
    const { clock, calls } = callsOf(async () => {
      sent++
      if (isDown) throw new ProviderError('ProviderUnavailable', 'later', 'connection refused')
    })
    const read = async (): Promise<unknown> => {
      const done = calls.read(zone, 'all', signal).catch((error: unknown) => error)
      await clock.advance(1_000)
      return done
    }
    for (let failure = 0; failure < 5; failure++) await read()
    expect(await read()).toMatchObject({ code: 'Stale' })
    expect(sent).toBe(5)

    calls.retryNow()
    await read()
    // One request: it is down still.
    expect(await read()).toMatchObject({ code: 'Stale' })
    expect(sent).toBe(6)

    isDown = false
    calls.retryNow()
    expect(await read()).toEqual([])
    expect(calls.status).toMatchObject({ isOpen: false, failures: 0 })
  })
})
