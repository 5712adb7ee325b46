/** The options of the controller of load balancers. */
import type { NameRule } from '@seamark/dialects'
import type { HostSources } from '../hosts/host-sources.ts'
import type { HealthMonitor } from '../health/monitor.ts'
import type { BalanceMetrics } from './report/balance-metrics.ts'
import type { MassRemoval } from './write/mass-removal.ts'
import type { WriteGuard } from './write/guarded-write.ts'
import type { BalanceDefaults } from './load-balancer.ts'
import type { NameLookup } from './name-lookup.ts'
import type { ProbeRules } from './probe-rules.ts'
import type { RecordPublisher } from './write/record-publisher.ts'

export interface LoadBalancerControllerOptions {
  readonly defaults: BalanceDefaults
  /** Starts probing; `onChange` gets the keys of load balancers whose health changed. */
  readonly monitor: (onChange: (keys: readonly string[]) => void) => HealthMonitor
  /** Addresses of host names; `onChange` gets the keys of load balancers whose targets have other addresses now. */
  readonly lookup: (onChange: (keys: readonly string[]) => void) => NameLookup
  /** What the zones answer for the DNS names; for a publisher that reads zones. @default none */
  readonly answers?: (onChange: (keys: readonly string[]) => void) => NameLookup
  /** Zones of our own DNS server, for the default publisher. @default none */
  readonly ownZones?: readonly string[]
  /** Of publish in this process: a source may keep its host from a load balancer. @default none */
  readonly hostSources?: HostSources
  /** The names that a namespace may use. @default all */
  readonly findNameFault?: NameRule
  /** What namespaces may probe. @default everything, as the original does */
  readonly probeRules?: ProbeRules
  /** @default a DNSEndpoint that the load balancer owns */
  readonly publisher?: RecordPublisher
  readonly metrics?: BalanceMetrics
  /** Stops writes that another client undoes. @default none */
  readonly secondWriter?: WriteGuard
  /** Holds removals of the records of many load balancers at once. @default none is held here */
  readonly massRemoval?: MassRemoval
  /** False: decide and probe, but write nothing, e.g. while writing is paused. @default always true */
  readonly isWriting?: () => boolean
  /** Resolves when it is known whether writing is paused. */
  readonly untilMayWrite?: (running: { readonly signal: AbortSignal }) => Promise<unknown> | undefined
  /** Called after each reconcile; `isSettled`: every verdict is known and the records are as decided. */
  readonly onReconciled?: (key: string, isSettled: boolean) => void
}
