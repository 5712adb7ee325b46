/**
 * `seamark dnslb --watches FILE`: load balancing without any cluster. The file is read again in every pass; a pass whose file
 * cannot be read is skipped, and nothing is removed.
 *
 * Statuses are kept in memory only: stickiness comes from the records, and a restart begins with unknown health, which
 * changes nothing that is published.
 */
import { readFile } from 'node:fs/promises'
import { type Clock, type GuardOptions, type Logger, messageOf, untilAborted } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import type { Registry } from 'prom-client'
import { createBalanceMetrics } from '../balance/balance-metrics.ts'
import { claimNames } from '../balance/claims.ts'
import { decide } from '../balance/decide.ts'
import { type BalanceDefaults, readLoadBalancer } from '../balance/load-balancer.ts'
import { createNameLookup } from '../balance/name-lookup.ts'
import { NAME_ID, probeTargetsOf } from '../balance/probe-targets.ts'
import { RecentChanges, RecentEvents } from '../balance/recent.ts'
import { systemResolver } from '../health/connection.ts'
import { createHealthMonitor, type HealthMonitorDeps } from '../health/monitor.ts'
import type { Provider } from '../providers/provider.ts'
import { memoryGuardStore } from '../records/state/guard-state.ts'
import { createDnsWriter } from './dns-writer.ts'
import type { Heartbeat } from './heartbeat.ts'
import type { ProviderTypes } from './provider-types.ts'
import { parseWatches, type Watch } from './watches.ts'

export interface StandaloneOptions {
  readonly path: string
  readonly identity: string
  readonly defaults: BalanceDefaults
  readonly providers: { readonly staticTypes: readonly string[] }
  readonly types: ProviderTypes
  readonly env: Readonly<Record<string, string | undefined>>
  readonly extraProviders?: readonly Provider[]
  readonly isOnce: boolean
  readonly isDryRun: boolean
  readonly guard: GuardOptions
  /** `--resolver`: DNS server for the names of targets; empty: those of the machine. */
  readonly resolver?: string
  readonly clock: Clock
  readonly log: Logger
  readonly registry: Registry
  readonly heartbeat: Heartbeat
  readonly startThread?: HealthMonitorDeps['startThread']
  /** Called when every load balancer was decided with known verdicts. */
  readonly onSettled?: () => void
}

/** Between two passes while no health changes. */
const PASS_MS = 5_000
const SWEEP_MS = 300_000
/** A verdict that is still unknown is not waited for any longer. */
const SETTLED_LIMIT_MS = 60_000

export async function runStandalone(options: StandaloneOptions, signal: AbortSignal): Promise<void> {
  const { path, clock, log, heartbeat } = options
  let watches = await readWatches(path)
  if ('invalid' in watches) throw new Error(`cannot read watch config '${path}':${watches.invalid}`)
  const balancer = await createBalancer(options, () => watches as readonly Watch[])
  const startedMs = clock.monotonic()
  let sweptMs: number | undefined
  try {
    while (!signal.aborted) {
      const read = await readWatches(path)
      if ('invalid' in read) log.error({ file: path, error: read.invalid }, 'cannot read watch config; nothing changes')
      else {
        watches = read
        const passMs = clock.monotonic()
        const isSettled = await balancer.pass(signal)
        if (sweptMs === undefined || passMs - sweptMs >= SWEEP_MS) {
          await balancer.sweep(signal)
          sweptMs = passMs
        }
        const isOver = isSettled || passMs - startedMs > SETTLED_LIMIT_MS
        if (isOver) options.onSettled?.()
        if (isOver && options.isOnce) return
      }
      heartbeat.tick('dns')
      // There is no manager here, whose controllers would wait.
      await untilAborted(AbortSignal.any([signal, balancer.woken(), AbortSignal.timeout(PASS_MS)]))
    }
  } finally {
    await balancer.stop()
  }
}

async function readWatches(path: string): Promise<readonly Watch[] | { readonly invalid: string }> {
  try {
    return parseWatches(await readFile(path, 'utf8'))
  } catch (error) {
    return { invalid: messageOf(error) }
  }
}

type BalancerStatus = Watch['loadBalancer']['status']
type EndpointStatus = Watch['endpoints'][number]['status']

