/** An approval lets exactly the approved set of held changes pass, once, within an hour. */
import type { Context } from '@seamark/kube'
import { describe, expect, it, onTestFinished } from 'vitest'
import { DNSEndpoint } from '../../api/dns-endpoint.ts'
import { ZONE } from '../../../testing/plan-fixture.ts'
import { endpoint, startSync } from '../../../testing/sync-fixture.ts'
import { type ApprovalReport, approveInStore } from '../state/approve.ts'
import { reportApproval } from './events.ts'

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
    reports: {
      approval: (approval) => {
        reports.push(approval.report)
        const event: Context['event'] = (about, type, reason) => events.push(`${about.metadata.name} ${type} ${reason}`)
        reportApproval({ event }, 'seamark', approval)
      },
      breaker: ({ code, changes, isOpen }) => breakers.push(`${code} ${changes} ${isOpen ? 'opened' : 'closed'}`),
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
    const world = await settled()
    await world.remove(0, 24)
    expect(world.published()).toBe(60)
    const [id = '', ...others] = await world.heldIds()
    expect(others).toEqual([])
    expect(world.held.every(({ set }) => set !== undefined)).toBe(true)
    await world.annotate({ approvedIds: new Set([id]) })
    expect(world.published()).toBe(36)
    expect(world.reports).toMatchObject([{ id, result: 'approved' }])
    expect(world.events).toEqual(['seamark Normal HeldChangesApproved'])
    expect(world.breakers).toEqual(['ShrinkBreakerOpen 24 opened', 'ShrinkBreakerOpen 24 closed'])
    // The annotation stays; other deletions are held as before.
    await world.remove(24, 48)
    expect(world.published()).toBe(36)
    expect(await world.heldIds()).not.toContain(id)
  })

  it('that is not removed approves the same set only once, also when it is held again', async () => {
    const world = await settled()
    await world.remove(0, 24)
    const [id = ''] = await world.heldIds()
    await world.annotate({ approvedIds: new Set([id]) })
    await world.restore(0, 24)
    await world.clock.advance(700_000)
    expect(world.published()).toBe(60)
    await world.remove(0, 24)
    await world.annotate({})
    expect(world.published()).toBe(60)
    expect(world.reports.at(-1)).toMatchObject({ id, result: 'used' })
    expect(world.events.at(-1)).toBe('seamark Warning ApprovalUsed')
    // A person can approve the same set again.
    expect(await approveInStore(world.store, id, world.clock.now(), { mayRepeat: true })).toMatchObject({
      result: 'approved',
    })
    await world.annotate({ approvedIds: new Set() })
    expect(world.published()).toBe(36)
  })

  it('of an unknown id has no effect and is reported', async () => {
    const world = await settled()
    await world.remove(0, 24)
    await world.annotate({ approvedIds: new Set(['0123456789ab']) })
    expect(world.published()).toBe(60)
    expect(world.reports).toMatchObject([{ id: '0123456789ab', result: 'unknown' }])
    expect(world.events).toEqual(['seamark Warning ApprovalUnknown'])
  })

  it('that was not used within an hour is expired', async () => {
    const world = await settled()
    await world.remove(0, 24)
    const [id = ''] = await world.heldIds()
    world.killSwitch.set('test', true)
    await approveInStore(world.store, id, world.clock.now(), { mayRepeat: true })
    await world.clock.advance(HOUR)
    world.killSwitch.set('test', false)
    await world.annotate({ approvedIds: new Set([id]) })
    expect(world.published()).toBe(60)
    expect(world.reports).toMatchObject([{ id, result: 'expired' }])
    expect(world.events).toEqual(['seamark Warning ApprovalExpired'])
  })
})

describe('the deprecated annotation seamark.io/release', () => {
  it('approves what is held at that time, and nothing later', async () => {
    const world = await settled()
    await world.remove(0, 24)
    await world.annotate({ releasedNames: new Set([ZONE]) })
    expect(world.published()).toBe(36)
    expect(world.reports).toMatchObject([{ id: ZONE, result: 'approved' }])
    expect(world.events).toEqual(['seamark Warning ReleaseDeprecated'])
    await world.remove(24, 48)
    await world.annotate({})
    await world.clock.advance(HOUR)
    expect(world.published()).toBe(36)
  })

  it('that was set before anything was held approves nothing', async () => {
    const world = await settled()
    await world.annotate({ releasedNames: new Set([ZONE]) })
    await world.remove(0, 24)
    await world.clock.advance(HOUR)
    expect(world.published()).toBe(60)
  })
})

describe('a deletion in quarantine', () => {
  it('keeps its period when nothing else is written meanwhile', async () => {
    const world = await settled()
    // The budget for ten minutes is six names; the seventh waits, and no later pass writes anything.
    await world.remove(0, 6)
    await world.remove(6, 7)
    expect(world.published()).toBe(54)
    await world.clock.advance(31 * 60_000)
    expect(world.published()).toBe(53)
  })
})
