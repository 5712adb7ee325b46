/**
 * The load balancers of a watches file: probes, decides and publishes each of them in a pass. Statuses are kept in memory
 * only.
 */
import { messageOf } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import { createBalanceMetrics } from '../balance/report/balance-metrics.ts'
import { claimNames } from '../balance/decide/claims.ts'
import { decide } from '../balance/decide/decide.ts'
import { readLoadBalancer } from '../balance/load-balancer.ts'
import { createDnsClient } from '@seamark/dns'
import { serversByRecords } from '../authority/name-servers.ts'
import { aliasesIn, createNameAnswers, nameAddresses } from '../balance/name-answers.ts'
import { createNameLookup } from '../balance/name-lookup.ts'
import { NAME_ID, probeTargetsOf } from '../balance/probe-targets.ts'
import { RecentChanges, RecentEvents } from '../balance/recent.ts'
import { systemResolver } from '../health/connection.ts'
import { memoryGuardStore } from '../records/state/guard-state.ts'
import { createDnsWriter } from './dns-writer.ts'
import { type StandaloneOptions, startMonitor } from './options.ts'
import type { Watch } from './watches.ts'

type BalancerStatus = Watch['loadBalancer']['status']
type EndpointStatus = Watch['endpoints'][number]['status']

export async function createBalancer(options: StandaloneOptions, current: () => readonly Watch[]) {
  const { clock, log, defaults } = options
  let wake = new AbortController()
  const onChange = (): void => wake.abort()
  const monitor = startMonitor(options, onChange)
  const resolve = systemResolver(options.resolver)
  const lookup = createNameLookup({ clock, resolve, onChange })
  const client = createDnsClient({ tries: 2 })
  const findServers = serversByRecords(options.resolver ?? '', () => clock.monotonic())
  const answers = createNameAnswers({ clock, client, resolve, findServers, onChange })
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
    const hosts = endpoints.flatMap(({ spec }) => (spec.cname === undefined ? [] : [spec.cname]))
    const read = readLoadBalancer(loadBalancer, defaults)
    if ('invalid' in read) {
      monitor.setTargets(key, new Map())
      if (messages.isNew(key, read.message)) log.error({ name: key, error: read.message }, 'invalid watch')
      return true
    }
    const { settings } = read
    const fact = await publisher.observe(loadBalancer, settings, context(signal))
    lookup.setNames(key, [...hosts, ...aliasesIn(fact)])
    answers.setNames(key, fact.readFrom === 'service' ? [settings.recordName] : [])
    const answered = answers.addressesOf(settings.recordName)
    const addresses = nameAddresses(fact, answered, (name) => lookup.addressesOf(name))
    monitor.setTargets(key, probeTargetsOf(loadBalancer, endpoints, defaults, addresses))
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
      ...fact,
      changesMs: changes.of(key),
    })
    const { records } = decision
    let report = decision.whenApplied
    if (records.kind !== 'hold' && records.isChange) {
      const { sets, cnames } = records.kind === 'publish' ? records : { sets: [], cnames: [] }
      try {
        const request = { loadBalancer, settings, sets, cnames, reason: decision.reason }
        const outcome = await publisher.publish(request, context(signal))
        if (typeof outcome === 'object') report = decision.whenRejected(outcome.finding.message, 'SecondWriter')
        else if (!options.isDryRun) changes.add(key, clock.now())
        answers.touch(settings.recordName)
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
      await Promise.all([lookup.refresh(), answers.refresh()])
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
        answers.setNames(key, [])
        metrics.forget(key)
        await publisher.forget(key, context(signal))
      }
      // Together: the publisher groups what goes to the same zone.
      const settled = await Promise.all(
        watches.map(async (watch) => {
          const read = readLoadBalancer(watch.loadBalancer, defaults)
          const holder = 'settings' in read ? holders.get(read.settings.recordName) : undefined
          return balance(watch, holder, signal)
        }),
      )
      return settled.every(Boolean)
    },
    sweep: async (signal: AbortSignal) => publisher.sweep('all', signal),
    async stop() {
      await monitor.stop()
      await client.close()
    },
  }
}

function never(): never {
  throw new Error('there is no cluster')
}
