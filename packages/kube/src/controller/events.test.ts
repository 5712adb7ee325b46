import { describe, expect, it } from 'vitest'
import { apiError } from '../errors.ts'
import { createRecorder } from './events.ts'
import { Event } from '../object/kinds.ts'
import { LeadershipLost, openFence, type WriteFence } from '../apply/write-fence.ts'
import { fakeClock } from '../testing/clock.ts'
import { memoryCluster } from '../testing/memory/memory-cluster.ts'

const regarding = { apiVersion: 'v1', kind: 'Service', name: 'shop', namespace: 'web', uid: 'u1' }
const published = { regarding, type: 'Normal' as const, reason: 'Published', note: 'a.test' }

function setUp(cluster = memoryCluster(), fence: WriteFence = openFence) {
  const clock = fakeClock()
  const controller = new AbortController()
  const recorder = createRecorder({
    client: cluster.client,
    log: cluster.log,
    reportingController: 'test/c',
    reportingInstance: 'pod',
    clock,
    fence,
  })
  const stopped = recorder.run(controller.signal)
  const stored = () => cluster.informers.list(Event)
  return { cluster, clock, recorder, stored, controller, stopped }
}

function fail(code: number, reason: string, causes: { reason: string }[] = []): never {
  throw apiError('POST events', code, { kind: 'Status', apiVersion: 'v1', reason, message: 'no', details: { causes } })
}

