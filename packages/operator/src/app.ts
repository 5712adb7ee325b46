/**
 * The manager: which capabilities run, on which cluster, with which lease. `seamark run`, `seamark contour-plus` and tests
 * set these options.
 */
import {
  type Clock,
  type Cluster,
  type connect,
  createLogger,
  type LeaseOptions,
  type Logger,
  type Manager,
  manager,
  messageOf,
  Secret,
  systemClock,
  untilAborted,
} from '@seamark/kube'
import { type BalanceOptions, setUpBalance } from './balance/set-up.ts'
import type { Immutable } from '@seamark/kube/object'
import { DNSEndpoint, trimEndpoint } from './api/dns-endpoint.ts'
import { loadBalancerCrds } from './api/crds/dns-load-balancer-crds.ts'
import { type MemberRegistry, setUpMembers } from './clusters/member-registry.ts'
import type { FleetOptions } from './fleet/config.ts'
import { setUpFleet } from './fleet/set-up.ts'
import { reportDeniedWatches } from './process/reports/denied-watches.ts'
import { limitHeapGrowth } from './process/heap-growth.ts'
import { serverText } from '@seamark/dns'
import { createProductMetrics } from './metrics.ts'
import { showPause } from './process/pause-metric.ts'
import { createRecordsMetrics, type RecordsMetrics } from './records/sync/records-metrics.ts'
import { FIELD_MANAGER } from './process/field-manager.ts'
import { HELD_ID_PREFIX } from './publish/guard/mass-guard.ts'
import type { PublishOptions } from './publish/options.ts'
import { setUpPublish } from './publish/set-up.ts'
import type { Provider } from './providers/provider.ts'
import { RecordsConfig } from './records/config.ts'
import { type AdmissionConfig, certificatePaths, conversionAddress, webhookServer } from './process/admission-config.ts'
import type { Grants } from './process/grants.ts'
import { setUpNameAdmission } from './process/name-admission.ts'
import { judgedSources } from './publish/decide/requested-names.ts'
import { requestedBy } from './records/sync/sources/dns-endpoint-source.ts'
import { createKillSwitch, type KillSwitchControl, pausedUntil } from './process/kill-switch.ts'
import { createNotices } from './process/reports/notices.ts'
import { addPeerCheck } from './process/peer-check.ts'
import { isPauseEvent } from './process/reports/pause-event.ts'
import { addProcessReports } from './process/reports/process-reports.ts'
import { SecondWriterGuard } from './process/second-writer-guard.ts'
import { configMapGuardStore } from './records/state/config-map-guard-store.ts'
import { HELD_OBJECTS_STORE, heldObjectStore } from './records/state/held-objects.ts'
import { createObjectApprovals } from './records/state/object-approvals.ts'
import { setUpRecords } from './records/sync/set-up.ts'
import type { DnsConfig } from './serve/config.ts'
import { createDnsMetrics } from './serve/dns-metrics.ts'
import { type DnsService, EMBEDDED_PROVIDER, openDnsService } from './serve/dns-service.ts'
import { ownServers } from './serve/own-servers.ts'
import { setUpDns } from './serve/set-up.ts'
import { type Switches, watchSwitches, withoutApprovals } from './process/switches.ts'
import type { WildcardOptions } from './wildcard/options.ts'
import { setUpWildcard } from './wildcard/controller.ts'
import { gateWrites, WriteRefused } from './process/write-gate.ts'

interface RecordsOptions {
  readonly config: RecordsConfig
  readonly env: Readonly<Record<string, string | undefined>>
  readonly grants?: Grants
  /** In addition to those of the configuration: the embedded server of this process. */
  readonly providers?: readonly Provider[]
  /** In [0, 1): spreads the calls of providers. @default Math.random */
  readonly random?: () => number
}

interface DnsOptions {
  readonly config: DnsConfig
  readonly env: Readonly<Record<string, string | undefined>>
}

