import type { Context, Manager } from '@seamark/kube'
import { fakeClock, memoryCluster } from '@seamark/kube/testing'
import { expect, it } from 'vitest'
import type { SourceDecider } from '../decide/source-decision.ts'
import type { PublishOptions } from '../options.ts'
import { type ApprovalExchange, addBaselineController } from './baseline-store.ts'
import { createMassGuard, type HeldSet } from './mass-guard.ts'

type Reconcile = (key: string, context: Context) => Promise<unknown>

/** The controller with a guard of which 6 of 6 deletions are held, and a store that can be unavailable. */
async function start() {
  const clock = fakeClock()
  const cluster = memoryCluster()
  const guard = createMassGuard({ clock, countPublished: () => 6 })
  const exchanged: { held: number; made: readonly string[] }[] = []
  const store = { isAvailable: true, approved: new Set<string>() }
  const approvals: ApprovalExchange = {
    hasNews: false,
    takeApprovals: async () => undefined,
    exchange: async (held: HeldSet, made) => {
      if (!store.isAvailable) throw new Error('unavailable')
      exchanged.push({ held: held.objects.length, made: [...made] })
      return store.approved
    },
  }
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
      approvals,
    },
  )
  const run = async () => reconcile('', { client: cluster.client, signal: new AbortController().signal } as Context)
  const ask = (name: string) => guard.ask({ change: 'prune', kind: 'DNSEndpoint', name })
  const names = Array.from({ length: 6 }, (_, index) => `ns/${index}`)
  for (const name of names) ask(name)
  await clock.advance(1_000)
  for (const name of names) expect(ask(name).state).toBe('held')
  return { guard, store, exchanged, run, ask, names }
}

it('an approved change that was made is persisted as such after an exchange that failed', async () => {
  const { guard, store, exchanged, run, ask, names } = await start()
  store.approved = new Set(guard.heldSet.objects.map(({ key }) => key))
  const [first = ''] = guard.heldSet.objects.map(({ key }) => key)
  await run()
  expect(ask(names[0] ?? '').state).toBe('go')
  store.isAvailable = false
  await expect(run()).rejects.toThrow('unavailable')
  store.isAvailable = true
  await run()
  await run()
  expect(exchanged.filter(({ made }) => made.includes(first))).toHaveLength(1)
})

it('that nothing is held any more is persisted after an exchange that failed', async () => {
  const { guard, store, exchanged, run, names } = await start()
  await run()
  expect(exchanged.at(-1)?.held).toBe(6)
  for (const name of names) guard.withdraw({ change: 'prune', kind: 'DNSEndpoint', name })
  store.isAvailable = false
  await expect(run()).rejects.toThrow('unavailable')
  store.isAvailable = true
  await run()
  expect(exchanged.at(-1)).toEqual({ held: 0, made: [] })
  const { length } = exchanged
  await run()
  expect(exchanged).toHaveLength(length)
})
