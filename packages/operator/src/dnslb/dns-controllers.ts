/**
 * The controllers of `seamark dnslb` in the target cluster: DNSProviders, load balancers, the pass that removes records
 * without a load balancer, and the check whether every load balancer was decided.
 */
import { type Clock, type Manager, requeue } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import { DNSProvider } from '../api/dns-provider.ts'
import { createBalanceMetrics } from '../balance/report/balance-metrics.ts'
import { setUpLoadBalancers } from '../balance/load-balancer-controller.ts'
import { createDnsClient } from '@seamark/dns'
import { serversByRecords } from '../authority/name-servers.ts'
import { createNameAnswers } from '../balance/name-answers.ts'
import { addNameLookup, createNameLookup, type NameLookup } from '../balance/name-lookup.ts'
import { setUpProviders } from '../balance/provider/provider-controller.ts'
import { listClaimedNames, namesOf } from '../balance/provider/provider-publisher.ts'
import { systemResolver } from '../health/connection.ts'
import { configMapGuardStore } from '../records/state/config-map-guard-store.ts'
import { createDnsWriter, type DnsWriter } from './dns-writer.ts'
import { addHeartbeat, type Heartbeat } from './heartbeat.ts'
import { LEASE_NAMESPACE } from './leases.ts'
import { type DnslbOptions, SETTLED_LIMIT_MS, startMonitor } from './options.ts'

/** Owned records without a load balancer are searched, and every load balancer is decided again, this often. */
const PASS_INTERVAL = '5m'
const SETTLED_CHECK = '250ms'

export async function setUpDns(mgr: Manager, options: DnslbOptions, heartbeat: Heartbeat, stop: () => void) {
  const { clock, defaults } = options
  const { isDynamic } = options.providers
  const writer = await createDnsWriter({
    ...options,
    store: configMapGuardStore(options.target.client, `${LEASE_NAMESPACE}/dnslb-guard-state`),
    claimedNames: async (signal) => listClaimedNames(mgr.client, defaults, signal),
    knownNames: () => namesOf(mgr.cluster.informers.list(DNSLoadBalancer), defaults),
    isReady: () =>
      !isDynamic || mgr.cluster.informers.list(DNSProvider).every((object) => writer.registry.hasSeen(keyOf(object))),
  })
  if (isDynamic) {
    setUpProviders(mgr, { ...writer, create: (type, name, values) => options.types.create(type, name, values) })
    addHeartbeat(mgr, heartbeat, 'provider')
  }
  const metrics = createBalanceMetrics(mgr.metrics.registry)
  const settled = new Set<string>()
  let lookup: NameLookup | undefined
  let answers: NameLookup | undefined
  const resolve = systemResolver(options.resolver)
  const findServers = serversByRecords(options.resolver ?? '', () => clock.monotonic())
  const client = createDnsClient({ tries: 2 })
  const monitor = setUpLoadBalancers(mgr, {
    defaults,
    metrics,
    publisher: writer.publisher,
    monitor: (onChange) => startMonitor(options, onChange),
    lookup: (onChange) => (lookup = createNameLookup({ clock, resolve, onChange })),
    answers: (onChange) => (answers = createNameAnswers({ clock, client, resolve, findServers, onChange })),
    onReconciled: (key, isSettled) => void (isSettled ? settled.add(key) : settled.delete(key)),
  })
  if (lookup !== undefined) addNameLookup(mgr, lookup)
  if (answers !== undefined) addNameLookup(mgr, answers, 'balance-answers')
  addPasses(mgr, writer, { metrics, clock })
  addHeartbeat(mgr, heartbeat, 'dns')
  addSettled(mgr, settled, clock, () => {
    options.onSettled?.()
    if (options.isOnce) stop()
  })
  return {
    async stop() {
      await monitor.stop()
      await client.close()
    },
  }
}

function addPasses(
  mgr: Manager,
  { publisher, wake }: DnsWriter,
  { metrics, clock }: { readonly metrics: ReturnType<typeof createBalanceMetrics>; readonly clock: Clock },
): void {
  let lastMs: number | undefined
  mgr
    .keyedController('dns-pass', { timeout: '5m' })
    // Both kinds are read in a pass: their caches have to be complete.
    .watches(DNSProvider, () => [])
    .watches(DNSLoadBalancer, () => [])
    .triggers((mark) => {
      mark(['pass'])
      return () => undefined
    })
    .every(PASS_INTERVAL, () => ['pass'])
    .reconcile(async (_key, { signal }) => {
      if (!(publisher.isReady?.() ?? true)) return requeue('1s')
      const startedMs = clock.monotonic()
      await publisher.sweep('all', signal)
      // After the start every load balancer is decided anyway.
      if (lastMs !== undefined) wake()
      const seconds = (ms: number): number => ms / 1_000
      metrics.passed(seconds(clock.monotonic() - startedMs), seconds(startedMs - (lastMs ?? startedMs)))
      lastMs = startedMs
      return undefined
    })
}

/** Calls back once, after every load balancer was decided with known verdicts. */
function addSettled(mgr: Manager, settled: ReadonlySet<string>, clock: Clock, onSettled: () => void): void {
  const startedMs = clock.monotonic()
  let isSettled = false
  mgr
    .keyedController('settled')
    .watches(DNSLoadBalancer, () => [])
    .every(SETTLED_CHECK, () => (isSettled ? [] : ['settled']))
    .reconcile(async (_key, ctx) => {
      const isDone = ctx.list(DNSLoadBalancer).every((object) => settled.has(keyOf(object)))
      if (isSettled || (!isDone && clock.monotonic() - startedMs < SETTLED_LIMIT_MS)) return
      isSettled = true
      onSettled()
    })
}
