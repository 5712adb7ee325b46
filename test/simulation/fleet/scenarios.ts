/**
 * F01–F13: roots whose leaves come, move and go. fleet.test.ts runs every one with faults on API servers, crashes.test.ts
 * with a crash at every write on in-memory clusters.
 */
import { Ingress, Namespace } from '@seamark/kube'
import { Cluster } from '@seamark/operator'
import type { FleetActions } from './actions.ts'
import type { Limits } from '../seeds.ts'

export interface FleetScenario {
  readonly title: string
  /** Faults under which the scenario is not expected to end the same, with a reason beside it. */
  readonly except?: Limits['except']
  readonly given?: { readonly clusters?: string[]; readonly hasRival?: boolean }
  readonly run: (bench: FleetActions) => Promise<void>
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

/** The manager runs, and every cluster where the policy places the root serves it. */
function served(scenario: Omit<FleetScenario, 'run'>, steps: FleetScenario['run']): FleetScenario {
  const { clusters = ['eu1', 'us1'] } = scenario.given ?? {}
  return {
    ...scenario,
    async run(bench) {
      await using _app = bench.fleet.run()
      for (const name of clusters) await bench.admit(name)
      await bench.expectPublished(...clusters)
      await steps(bench)
    },
  }
}

export const fleetScenarios: readonly FleetScenario[] = [
  served({ title: 'F01: a cluster is drained and takes leaves again' }, async (bench) => {
    await bench.drain('us1')
    await bench.expectPublished('eu1')
    await bench.expectLeaves('eu1 Active')
    await bench.drain('us1', false)
    await bench.admit('us1')
    await bench.expectPublished('eu1', 'us1')
    await bench.expectLeaves('eu1 Active, us1 Active')
  }),
  served({ title: 'F02: a root is deleted, and nothing is left' }, async (bench) => {
    await bench.client.delete(Ingress, 'shop/shop')
    await bench.expectGone(Ingress, 'shop/shop')
    await bench.expectPublished()
    await bench.expectLeaves('')
  }),
  served({ title: 'F03: a Cluster is deleted, and drained before' }, async (bench) => {
    await bench.client.delete(Cluster, 'us1')
    await bench.expectGone(Cluster, 'us1')
    await bench.expectPublished('eu1')
    await bench.expectLeaves('eu1 Active')
  }),
  served(
    {
      title: 'F04: the owner of a host is deleted, and the next root gets it',
      given: { hasRival: true },
      // When the first list omits the owner, the rival claims the host and keeps it.
      except: ['shortList'],
    },
    async (bench) => {
      await bench.eventually('shop owns the host', async () => (await bench.owner()) === 'shop/shop')
      await bench.client.delete(Ingress, 'shop/shop')
      await bench.eventually('the rival owns the host', async () => (await bench.owner()) === 'other/rival')
      await bench.eventually('the rival is placed', async () => bench.isOn('eu1', 'other/rival'))
    },
  ),
  served({ title: 'F05: the namespace of a root is deleted while its leaves exist' }, async (bench) => {
    await bench.client.delete(Namespace, 'shop')
    await bench.expectGone(Namespace, 'shop')
  }),
  served(
    { title: 'F06: the replacement fails while a leaf drains: the old one returns', given: { clusters: ['eu1'] } },
    async (bench) => {
      await bench.place('us1')
      await bench.admit('us1')
      await bench.expectPublished('us1')
      bench.judge('us1', 'unhealthy')
      await bench.expectPublished('eu1')
      bench.judge('us1', 'healthy')
      await bench.expectPublished('us1')
      await bench.expectLeaves('us1 Active')
    },
  ),
  served(
    { title: 'F07: the API server of a cluster is gone for an hour, and its leaf goes on serving' },
    async (bench) => {
      const restore = bench.fleet.partition('us1', 'both')
      await bench.fleet.pass(HOUR_MS)
      await bench.expectPublished('eu1', 'us1')
      await bench.expectLeaves('eu1 Active, us1 Active')
      restore()
      await bench.eventually('us1 is ready', async () => bench.isReady('us1'))
      await bench.expectLeaves('eu1 Active, us1 Active')
    },
  ),
  served(
    {
      title: 'F08: the replacement needs ten minutes for its address, and the old leaf stays until then',
      given: { clusters: ['eu1'] },
    },
    async (bench) => {
      await bench.place('us1')
      await bench.eventually('a leaf on us1', async () => (await bench.leaves()).includes('us1'))
      await bench.fleet.pass(10 * MINUTE_MS)
      await bench.expectPublished('eu1')
      await bench.admit('us1')
      await bench.expectPublished('us1')
      await bench.expectLeaves('us1 Active')
    },
  ),
  served(
    {
      title:
        'F09: a cluster is drained while its API server cannot be reached: DNS goes first, the leaf when it returns',
    },
    async (bench) => {
      const heal = bench.fleet.partition('us1', 'both')
      await bench.drain('us1')
      await bench.expectPublished('eu1')
      await bench.expectLeaves('eu1 Active, us1 Drained')
      await bench.eventually('the leaf is still on us1', async () => bench.isOn('us1'))
      heal()
      await bench.expectLeaves('eu1 Active')
      await bench.eventually('nothing is left on us1', async () => !(await bench.isOn('us1')))
    },
  ),
  served(
    { title: 'F10: the hub cannot be reached while a cluster is to be drained: nothing changes, and then it goes on' },
    async (bench) => {
      await bench.expectLeaves('eu1 Active, us1 Active')
      const heal = bench.fleet.partition('hub', 'both')
      await bench.drain('us1')
      await bench.fleet.pass(10 * MINUTE_MS)
      await bench.expectPublished('eu1', 'us1')
      await bench.expectLeaves('eu1 Active, us1 Active')
      heal()
      await bench.expectPublished('eu1')
      await bench.expectLeaves('eu1 Active')
    },
  ),
  served(
    { title: 'F11: the hub carries out requests and no response returns, while a cluster is drained' },
    async (bench) => {
      await bench.expectLeaves('eu1 Active, us1 Active')
      const heal = bench.fleet.partition('hub', 'responses')
      await bench.drain('us1')
      await bench.fleet.pass(5 * MINUTE_MS)
      heal()
      await bench.expectPublished('eu1')
      await bench.expectLeaves('eu1 Active')
    },
  ),
  {
    title: 'F13: the TTL is lowered, a cluster drained and the root deleted: leaves stay for twice the former TTL',
    async run(bench) {
      await bench.setTtl(300)
      await using _app = bench.fleet.run()
      for (const name of ['eu1', 'us1']) await bench.admit(name)
      await bench.expectPublished('eu1', 'us1')
      await bench.setTtl(1)
      await bench.drain('us1')
      await bench.expectPublished('eu1')
      await bench.fleet.pass(9 * MINUTE_MS)
      await bench.eventually('the leaf is still on us1', async () => bench.isOn('us1'))
      await bench.expectLeaves('eu1 Active')
      await bench.eventually('nothing is left on us1', async () => !(await bench.isOn('us1')))
      await bench.client.delete(Ingress, 'shop/shop')
      await bench.expectPublished()
      await bench.fleet.pass(9 * MINUTE_MS)
      await bench.eventually('the leaf is still on eu1', async () => bench.isOn('eu1'))
      await bench.expectGone(Ingress, 'shop/shop')
      await bench.expectLeaves('')
    },
  },
  served(
    {
      title: 'F12: a member carries out requests and no response returns, while a root comes to it and goes',
      given: { clusters: ['eu1'] },
    },
    async (bench) => {
      const heal = bench.fleet.partition('us1', 'responses')
      await bench.place('eu1', 'us1')
      await bench.eventually('a leaf for us1', async () => (await bench.leaves()).includes('us1'))
      await bench.fleet.pass(5 * MINUTE_MS)
      await bench.expectPublished('eu1')
      heal()
      await bench.admit('us1')
      await bench.expectPublished('eu1', 'us1')
      const healAgain = bench.fleet.partition('us1', 'responses')
      await bench.client.delete(Ingress, 'shop/shop')
      await bench.fleet.pass(5 * MINUTE_MS)
      await bench.expectPublished()
      healAgain()
      await bench.expectGone(Ingress, 'shop/shop')
      await bench.eventually('nothing is left on us1', async () => !(await bench.isOn('us1')))
    },
  ),
]
