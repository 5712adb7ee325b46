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

function callsOf(read: (turn: Turn) => Promise<void>) {
  const clock = fakeClock()
  const limiter = createLimiter({ perSecond: 2, clock, random: () => 0.5 })
  const provider: Provider = {
    ...memoryProvider({ zones: [ZONE] }),
    async read(_zone, _names, _signal, turn) {
      if (turn === undefined) throw new Error('no turn was given')
      await read(turn)
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
