/** The manager: its server, its gate of writes and its DNS service around the capabilities. */
import { createLogger, type Logger, type Manager, manager, messageOf, Secret, systemClock } from '@seamark/kube'
import { processGrants } from '@seamark/dialects'
import type { Immutable } from '@seamark/kube/object'
import { serverText } from '@seamark/dns'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import { loadBalancerCrds } from '../api/crds/dns-load-balancer-crds.ts'
import { limitHeapGrowth } from '../process/heap-growth.ts'
import { FIELD_MANAGER } from '../process/field-manager.ts'
import { RecordsConfig } from '../records/config.ts'
import { certificatePaths, webhookServer } from '../process/admission-config.ts'
import { setUpNameAdmission } from '../process/name-admission.ts'
import { judgedSources } from '../publish/decide/requested-names.ts'
import { requestedBy } from '../records/sync/sources/dns-endpoint-source.ts'
import { createKillSwitch } from '../process/kill-switch.ts'
import { isPauseEvent } from '../process/reports/pause-event.ts'
import { type DnsService, openDnsService } from '../serve/dns-service.ts'
import { findZoneFolder } from '../serve/data-dir.ts'
import { DNS_SERVERS_ANNOTATION } from '../process/manager-lease.ts'
import { gateWrites, WriteRefused } from '../process/write-gate.ts'
import { massLimits } from '../safety/config.ts'
import { endpointScope, setUpCapabilities } from './capabilities.ts'
import { ownZonesRecords } from './own-zones.ts'
import type { AppOptions, OpenPage, RecordsOptions } from './options.ts'

/** A stop has to complete within 5 s, also when a part hangs. */
const GRACE_MS = 4_500

export async function runApp(options: AppOptions, signal: AbortSignal): Promise<void> {
  const { namespace, mode, clock = systemClock } = options
  limitHeapGrowth()
  let current = withGrants(options)
  const log = options.log ?? createLogger({ level: 'silent' })
  const killSwitch = createKillSwitch(...(options.isPaused === true ? ['configuration'] : []))
  // In observe mode nothing may be refused, and the certificate could not be written.
  const admission = mode === 'enforce' ? options.admission : undefined
  const crds = options.balance === undefined ? [] : loadBalancerCrds().map(({ metadata }) => metadata.name ?? '')
  const serving = admission ?? (await storedConversion(options, log, signal))
  let answering: DnsService | undefined
  const mgr: Manager = await manager({
    cluster: options.cluster,
    fieldManager: FIELD_MANAGER,
    log,
    clock,
    grace: GRACE_MS,
    ...(options.safety !== undefined && { removalLimits: massLimits(options.safety) }),
    ...(options.leader !== undefined && {
      leader: { ...options.leader, annotations: () => leaseAnnotations(answering) },
    }),
    ...(options.metrics !== undefined && { metrics: options.metrics }),
    ...(options.sharedMetrics !== undefined && { sharedMetrics: options.sharedMetrics }),
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
    setUpNameAdmission(mgr, () => current.grants ?? [], [
      { kind: DNSEndpoint, names: (object) => requestedBy(object as Immutable<DNSEndpoint>) },
      ...(options.publish === undefined ? [] : judgedSources(options.publish)),
    ])
  // Before the caches: a zone that is stored is answered while the API server is down.
  const copyFolder = await copyFolderOf(options, log)
  const dns =
    options.dns === undefined
      ? undefined
      : await openDnsService({
          ...options.dns,
          ...(copyFolder !== undefined && { copyFolder }),
          client: options.cluster.client,
          namespace,
          isLeading: () => mgr.isLeading,
          isWriting: () => mgr.isLeading && mode === 'enforce' && !killSwitch.isPaused,
          waitsForRecords: true,
          log,
          clock,
        })
  answering = dns
  for (const [name, check] of Object.entries(options.readiness ?? {})) mgr.check('readyz', name, check)
  const heldListeners = new Set<() => void>()
  let page: OpenPage | undefined
  try {
    page = await options.page?.({
      manager: mgr,
      options: () => withRecords(current, dns),
      dns,
      killSwitch,
      endpointScope: endpointScope(withRecords(current, dns), namespace),
      onHeldChange: (listener) => void heldListeners.add(listener),
    })
    const onHeld = (): void => {
      for (const listener of heldListeners) listener()
    }
    const parts = { dns, page, onHeld, log, clock, killSwitch, checkWrite, serving }
    setUpCapabilities(mgr, () => withRecords(current, dns), parts)
    const { changes } = options
    changes?.onChange((next, settings) => {
      current = { ...withGrants(next), changes }
      killSwitch.set('configuration', next.isPaused === true)
      if (next.dns !== undefined) dns?.configure(next.dns.config)
      if (settings.some((path) => path !== 'pause')) mgr.renewControl(`settings changed: ${settings.join(', ')}`)
    })
    await mgr.run(signal)
  } finally {
    await page?.close()
    await dns?.close()
  }
}

/** Where `seamark tree` and `seamark explain` ask what clients get. */
function leaseAnnotations(dns: DnsService | undefined): Record<string, string> {
  if (dns === undefined) return {}
  return { [DNS_SERVERS_ANNOTATION]: dns.addresses.map((address) => serverText(address)).join(',') }
}

/** What every capability gets is the table of the process. */
function withGrants({ grants = [], ...options }: AppOptions): AppOptions {
  return { ...options, grants: processGrants(grants, options.namespace) }
}

/** Of zones in ConfigMaps. */
async function copyFolderOf({ dns }: AppOptions, log: Logger): Promise<string | undefined> {
  if (dns === undefined || dns.config.dataDir !== '') return undefined
  const found = await findZoneFolder({ env: dns.env, configured: dns.config.copyDir, setting: 'dns.copyDir' })
  if (found.folder === undefined)
    log.warn(
      { why: found.why },
      'zones have no local copy: after a restart while the API server is away their names are REFUSED until it is back; set dns.copyDir to a folder that outlives the process, in a Pod that of a mounted volume; or dns.dataDir, which has the zones in place of the ConfigMaps',
    )
  return found.folder
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

/** Records with the provider of the DNS server; without `records.enabled`, of that provider only, with the same settings. */
function withRecords(options: AppOptions, dns: DnsService | undefined): AppOptions {
  const { records, dns: server, ...rest } = options
  const enabled = records?.config.enabled === true ? records : undefined
  if (dns === undefined || server === undefined) return enabled === undefined ? rest : { ...rest, records: enabled }
  const chosen = enabled ?? recordsOfOwnZones(records, server.env)
  return { ...rest, dns: server, records: { ...chosen, providers: [...(chosen.providers ?? []), dns.provider] } }
}

function recordsOfOwnZones(given: RecordsOptions | undefined, env: RecordsOptions['env']): RecordsOptions {
  const { config, ...rest } = given ?? { config: RecordsConfig.parse({}), env }
  return { ...rest, config: ownZonesRecords(config), leavesOtherZones: true }
}
