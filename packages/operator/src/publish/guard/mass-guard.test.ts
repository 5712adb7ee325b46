import { fakeClock } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import { createMassGuard } from './mass-guard.ts'

async function judge(count: number, published: number): Promise<string[]> {
  const clock = fakeClock()
  const guard = createMassGuard({ clock, countPublished: () => published })
  const keys = Array.from({ length: count }, (_, index) => `k${index}`)
  for (const key of keys) {
    expect(guard.ask('prune', key).state).toBe('wait')
    await clock.advance(100)
  }
  await clock.advance(500)
  return [...new Set(keys.map((key) => guard.ask('prune', key).state))]
}

describe('the guard against mass changes', () => {
  it.each([
    [1, 1, 'go'],
    [5, 5, 'go'],
    [6, 6, 'held'],
    [6, 20, 'go'],
    [7, 20, 'held'],
    [30, 100, 'go'],
    [31, 100, 'held'],
  ])('%i of %i: %s', async (count, published, expected) => {
    expect(await judge(count, published)).toEqual([expected])
  })

  it('drops requests that are not repeated', async () => {
    const clock = fakeClock()
    const guard = createMassGuard({ clock, countPublished: () => 10 })
    for (let index = 0; index < 10; index++) guard.ask('prune', `k${index}`)
    await clock.advance(500)
    expect(guard.ask('prune', 'k0').state).toBe('held')
    expect([guard.isIdle, guard.held]).toEqual([false, 10])
    // Nine children were deleted by others; the remaining one keeps requesting.
    const answers: string[] = []
    for (let asked = 0; asked < 40 && answers.at(-1) !== 'go'; asked++) {
      await clock.advance(10_000)
      answers.push(guard.ask('prune', 'k0').state)
    }
    expect([answers.at(-1), guard.isIdle, guard.held]).toEqual(['go', true, 0])
    expect(answers.filter((answer) => answer === 'held').length).toBeGreaterThan(25)
  })

  it('counts requests that arrive within the settling time together', async () => {
    const clock = fakeClock()
    const guard = createMassGuard({ clock, countPublished: () => 10 })
    for (let index = 0; index < 10; index++) {
      guard.ask('retarget', `k${index}`)
      await clock.advance(400)
      expect(guard.ask('retarget', 'k0').state).toBe('wait')
    }
    await clock.advance(500)
    expect(guard.ask('retarget', 'k0').state).toBe('held')
    expect(guard.held).toBe(10)
  })

  it('allows the rest when most of the requests are withdrawn', async () => {
    const clock = fakeClock()
    const guard = createMassGuard({ clock, countPublished: () => 10 })
    for (let index = 0; index < 10; index++) guard.ask('prune', `k${index}`)
    await clock.advance(500)
    expect(guard.ask('prune', 'k0').state).toBe('held')
    for (let index = 2; index < 10; index++) guard.withdraw(`k${index}`)
    expect(guard.ask('prune', 'k0').state).toBe('go')
    expect(guard.ask('prune', 'k1').state).toBe('go')
  })

  it('adds new requests to those already held', async () => {
    const clock = fakeClock()
    const guard = createMassGuard({ clock, countPublished: () => 20 })
    for (let index = 0; index < 7; index++) guard.ask('prune', `k${index}`)
    await clock.advance(500)
    expect(guard.ask('prune', 'k0').state).toBe('held')
    guard.ask('prune', 'late')
    await clock.advance(500)
    expect(guard.ask('prune', 'late').state).toBe('held')
  })

  it('a release allows what is held now, and nothing later', async () => {
    const clock = fakeClock()
    const guard = createMassGuard({ clock, countPublished: () => 6 })
    for (let index = 0; index < 6; index++) guard.ask('prune', `k${index}`)
    await clock.advance(500)
    expect(guard.ask('prune', 'k0').state).toBe('held')
    expect(guard.release()).toBe(6)
    expect(guard.ask('prune', 'k0').state).toBe('go')
    for (let index = 10; index < 16; index++) guard.ask('prune', `k${index}`)
    await clock.advance(500)
    expect(guard.ask('prune', 'k10').state).toBe('held')
  })
})
