/**
 * `seamark dnslb`: load balancing as dnslb-controller-manager does it, in one or two clusters, writing to DNS providers
 * directly with the original's ownership records.
 *
 * Flow: CRDs in the target cluster → leases → one manager on the target cluster; a separate source cluster is a member of
 * its fleet. Every Kubernetes write of either cluster passes a gate that closes when a lease is lost.
 */
import {
  type Clock,
  type Cluster,
  CustomResourceDefinition,
  type GuardOptions,
  type Logger,
  type Manager,
  manager,
  requeue,
} from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import { loadBalancerCrds } from '../api/dns-load-balancer-crds.ts'
import { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import { DNSProvider } from '../api/dns-provider.ts'
import { installCrds } from '../api/install-crds.ts'
import { createBalanceMetrics } from '../balance/balance-metrics.ts'
import { setUpEndpointSources } from '../balance/source/endpoint-controller.ts'
import type { BalanceDefaults } from '../balance/load-balancer.ts'
import { setUpLoadBalancers } from '../balance/load-balancer-controller.ts'
import { addNameLookup, createNameLookup, type NameLookup } from '../balance/name-lookup.ts'
import { setUpProviders } from '../balance/provider/provider-controller.ts'
import { listClaimedNames } from '../balance/provider/provider-publisher.ts'
import { systemResolver } from '../health/connection.ts'
import { createHealthMonitor, type HealthMonitorDeps } from '../health/monitor.ts'
import { gateWrites, WriteRefused } from '../process/write-gate.ts'
import type { Provider } from '../providers/provider.ts'
import { configMapGuardStore } from '../records/state/config-map-guard-store.ts'
import { Heartbeat } from './heartbeat.ts'
import { createLeases, LEASE_NAMESPACE } from './leases.ts'
import { createDnsWriter, type DnsWriter } from './dns-writer.ts'
import type { ProviderTypes } from './provider-types.ts'

export interface DnslbOptions {
  readonly target: Cluster
  /** A source cluster other than the target cluster, and its identity (`--cluster`). */
  readonly source?: { readonly cluster: Cluster; readonly id: string }
  readonly controllers: { readonly endpoint: boolean; readonly dns: boolean }
  readonly identity: string
  readonly defaults: BalanceDefaults
  /** `--providers`: types to create from the environment, and whether DNSProvider objects count. */
  readonly providers: { readonly isDynamic: boolean; readonly staticTypes: readonly string[] }
  readonly types: ProviderTypes
  readonly env: Readonly<Record<string, string | undefined>>
  /** Further providers, e.g. the DNS server of this process. */
  readonly extraProviders?: readonly Provider[]
  readonly hasLeases: boolean
  readonly isOnce: boolean
  readonly isDryRun: boolean
  readonly guard: GuardOptions
  /** `--resolver`: DNS server for the names of targets; empty: those of the machine. */
  readonly resolver?: string
  readonly fieldManager: string
  readonly log: Logger
  readonly clock: Clock
  readonly healthTimeoutMs: number
  readonly startThread?: HealthMonitorDeps['startThread']
  /** Called once, when every load balancer was decided with known verdicts. */
  readonly onSettled?: () => void
  /** Called when the manager is built, before it runs. */
  readonly onManager?: (parts: { readonly manager: Manager; readonly heartbeat: Heartbeat }) => void
}

const GRACE_MS = 4_500
/** Owned records without a load balancer are searched, and every load balancer is decided again, this often. */
const PASS_INTERVAL = '5m'
const HEARTBEAT_INTERVAL = '10s'
const SETTLED_CHECK = '250ms'
/** A verdict that is still unknown is not waited for any longer. */
const SETTLED_LIMIT_MS = 60_000

export async function runDnslb(options: DnslbOptions, signal: AbortSignal): Promise<void> {
  const { target, source, controllers, clock, log, fieldManager } = options
  await ensureCrds(target, signal)
  if (signal.aborted) return
  const leased = options.hasLeases ? leaseClients(options) : []
  const leases = createLeases(leased, { clock, log })
  const stop = new AbortController()
  const until = AbortSignal.any([signal, stop.signal])
  await leases.acquire(until)
  if (signal.aborted) return leases.release()
  const mgr = await manager({ cluster: target, fieldManager, log, clock, grace: GRACE_MS })
  for (const cluster of new Set([target, source?.cluster ?? target]))
    gateWrites(cluster, () => {
      if (!leases.isLeading) throw new WriteRefused('NOT_LEADING', 'this process does not hold its leases')
    })
  const heartbeat = new Heartbeat(clock, options.healthTimeoutMs)
  if (controllers.endpoint) setUpEndpoints(mgr, options, heartbeat)
  const monitors = controllers.dns ? [await setUpDns(mgr, options, heartbeat, () => stop.abort())] : []
  options.onManager?.({ manager: mgr, heartbeat })
  const held = leases.hold(until)
  const lost = held.catch((error: unknown) => {
    stop.abort()
    throw error
  })
  lost.catch(() => undefined)
  try {
    await mgr.run(until)
  } finally {
    stop.abort()
    for (const monitor of monitors) await monitor.stop()
    await leases.release()
  }
  await lost
}

/** One for each cluster connection that controllers work on. */
function leaseClients({ target, source, controllers }: DnslbOptions) {
  if (source === undefined) return [target.client]
  return [...(controllers.dns ? [target.client] : []), ...(controllers.endpoint ? [source.cluster.client] : [])]
}

/** The controllers wait until the kinds are served. */
async function ensureCrds({ client }: Cluster, signal: AbortSignal): Promise<void> {
  await installCrds(client, loadBalancerCrds(), signal)
  for (const { metadata } of loadBalancerCrds()) {
    const found = await client.find(CustomResourceDefinition, metadata.name ?? '', { signal })
    const refused = found?.status?.conditions?.find(
      ({ type, status }) => type === 'NamesAccepted' && status === 'False',
    )
    if (refused !== undefined) throw new Error(`failed to wait for CRD: Name conflict: ${refused.reason ?? ''}`)
  }
}

function setUpEndpoints(mgr: Manager, options: DnslbOptions, heartbeat: Heartbeat): void {
  const { source, defaults, fieldManager } = options
  setUpEndpointSources(mgr, { defaults, ...(source !== undefined && { source: { ...source, fieldManager } }) })
  if (source !== undefined) mgr.fleet.engage(source.cluster)
  addHeartbeat(mgr, heartbeat, 'endpoint', source === undefined ? 'local' : 'fleet')
}

function addHeartbeat(mgr: Manager, heartbeat: Heartbeat, key: string, clusters: 'local' | 'fleet' = 'local'): void {
  heartbeat.tick(key)
  mgr
    .keyedController(`heartbeat-${key}`, { clusters })
    .every(HEARTBEAT_INTERVAL, () => [key])
    .reconcile(async () => heartbeat.tick(key))
}

async function setUpDns(mgr: Manager, options: DnslbOptions, heartbeat: Heartbeat, stop: () => void) {
  const { clock, log, defaults, guard, startThread } = options
  const { isDynamic } = options.providers
  const writer = await createDnsWriter({
    ...options,
    store: configMapGuardStore(options.target.client, `${LEASE_NAMESPACE}/dnslb-guard-state`),
    claimedNames: async (signal) => listClaimedNames(mgr.client, defaults, signal),
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
  const monitor = setUpLoadBalancers(mgr, {
    defaults,
    metrics,
    publisher: writer.publisher,
    monitor: (onChange) =>
      createHealthMonitor({
        clock,
        log,
        guard,
        onChange,
        ...(options.resolver !== undefined && { resolver: options.resolver }),
        ...(startThread !== undefined && { startThread }),
      }),
    lookup: (onChange) => (lookup = createNameLookup({ clock, resolve: systemResolver(options.resolver), onChange })),
    onReconciled: (key, isSettled) => void (isSettled ? settled.add(key) : settled.delete(key)),
  })
  if (lookup !== undefined) addNameLookup(mgr, lookup)
  addPasses(mgr, writer, { metrics, clock })
  addHeartbeat(mgr, heartbeat, 'dns')
  addSettled(mgr, settled, clock, () => {
    options.onSettled?.()
    if (options.isOnce) stop()
  })
  return monitor
}

function addPasses(
  mgr: Manager,
  { publisher, wake }: DnsWriter,
  { metrics, clock }: { readonly metrics: ReturnType<typeof createBalanceMetrics>; readonly clock: Clock },
): void {
  let lastMs: number | undefined
  mgr
    .keyedController('dns-pass', { timeout: '5m' })
    // The provider kind is read in a pass: its cache has to be complete.
    .watches(DNSProvider, () => [])
    .triggers((mark) => {
      mark(['pass'])
      return () => undefined
    })
    .every(PASS_INTERVAL, () => ['pass'])
    .reconcile(async (_key, { signal }) => {
      if (!(publisher.isReady?.() ?? true)) return requeue('1s')
      const startedMs = clock.monotonic()
      await publisher.sweep('all', signal)
      wake()
      const seconds = (ms: number): number => Math.floor(ms / 1_000)
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
