/**
 * The gauges of load balancing, with the names and labels of dnslb-controller-manager. A series is removed with its object,
 * so that an alert does not outlive what it was about.
 */
import type { Immutable } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import { Gauge, Registry } from 'prom-client'
import type { DNSLoadBalancerEndpoint } from '../../api/dns-load-balancer-endpoint.ts'
import type { DNSLoadBalancer, DNSLoadBalancerStatus } from '../../api/dns-load-balancer.ts'
import type { EndpointStatus } from './endpoint-status.ts'

export interface BalanceMetrics {
  /** `statuses` holds only the endpoint statuses that change. */
  observe(
    loadBalancer: Immutable<DNSLoadBalancer>,
    endpoints: readonly Immutable<DNSLoadBalancerEndpoint>[],
    status: DNSLoadBalancerStatus,
    statuses: ReadonlyMap<string, EndpointStatus>,
  ): void
  /** Removes every series of the load balancer. */
  forget(key: string): void
  /** A pass over all load balancers; whole seconds. */
  passed(durationSeconds: number, intervalSeconds: number): void
}

export const NO_BALANCE_METRICS: BalanceMetrics = {
  observe: () => undefined,
  forget: () => undefined,
  passed: () => undefined,
}

/** For a process without a manager. */
export function createMetricsRegistry(): Registry {
  return new Registry()
}

type Labels = Readonly<Record<string, string>>

export function createBalanceMetrics(registry: Registry): BalanceMetrics {
  const gauge = (name: string, help: string, labelNames: readonly string[]) =>
    new Gauge({ name, help, labelNames: [...labelNames], registers: [registry] })
  const health = 'Health status of possible endpoints for DNS Loadbalancers'
  const endpointHealth = gauge('endpoint_health', health, ['loadbalancer', 'endpoint'])
  const endpointActive = gauge('endpoint_active', health, ['loadbalancer', 'endpoint'])
  const endpointHosts = gauge('endpoint_hosts', 'Hostnames for endpoints with health status', [
    'loadbalancer',
    'endpoint',
    'host',
  ])
  const balancerHealth = gauge('loadbalancer_health', 'Health status of DNS Loadbalancers', ['loadbalancer'])
  const balancerNames = gauge('loadbalancer_dnsnames', 'DNS names for load balancers with health status', [
    'loadbalancer',
    'dnsname',
  ])
  const duration = gauge('dns_reconcile_duration', 'duration of a DNS reconcilation run', [])
  const interval = gauge('dns_reconcile_interval', 'duration between two DNS reconcilations', [])
  /** The series of each load balancer, by text of gauge and labels. */
  const series = new Map<string, Map<string, { gauge: Gauge; labels: Labels }>>()

  function replace(key: string, next: readonly { name: string; gauge: Gauge; labels: Labels; value: boolean }[]): void {
    const after = new Map<string, { gauge: Gauge; labels: Labels }>()
    for (const { name, gauge: of, labels, value } of next) {
      of.set(labels, value ? 1 : 0)
      after.set(`${name} ${JSON.stringify(labels)}`, { gauge: of, labels })
    }
    for (const [id, { gauge: of, labels }] of series.get(key) ?? []) if (!after.has(id)) of.remove(labels)
    if (after.size === 0) series.delete(key)
    else series.set(key, after)
  }

  return {
    observe(loadBalancer, endpoints, status, statuses) {
      const key = keyOf(loadBalancer)
      const isHealthy = status.state === 'healthy'
      const dnsname = loadBalancer.spec.DNSName ?? loadBalancer.spec.dnsname ?? ''
      replace(key, [
        { name: 'loadbalancer_health', gauge: balancerHealth, labels: { loadbalancer: key }, value: isHealthy },
        {
          name: 'loadbalancer_dnsnames',
          gauge: balancerNames,
          labels: { loadbalancer: key, dnsname },
          value: isHealthy,
        },
        ...endpoints.flatMap((each) => {
          const endpoint = keyOf(each)
          const { healthy = false, active = false } = statuses.get(endpoint) ?? each.status ?? {}
          const labels = { loadbalancer: key, endpoint }
          const { cname = '', ipaddress = '' } = each.spec
          return [
            { name: 'endpoint_health', gauge: endpointHealth, labels, value: healthy },
            { name: 'endpoint_active', gauge: endpointActive, labels, value: active },
            {
              name: 'endpoint_hosts',
              gauge: endpointHosts,
              labels: { ...labels, host: cname === '' ? ipaddress : cname },
              value: healthy,
            },
          ]
        }),
      ])
    },
    forget: (key) => replace(key, []),
    passed(durationSeconds, intervalSeconds) {
      duration.set(durationSeconds)
      interval.set(intervalSeconds)
    },
  }
}
