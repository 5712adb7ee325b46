/**
 * Adds load balancing to a manager: the controllers of endpoint sources and load balancers, the prober and the
 * resolver of host names.
 *
 * The controllers wait for their kinds, so the order in which CRDs are installed and controllers start does not matter.
 */
import { type Clock, type GuardOptions, type Manager, parseDurationMs, untilAborted } from '@seamark/kube'
import type { NameRule } from '@seamark/dialects'
import { createDnsClient, type DnsClient } from '@seamark/dns'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import type { AuthoritativeClient } from '../authority/answers.ts'
import type { FindServers } from '../authority/name-servers.ts'
import type { HostSources } from '../hosts/host-sources.ts'
import { loadBalancerOf } from '../hosts/load-balancer.ts'
import { systemResolver } from '../health/connection.ts'
import { createHealthMonitor, type HealthMonitorDeps } from '../health/monitor.ts'
import { createBalanceMetrics } from './report/balance-metrics.ts'
import { type BalanceConfig, balanceDefaults } from './config.ts'
import { MassRemoval, type MassRemovalDeps } from './write/mass-removal.ts'
import type { WriteGuard } from './write/guarded-write.ts'
import { addKindWebhooks } from './kind-webhooks.ts'
import { setUpEndpointSources } from './source/endpoint-controller.ts'
import { setUpLoadBalancers } from './load-balancer-controller.ts'
import { createNameAnswers } from './name-answers.ts'
import { probeRules } from './probe-rules.ts'
import { addNameLookup, createNameLookup, type NameLookup } from './name-lookup.ts'

export interface BalanceOptions {
  readonly config: BalanceConfig
  /** Starts the prober. @default in a worker thread */
  readonly startThread?: HealthMonitorDeps['startThread']
  /** Addresses of the host names of endpoints, and of DNS names then, too. @default by the system's DNS servers */
  readonly resolve?: (name: string) => Promise<readonly string[]>
}

export interface BalanceSetUp extends BalanceOptions {
  readonly clock: Clock
  /** Of the manager. */
  readonly namespace: string
  /** The fleet runs in this process: what its default policy asks for may be probed. @default false */
  readonly hasFleet?: boolean
  /** Zones of the DNS server of this process, canonical with a trailing dot. */
  readonly ownZones?: readonly string[]
  /** The servers of a zone, and what asks them for the DNS names. @default over UDP and TCP, not with `resolve` */
  readonly findServers: FindServers
  readonly dnsClient?: (AuthoritativeClient & Pick<DnsClient, 'close'>) | undefined
  /** The names that a namespace may use. */
  readonly findNameFault: NameRule
  /** Of publish in this process. @default none */
  readonly hostSources?: HostSources
  /** Addresses that probes must not connect to. */
  readonly guard: GuardOptions
  /** The manager serves webhooks. @default v1beta1 alone is served */
  readonly webhooks?: { readonly hasAdmission: boolean }
  readonly isWriting: () => boolean
  readonly secondWriter?: WriteGuard
  /** The records of load balancers are served by others: removals of many at once are held. @default none is held here */
  readonly removals?: Pick<MassRemovalDeps, 'massLimits' | 'heldObjects'>
  readonly untilMayWrite: (running: { readonly signal: AbortSignal }) => Promise<unknown> | undefined
}

export function setUpBalance(mgr: Manager, setUp: BalanceSetUp): void {
  const { config, clock, guard, isWriting, untilMayWrite, startThread } = setUp
  const defaults = balanceDefaults(config)
  const { informers } = mgr.cluster
  const rules = probeRules(config.trustedNamespaces, setUp.namespace, setUp.hasFleet === true ? informers : undefined)
  if (setUp.webhooks !== undefined) addKindWebhooks(mgr, setUp.webhooks.hasAdmission, rules)
  setUpEndpointSources(mgr, { defaults, kinds: config.sources, isWriting, untilMayWrite })
  const resolve = setUp.resolve ?? systemResolver(config.resolver)
  const client = setUp.dnsClient ?? (setUp.resolve === undefined ? createDnsClient({ tries: 2 }) : undefined)
  const { findServers } = setUp
  let lookup: NameLookup | undefined
  let answers: NameLookup | undefined
  const monitor = setUpLoadBalancers(mgr, {
    defaults,
    probeRules: rules,
    isWriting,
    untilMayWrite,
    findNameFault: setUp.findNameFault,
    ...(setUp.secondWriter !== undefined && { secondWriter: setUp.secondWriter }),
    metrics: createBalanceMetrics(mgr.metrics.registry),
    ...(setUp.removals !== undefined && {
      massRemoval: new MassRemoval({
        ...setUp.removals,
        clock,
        countPublished: () =>
          informers.list(DNSEndpoint).filter((object) => loadBalancerOf(object) !== undefined).length,
      }),
    }),
    ...(setUp.hostSources !== undefined && { hostSources: setUp.hostSources }),
    ...(setUp.ownZones !== undefined && { ownZones: setUp.ownZones }),
    monitor: (onChange) =>
      createHealthMonitor({
        clock,
        log: mgr.log,
        guard,
        onChange,
        resolver: config.resolver,
        ejectionMs: parseDurationMs(config.ejection) ?? 0,
        ...(startThread !== undefined && { startThread }),
      }),
    lookup: (onChange) => (lookup = createNameLookup({ clock, resolve, onChange })),
    ...(client !== undefined && {
      answers: (onChange) => (answers = createNameAnswers({ clock, client, resolve, findServers, onChange })),
    }),
  })
  if (lookup !== undefined) addNameLookup(mgr, lookup)
  if (answers !== undefined) addNameLookup(mgr, answers, 'balance-answers')
  mgr.add('balance-prober', async ({ signal }) => {
    await untilAborted(signal)
    await monitor.stop()
    await client?.close()
  })
}
