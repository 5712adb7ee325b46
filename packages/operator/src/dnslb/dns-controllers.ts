/**
 * The controllers of `seamark dnslb` in the target cluster: DNSProviders, load balancers, the pass that removes records
 * without a load balancer, and the check whether every load balancer was decided.
 */
import { type Clock, type Immutable, type Manager, requeue } from '@seamark/kube'
import { keyOf, type Kind, type Obj } from '@seamark/kube/object'
import { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import { DNSProvider } from '../api/dns-provider.ts'
import { createBalanceMetrics } from '../balance/report/balance-metrics.ts'
import { setUpLoadBalancers } from '../balance/load-balancer-controller.ts'
import { createDnsClient } from '@seamark/dns'
import { serversByRecords } from '../authority/name-servers.ts'
import { createNameAnswers } from '../balance/name-answers.ts'
import { addNameLookup, createNameLookup, type NameLookup } from '../balance/name-lookup.ts'
import { setUpProviders } from '../balance/provider/provider-controller.ts'
import type { RecordNotice } from '../balance/provider/record-notice.ts'
import { listClaimedNames, namesOf } from '../balance/provider/provider-publisher.ts'
import { systemResolver } from '../health/connection.ts'
import { configMapGuardStore } from '../records/state/guard-state.ts'
import { createDnsWriter, type DnsWriter } from './dns-writer.ts'
import { addHeartbeat, type Heartbeat } from './heartbeat.ts'
import { LEASE_NAMESPACE } from './leases.ts'
import { type DnslbOptions, SETTLED_LIMIT_MS, startMonitor } from './options.ts'

/** Owned records without a load balancer are searched, and every load balancer is decided again, this often. */
const PASS_MS = 300_000
/** Zones whose server is read directly are read every so many intervals of health checks: what another writer changed is repaired. */
const READ_INTERVALS = 6
const DEFAULT_INTERVAL_MS = 5_000
const GUARD_STATE = 'dnslb-guard-state'
const SETTLED_CHECK = '250ms'

export async function setUpDns(mgr: Manager, options: DnslbOptions, heartbeat: Heartbeat, stop: () => void) {
  const { clock, defaults } = options
  const { isDynamic } = options.providers
  const notices = addNotices(mgr)
  const writer = await createDnsWriter({
    ...options,
    store: configMapGuardStore(options.target.client, `${LEASE_NAMESPACE}/${GUARD_STATE}`),
    claimedNames: async (signal) => listClaimedNames(mgr.client, defaults, signal),
    onNotice: notices,
    knownNames: () => namesOf(mgr.cluster.informers.list(DNSLoadBalancer), defaults),
    isReady: () =>
      !isDynamic || mgr.cluster.informers.list(DNSProvider).every((object) => writer.registry.hasSeen(keyOf(object))),
  })
  if (isDynamic) {
    const { providerNamespaces = [], secretNamespaces = [] } = options
    const limits = { providerNamespaces, secretNamespaces }
    setUpProviders(mgr, { ...writer, limits, create: (type, name, values) => options.types.create(type, name, values) })
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
  addPasses(mgr, writer, { metrics, clock, intervalMs: defaults.intervalMs ?? DEFAULT_INTERVAL_MS })
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
  {
    metrics,
    clock,
    intervalMs,
  }: {
    readonly metrics: ReturnType<typeof createBalanceMetrics>
    readonly clock: Clock
    readonly intervalMs: number
  },
): void {
  let lastMs: number | undefined
  let lastFullMs: number | undefined
  mgr
    .keyedController('dns-pass', { timeout: '5m' })
    // Both kinds are read in a pass: their caches have to be complete.
    .watches(DNSProvider, () => [])
    .watches(DNSLoadBalancer, () => [])
    .triggers((mark) => {
      mark(['pass'])
      return () => undefined
    })
    .every(READ_INTERVALS * intervalMs, () => ['pass'])
    .reconcile(async (_key, { signal }) => {
      if (!(publisher.isReady?.() ?? true)) return requeue('1s')
      const startedMs = clock.monotonic()
      const isFull = lastFullMs === undefined || startedMs - lastFullMs >= PASS_MS
      await publisher.sweep(isFull ? 'all' : 'servers', signal)
      // After the start every load balancer is decided anyway.
      if (isFull && lastMs !== undefined) wake()
      if (isFull) lastFullMs = startedMs
      const seconds = (ms: number): number => ms / 1_000
      metrics.passed(seconds(clock.monotonic() - startedMs), seconds(startedMs - (lastMs ?? startedMs)))
      lastMs = startedMs
      return undefined
    })
}

/** Events about records: on the load balancer, else on the provider, else on the guard state, which exists in either case. */
function addNotices(mgr: Manager): (notice: RecordNotice) => void {
  const waiting: RecordNotice[] = []
  let markAll = (): void => undefined
  const objectOf = ({ loadBalancer, provider }: RecordNotice): Immutable<Obj> => {
    const { informers } = mgr.cluster
    const balancer = loadBalancer === undefined ? undefined : informers.get(DNSLoadBalancer, loadBalancer)
    if (balancer !== undefined) return { ...balancer, ...typeOf(DNSLoadBalancer) }
    const found = informers.get(DNSProvider, provider)
    if (found !== undefined) return { ...found, ...typeOf(DNSProvider) }
    return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: LEASE_NAMESPACE, name: GUARD_STATE } }
  }
  mgr
    .keyedController('dns-notices')
    .watches(DNSProvider, () => [])
    .watches(DNSLoadBalancer, () => [])
    .triggers((mark) => {
      markAll = () => mark(['notices'])
      return () => {
        markAll = () => undefined
      }
    })
    .reconcile(async (_key, ctx) => {
      for (const notice of waiting.splice(0)) ctx.event(objectOf(notice), notice.type, 'sync', notice.message)
    })
  return (notice) => {
    waiting.push(notice)
    markAll()
  }
}

function typeOf({ group, version, kind }: Kind): { readonly apiVersion: string; readonly kind: string } {
  return { apiVersion: `${group}/${version}`, kind }
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
