import { describe, expect, it } from 'vitest'
import { EMPTY_STATE, type GuardStore, type HeldChange, memoryGuardStore } from '../state/guard-state.ts'
import { AnnotatedApprovals } from './annotated-approvals.ts'

const log = { info: () => undefined, warn: () => undefined } as unknown as Parameters<AnnotatedApprovals['take']>[1]

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

describe('approvals by annotation', () => {
  it('are recorded once, and again after the annotations changed', async () => {
    const store = memoryGuardStore()
    await store.update('zone', () => ({ ...EMPTY_STATE, held: [HELD] }))
    const approvals = new AnnotatedApprovals(store, { approvedIds: new Set(['s-1']), releasedNames: new Set() })
    expect(await approvals.take(10, log)).toMatchObject([{ report: { id: 's-1', result: 'approved' } }])
    expect(await approvals.take(11, log)).toEqual([])
    approvals.noteChange()
    // It is still valid, so there is nothing to report.
    expect(await approvals.take(12, log)).toEqual([])
  })

  it('that could not be recorded are recorded with the next pass', async () => {
    const memory = memoryGuardStore()
    await memory.update('zone', () => ({ ...EMPTY_STATE, held: [HELD] }))
    let isAvailable = false
    const store: GuardStore = {
      ...memory,
      list: async () => (isAvailable ? memory.list() : Promise.reject(new Error('unavailable'))),
    }
    const approvals = new AnnotatedApprovals(store, { approvedIds: new Set(['s-1']), releasedNames: new Set() })
    await expect(approvals.take(10, log)).rejects.toThrow('unavailable')
    isAvailable = true
    expect(await approvals.take(11, log)).toMatchObject([{ report: { id: 's-1', result: 'approved' } }])
  })
})
