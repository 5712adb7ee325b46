/**
 * The gauges of load balancing, with the names and labels of dnslb-controller-manager. A series is removed with its object,
 * so that an alert does not outlive what it was about.
 */
import type { Immutable } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import { Gauge, Registry } from 'prom-client'
import type { DNSLoadBalancerEndpoint } from '../../api/dns-load-balancer-endpoint.ts'
import type { DNSLoadBalancer, DNSLoadBalancerStatus } from '../../api/dns-load-balancer.ts'
import type { EndpointStatus } from '../decide/endpoint-status.ts'

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
  /** A pass over all load balancers; seconds, with fractions. */
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

interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** A gauge whose series are computed when it is read: a decision about a load balancer costs no update of a dozen series. */
class ComputedGauge extends Gauge {
  readonly #samples: () => Iterable<Sample>

  constructor(
    config: { name: string; help: string; labelNames: string[]; registers: Registry[] },
    samples: () => Iterable<Sample>,
  ) {
    super(config)
    this.#samples = samples
  }

  override async get() {
    return { ...(await super.get()), values: [...this.#samples()] }
  }
}

/** What the series of a load balancer show. */
interface Observed {
  readonly dnsname: string
  readonly isHealthy: boolean
  readonly endpoints: readonly {
    readonly endpoint: string
    readonly host: string
    readonly isHealthy: boolean
    readonly isActive: boolean
  }[]
}

export function createBalanceMetrics(registry: Registry): BalanceMetrics {
  /** By key of the load balancer. */
  const observed = new Map<string, Observed>()
  const computed = (name: string, help: string, labelNames: string[], samples: () => Iterable<Sample>) =>
    new ComputedGauge({ name, help, labelNames, registers: [registry] }, samples)
  function* balancers(labelsOf: (loadbalancer: string, of: Observed) => Sample['labels']): Iterable<Sample> {
    for (const [key, of] of observed) yield { labels: labelsOf(key, of), value: Number(of.isHealthy) }
  }
  function* endpoints(sampleOf: (loadbalancer: string, of: Observed['endpoints'][number]) => Sample): Iterable<Sample> {
    for (const [key, of] of observed) for (const each of of.endpoints) yield sampleOf(key, each)
  }
  const health = 'Health status of possible endpoints for DNS Loadbalancers'
  computed('endpoint_health', health, ['loadbalancer', 'endpoint'], () =>
    endpoints((loadbalancer, { endpoint, isHealthy }) => ({
      labels: { loadbalancer, endpoint },
      value: Number(isHealthy),
    })),
  )
  computed('endpoint_active', health, ['loadbalancer', 'endpoint'], () =>
    endpoints((loadbalancer, { endpoint, isActive }) => ({
      labels: { loadbalancer, endpoint },
      value: Number(isActive),
    })),
  )
  const hosts = 'Hostnames for endpoints with health status'
  computed('endpoint_hosts', hosts, ['loadbalancer', 'endpoint', 'host'], () =>
    endpoints((loadbalancer, { endpoint, host, isHealthy }) => ({
      labels: { loadbalancer, endpoint, host },
      value: Number(isHealthy),
    })),
  )
  computed('loadbalancer_health', 'Health status of DNS Loadbalancers', ['loadbalancer'], () =>
    balancers((loadbalancer) => ({ loadbalancer })),
  )
  const names = 'DNS names for load balancers with health status'
  computed('loadbalancer_dnsnames', names, ['loadbalancer', 'dnsname'], () =>
    balancers((loadbalancer, { dnsname }) => ({ loadbalancer, dnsname })),
  )
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers: [registry] })
  const duration = gauge('dns_reconcile_duration', 'duration of a DNS reconcilation run')
  const interval = gauge('dns_reconcile_interval', 'duration between two DNS reconcilations')

  return {
    observe({ metadata, spec }, targets, status, statuses) {
      observed.set(keyOf({ metadata }), {
        dnsname: spec.DNSName ?? spec.dnsname ?? '',
        isHealthy: status.state === 'healthy',
        endpoints: targets.map((target) => {
          const endpoint = keyOf(target)
          const { healthy = false, active = false } = statuses.get(endpoint) ?? target.status ?? {}
          const { cname = '', ipaddress = '' } = target.spec
          return { endpoint, host: cname === '' ? ipaddress : cname, isHealthy: healthy, isActive: active }
        }),
      })
    },
    forget: (key) => void observed.delete(key),
    passed(durationSeconds, intervalSeconds) {
      duration.set(durationSeconds)
      interval.set(intervalSeconds)
    },
  }
}