export interface AppOptions {
  readonly cluster: Cluster
  readonly publish?: PublishOptions
  readonly wildcard?: WildcardOptions
  readonly fleet?: FleetOptions
  readonly records?: RecordsOptions
  /**
   * Webhooks: names without a grant are refused when objects are written, and with `balance` the kinds have version v1. In
   * observe mode only objects of v1 that exist are converted. @default no webhook
   */
  readonly admission?: { readonly config: AdmissionConfig; readonly grants: Grants }
  readonly balance?: BalanceOptions
  /** The authoritative DNS server; without `records`, DNSEndpoints become records of its zones. */
  readonly dns?: DnsOptions
  /** observe decides and reports, and writes nothing. */
  readonly mode: 'observe' | 'enforce'
  /** The kill switch by configuration: no write at all, neither DNS nor Kubernetes. @default false */
  readonly isPaused?: boolean
  /** The manager's own namespace: Secrets of registered clusters, wildcards, state. */
  readonly namespace: string
  /** @default no election: this process writes */
  readonly leader?: Readonly<LeaseOptions>
  /** `:8180`; undefined: no server. */
  readonly metrics?: string
  readonly probes?: string
  readonly log?: Logger
  readonly clock?: Clock
  /** Report also findings that existed at the start. @default true */
  readonly reportsInitialFindings?: boolean
  /** Registered clusters and probe targets may have a loopback address: for the playground and tests. @default false */
  readonly allowLoopback?: boolean
  /** Address ranges that registered clusters must not have, in addition to those that are always refused. */
  readonly denyAddresses?: readonly string[]
  /** The connection to registered clusters. @default over the network */
  readonly connectMember?: typeof connect
  /** Apply `seamark.io/pause` on the ConfigMap `seamark` of the manager's namespace. @default true */
  readonly hasPause?: boolean
  /** Create the ConfigMap `seamark` when it is absent, and report mode and leadership on it. @default false */
  readonly ownsConfigurationObject?: boolean
  /** Called when the servers listen. */
  readonly onReady?: (addresses: {
    readonly metrics?: string
    readonly probes?: string
    readonly webhooks?: string
    readonly dns?: readonly string[]
  }) => void
}

/** A stop has to complete within 5 s, also when a part hangs. */
const GRACE_MS = 4_500

export async function runApp(options: AppOptions, signal: AbortSignal): Promise<void> {
  const { namespace, mode, clock = systemClock } = options
  limitHeapGrowth()
  const log = options.log ?? createLogger({ level: 'silent' })
  const killSwitch = createKillSwitch(...(options.isPaused === true ? ['configuration'] : []))
  // In observe mode nothing may be refused, and the certificate could not be written.
  const admission = mode === 'enforce' ? options.admission : undefined
  const crds = options.balance === undefined ? [] : loadBalancerCrds().map(({ metadata }) => metadata.name ?? '')
  const serving = admission ?? (await storedConversion(options, log, signal))
  const mgr: Manager = await manager({
    cluster: options.cluster,
    fieldManager: FIELD_MANAGER,
    log,
    clock,
    grace: GRACE_MS,
    ...(options.leader !== undefined && { leader: options.leader }),
    ...(options.metrics !== undefined && { metrics: options.metrics }),
    ...(options.probes !== undefined && { probes: options.probes }),
    ...(serving !== undefined && { webhooks: webhookServer(serving.config, namespace, { crds }) }),
  })
  const checkWrite = (): void => {
    if (killSwitch.isPaused)
      throw new WriteRefused(
        'PAUSED',
        'writing is paused; to resume, remove seamark.io/pause from ConfigMap seamark, or pause from the configuration',
      )
    if (mode === 'observe') throw new WriteRefused('OBSERVING', 'in observe mode nothing is written')
    if (!mgr.isLeading) throw new WriteRefused('NOT_LEADING', 'this process does not hold its lease')
  }
  const certificate = admission === undefined ? new Set() : certificatePaths(admission.config, namespace, { crds })
  gateWrites(options.cluster, checkWrite, (path) => certificate.has(path) || isPauseEvent(path, namespace))
  if (admission !== undefined)
    setUpNameAdmission(mgr, admission.grants, [
      // Those of the manager's namespace are its own, as in the plan.
      {
        kind: DNSEndpoint,
        names: (object) => requestedBy(object as Immutable<DNSEndpoint>),
        exempt: new Set([namespace]),
      },
      ...(options.publish === undefined ? [] : judgedSources(options.publish)),
    ])
  // Before the caches: a zone that is stored is answered while the API server is down.
  const dns =
    options.dns === undefined
      ? undefined
      : await openDnsService({
          ...options.dns,
          client: options.cluster.client,
          namespace,
          isLeading: () => mgr.isLeading,
          isWriting: () => mgr.isLeading && mode === 'enforce' && !killSwitch.isPaused,
          waitsForRecords: true,
          log,
          clock,
        })
  try {
    await runManager(
      mgr,
      { ...options, ...recordsOn(options, dns) },
      { dns, log, clock, killSwitch, checkWrite, serving },
      signal,
    )
  } finally {
    await dns?.close()
  }
}

