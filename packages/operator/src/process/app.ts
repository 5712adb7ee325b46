/**
 * The manager: which capabilities run, on which cluster, with which lease. `seamark run`, `seamark contour-plus` and tests
 * set these options.
 */
import {
  type Clock,
  type Cluster,
  type connect,
  createLogger,
  type Logger,
  type Manager,
  manager,
  systemClock,
  untilAborted,
} from '@seamark/kube'
import { DNSEndpoint, trimEndpoint } from '../api/dns-endpoint.ts'
import { type MemberRegistry, setUpMembers } from '../clusters/member-registry.ts'
import type { FleetOptions } from '../fleet/config.ts'
import { setUpFleet } from '../fleet/set-up.ts'
import { limitHeapGrowth } from './heap-growth.ts'
import { createProductMetrics, createRecordsMetrics, showPause } from '../metrics.ts'
import { FIELD_MANAGER } from './field-manager.ts'
import type { PublishOptions } from '../publish/options.ts'
import { setUpPublish } from '../publish/set-up.ts'
import type { Provider } from '../providers/provider.ts'
import type { RecordsConfig } from '../records/config.ts'
import type { Grants } from './grants.ts'
import { createKillSwitch } from './kill-switch.ts'
import { setUpRecords } from '../records/sync/set-up.ts'
import { type Switches, watchSwitches } from './switches.ts'
import type { WildcardOptions } from '../wildcard/options.ts'
import { setUpWildcard } from '../wildcard/controller.ts'
import { gateWrites, WriteRefused } from './write-gate.ts'

interface RecordsOptions {
  readonly config: RecordsConfig
  readonly env: Readonly<Record<string, string | undefined>>
  readonly grants?: Grants
  /** In addition to those of the configuration: the embedded server of this process. */
  readonly providers?: readonly Provider[]
}

export interface AppOptions {
  readonly cluster: Cluster
  readonly publish?: PublishOptions
  readonly wildcard?: WildcardOptions
  readonly fleet?: FleetOptions
  readonly records?: RecordsOptions
  /** observe decides and reports, and writes nothing. */
  readonly mode: 'observe' | 'enforce'
  /** The kill switch by configuration: no write at all, neither DNS nor Kubernetes. @default false */
  readonly isPaused?: boolean
  /** The manager's own namespace: Secrets of registered clusters, wildcards, state. */
  readonly namespace: string
  /** @default no election: this process writes */
  readonly leader?: { readonly lease: string; readonly namespace: string }
  /** `:8180`; undefined: no server. */
  readonly metrics?: string
  readonly probes?: string
  readonly log?: Logger
  readonly clock?: Clock
  /** Report also findings that existed at the start. @default true */
  readonly reportsInitialFindings?: boolean
  /** Registered clusters may have a loopback address: for the playground and tests. @default false */
  readonly allowLoopback?: boolean
  /** Address ranges that registered clusters must not have, in addition to those that are always refused. */
  readonly denyAddresses?: readonly string[]
  /** The connection to registered clusters. @default over the network */
  readonly connectMember?: typeof connect
  /** Obey `seamark.io/pause` on the ConfigMap `seamark` of the manager's namespace. @default true */
  readonly hasPause?: boolean
  /** Called when the servers listen. */
  readonly onReady?: (addresses: { readonly metrics?: string; readonly probes?: string }) => void
}

/** A stop has to complete within 5 s, also when a part hangs. */
const GRACE_MS = 4_500

export async function runApp(options: AppOptions, signal: AbortSignal): Promise<void> {
  const { publish, wildcard, fleet, records, namespace, mode, clock = systemClock } = options
  limitHeapGrowth()
  const log = options.log ?? createLogger({ level: 'silent' })
  const killSwitch = createKillSwitch(...(options.isPaused === true ? ['configuration'] : []))
  const mgr: Manager = await manager({
    cluster: options.cluster,
    fieldManager: FIELD_MANAGER,
    log,
    clock,
    grace: GRACE_MS,
    ...(options.leader !== undefined && { leader: options.leader }),
    ...(options.metrics !== undefined && { metrics: options.metrics }),
    ...(options.probes !== undefined && { probes: options.probes }),
  })
  const check = (): void => {
    if (killSwitch.isPaused) throw new WriteRefused('PAUSED', 'writing is paused; remove seamark.io/pause to go on')
    if (mode === 'observe') throw new WriteRefused('OBSERVING', 'in observe mode nothing is written')
    if (!mgr.isLeading) throw new WriteRefused('NOT_LEADING', 'this process does not hold its lease')
  }
  gateWrites(options.cluster, check)
  const { registry } = mgr.metrics
  const metrics = createProductMetrics(registry)
  showPause(registry, killSwitch)
  const switches = (options.hasPause ?? true) ? watchSwitches(mgr.cluster, namespace, killSwitch, clock) : NO_SWITCHES
  const common = {
    metrics,
    namespace,
    clock,
    isWriting: () => mode === 'enforce' && !killSwitch.isPaused,
    untilPauseIsKnown: (running: { readonly signal: AbortSignal }) =>
      mode === 'enforce' && !switches.isRead ? switches.ready(running.signal) : undefined,
  }
  mgr.cache(DNSEndpoint, { projection: trimEndpoint, keepManagedFieldsOf: FIELD_MANAGER })
  if (publish !== undefined)
    setUpPublish(mgr, { ...common, options: publish, reportsInitialFindings: options.reportsInitialFindings ?? true })
  const { allowLoopback = false, denyAddresses = [], connectMember } = options
  let members: MemberRegistry | undefined
  /** One registry for all capabilities that use member clusters. */
  const memberRegistry = (): MemberRegistry => {
    members ??= setUpMembers(mgr, {
      namespace,
      allowLoopback,
      denyAddresses,
      guard: (member) => gateWrites(member, check),
      connect:
        connectMember === undefined
          ? (config, name) => mgr.connect(config, name)
          : (config, name) => connectMember(config, { name, clock, log }),
    })
    return members
  }
  if (wildcard !== undefined) {
    setUpWildcard(mgr, {
      ...common,
      options: wildcard,
      registry: memberRegistry(),
      endpointScope: endpointScope(options, namespace),
    })
  }
  if (fleet !== undefined) setUpFleet(mgr, { ...common, options: fleet, registry: memberRegistry() })
  if (records !== undefined) {
    const { dnsEndpoints } = records.config
    setUpRecords(mgr, {
      ...records,
      mode,
      namespace,
      killSwitch,
      switches,
      clock,
      metrics: createRecordsMetrics(registry, () => clock.now()),
      endpoints: dnsEndpoints.enabled
        ? mgr.cluster.informers.informer(DNSEndpoint, endpointScope(options, dnsEndpoints.namespace))
        : undefined,
    })
  }
  if (options.onReady !== undefined) {
    const { onReady } = options
    mgr.add('ready', async ({ signal: running }) => {
      onReady(mgr.addresses)
      await untilAborted(running)
    })
  }
  await mgr.run(signal)
}

const NO_SWITCHES: Switches = {
  approvedIds: new Set(),
  releasedNames: new Set(),
  subscribe: () => () => undefined,
  isRead: true,
  ready: async () => undefined,
}

/** One watch of DNSEndpoints for all capabilities, with the widest scope that one of them needs. */
function endpointScope({ publish, records }: AppOptions, namespace: string): { namespace?: string } {
  const dnsEndpoints = records?.config.dnsEndpoints
  const isWide = publish !== undefined || (dnsEndpoints?.enabled === true && dnsEndpoints.namespace === '')
  return isWide ? {} : { namespace }
}
