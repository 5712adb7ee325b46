/** What both forms of `seamark dnslb` are given: with clusters (app.ts), and standalone (standalone.ts). */
import type { Clock, Cluster, GuardOptions, Logger, Metrics } from '@seamark/kube'
import type { Registry } from 'prom-client'
import { createHealthMonitor, type HealthMonitor, type HealthMonitorDeps } from '../health/monitor.ts'
import type { BalanceDefaults } from '../balance/load-balancer.ts'
import type { Provider } from '../providers/provider.ts'
import type { Heartbeat } from './heartbeat.ts'
import type { ProviderTypes } from './provider-types.ts'

/** Where records are written. */
export interface DnsOptions {
  /** `--identity`: owner in the ownership records. */
  readonly identity: string
  readonly defaults: BalanceDefaults
  /** `--providers`: types to create from the environment. */
  readonly providers: { readonly staticTypes: readonly string[] }
  readonly types: ProviderTypes
  readonly env: Readonly<Record<string, string | undefined>>
  /** Further providers, e.g. the DNS server of this process. */
  readonly extraProviders?: readonly Provider[]
  readonly isDryRun: boolean
  readonly clock: Clock
  readonly log: Logger
}

export interface BalancingOptions extends DnsOptions {
  readonly isOnce: boolean
  readonly guard: GuardOptions
  /** `--resolver`: DNS server for the names of targets; empty: those of the machine. */
  readonly resolver?: string
  readonly startThread?: HealthMonitorDeps['startThread']
  /** Called once, when every load balancer was decided with known verdicts. */
  readonly onSettled?: () => void
}

export interface DnslbOptions extends BalancingOptions {
  readonly target: Cluster
  /**
   * A source cluster other than the target cluster, its identity (`--cluster`), and a connection to the target cluster of its own:
   * what is written over one connection depends on the leases of one cluster.
   */
  readonly source?: { readonly cluster: Cluster; readonly id: string; readonly target: Cluster }
  readonly controllers: { readonly endpoint: boolean; readonly dns: boolean }
  /** `--providers`: types to create from the environment, and whether DNSProvider objects count. */
  readonly providers: { readonly isDynamic: boolean; readonly staticTypes: readonly string[] }
  readonly hasLeases: boolean
  /** `--provider-namespaces`: namespaces of DNSProviders; empty: all. @default all */
  readonly providerNamespaces?: readonly string[]
  /** `--secret-namespaces`: namespaces of the Secrets of DNSProviders; empty: all. @default all */
  readonly secretNamespaces?: readonly string[]
  readonly fieldManager: string
  readonly healthTimeoutMs: number
  /** Called first of all: probes and metrics are answered while leases are waited for. */
  readonly onStart?: (parts: { readonly metrics: Metrics; readonly heartbeat: Heartbeat }) => void | Promise<void>
}

export interface StandaloneOptions extends BalancingOptions {
  readonly path: string
  readonly registry: Registry
  readonly heartbeat: Heartbeat
}

/** A verdict that is still unknown is not waited for any longer. */
export const SETTLED_LIMIT_MS = 60_000

export function startMonitor(
  { clock, log, guard, resolver, startThread }: BalancingOptions,
  onChange: (keys: readonly string[]) => void,
): HealthMonitor {
  return createHealthMonitor({
    clock,
    log,
    guard,
    onChange,
    ...(resolver !== undefined && { resolver }),
    ...(startThread !== undefined && { startThread }),
  })
}
