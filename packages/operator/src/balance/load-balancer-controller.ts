/**
 * Controller of DNSLoadBalancers: which changes requeue a load balancer. The reconcile is load-balancer-reconciler.ts.
 *
 * What is published is read back through the publisher, so stickiness and the last answer survive a restart. Steady state
 * writes nothing: equal records and statuses are not sent, and an Event equal to the last one of its object is not repeated.
 */
import type { Context, Immutable, Manager } from '@seamark/kube'
import { keyOf, type Obj } from '@seamark/kube/object'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import { DNSLoadBalancerEndpoint } from '../api/dns-load-balancer-endpoint.ts'
import { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import { GlobalIngressPolicy } from '../api/global-ingress-policy.ts'
import type { HealthMonitor } from '../health/monitor.ts'
import { canonicalName, isInvalid } from '../rrset/rrset.ts'
import { loadBalancersOf } from './write/guarded-write.ts'
import { type BalanceDefaults, readLoadBalancer } from './load-balancer.ts'
import type { LoadBalancerControllerOptions } from './load-balancer-options.ts'
import { LoadBalancerReconciler } from './load-balancer-reconciler.ts'

/** Load balancers that are published at the same time share the requests to their DNS service. */
const CONCURRENCY = 32

/** Returns the monitor, which the caller stops after the manager. */
export function setUpLoadBalancers(mgr: Manager, options: LoadBalancerControllerOptions): HealthMonitor {
  const { massRemoval } = options
  let enqueue: (keys: readonly string[]) => void = () => undefined
  const onChange = (keys: readonly string[]): void => enqueue(keys)
  const monitor = options.monitor(onChange)
  const reconciler = new LoadBalancerReconciler(
    options,
    monitor,
    { names: options.lookup(onChange), answers: options.answers?.(onChange) },
    {
      byName: mgr.index(DNSLoadBalancer, 'dnsName', (object) => namesOf(object, options.defaults)),
      byBalancer: mgr.index(DNSLoadBalancerEndpoint, 'loadbalancer', (object) => [balancerKey(object)]),
    },
  )
  const builder = mgr
    .controller('balance', DNSLoadBalancer, { concurrency: CONCURRENCY })
    .watches(DNSLoadBalancerEndpoint, (endpoint) => [balancerKey(endpoint)])
    .watches(DNSLoadBalancer, (object, cache) =>
      // Every load balancer with the same name may gain or lose it.
      namesOf(object, options.defaults).flatMap((name) => cache.by(reconciler.byName, name).map(keyOf)),
    )
    .triggers((mark) => {
      enqueue = mark
      const markAll = (): void => mark(mgr.cluster.informers.list(DNSLoadBalancer).map(keyOf))
      const unsubscribe = options.publisher?.subscribe?.((keys) => (keys === undefined ? markAll() : mark(keys)))
      const unsubscribeGuard = options.secondWriter?.subscribe((sources) => mark(loadBalancersOf(sources)))
      if (massRemoval !== undefined) massRemoval.onApproved = markAll
      return () => {
        enqueue = () => undefined
        if (massRemoval !== undefined) massRemoval.onApproved = () => undefined
        unsubscribe?.()
        unsubscribeGuard?.()
      }
    })
    .gone((key, ctx) => reconciler.forget(key, ctx))
  if (options.publisher === undefined) builder.owns(DNSEndpoint)
  for (const { kind, when, hostsOf } of options.hostSources?.watches ?? []) {
    const toBalancers = (object: Immutable<Obj>, cache: Pick<Context, 'by'>): string[] =>
      hostsOf(object).flatMap((host) => {
        const name = canonicalName(host)
        return isInvalid(name) ? [] : cache.by(reconciler.byName, name).map(keyOf)
      })
    builder.watches(kind, toBalancers, { optional: true, skipsDenied: true, when })
  }
  const defaultPolicy = options.probeRules?.defaultPolicy
  if (defaultPolicy !== undefined)
    builder.watches(GlobalIngressPolicy, (_policy, cache) => cache.list(DNSLoadBalancer).map(keyOf), {
      optional: true,
      when: ({ object }) => defaultPolicy.isSame(object),
    })
  builder.reconcile((object, ctx) => reconciler.reconcile(object, ctx))
  return monitor
}

function namesOf(object: Immutable<DNSLoadBalancer>, defaults: BalanceDefaults): string[] {
  const read = readLoadBalancer(object, defaults)
  return 'settings' in read ? [read.settings.recordName] : []
}

function balancerKey({ metadata, spec }: Immutable<DNSLoadBalancerEndpoint>): string {
  return `${metadata.namespace ?? ''}/${spec.loadbalancer}`
}
