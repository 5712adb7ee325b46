/** Which capabilities the manager runs, on which cluster, with which lease. `seamark run`, `seamark contour-plus` and tests set them. */
import type { Clock, Cluster, connect, LeaseOptions, Logger, Manager } from '@seamark/kube'
import type { BalanceOptions } from '../balance/set-up.ts'
import type { FleetOptions } from '../fleet/config.ts'
import type { FleetSetUp } from '../fleet/set-up.ts'
import type { PublishOptions } from '../publish/options.ts'
import type { Provider } from '../providers/provider.ts'
import { RecordsConfig } from '../records/config.ts'
import type { AdmissionConfig } from '../process/admission-config.ts'
import type { Grants } from '@seamark/dialects'
import type { NoticeQueue } from '../process/reports/notices.ts'
import type { SafetyConfig } from '../safety/config.ts'
import type { KillSwitchControl } from '../process/kill-switch.ts'
import type { DnsConfig } from '../serve/config.ts'
import type { DnsService } from '../serve/dns-service.ts'
import type { WildcardOptions } from '../wildcard/options.ts'

export interface RecordsOptions {
  /** Without `enabled` the settings are those of the zones of our own DNS server. */
  readonly config: RecordsConfig
  readonly env: Readonly<Record<string, string | undefined>>
  /** Names outside of the zones are somebody else's, such as ExternalDNS'. @default false */
  readonly leavesOtherZones?: boolean
  /** In addition to those of the configuration: the embedded server of this process. */
  readonly providers?: readonly Provider[]
  /** In [0, 1): spreads the calls of providers. @default Math.random */
  readonly random?: () => number
}

interface DnsOptions {
  readonly config: DnsConfig
  readonly env: Readonly<Record<string, string | undefined>>
}

/** What the page shows is read from these; it writes nothing. */
export interface PageSource {
  readonly manager: Manager
  /** The options in effect. */
  readonly options: () => AppOptions
  /** Undefined: no DNS server in this process. */
  readonly dns: DnsService | undefined
  readonly killSwitch: KillSwitchControl
  /** Where DNSEndpoints are watched. */
  readonly endpointScope: { readonly namespace?: string }
  /** Calls the listener after this process stored what guards hold. */
  readonly onHeldChange: (listener: () => void) => void
}

export interface OpenPage {
  /** `http://127.0.0.1:8182/`; undefined: it does not listen. */
  readonly url: string | undefined
  close(): Promise<void>
}

/** Changes of options while the process runs, from the configuration file. */
export interface OptionChanges extends NoticeQueue {
  /**
   * `replace` gets the options from now on and which settings they differ in. Of them the limits, allow-lists, names and zones
   * of capabilities take effect; what is not `live` in docs/configuration.md must be unchanged.
   */
  onChange(replace: (options: AppOptions, settings: readonly string[]) => void): void
}

export interface AppOptions {
  readonly cluster: Cluster
  /** The names that a namespace may use: for every capability of the process. @default all */
  readonly grants?: Grants
  readonly publish?: PublishOptions
  readonly wildcard?: WildcardOptions
  readonly fleet?: FleetOptions
  readonly records?: RecordsOptions
  /**
   * Webhooks: names without a grant are refused when objects are written, and with `balance` the kinds have version v1. In
   * observe mode only objects of v1 that exist are converted. @default no webhook
   */
  readonly admission?: { readonly config: AdmissionConfig }
  readonly balance?: BalanceOptions
  /** The authoritative DNS server; without `records.enabled`, DNSEndpoints become records of its zones only. */
  readonly dns?: DnsOptions
  /** observe decides and reports, and writes nothing. */
  readonly mode: 'observe' | 'enforce'
  /** How much may change at once. @default DEFAULT_MASS_LIMITS */
  readonly safety?: SafetyConfig
  /** The kill switch by configuration: no write at all, neither DNS nor Kubernetes. @default false */
  readonly isPaused?: boolean
  /** The manager's own namespace: Secrets of registered clusters, wildcards, state. */
  readonly namespace: string
  /** @default no election: this process writes */
  readonly leader?: Readonly<LeaseOptions>
  /** `:8180`; undefined: no server. */
  readonly metrics?: string
  /** Those that another manager of the process reports to as well. @default its own */
  readonly sharedMetrics?: Manager['metrics']
  readonly probes?: string
  /** Of parts of the process that are not the manager's, for /readyz by their names. @default none */
  readonly readiness?: Readonly<Record<string, () => string | undefined>>
  readonly log?: Logger
  readonly clock?: Clock
  /** reportingController of the Events. @default one for each capability, such as `seamark-fleet` */
  readonly eventSource?: string
  /** Report also findings that existed at the start. @default true */
  readonly reportsInitialFindings?: boolean
  /** Registered clusters and probe targets may have a loopback address: for the playground and tests. @default false */
  readonly allowLoopback?: boolean
  /** Address ranges that registered clusters must not have, in addition to those that are always refused. */
  readonly denyAddresses?: readonly string[]
  /** The connection to registered clusters. @default over the network */
  readonly connectMember?: typeof connect
  /** Asks the authoritative servers of the fleet's hosts. @default over UDP and TCP */
  readonly dnsClient?: FleetSetUp['dnsClient']
  /** Apply `seamark.io/pause` on the ConfigMap `seamark` of the manager's namespace. @default true */
  readonly hasPause?: boolean
  /** Create the CRDs of the fleet and of load balancing where one of them is on, and update older ones. @default true */
  readonly installsCrds?: boolean
  /** Create the ConfigMap `seamark` when it is absent, and report mode and leadership on it. @default false */
  readonly ownsConfigurationObject?: boolean
  /** @default none */
  readonly changes?: OptionChanges
  /** Opens the page before anything is read, and closes it last. @default none */
  readonly page?: (source: PageSource) => Promise<OpenPage>
  /** Called when the servers listen. */
  readonly onReady?: (addresses: {
    readonly metrics?: string
    readonly probes?: string
    readonly webhooks?: string
    readonly dns?: readonly string[]
    /** URL. */
    readonly page?: string
  }) => void
}