/** In observe mode: objects that are stored as v1 can be read as long as their conversion is served. */
async function storedConversion(
  { admission, balance, cluster, namespace }: AppOptions,
  log: Logger,
  signal: AbortSignal,
): Promise<AppOptions['admission']> {
  if (admission === undefined || balance === undefined) return undefined
  const key = `${namespace}/${admission.config.secret}`
  try {
    const secret = await cluster.client.find(Secret, key, { signal })
    return secret === undefined ? undefined : admission
  } catch (error) {
    log.warn(
      { secret: key, error: messageOf(error) },
      'the conversion webhook is not served: its certificate is unknown',
    )
    return undefined
  }
}

/** The zones of our own server have one writer: they need no owner id to distinguish installations. */
const OWN_ZONES_OWNER = 'seamark'

/** Records with the provider of the DNS server; without `records`, of that provider only. */
function recordsOn({ records, dns: options }: AppOptions, dns: DnsService | undefined): Pick<AppOptions, 'records'> {
  if (dns === undefined || options === undefined) return records === undefined ? {} : { records }
  const own: RecordsOptions = {
    config: RecordsConfig.parse({ enabled: true, owner: OWN_ZONES_OWNER, dnsEndpoints: { enabled: true } }),
    env: options.env,
  }
  const chosen = records ?? own
  return { records: { ...chosen, providers: [...(chosen.providers ?? []), dns.provider] } }
}

interface Parts {
  readonly dns: DnsService | undefined
  readonly log: Logger
  readonly clock: Clock
  readonly killSwitch: KillSwitchControl
  /** Throws while nothing may be written. */
  readonly checkWrite: () => void
  /** The webhooks that the manager serves. */
  readonly serving: AppOptions['admission']
}

