import { describe, expect, it } from 'vitest'
import { Approvals } from './annotated-approvals.ts'
import type { HeldChange } from './held-change.ts'
import type { HeldStore } from './held-store.ts'
import { memoryHeldStore } from './held-store.ts'
import { OBJECT_STATE } from './object-store.ts'

const HELD: HeldChange = {
  name: 'a.example.com.',
  type: 'A',
  op: 'delete',
  code: 'ShrinkBreakerOpen',
  why: 'too many',
  source: 'DNSEndpoint/1',
  key: 'k',
  since: 1,
  isApprovable: true,
  set: 's-1',
}

function start(...ids: string[]) {
  const store: HeldStore = memoryHeldStore(OBJECT_STATE)
  const listeners = new Set<() => void>()
  const switches = {
    approvedIds: new Set(ids),
    subscribe: (listener: () => void) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
  const reports: string[] = []
  let isAvailable = true
  const unreliable: HeldStore = {
    ...store,
    list: async () => (isAvailable ? store.list() : Promise.reject(new Error('unavailable'))),
  }
  const approvals = new Approvals({
    store: unreliable,
    switches,
    clock: { now: () => 10 },
    report: ({ id, result }) => reports.push(`${id} ${result}`),
  })
  approvals.join('records')
  return {
    approvals,
    reports,
    hold: async () => store.update('zone', (state) => ({ ...state, held: [HELD] })),
    changed: () => listeners.forEach((listener) => listener()),
    setAvailable: (is: boolean) => {
      isAvailable = is
    },
  }
}

describe('approvals by annotation', () => {
  it('are recorded once, and reported once while they are valid', async () => {
    const { approvals, reports, hold, changed } = start('s-1')
    await hold()
    expect([await approvals.take('records'), approvals.hasNews]).toEqual([true, false])
    expect(await approvals.take('records')).toBe(false)
    changed()
    expect(approvals.hasNews).toBe(true)
    expect(await approvals.take('records')).toBe(false)
    expect(reports).toEqual(['s-1 approved'])
  })

  it('that could not be recorded are taken again', async () => {
    const { approvals, reports, hold, setAvailable } = start('s-1')
    await hold()
    setAvailable(false)
    await expect(approvals.take('records')).rejects.toThrow('unavailable')
    expect(approvals.hasNews).toBe(true)
    setAvailable(true)
    expect([await approvals.take('records'), reports]).toEqual([true, ['s-1 approved']])
  })

  it('of an id that one part does not know wait for what another one persists', async () => {
    const { approvals, reports, hold } = start('s-1', 's-2')
    approvals.join('publish')
    expect([await approvals.take('publish'), reports]).toEqual([false, []])
    await hold()
    expect(await approvals.take('records')).toBe(true)
    expect(reports).toEqual(['s-1 approved', 's-2 unknown'])
  })

  it('tell those who wait for them what was approved', async () => {
    const { approvals, hold } = start('s-1')
    const names: string[] = []
    const unsubscribe = approvals.subscribe(({ covered }) => names.push(...covered.map(({ name }) => name)))
    await hold()
    await approvals.take('records')
    unsubscribe()
    expect(names).toEqual([HELD.name])
  })
})
