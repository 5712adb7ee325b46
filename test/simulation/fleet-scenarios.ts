/** F01–F08: roots whose leaves come, move and go. fleet.test.ts runs every one with faults. */
import { Ingress, Namespace } from '@seamark/kube'
import { Cluster } from '@seamark/operator'
import { type FleetBench, MEMBERS } from './fleet-bench.ts'
import type { Limits } from './seeds.ts'

export interface FleetScenario {
  readonly title: string
  /** Faults under which the scenario is not expected to end the same, with a reason beside it. */
  readonly except?: Limits['except']
  readonly given?: { readonly clusters?: string[]; readonly hasRival?: boolean }
  readonly run: (bench: FleetBench) => Promise<void>
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

async function serve(bench: FleetBench, ...clusters: string[]): Promise<void> {
  for (const name of clusters) await bench.admit(name)
  await bench.expectPublished(...clusters)
}

export const fleetScenarios: readonly FleetScenario[] = [
  {
    title: 'F01: a cluster is drained and takes leaves again',
    async run(bench) {
      await using _app = bench.run()
      await serve(bench, 'eu1', 'us1')
      await bench.drain('us1')
      await bench.expectPublished('eu1')
      await bench.expectLeaves('eu1 Active')
      await bench.drain('us1', false)
      await bench.admit('us1')
      await bench.expectPublished('eu1', 'us1')
      await bench.expectLeaves('eu1 Active, us1 Active')
    },
  },
  {
    title: 'F02: a root is deleted, and nothing is left',
    async run(bench) {
      await using _app = bench.run()
      await serve(bench, 'eu1', 'us1')
      await bench.world.client.delete(Ingress, 'shop/shop')
      await bench.eventually(
        'the root is gone',
        async () => (await bench.world.client.find(Ingress, 'shop/shop')) === undefined,
      )
      await bench.expectPublished()
      await bench.expectLeaves('')
    },
  },
  {
    title: 'F03: a Cluster is deleted, and drained before',
    async run(bench) {
      await using _app = bench.run()
      await serve(bench, 'eu1', 'us1')
      await bench.world.client.delete(Cluster, 'us1')
      await bench.eventually(
        'the Cluster is gone',
        async () => (await bench.world.client.find(Cluster, 'us1')) === undefined,
      )
      await bench.expectPublished('eu1')
      await bench.expectLeaves('eu1 Active')
    },
  },
  {
    title: 'F04: the owner of a host is deleted, and the next root gets it',
    given: { hasRival: true },
    async run(bench) {
      await using _app = bench.run()
      await serve(bench, 'eu1', 'us1')
      await bench.eventually('shop owns the host', async () => (await bench.owner()) === 'shop/shop')
      await bench.world.client.delete(Ingress, 'shop/shop')
      await bench.eventually('the rival owns the host', async () => (await bench.owner()) === 'other/rival')
      await bench.eventually(
        'the rival is placed',
        async () => (await bench.member('eu1').find(Ingress, 'other/rival')) !== undefined,
      )
    },
  },
  {
    title: 'F05: the namespace of a root is deleted while its leaves exist',
    async run(bench) {
      await using _app = bench.run()
      await serve(bench, 'eu1', 'us1')
      await bench.world.client.delete(Namespace, 'shop')
      await bench.eventually(
        'the namespace is gone',
        async () => (await bench.world.client.find(Namespace, 'shop')) === undefined,
      )
    },
  },
  {
    title: 'F06: the replacement fails while a leaf drains: the old one returns',
    given: { clusters: ['eu1'] },
    async run(bench) {
      await using _app = bench.run()
      await serve(bench, 'eu1')
      await bench.place('us1')
      await bench.admit('us1')
      await bench.expectPublished('us1')
      bench.health.set(MEMBERS['us1'] ?? '', 'unhealthy')
      await bench.expectPublished('eu1')
      bench.health.set(MEMBERS['us1'] ?? '', 'healthy')
      await bench.expectPublished('us1')
      await bench.expectLeaves('us1 Active')
    },
  },
  {
    title: 'F07: the API server of a cluster is gone for an hour, and its leaf goes on serving',
    async run(bench) {
      await using _app = bench.run()
      await serve(bench, 'eu1', 'us1')
      const restore = bench.cutOff('us1')
      await bench.pass(HOUR_MS)
      await bench.expectPublished('eu1', 'us1')
      await bench.expectLeaves('eu1 Active, us1 Active')
      restore()
      await bench.eventually('us1 is ready', async () => bench.isReady('us1'))
      await bench.expectLeaves('eu1 Active, us1 Active')
    },
  },
  {
    title: 'F08: the replacement needs ten minutes for its address, and the old leaf stays until then',
    given: { clusters: ['eu1'] },
    async run(bench) {
      await using _app = bench.run()
      await serve(bench, 'eu1')
      await bench.place('us1')
      await bench.eventually('a leaf on us1', async () => (await bench.leaves()).includes('us1'))
      await bench.pass(10 * MINUTE_MS)
      await bench.expectPublished('eu1')
      await bench.admit('us1')
      await bench.expectPublished('us1')
      await bench.expectLeaves('us1 Active')
    },
  },
]
