import { fakeClock } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import type { Notice } from '../../process/reports/notices.ts'
import { approveInStore } from './approve.ts'
import { memoryGuardStore } from './guard-state.ts'
import { type HeldObjects, heldObjectStore } from './held-objects.ts'
import { createObjectApprovals } from './object-approvals.ts'

const NOTHING: HeldObjects = { id: '', code: 'GuardTripped', message: '', objects: [] }
const held = (id: string, ...keys: string[]): HeldObjects => ({
  id,
  code: 'GuardTripped',
  message: `too many; seamark approve ${id}`,
  objects: keys.map((key) => ({ op: 'delete', kind: 'DNSEndpoint', name: `ns/${key}`, key })),
})

function start() {
  const clock = fakeClock()
  const guards = memoryGuardStore()
  const notices: Notice[] = []
  const switches = { approvedIds: new Set<string>() }
  const approvals = createObjectApprovals({
    store: heldObjectStore(guards),
    switches,
    clock,
    notify: (notice) => notices.push(notice),
    isOurs: (id) => id.startsWith('p-'),
  })
  const exchange = async (objects: HeldObjects, ...made: string[]) => [
    ...(await approvals.exchange(objects, new Set(made))),
  ]
  const annotate = async (...ids: string[]) => {
    switches.approvedIds = new Set(ids)
    expect(approvals.hasNews).toBe(true)
    await approvals.takeApprovals('')
    expect(approvals.hasNews).toBe(false)
  }
  return { clock, guards, notices, approvals, exchange, annotate }
}

describe('held objects', () => {
  it('are approved by the command that approves held records, once and for one hour', async () => {
    const { clock, guards, exchange } = start()
    expect(await exchange(held('p-1', 'a', 'b'))).toEqual([])
    expect(await approveInStore(guards, 'p-1', clock.now(), { mayRepeat: true })).toMatchObject({
      result: 'approved',
      covered: [{ name: 'ns/a', type: 'DNSEndpoint', op: 'delete', code: 'GuardTripped' }, { name: 'ns/b' }],
    })
    expect(await exchange(held('p-1', 'a', 'b'))).toEqual(['a', 'b'])
    expect(await exchange(NOTHING, 'a')).toEqual(['b'])
    await clock.advance(3_600_000)
    expect(await exchange(held('p-2', 'b'))).toEqual([])
  })

  it('are approved by annotation once; an id that is unknown or was used is reported', async () => {
    const { exchange, annotate, notices } = start()
    await annotate('p-0', 'other')
    await exchange(held('p-1', 'a'))
    await annotate('p-1')
    expect(await exchange(held('p-1', 'a'))).toEqual(['a'])
    expect(await exchange(NOTHING, 'a')).toEqual([])
    await exchange(held('p-3', 'a'))
    await annotate('p-1', 'p-2')
    expect(notices.map(({ reason, severity }) => `${severity} ${reason}`)).toEqual([
      'Warning ApprovalUnknown',
      'Normal HeldChangesApproved',
      'Warning ApprovalUnknown',
    ])
    expect(await exchange(held('p-3', 'a'))).toEqual([])
  })

  it('a change that was made is not approved any more, also while the set stays the same', async () => {
    const { clock, guards, exchange } = start()
    await exchange(held('p-1', 'a', 'b'))
    await approveInStore(guards, 'p-1', clock.now(), { mayRepeat: true })
    expect(await exchange(held('p-1', 'a', 'b'), 'a')).toEqual(['b'])
  })

  it('keep the time since when they are held when others join them', async () => {
    const { clock, guards, exchange } = start()
    const startMs = clock.now()
    await exchange(held('p-1', 'a'))
    await clock.advance(1_000)
    await exchange(held('p-2', 'a', 'b'))
    expect((await guards.load('publish')).held.map(({ since }) => since - startMs)).toEqual([0, 1_000])
  })

  it('an annotation that could not be recorded is news until it is', async () => {
    const { exchange, guards, clock } = start()
    await exchange(held('p-1', 'a'))
    const store = heldObjectStore(guards)
    let isAvailable = false
    const notices: Notice[] = []
    const approvals = createObjectApprovals({
      store: {
        ...store,
        approve: async (id, now) => (isAvailable ? store.approve(id, now) : Promise.reject(new Error('unavailable'))),
      },
      switches: { approvedIds: new Set(['p-1']) },
      clock,
      notify: (notice) => notices.push(notice),
      isOurs: () => true,
    })
    await expect(approvals.takeApprovals('')).rejects.toThrow('unavailable')
    expect(approvals.hasNews).toBe(true)
    isAvailable = true
    await approvals.takeApprovals('')
    expect(approvals.hasNews).toBe(false)
    expect(notices).toMatchObject([{ reason: 'HeldChangesApproved' }])
  })

  it('an annotation that stays across a restart approves nothing a second time, and that is said', async () => {
    const first = start()
    await first.exchange(held('p-1', 'a'))
    await first.annotate('p-1')
    await first.exchange(NOTHING, 'a')
    await first.exchange(held('p-1', 'a'))
    const notices: Notice[] = []
    const again = createObjectApprovals({
      store: heldObjectStore(first.guards),
      switches: { approvedIds: new Set(['p-1']) },
      clock: first.clock,
      notify: (notice) => notices.push(notice),
      isOurs: () => true,
    })
    await again.takeApprovals('')
    expect(notices).toMatchObject([{ reason: 'ApprovalUsed', severity: 'Warning' }])
    expect([...(await again.exchange(held('p-1', 'a'), new Set()))]).toEqual([])
  })

  it('the deprecated annotation approves what is held when it is set, once per value, and says so', async () => {
    const { approvals, exchange, notices } = start()
    await approvals.takeApprovals('yes')
    expect(notices).toEqual([])
    await exchange(held('p-1', 'a'))
    await approvals.takeApprovals('yes')
    expect(await exchange(held('p-1', 'a'))).toEqual(['a'])
    expect(notices).toMatchObject([{ reason: 'ReleaseDeprecated', severity: 'Warning' }])
    expect(notices[0]?.message).toContain('use seamark approve ID')
    await exchange(held('p-2', 'b'), 'a')
    await approvals.takeApprovals('yes')
    expect(await exchange(held('p-2', 'b'))).toEqual([])
    expect(notices).toHaveLength(1)
  })

  it('a set that is persisted already is not written again', async () => {
    const { guards, exchange } = start()
    await exchange(held('p-1', 'a'))
    const before = await guards.load('publish')
    await exchange(held('p-1', 'a'))
    expect(await guards.load('publish')).toBe(before)
  })
})