describe('events', () => {
  it('are stored in the namespace of the object they are about', async () => {
    const { clock, recorder, stored, controller, stopped } = setUp()
    recorder.record(published)
    recorder.record({
      ...published,
      regarding: { kind: 'Node', name: 'n1', uid: 'u2' },
      type: 'Warning',
      action: 'Probe',
    })
    await clock.advance(0)
    expect(stored()).toMatchObject([
      {
        metadata: { namespace: 'web' },
        regarding,
        reason: 'Published',
        note: 'a.test',
        type: 'Normal',
        action: 'Reconcile',
        reportingController: 'test/c',
        reportingInstance: 'pod',
        eventTime: '2030-01-01T00:00:00.000000Z',
      },
      { metadata: { namespace: 'default' }, type: 'Warning', action: 'Probe' },
    ])
    controller.abort()
    await stopped
  })

  it('become a series when repeated, patched at most every ten seconds', async () => {
    const { cluster, clock, recorder, stored, controller } = setUp()
    recorder.record(published)
    await clock.advance(1)
    for (let second = 0; second < 60; second++) {
      recorder.record(published)
      await clock.advance(1_000)
    }
    await clock.advance(10_000)
    expect(stored()).toHaveLength(1)
    expect(stored()[0]?.series).toEqual({ count: 61, lastObservedTime: expect.stringMatching(/^2030-01-01T00:00:59/) })
    expect(cluster.requests.filter(({ verb }) => verb === 'patch').length).toBeLessThanOrEqual(7)
    await clock.advance(6 * 60_000)
    recorder.record(published)
    await clock.advance(0)
    expect(stored()).toHaveLength(2)
    controller.abort()
  })

  it('are not repeated by the next process within the window, and are after it', async () => {
    const first = setUp()
    first.recorder.record(published)
    await first.clock.advance(0)
    const next = setUp(first.cluster)
    next.recorder.record(published)
    await next.clock.advance(0)
    expect(first.stored()).toHaveLength(1)
    expect(first.cluster.requests.filter(({ verb }) => verb !== 'list')).toHaveLength(1)
    const late = setUp(first.cluster)
    await late.clock.advance(6 * 60_000)
    late.recorder.record(published)
    await late.clock.advance(0)
    expect(first.stored()).toHaveLength(2)
    for (const { controller } of [first, next, late]) controller.abort()
  })

  it('are recreated when the old Event has expired', async () => {
    const { cluster, clock, recorder, stored, controller } = setUp()
    recorder.record(published)
    await clock.advance(0)
    cluster.remove(Event, `web/${stored()[0]?.metadata.name}`)
    recorder.record(published)
    await clock.advance(10_000)
    expect(stored()).toMatchObject([{ series: { count: 2 } }])
    controller.abort()
  })

  it('are limited per object: 25 at once, then one every five minutes', async () => {
    const { clock, recorder, stored, controller } = setUp()
    for (let index = 0; index < 100; index++) recorder.record({ ...published, note: `note ${index}` })
    recorder.record({ ...published, regarding: { ...regarding, uid: 'other' } })
    await clock.advance(0)
    expect(stored()).toHaveLength(26)
    await clock.advance(5 * 60_000)
    for (let index = 0; index < 5; index++) recorder.record({ ...published, note: `later ${index}` })
    await clock.advance(0)
    expect(stored()).toHaveLength(27)
    controller.abort()
  })

  it('stop after one warning when RBAC denies them', async () => {
    const { cluster, clock, recorder, controller } = setUp()
    cluster.intercept = () => fail(403, 'Forbidden')
    for (let index = 0; index < 10; index++) {
      recorder.record({ ...published, note: `note ${index}` })
      await clock.advance(1_000)
    }
    expect(cluster.requests.map(({ verb }) => verb)).toEqual(['list', 'create'])
    expect(cluster.lines.filter((line) => line.includes('"warn"'))).toHaveLength(1)
    expect(cluster.lines.join()).toContain('grant create and patch on events.k8s.io')
    controller.abort()
  })

  it('are not sent after RBAC denied them, not even a series that was waiting for its time', async () => {
    const { cluster, clock, recorder, controller } = setUp()
    cluster.intercept = ({ verb }) => {
      // Again while the first is being sent: it is due ten seconds later.
      if (verb === 'create') recorder.record(published)
      fail(403, 'Forbidden')
    }
    recorder.record(published)
    await clock.advance(60_000)
    expect(cluster.requests.map(({ verb }) => verb)).toEqual(['list', 'create'])
    expect(cluster.lines.filter((line) => line.includes('"warn"'))).toHaveLength(1)
    controller.abort()
  })

  it('continue after an error for a terminating namespace, and after other errors', async () => {
    const { cluster, clock, recorder, stored, controller } = setUp()
    const faults = [
      () => fail(403, 'Forbidden', [{ reason: 'NamespaceTerminating' }]),
      () => fail(500, 'InternalError'),
    ]
    cluster.intercept = ({ verb }) => (verb === 'create' ? faults.shift()?.() : undefined)
    for (const note of ['a', 'b', 'c']) recorder.record({ ...published, note })
    await clock.advance(0)
    expect(stored().map(({ note }) => note)).toEqual(['c'])
    controller.abort()
  })

  it('never block or throw, even when nothing can be sent', async () => {
    const { cluster, clock, recorder, stored, controller, stopped } = setUp()
    cluster.intercept = async () => new Promise(() => undefined)
    for (let index = 0; index < 3_000; index++) {
      recorder.record({ ...published, note: '', regarding: { ...regarding, uid: `u${index}` } })
    }
    const circular: Record<string, unknown> = {}
    circular['self'] = circular
    recorder.record({ ...published, regarding: circular })
    await clock.advance(0)
    expect(cluster.requests).toHaveLength(1)
    controller.abort()
    await clock.advance(1_000)
    await stopped
    expect(stored()).toHaveLength(0)
  })

  it('are dropped beyond a thousand that wait, and sent when they are recorded again later', async () => {
    const { cluster, clock, recorder, controller, stopped } = setUp()
    let list: () => void = () => undefined
    cluster.intercept = ({ verb }) => (verb === 'list' ? new Promise<void>((resolve) => (list = resolve)) : undefined)
    const about = (index: number) => ({ ...published, regarding: { ...regarding, uid: `u${index}` } })
    const created = () => cluster.requests.filter(({ verb }) => verb === 'create').length
    for (let index = 0; index < 1_500; index++) recorder.record(about(index))
    await clock.advance(0)
    list()
    const later = async () => {
      await clock.advance(0)
      return created()
    }
    await expect.poll(later, { interval: 1 }).toBeGreaterThanOrEqual(1_000)
    await clock.advance(0)
    expect(created()).toBe(1_000)
    recorder.record(about(1_499))
    await clock.advance(10_000)
    expect(created()).toBe(1_001)
    controller.abort()
    await clock.advance(1_000)
    await stopped
  })

  it('end a request that lasts longer than the time to send pending events', async () => {
    const { cluster, clock, recorder, controller, stopped } = setUp()
    let isAborted = false
    cluster.intercept = async (_request, signal) => {
      await new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve(), { once: true }))
      isAborted = true
    }
    recorder.record(published)
    await clock.advance(0)
    controller.abort()
    await clock.advance(1_000)
    await stopped
    await clock.advance(0)
    expect(isAborted).toBe(true)
  })

  it('are not sent when the fence is closed, also when it closes while earlier Events are listed', async () => {
    for (const shutsAt of ['first', 'list', 'series']) {
      let isShut = shutsAt === 'first'
      const check = () => {
        if (isShut) throw new LeadershipLost('edge', 'the lease ran out')
      }
      const { cluster, clock, recorder, controller, stopped } = setUp(memoryCluster(), { check })
      cluster.intercept = ({ verb }) => {
        if (verb === 'list' && shutsAt === 'list') isShut = true
      }
      recorder.record(published)
      await clock.advance(0)
      if (shutsAt === 'series') {
        expect(cluster.requests.filter(({ verb }) => verb === 'create')).toHaveLength(1)
        isShut = true
        recorder.record(published)
        await clock.advance(10_000)
      }
      const writes = cluster.requests.filter(({ verb }) => verb !== 'list')
      expect(writes, shutsAt).toHaveLength(shutsAt === 'series' ? 1 : 0)
      isShut = false
      recorder.record({ ...published, note: 'b.test' })
      await clock.advance(0)
      expect(cluster.requests.filter(({ verb }) => verb !== 'list')).toHaveLength(writes.length + 1)
      controller.abort()
      await clock.advance(1_000)
      await stopped
    }
  })

  it('that are pending are sent before the recorder stops', async () => {
    const { recorder, stored, controller, stopped } = setUp()
    for (const note of ['a', 'b', 'c']) recorder.record({ ...published, note })
    controller.abort()
    await stopped
    expect(stored()).toHaveLength(3)
  })

  it('fit the server’s limits in bytes without splitting a character', async () => {
    const { clock, recorder, stored, controller } = setUp()
    recorder.record({ ...published, note: 'ä'.repeat(2_000) })
    await clock.advance(0)
    const note = stored()[0]?.note ?? ''
    expect(Buffer.byteLength(note)).toBeLessThanOrEqual(1_024)
    expect(note).toMatch(/^ä+…$/)
    controller.abort()
  })
})
