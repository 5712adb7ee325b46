/** B01–B16: load balancers that follow the health of their endpoints. balance.test.ts runs every one with faults. */
import { Service } from '@seamark/kube'
import { DNSLoadBalancer, DNSLoadBalancerEndpoint } from '@seamark/operator'
import type { BalanceBench } from './bench.ts'
import { eventually } from '../../integration/publish/test-environment.ts'

export interface BalanceScenario {
  readonly title: string
  /** The records may be removed while the load balancer exists. */
  readonly mayRemove?: boolean
  readonly run: (bench: BalanceBench) => Promise<void>
}

const BOTH = 'shop.example.com 192.0.2.1,192.0.2.2'
const FIRST = 'shop.example.com 192.0.2.1'
const SECOND = 'shop.example.com 192.0.2.2'
const MINUTE_MS = 60_000

/** The manager runs, and both endpoints of a load balancer are published. */
function published(
  { spec, ...scenario }: Omit<BalanceScenario, 'run'> & { readonly spec?: Partial<DNSLoadBalancer['spec']> },
  steps: BalanceScenario['run'],
): BalanceScenario {
  return {
    ...scenario,
    async run(bench) {
      await bench.pair(spec)
      await using _app = bench.run()
      await bench.expectPublished(BOTH)
      await steps(bench)
    },
  }
}

