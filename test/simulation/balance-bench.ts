/** What a balance scenario needs: a manager with balance, objects, verdicts that the scenario sets, and reads that wait. */
import { Service } from '@seamark/kube'
import { BalanceConfig, DNSEndpoint, DNSLoadBalancer, DNSLoadBalancerEndpoint, runApp } from '@seamark/operator'
import { createNamespace, eventually, type RunningApp, type World } from '../integration/publish/world.ts'
import { HealthTable } from './health-table.ts'

const NAMESPACE = 'web'

export class BalanceBench {
  readonly world: World
  readonly health = new HealthTable()

  constructor(world: World) {
    this.world = world
  }

  static async prepare(world: World): Promise<void> {
    for (const name of ['manager', NAMESPACE]) await createNamespace(world.client, name)
  }

  run(config: object = {}): RunningApp {
    return this.world.launch('contour-plus', async (cluster, { clock }, signal) =>
      runApp(
        {
          cluster,
          clock,
          namespace: 'manager',
          mode: 'enforce',
          balance: {
            config: BalanceConfig.parse({ enabled: true, installCrds: false, ...config }),
            startThread: this.health.thread(clock),
            resolve: async () => [],
          },
        },
        signal,
      ),
    )
  }

  async balancer(spec: Partial<DNSLoadBalancer['spec']> = {}, name = 'shop'): Promise<void> {
    await this.world.client.create(DNSLoadBalancer, {
      metadata: { namespace: NAMESPACE, name },
      spec: { DNSName: 'shop.example.com', ...spec },
    })
  }

  async endpoint(name: string, ipaddress: string, more: Partial<DNSLoadBalancerEndpoint['spec']> = {}): Promise<void> {
    await this.world.client.create(DNSLoadBalancerEndpoint, {
      metadata: { namespace: NAMESPACE, name },
      spec: { loadbalancer: 'shop', ipaddress, ...more },
    })
  }

  /** A load balancer with two healthy endpoints. */
  async pair(spec: Partial<DNSLoadBalancer['spec']> = {}): Promise<void> {
    this.health.set('192.0.2.1', 'healthy')
    this.health.set('192.0.2.2', 'healthy')
    await this.balancer(spec)
    await this.endpoint('a', '192.0.2.1')
    await this.endpoint('b', '192.0.2.2')
  }

  async service(ip: string): Promise<void> {
    const annotations = { 'loadbalancer.gardener.cloud/dnsloadbalancer': 'shop' }
    await this.world.client.create(Service, {
      metadata: { namespace: NAMESPACE, name: 'src', annotations },
      spec: { type: 'LoadBalancer', ports: [{ port: 443 }] },
    })
    const status = { loadBalancer: { ingress: [{ ip }] } }
    await this.world.client.patch(Service, `${NAMESPACE}/src`, 'merge', { status }, { subresource: 'status' })
  }

  async patch(key: string, spec: object): Promise<void> {
    await this.world.client.patch(DNSLoadBalancer, `${NAMESPACE}/${key}`, 'merge', { spec })
  }

  /** `name address,address`, or `-` when there is no DNSEndpoint. */
  async published(name = 'shop'): Promise<string> {
    const object = await this.world.client.find(DNSEndpoint, `${NAMESPACE}/${name}-dnslb`)
    if (object === undefined) return '-'
    return object.spec.endpoints.map(({ dnsName, targets }) => `${dnsName} ${targets.join(',')}`).join('; ')
  }

  async expectPublished(wanted: string, name?: string): Promise<void> {
    await eventually(
      `published: ${wanted}`,
      async () => this.published(name),
      (found) => found === wanted,
      undefined,
      this.world.waiting,
    )
  }

  async expectMessage(wanted: string | undefined, name = 'shop'): Promise<void> {
    await eventually(
      `message: ${wanted ?? 'none'}`,
      async () => (await this.world.client.get(DNSLoadBalancer, `${NAMESPACE}/${name}`)).status?.message ?? 'none',
      (found) => found === (wanted ?? 'none'),
      undefined,
      this.world.waiting,
    )
  }
}