async function createBalancer(options: StandaloneOptions, current: () => readonly Watch[]) {
  const { clock, log, defaults, guard, startThread } = options
  let wake = new AbortController()
  const onChange = (): void => wake.abort()
  const monitor = createHealthMonitor({
    clock,
    log,
    guard,
    onChange,
    ...(options.resolver !== undefined && { resolver: options.resolver }),
    ...(startThread !== undefined && { startThread }),
  })
  const lookup = createNameLookup({ clock, resolve: systemResolver(options.resolver), onChange })
  const metrics = createBalanceMetrics(options.registry)
  const changes = new RecentChanges()
  const messages = new RecentEvents()
  const statuses = new Map<string, { balancer: BalancerStatus; endpoints: Map<string, EndpointStatus> }>()
  const claimed = (): Set<string> =>
    new Set(
      current().flatMap(({ loadBalancer }) => {
        const read = readLoadBalancer(loadBalancer, defaults)
        return 'settings' in read ? [read.settings.recordName] : []
      }),
    )
  const { publisher } = await createDnsWriter({
    ...options,
    store: memoryGuardStore(),
    claimedNames: async () => claimed(),
    isReady: () => true,
  })
  const startedMs = clock.now()
  const context = (signal: AbortSignal) =>
    ({ clock, signal, log, get: never, apply: never, delete: never }) as unknown as Parameters<
      typeof publisher.observe
    >[2]

  async function balance(watch: Watch, holder: string | undefined, signal: AbortSignal): Promise<boolean> {
    const key = keyOf(watch.loadBalancer)
    const before = statuses.get(key)
    const loadBalancer = { ...watch.loadBalancer, ...(before?.balancer !== undefined && { status: before.balancer }) }
    const endpoints = watch.endpoints.map((endpoint) => {
      const status = before?.endpoints.get(keyOf(endpoint))
      return { ...endpoint, ...(status !== undefined && { status }) }
    })
    monitor.setTargets(key, probeTargetsOf(loadBalancer, endpoints, defaults))
    lookup.setNames(
      key,
      endpoints.flatMap(({ spec }) => (spec.cname === undefined ? [] : [spec.cname])),
    )
    const read = readLoadBalancer(loadBalancer, defaults)
    if ('invalid' in read) {
      if (messages.isNew(key, read.message)) log.error({ name: key, error: read.message }, 'invalid watch')
      return true
    }
    const { settings } = read
    const decision = decide({
      nowMs: clock.now(),
      startedMs,
      defaults,
      loadBalancer,
      endpoints,
      lookup: (name) => lookup.addressesOf(name),
      holder,
      verdictOf: (id) => monitor.healthOf(key, id).verdict,
      nameVerdict: monitor.healthOf(key, NAME_ID).verdict,
      ...(await publisher.observe(loadBalancer, settings, context(signal))),
      changesMs: changes.of(key),
    })
    const { records } = decision
    let report = decision.whenApplied
    if (records.kind !== 'hold' && records.isChange) {
      const { sets, cnames } = records.kind === 'publish' ? records : { sets: [], cnames: [] }
      try {
        await publisher.publish({ loadBalancer, settings, sets, cnames }, context(signal))
        if (!options.isDryRun) changes.add(key, clock.now())
      } catch (error) {
        report = decision.whenRejected(messageOf(error))
      }
    }
    for (const { type, message } of report.events)
      if (messages.isNew(key, message)) log[type === 'Warning' ? 'warn' : 'info']({ name: key }, message)
    const next = new Map(endpoints.map((endpoint) => [keyOf(endpoint), endpoint.status] as const))
    for (const [id, status] of report.endpointStatuses) next.set(id, { ...status })
    statuses.set(key, { balancer: report.status, endpoints: next })
    metrics.observe(loadBalancer, endpoints, report.status, report.endpointStatuses)
    return endpoints.every((endpoint) => monitor.healthOf(key, keyOf(endpoint)).verdict !== 'unknown')
  }

  return {
    woken(): AbortSignal {
      wake = new AbortController()
      return wake.signal
    },
    /** True when every verdict was known. */
    async pass(signal: AbortSignal): Promise<boolean> {
      await lookup.refresh()
      const watches = current()
      const holders = claimNames(
        watches.map(({ loadBalancer }) => loadBalancer),
        defaults,
      )
      const present = new Set(watches.map(({ loadBalancer }) => keyOf(loadBalancer)))
      for (const key of statuses.keys()) {
        if (present.has(key)) continue
        statuses.delete(key)
        monitor.setTargets(key, new Map())
        lookup.setNames(key, [])
        metrics.forget(key)
        await publisher.forget(key, context(signal))
      }
      let isSettled = true
      for (const watch of watches) {
        const read = readLoadBalancer(watch.loadBalancer, defaults)
        const holder = 'settings' in read ? holders.get(read.settings.recordName) : undefined
        if (!(await balance(watch, holder, signal))) isSettled = false
      }
      return isSettled
    },
    sweep: async (signal: AbortSignal) => publisher.sweep('all', signal),
    stop: async () => monitor.stop(),
  }
}

function never(): never {
  throw new Error('there is no cluster')
}
