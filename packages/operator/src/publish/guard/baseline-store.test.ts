import { ConfigMap, type Context, type Manager } from '@seamark/kube'
import { fakeClock, memoryCluster } from '@seamark/kube/testing'
import { expect, it } from 'vitest'
import type { Notice } from '../../process/reports/notices.ts'
import { Approvals } from '../../safety/annotated-approvals.ts'
import { HeldObjects } from '../../safety/held-objects.ts'
import { createMassGuard } from '../../safety/mass-guard.ts'
import { DEFAULT_MASS_LIMITS } from '../../safety/mass-limits.ts'
import { openObjectStore } from '../../safety/object-store.ts'
import type { SourceDecider } from '../decide/source-decision.ts'
import type { PublishOptions } from '../options.ts'
import { STATE_NAME } from './baseline.ts'
import { addBaselineController } from './baseline-store.ts'

type Reconcile = (key: string, context: Context) => Promise<unknown>

it('the deprecated annotation approves what is held when it is set, once per value, and says so', async () => {
  const clock = fakeClock()
  const cluster = memoryCluster()
  const store = openObjectStore(cluster.client, 'seamark')
  const switches = { approvedIds: new Set<string>(), subscribe: () => () => undefined }
  const approvals = new Approvals({ store, switches, clock, report: () => undefined })
  const heldObjects = new HeldObjects({ store, approvals, isWriting: () => true, clock })
  const limits = DEFAULT_MASS_LIMITS
  const guard = createMassGuard({ clock, limits, idPrefix: 'p', cause: 'undo it', countPublished: () => 6 })
  heldObjects.add('publish', guard)
  const notices: Notice[] = []
  let reconcile: Reconcile = async () => undefined
  const controller = {
    triggers: () => controller,
    reconcile: (work: Reconcile) => {
      reconcile = work
    },
  }
  addBaselineController(
    { keyedController: () => controller } as unknown as Manager,
    { decider: {} as SourceDecider, guard },
    { isGuarded: false },
    {
      options: { services: [] } as unknown as PublishOptions,
      namespace: 'seamark',
      clock,
      isWriting: () => true,
      heldObjects,
      notify: (notice) => notices.push(notice),
    },
  )
  const run = async () => reconcile('', { client: cluster.client, signal: new AbortController().signal } as Context)
  const names = Array.from({ length: 6 }, (_, index) => `ns/${index}`)
  const ask = () => [...new Set(names.map((name) => guard.ask({ change: 'prune', kind: 'DNSEndpoint', name }).state))]
  const hold = async () => {
    ask()
    await clock.advance(1_000)
    expect(ask()).toEqual(['held'])
  }
  await hold()
  await run()
  expect(notices).toEqual([])
  cluster.put(ConfigMap, {
    metadata: { namespace: 'seamark', name: STATE_NAME, annotations: { 'seamark.io/release': 'yes' } },
  })
  await run()
  expect(ask()).toEqual(['go'])
  expect(notices).toMatchObject([{ reason: 'ReleaseDeprecated', severity: 'Warning' }])
  expect(notices[0]?.message).toContain('use seamark approve ID')
  await hold()
  await run()
  expect([ask(), notices.length]).toEqual([['held'], 1])
})