async function runManager(
  mgr: Manager,
  options: AppOptions,
  { dns, log, clock, killSwitch, checkWrite, serving }: Parts,
  signal: AbortSignal,
): Promise<void> {
  const { publish, wildcard, fleet, records, namespace, mode } = options
  const { registry } = mgr.metrics
  const metrics = createProductMetrics(registry)
  showPause(registry, killSwitch)
  const { hasPause = true } = options
  const switches = hasPause ? watchSwitches(mgr.cluster, namespace, killSwitch, clock) : NO_SWITCHES
  if (dns !== undefined) {
    setUpDns(mgr, dns, async (running) => switches.ready(running))
    createDnsMetrics(registry, dns)
  }
  const isWriting = (): boolean => mode === 'enforce' && !killSwitch.isPaused
  const notify = createNotices(mgr, { namespace, mayReport: isWriting })
  const own = options.leader === undefined ? undefined : `${options.leader.namespace}/${options.leader.lease}`
  const peers = addPeerCheck(mgr, own, notify)
  const { ownsConfigurationObject = false } = options
  if (hasPause)
    addProcessReports(mgr, {
      namespace,
      mode,
      killSwitch,
      switches,
      isWriting,
      lease: own,
      ownsConfigurationObject,
      notify,
      clock,
    })
  const secondWriter = new SecondWriterGuard({
    client: mgr.client,
    clock,
    namespace: hasPause ? namespace : undefined,
    findPeers: peers.find,
    onStopped: ({ reason, message }) => notify({ reason, severity: 'Warning', message }),
  })
  switches.subscribe(() => secondWriter.resume())
  const common = {
    metrics,
    namespace,
    clock,
    mode,
    isWriting,
    notify,
    secondWriter,
    // A reconcile creates its signal on first use, and most need none.
    untilMayWrite: (running: { readonly signal: AbortSignal }) =>
      mode === 'enforce' && !(switches.isRead && peers.isDone)
        ? Promise.all([switches.ready(running.signal), peers.ready(running.signal)])
        : undefined,
  }
  mgr.cache(DNSEndpoint, { projection: trimEndpoint, keepManagedFieldsOf: FIELD_MANAGER })
  const isObjectId = (id: string): boolean => publish?.prune === true && id.startsWith(HELD_ID_PREFIX)
  if (publish !== undefined) {
    const store = heldObjectStore(configMapGuardStore(mgr.client, `${namespace}/${HELD_OBJECTS_STORE}`))
    const approvals = createObjectApprovals({ store, switches, clock, notify, isOurs: isObjectId })
    const { reportsInitialFindings = true } = options
    setUpPublish(mgr, { ...common, approvals, options: publish, reportsInitialFindings })
  }
  const { allowLoopback = false, denyAddresses = [], connectMember } = options
  let members: MemberRegistry | undefined
  /** One registry for all capabilities that use member clusters. */
  const memberRegistry = (): MemberRegistry => {
    members ??= setUpMembers(mgr, {
      namespace,
      allowLoopback,
      denyAddresses,
      guard: (member) => gateWrites(member, checkWrite),
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
  if (fleet !== undefined)
    setUpFleet(mgr, {
      ...common,
      options: fleet,
      registry: memberRegistry(),
      ownServers: (name) =>
        dns === undefined ? [] : ownServers({ addresses: dns.addresses, zones: () => dns.zones() }, name),
    })
  if (options.balance !== undefined) {
    setUpBalance(mgr, {
      ...common,
      ...options.balance,
      guard: { allowLoopback, deny: denyAddresses },
      ownZones: dns?.zones().map(({ zone }) => zone) ?? [],
      ...(serving !== undefined && {
        webhooks: {
          conversion: conversionAddress(serving.config, namespace),
          hasAdmission: mode === 'enforce',
        },
      }),
    })
  }
  if (records !== undefined) {
    const { dnsEndpoints } = records.config
    setUpRecords(mgr, {
      ...records,
      mode,
      namespace,
      untilMayWrite: common.untilMayWrite,
      killSwitch: pausedUntil(killSwitch, peers.done),
      switches: withoutApprovals(switches, isObjectId),
      clock,
      metrics: servingCompleteZones(
        createRecordsMetrics(registry, () => clock.now()),
        dns,
      ),
      endpointScope: endpointScope(options, dnsEndpoints.namespace),
    })
  }
  reportDeniedWatches(mgr, namespace)
  if (options.onReady !== undefined) {
    const { onReady } = options
    mgr.add('ready', async ({ signal: running }) => {
      onReady({ ...mgr.addresses, ...(dns !== undefined && { dns: dns.addresses.map(serverText) }) })
      await untilAborted(running)
    })
  }
  await mgr.run(signal)
}

/** A new zone is served when its first plan is written. */
function servingCompleteZones(metrics: RecordsMetrics, dns: DnsService | undefined): RecordsMetrics {
  if (dns === undefined) return metrics
  return {
    ...metrics,
    synced(zone, isStale) {
      metrics.synced(zone, isStale)
      if (!isStale && zone.provider === EMBEDDED_PROVIDER && zone.zone !== '*') dns.complete(zone.zone)
    },
  }
}

const NO_SWITCHES: Switches = {
  approvedIds: new Set(),
  releasedNames: new Set(),
  subscribe: () => () => undefined,
  isRead: true,
  ready: async () => undefined,
}

/** One watch of DNSEndpoints for all capabilities, with the widest scope that one of them needs. */
function endpointScope({ publish, balance, records }: AppOptions, namespace: string): { namespace?: string } {
  const dnsEndpoints = records?.config.dnsEndpoints
  const isWide =
    publish !== undefined || balance !== undefined || (dnsEndpoints?.enabled === true && dnsEndpoints.namespace === '')
  return isWide ? {} : { namespace }
}