export const balanceScenarios: readonly BalanceScenario[] = [
  {
    title: 'B01: healthy endpoints are published, an endpoint that was never healthy is not',
    async run(bench) {
      await using _app = bench.run()
      await bench.pair()
      bench.health.set('192.0.2.3', 'unhealthy')
      await bench.endpoint('c', '192.0.2.3')
      await bench.expectPublished(BOTH)
    },
  },
  published({ title: 'B02: an endpoint gets another address' }, async (bench) => {
    bench.health.set('192.0.2.9', 'healthy')
    await bench.environment.client.patch(DNSLoadBalancerEndpoint, 'web/b', 'merge', {
      spec: { ipaddress: '192.0.2.9' },
    })
    await bench.expectPublished('shop.example.com 192.0.2.1,192.0.2.9')
  }),
  published({ title: 'B03, B04: an endpoint dies, and returns' }, async (bench) => {
    bench.health.set('192.0.2.1', 'unhealthy')
    await bench.expectPublished(SECOND)
    bench.health.set('192.0.2.1', 'healthy')
    await bench.expectPublished(BOTH)
  }),
  published({ title: 'B05: an endpoint flaps' }, async (bench) => {
    for (let flap = 0; flap < 3; flap++) {
      bench.health.set('192.0.2.1', 'unhealthy')
      bench.health.set('192.0.2.1', 'healthy')
    }
    await bench.expectPublished(BOTH)
  }),
  published({ title: 'B06: all die: the last answer stays' }, async (bench) => {
    bench.health.set('192.0.2.1', 'unhealthy')
    await bench.expectPublished(SECOND)
    bench.health.set('192.0.2.2', 'unhealthy')
    await bench.expectMessage('no healthy targets found')
    await bench.expectPublished(SECOND)
  }),
  published(
    {
      title: 'B07: all die with onAllUnhealthy: Remove, and one returns',
      mayRemove: true,
      spec: { onAllUnhealthy: 'Remove' },
    },
    async (bench) => {
      bench.health.set('192.0.2.1', 'unhealthy')
      bench.health.set('192.0.2.2', 'unhealthy')
      await bench.expectPublished('-')
      bench.health.set('192.0.2.2', 'healthy')
      await bench.expectPublished(SECOND)
    },
  ),
  published({ title: 'B08: the load balancer gets another name' }, async (bench) => {
    await bench.patch('shop', { DNSName: 'store.example.com' })
    await bench.expectPublished('store.example.com 192.0.2.1,192.0.2.2')
  }),
  published({ title: 'B09: an endpoint is deleted' }, async (bench) => {
    await bench.environment.client.delete(DNSLoadBalancerEndpoint, 'web/b')
    await bench.expectPublished(FIRST)
  }),
  {
    title: 'B10: an endpoint that is not renewed expires after the start-up grace',
    async run(bench) {
      await bench.pair()
      const status = {
        validUntil: new Date(bench.environment.waiting.now() + MINUTE_MS).toISOString().replace(/\.\d+/, ''),
      }
      await bench.environment.client.patch(
        DNSLoadBalancerEndpoint,
        'web/b',
        'merge',
        { status },
        { subresource: 'status' },
      )
      await using _app = bench.run()
      await bench.expectPublished(BOTH)
      await bench.environment.waiting.pass(6 * MINUTE_MS)
      await bench.expectPublished(FIRST)
    },
  },
  {
    title: 'B11: a Service becomes an endpoint, and takes it with it when it goes',
    async run(bench) {
      bench.health.set('192.0.2.1', 'healthy')
      await bench.balancer()
      await using _app = bench.run()
      await bench.service('192.0.2.1')
      await bench.expectPublished(FIRST)
      await bench.environment.client.delete(Service, 'web/src')
      await eventually(
        'the Service is gone, and its endpoint',
        async () => {
          const left = [
            await bench.environment.client.find(Service, 'web/src'),
            await bench.environment.client.find(DNSLoadBalancerEndpoint, 'web/src-service'),
          ]
          return left.filter((object) => object !== undefined).length
        },
        (count) => count === 0,
        undefined,
        bench.environment.waiting,
      )
      await bench.expectPublished(FIRST)
    },
  },
  {
    title: 'B12: Exclusive keeps its endpoint, and moves only when that one dies',
    async run(bench) {
      await bench.pair({ type: 'Exclusive' })
      await using _app = bench.run()
      await bench.expectPublished(FIRST)
      bench.health.set('192.0.2.1', 'unhealthy')
      await bench.expectPublished(SECOND)
      bench.health.set('192.0.2.1', 'healthy')
      await bench.environment.waiting.pass(MINUTE_MS)
      await bench.expectPublished(SECOND)
    },
  },
  {
    title: 'B13: of two load balancers with one name the older has it, and the other after it',
    async run(bench) {
      await bench.pair()
      await bench.environment.waiting.pass(2_000)
      await bench.balancer({}, 'twin')
      await using _app = bench.run()
      await bench.expectPublished(BOTH)
      await bench.expectMessage("DNS name 'shop.example.com' is already used by load balancer 'web/shop'", 'twin')
      for (const name of ['a', 'b']) await bench.environment.client.delete(DNSLoadBalancerEndpoint, `web/${name}`)
      await bench.environment.client.delete(DNSLoadBalancer, 'web/shop')
      await bench.expectMessage('no endpoints configured', 'twin')
    },
  },
  published({ title: 'B15: a load balancer goes, and its endpoints after it' }, async (bench) => {
    await bench.environment.client.delete(DNSLoadBalancer, 'web/shop')
    // A process that was killed begins its grace anew.
    await bench.environment.waiting.pass(8 * MINUTE_MS)
    await eventually(
      'no endpoint is left',
      async () => (await bench.environment.client.list(DNSLoadBalancerEndpoint)).items.length,
      (count) => count === 0,
      undefined,
      bench.environment.waiting,
    )
  }),
  published(
    { title: 'B16: records of a load balancer whose deletion is not delivered yet are not written again' },
    async (bench) => {
      const { environment } = bench
      // Watches of other kinds go on: there is no order between two watches.
      const thaw = ['dnsendpoints', 'dnsloadbalancers'].map((resource) =>
        environment.server?.faults.freeze({ user: 'controller', resource }),
      )
      await environment.client.delete(DNSLoadBalancer, 'web/shop')
      await bench.expectPublished('-')
      await environment.client.delete(DNSLoadBalancerEndpoint, 'web/a')
      await environment.waiting.pass(MINUTE_MS)
      await bench.expectPublished('-')
      for (const each of thaw) each?.()
      await environment.client.delete(DNSLoadBalancerEndpoint, 'web/b')
    },
  ),
  published({ title: 'B14: while the prober knows nothing, the answer stays' }, async (bench) => {
    bench.health.set('192.0.2.1', 'unknown')
    bench.health.set('192.0.2.2', 'unknown')
    await bench.environment.waiting.pass(MINUTE_MS)
    await bench.expectPublished(BOTH)
    for (const host of ['192.0.2.1', '192.0.2.2']) bench.health.set(host, 'healthy')
    await bench.expectMessage(undefined)
  }),
]
