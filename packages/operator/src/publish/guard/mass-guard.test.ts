import { fakeClock } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import { createMassGuard, HELD_ID_PREFIX, type MassChange, type MassRequest } from './mass-guard.ts'

const request = (change: MassChange, name: string, content = ''): MassRequest => ({
  change,
  kind: 'DNSEndpoint',
  name,
  content,
})

async function judge(count: number, published: number): Promise<string[]> {
  const clock = fakeClock()
  const guard = createMassGuard({ clock, countPublished: () => published })
  const keys = Array.from({ length: count }, (_, index) => `k${index}`)
  for (const key of keys) {
    expect(guard.ask(request('prune', key)).state).toBe('wait')
    await clock.advance(100)
  }
  await clock.advance(500)
  return [...new Set(keys.map((key) => guard.ask(request('prune', key)).state))]
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
    for (let index = 0; index < 10; index++) guard.ask(request('prune', `k${index}`))
    await clock.advance(500)
    expect(guard.ask(request('prune', 'k0')).state).toBe('held')
    expect([guard.isIdle, guard.held]).toEqual([false, 10])
    // Nine children were deleted by others; the remaining one keeps requesting.
    const answers: string[] = []
    for (let asked = 0; asked < 40 && answers.at(-1) !== 'go'; asked++) {
      await clock.advance(10_000)
      answers.push(guard.ask(request('prune', 'k0')).state)
    }
    expect([answers.at(-1), guard.isIdle, guard.held]).toEqual(['go', true, 0])
    expect(answers.filter((answer) => answer === 'held').length).toBeGreaterThan(25)
  })

  it('counts requests that arrive within the settling time together', async () => {
    const clock = fakeClock()
    const guard = createMassGuard({ clock, countPublished: () => 10 })
    for (let index = 0; index < 10; index++) {
      guard.ask(request('retarget', `k${index}`))
      await clock.advance(400)
      expect(guard.ask(request('retarget', 'k0')).state).toBe('wait')
    }
    await clock.advance(500)
    expect(guard.ask(request('retarget', 'k0')).state).toBe('held')
    expect(guard.held).toBe(10)
  })

  it('allows the rest when most of the requests are withdrawn', async () => {
    const clock = fakeClock()
    const guard = createMassGuard({ clock, countPublished: () => 10 })
    for (let index = 0; index < 10; index++) guard.ask(request('prune', `k${index}`))
    await clock.advance(500)
    expect(guard.ask(request('prune', 'k0')).state).toBe('held')
    for (let index = 2; index < 10; index++) guard.withdraw(request('prune', `k${index}`))
    expect(guard.ask(request('prune', 'k0')).state).toBe('go')
    expect(guard.ask(request('prune', 'k1')).state).toBe('go')
  })

  it('adds new requests to those already held', async () => {
    const clock = fakeClock()
    const guard = createMassGuard({ clock, countPublished: () => 20 })
    for (let index = 0; index < 7; index++) guard.ask(request('prune', `k${index}`))
    await clock.advance(500)
    expect(guard.ask(request('prune', 'k0')).state).toBe('held')
    guard.ask(request('prune', 'late'))
    await clock.advance(500)
    expect(guard.ask(request('prune', 'late')).state).toBe('held')
  })

  it('an approval lets exactly the held changes pass, and nothing later', async () => {
    const clock = fakeClock()
    const guard = createMassGuard({ clock, countPublished: () => 6 })
    expect(guard.heldSet).toMatchObject({ id: '', objects: [] })
    for (let index = 0; index < 6; index++) guard.ask(request('prune', `k${index}`))
    await clock.advance(500)
    const held = guard.ask(request('prune', 'k0'))
    const { id, objects } = guard.heldSet
    expect(id.startsWith(HELD_ID_PREFIX)).toBe(true)
    expect(objects).toHaveLength(6)
    expect(held).toMatchObject({ state: 'held', message: expect.stringMatching(new RegExp(`seamark approve ${id}$`)) })
    guard.approve(new Set(objects.slice(0, 5).map(({ key }) => key)))
    expect(guard.ask(request('prune', 'k0')).state).toBe('go')
    expect(guard.takePassed()).toEqual([objects[0]?.key])
    expect(guard.takePassed()).toEqual([])
    expect([guard.ask(request('prune', 'k5')).state, guard.held]).toEqual(['held', 1])
    for (let index = 10; index < 16; index++) guard.ask(request('prune', `k${index}`))
    await clock.advance(500)
    expect(guard.ask(request('prune', 'k10')).state).toBe('held')
    expect(guard.heldSet.id).not.toBe(id)
  })

  it('the same changes have the same id after a restart; a change with other content has another one', async () => {
    const hold = async (content: string): Promise<string> => {
      const clock = fakeClock()
      const guard = createMassGuard({ clock, countPublished: () => 6 })
      for (let index = 0; index < 6; index++) guard.ask(request('retarget', `k${index}`, content))
      await clock.advance(500)
      guard.ask(request('retarget', 'k0', content))
      return guard.heldSet.id
    }
    const ids = [await hold('192.0.2.1'), await hold('192.0.2.1'), await hold('192.0.2.2')]
    expect(ids[0]).toBe(ids[1])
    expect(ids[0]).not.toBe(ids[2])
  })

  it('an approved change that is requested with other content is held again', async () => {
    const clock = fakeClock()
    const guard = createMassGuard({ clock, countPublished: () => 6 })
    const ask = (content: string) =>
      Array.from({ length: 6 }, (_, index) => guard.ask(request('retarget', `k${index}`, content)).state)
    ask('192.0.2.1')
    await clock.advance(500)
    expect(new Set(ask('192.0.2.1'))).toEqual(new Set(['held']))
    guard.approve(new Set(guard.heldSet.objects.map(({ key }) => key)))
    expect(new Set(ask('192.0.2.2'))).toEqual(new Set(['wait']))
    await clock.advance(500)
    expect(new Set(ask('192.0.2.2'))).toEqual(new Set(['held']))
  })
})
