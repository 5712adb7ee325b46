/** What a balance scenario needs: a manager with balance, objects, verdicts that the scenario sets, and reads that wait. */
import { Service } from '@seamark/kube'
import { BalanceConfig, DNSEndpoint, DNSLoadBalancer, DNSLoadBalancerEndpoint, runApp } from '@seamark/operator'
import {
  createNamespace,
  eventually,
  type RunningApp,
  type TestEnvironment,
} from '../../integration/publish/test-environment.ts'
import { HealthTable } from './health-table.ts'

const NAMESPACE = 'web'

export class BalanceBench {
  readonly environment: TestEnvironment
  readonly health = new HealthTable()

  constructor(environment: TestEnvironment) {
    this.environment = environment
  }

  static async prepare(environment: TestEnvironment): Promise<void> {
    for (const name of ['manager', NAMESPACE]) await createNamespace(environment.client, name)
  }

  run(config: object = {}): RunningApp {
    return this.environment.launch('contour-plus', async (cluster, { clock }, signal) =>
      runApp(
        {
          cluster,
          clock,
          namespace: 'manager',
          mode: 'enforce',
          installsCrds: false,
          balance: {
            config: BalanceConfig.parse({ enabled: true, ...config }),
            startThread: this.health.thread(clock),
            resolve: async () => [],
          },
        },
        signal,
      ),
    )
  }

  async balancer(spec: Partial<DNSLoadBalancer['spec']> = {}, name = 'shop'): Promise<void> {
    await this.environment.client.create(DNSLoadBalancer, {
      metadata: { namespace: NAMESPACE, name },
      spec: { DNSName: 'shop.example.com', ...spec },
    })
  }

  async endpoint(name: string, ipaddress: string, more: Partial<DNSLoadBalancerEndpoint['spec']> = {}): Promise<void> {
    await this.environment.client.create(DNSLoadBalancerEndpoint, {
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
    await this.environment.client.create(Service, {
      metadata: { namespace: NAMESPACE, name: 'src', annotations },
      spec: { type: 'LoadBalancer', ports: [{ port: 443 }] },
    })
    const status = { loadBalancer: { ingress: [{ ip }] } }
    await this.environment.client.patch(Service, `${NAMESPACE}/src`, 'merge', { status }, { subresource: 'status' })
  }

  async patch(key: string, spec: object): Promise<void> {
    await this.environment.client.patch(DNSLoadBalancer, `${NAMESPACE}/${key}`, 'merge', { spec })
  }

  /** `name address,address`, or `-` when there is no DNSEndpoint. */
  async published(name = 'shop'): Promise<string> {
    const object = await this.environment.client.find(DNSEndpoint, `${NAMESPACE}/${name}-dnslb`)
    if (object === undefined) return '-'
    return object.spec.endpoints.map(({ dnsName, targets }) => `${dnsName} ${targets.join(',')}`).join('; ')
  }

  async expectPublished(wanted: string, name?: string): Promise<void> {
    await eventually(
      `published: ${wanted}`,
      async () => this.published(name),
      (found) => found === wanted,
      undefined,
      this.environment.waiting,
    )
  }

  async expectMessage(wanted: string | undefined, name = 'shop'): Promise<void> {
    await eventually(
      `message: ${wanted ?? 'none'}`,
      async () =>
        (await this.environment.client.get(DNSLoadBalancer, `${NAMESPACE}/${name}`)).status?.message ?? 'none',
      (found) => found === (wanted ?? 'none'),
      undefined,
      this.environment.waiting,
    )
  }
}
