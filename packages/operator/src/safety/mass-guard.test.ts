import { DEFAULT_MASS_LIMITS } from './mass-limits.ts'
import { fakeClock } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import { createMassGuard, type MassGuardOptions, type MassChange, type MassRequest } from './mass-guard.ts'

const start = (options: Pick<MassGuardOptions, 'clock' | 'countPublished'> & Partial<MassGuardOptions>) =>
  createMassGuard({ limits: DEFAULT_MASS_LIMITS, idPrefix: 'p', cause: 'undo the cause', ...options })

const request = (change: MassChange, name: string, content = ''): MassRequest => ({
  change,
  kind: 'DNSEndpoint',
  name,
  content,
})

async function judge(count: number, published: number): Promise<string[]> {
  const clock = fakeClock()
  const guard = start({ clock, countPublished: () => published })
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
    const guard = start({ clock, countPublished: () => 10 })
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
    const guard = start({ clock, countPublished: () => 10 })
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
    const guard = start({ clock, countPublished: () => 10 })
    for (let index = 0; index < 10; index++) guard.ask(request('prune', `k${index}`))
    await clock.advance(500)
    expect(guard.ask(request('prune', 'k0')).state).toBe('held')
    for (let index = 2; index < 10; index++) guard.withdraw(request('prune', `k${index}`))
    expect(guard.ask(request('prune', 'k0')).state).toBe('go')
    expect(guard.ask(request('prune', 'k1')).state).toBe('go')
  })

  it('adds new requests to those already held', async () => {
    const clock = fakeClock()
    const guard = start({ clock, countPublished: () => 20 })
    for (let index = 0; index < 7; index++) guard.ask(request('prune', `k${index}`))
    await clock.advance(500)
    expect(guard.ask(request('prune', 'k0')).state).toBe('held')
    guard.ask(request('prune', 'late'))
    await clock.advance(500)
    expect(guard.ask(request('prune', 'late')).state).toBe('held')
  })

  it('an approval lets exactly the held changes pass, and nothing later', async () => {
    const clock = fakeClock()
    const guard = start({ clock, countPublished: () => 6 })
    expect(guard.heldGroups).toEqual([])
    for (let index = 0; index < 6; index++) guard.ask(request('prune', `k${index}`))
    await clock.advance(500)
    const held = guard.ask(request('prune', 'k0'))
    const [{ id, objects } = { id: '', objects: [] }] = guard.heldGroups
    expect(id.startsWith('p-')).toBe(true)
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
    expect(guard.heldGroups[0]?.id).not.toBe(id)
  })

  it('the same changes have the same id after a restart; a change with other content has another one', async () => {
    const hold = async (content: string): Promise<string> => {
      const clock = fakeClock()
      const guard = start({ clock, countPublished: () => 6 })
      for (let index = 0; index < 6; index++) guard.ask(request('retarget', `k${index}`, content))
      await clock.advance(500)
      guard.ask(request('retarget', 'k0', content))
      return guard.heldGroups[0]?.id ?? ''
    }
    const ids = [await hold('192.0.2.1'), await hold('192.0.2.1'), await hold('192.0.2.2')]
    expect(ids[0]).toBe(ids[1])
    expect(ids[0]).not.toBe(ids[2])
  })

  it('an approved change that is requested with other content is held again', async () => {
    const clock = fakeClock()
    const guard = start({ clock, countPublished: () => 6 })
    const ask = (content: string) =>
      Array.from({ length: 6 }, (_, index) => guard.ask(request('retarget', `k${index}`, content)).state)
    ask('192.0.2.1')
    await clock.advance(500)
    expect(new Set(ask('192.0.2.1'))).toEqual(new Set(['held']))
    guard.approve(new Set((guard.heldGroups[0]?.objects ?? []).map(({ key }) => key)))
    expect(new Set(ask('192.0.2.2'))).toEqual(new Set(['wait']))
    await clock.advance(500)
    expect(new Set(ask('192.0.2.2'))).toEqual(new Set(['held']))
  })

  it('the limits are configured', async () => {
    const clock = fakeClock()
    const guard = start({ clock, countPublished: () => 100, limits: { count: 1, share: 0.01 } })
    for (const name of ['a', 'b']) guard.ask(request('prune', name))
    await clock.advance(500)
    expect(guard.ask(request('prune', 'a')).state).toBe('held')
  })

  it('counts each group for itself, and approves one without the others', async () => {
    const clock = fakeClock()
    const groupOf = ({ name }: { name: string }) => name.slice(0, name.indexOf('/'))
    const guard = start({ clock, countPublished: () => 6, groupOf, settleMs: 0 })
    const names = (group: string, count: number) => Array.from({ length: count }, (_, index) => `${group}/${index}`)
    const all = [...names('eu', 6), ...names('us', 6), ...names('ap', 5)]
    for (const name of all) guard.ask(request('prune', name))
    const states = (prefix: string) =>
      new Set(all.filter((name) => name.startsWith(prefix)).map((name) => guard.ask(request('prune', name)).state))
    expect([states('eu'), states('us'), states('ap')]).toEqual([new Set(['held']), new Set(['held']), new Set(['go'])])
    const [eu] = guard.heldGroups
    expect(guard.approve(new Set(eu?.objects.map(({ key }) => key)))).toBe(6)
    expect([states('eu'), states('us')]).toEqual([new Set(['go']), new Set(['held'])])
  })

  it('what a previous process held is held with the same id, until it expires or is undone', async () => {
    const before = start({ clock: fakeClock(), countPublished: () => 6, settleMs: 0 })
    const names = Array.from({ length: 6 }, (_, index) => `ns/${index}`)
    for (const name of names) before.ask(request('prune', name))
    for (const name of names) before.ask(request('prune', name))
    const [held] = before.heldGroups
    const clock = fakeClock()
    const after = start({ clock, countPublished: () => 6, settleMs: 0 })
    const changes = (held?.objects ?? []).map(({ kind, ...object }) => ({
      ...object,
      type: kind,
      code: 'GuardTripped' as const,
      why: '',
      source: '',
      since: 0,
    }))
    after.restore(changes)
    expect(after.heldGroups).toEqual([held])
    expect(after.ask(request('prune', 'ns/0')).state).toBe('held')
    await clock.advance(290_000)
    expect([after.ask(request('prune', 'ns/0')).state, after.held]).toEqual(['held', 6])
    await clock.advance(20_000)
    expect([after.ask(request('prune', 'ns/0')).state, after.held]).toEqual(['held', 1])
    await clock.advance(60_000)
    expect([after.ask(request('prune', 'ns/0')).state, after.held]).toEqual(['go', 0])
  })
})
