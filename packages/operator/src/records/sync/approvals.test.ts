/** An approval lets exactly the approved set of held changes pass, once, within an hour. */
import type { Context } from '@seamark/kube'
import { describe, expect, it, onTestFinished } from 'vitest'
import { DNSEndpoint } from '../../api/dns-endpoint.ts'
import { ZONE } from '../../../testing/plan-fixture.ts'
import { endpoint, startSync } from '../../../testing/sync-fixture.ts'
import { type ApprovalReport, approveInStore } from '../../safety/approve.ts'
import { approvalNotice } from '../../safety/annotated-approvals.ts'
import { reportReleased } from './events.ts'

const HOUR = 3_600_000
const names = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => `n${from + index}`)

/** A loop with 60 names, and the annotations of the manager's object, set by the test. */
async function settled() {
  const reports: ApprovalReport[] = []
  /** Reasons of the Events on the manager's configuration object. */
  const events: string[] = []
  const breakers: string[] = []
  const listeners = new Set<() => void>()
  const annotated = { approvedIds: new Set<string>(), releasedNames: new Set<string>() }
  const loop = await startSync({
    switches: {
      get approvedIds() {
        return annotated.approvedIds
      },
      get releasedNames() {
        return annotated.releasedNames
      },
      subscribe: (listener) => {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
    },
    approved: (report) => {
      reports.push(report)
      const notice = approvalNotice(report)
      if (notice !== undefined) events.push(`seamark ${notice.severity} ${notice.reason}`)
    },
    reports: {
      released: (report) => {
        reports.push(report)
        const event: Context['event'] = (about, type, reason) => events.push(`${about.metadata.name} ${type} ${reason}`)
        reportReleased({ event }, 'seamark', report)
      },
      breaker: ({ code, changes, state }) => breakers.push(`${code} ${changes} ${state}`),
    },
  })
  onTestFinished(async () => loop.stop())
  const { cluster, clock, memory, store } = loop
  for (const name of names(0, 60)) cluster.put(DNSEndpoint, endpoint(name))
  await clock.advance(2_000)
  const published = () => memory.dump(ZONE).filter(({ type }) => type === 'A').length
  expect(published()).toBe(60)
  return {
    ...loop,
    reports,
    events,
    breakers,
    published,
    async annotate(change: Partial<typeof annotated>) {
      Object.assign(annotated, change)
      for (const listener of listeners) listener()
      await clock.advance(5_000)
    },
    async remove(from: number, to: number) {
      for (const name of names(from, to)) cluster.remove(DNSEndpoint, `web/${name}`)
      await clock.advance(5_000)
    },
    async restore(from: number, to: number) {
      for (const name of names(from, to)) cluster.put(DNSEndpoint, endpoint(name))
      await clock.advance(5_000)
    },
    heldIds: async () => {
      const states = [...(await store.list()).values()]
      return [...new Set(states.flatMap(({ held }) => held.flatMap(({ set }) => set ?? [])))]
    },
  }
}

describe('an approval by annotation', () => {
  it('lets exactly the held set pass, and no change that is held later', async () => {
    const fixture = await settled()
    await fixture.remove(0, 24)
    expect(fixture.published()).toBe(60)
    const [id = '', ...others] = await fixture.heldIds()
    expect(others).toEqual([])
    expect(fixture.held.every(({ set }) => set !== undefined)).toBe(true)
    await fixture.annotate({ approvedIds: new Set([id]) })
    expect(fixture.published()).toBe(36)
    expect(fixture.reports).toMatchObject([{ id, result: 'approved' }])
    expect(fixture.events).toEqual(['seamark Normal HeldChangesApproved'])
    expect(fixture.breakers).toEqual(['ShrinkBreakerOpen 24 opened', 'ShrinkBreakerOpen 24 closed'])
    // The annotation stays; other deletions are held as before.
    await fixture.remove(24, 48)
    expect(fixture.published()).toBe(36)
    expect(await fixture.heldIds()).not.toContain(id)
  })

  it('that is not removed approves the same set only once, also when it is held again', async () => {
    const fixture = await settled()
    await fixture.remove(0, 24)
    const [id = ''] = await fixture.heldIds()
    await fixture.annotate({ approvedIds: new Set([id]) })
    await fixture.restore(0, 24)
    await fixture.clock.advance(700_000)
    expect(fixture.published()).toBe(60)
    await fixture.remove(0, 24)
    await fixture.annotate({})
    expect(fixture.published()).toBe(60)
    expect(fixture.reports.at(-1)).toMatchObject({ id, result: 'used' })
    expect(fixture.events.at(-1)).toBe('seamark Warning ApprovalUsed')
    // A person can approve the same set again.
    expect(await approveInStore(fixture.store, id, fixture.clock.now(), { mayRepeat: true })).toMatchObject({
      result: 'approved',
    })
    await fixture.annotate({ approvedIds: new Set() })
    expect(fixture.published()).toBe(36)
  })

  it('of an unknown id has no effect and is reported', async () => {
    const fixture = await settled()
    await fixture.remove(0, 24)
    await fixture.annotate({ approvedIds: new Set(['0123456789ab']) })
    expect(fixture.published()).toBe(60)
    expect(fixture.reports).toMatchObject([{ id: '0123456789ab', result: 'unknown' }])
    expect(fixture.events).toEqual(['seamark Warning ApprovalUnknown'])
  })

  it('that was not used within an hour is expired', async () => {
    const fixture = await settled()
    await fixture.remove(0, 24)
    const [id = ''] = await fixture.heldIds()
    fixture.killSwitch.set('test', true)
    await approveInStore(fixture.store, id, fixture.clock.now(), { mayRepeat: true })
    await fixture.clock.advance(HOUR)
    fixture.killSwitch.set('test', false)
    await fixture.annotate({ approvedIds: new Set([id]) })
    expect(fixture.published()).toBe(60)
    expect(fixture.reports).toMatchObject([{ id, result: 'expired' }])
    expect(fixture.events).toEqual(['seamark Warning ApprovalExpired'])
  })
})

describe('the deprecated annotation seamark.io/release', () => {
  it('approves what is held at that time, and nothing later', async () => {
    const fixture = await settled()
    await fixture.remove(0, 24)
    await fixture.annotate({ releasedNames: new Set([ZONE]) })
    expect(fixture.published()).toBe(36)
    expect(fixture.reports).toMatchObject([{ id: ZONE, result: 'approved' }])
    expect(fixture.events).toEqual(['seamark Warning ReleaseDeprecated'])
    await fixture.remove(24, 48)
    await fixture.annotate({})
    await fixture.clock.advance(HOUR)
    expect(fixture.published()).toBe(36)
  })

  it('that was set before anything was held approves nothing', async () => {
    const fixture = await settled()
    await fixture.annotate({ releasedNames: new Set([ZONE]) })
    await fixture.remove(0, 24)
    await fixture.clock.advance(HOUR)
    expect(fixture.published()).toBe(60)
  })
})

describe('a deletion in quarantine', () => {
  it('keeps its period when nothing else is written meanwhile', async () => {
    const fixture = await settled()
    // The budget for ten minutes is six names; the seventh waits, and no later pass writes anything.
    await fixture.remove(0, 6)
    await fixture.remove(6, 7)
    expect(fixture.published()).toBe(54)
    await fixture.clock.advance(31 * 60_000)
    expect(fixture.published()).toBe(53)
  })
})
