/** Puts the capabilities together: the only place that knows all of them. */
import { type Clock, type Logger, type Manager, reportingAs, untilAborted } from '@seamark/kube'
import { nameRule } from '@seamark/dialects'
import { setUpBalance } from '../balance/set-up.ts'
import { DNSEndpoint, trimEndpoint } from '../api/dns-endpoint.ts'
import { type MemberRegistry, setUpMembers } from '../clusters/member-registry.ts'
import { createClaimedHosts } from '../hosts/claimed-hosts.ts'
import { type HostSources, joinHostSources } from '../hosts/host-sources.ts'
import { ROOT_KINDS } from '../fleet/roots/root-kinds.ts'
import { setUpFleet } from '../fleet/set-up.ts'
import { reportDeniedWatches } from '../process/reports/denied-watches.ts'
import { serverText } from '@seamark/dns'
import { createRecordsMetrics, type RecordsMetrics } from '../records/sync/records-metrics.ts'
import { FIELD_MANAGER } from '../process/field-manager.ts'
import { setUpPublish } from '../publish/set-up.ts'
import { conversionAddress } from '../process/admission-config.ts'
import { type KillSwitchControl, pausedUntil } from '../process/kill-switch.ts'
import { openRecordsStores, type RecordsStores } from '../records/stores/stores.ts'
import { setUpRecords } from '../records/sync/set-up.ts'
import { type DnsService, EMBEDDED_PROVIDER } from '../serve/dns-service.ts'
import { findServersBy, type OwnServers } from '../authority/name-servers.ts'
import { ownServers } from '../serve/own-servers.ts'
import { isObserved } from '../publish/report/report.ts'
import { observedStore } from '../safety/held-store.ts'
import { HeldRecords } from '../safety/held-records.ts'
import { setUpSafety } from './safety.ts'
import { type Switches, switchesUntil } from '../process/switches.ts'
import { setUpWildcard } from '../wildcard/controller.ts'
import { gateWrites } from '../process/write-gate.ts'
import { addCrdInstaller } from './crd-installer.ts'
import type { AppOptions, OpenPage } from './options.ts'
import { setUpProcess, setUpServing } from './process.ts'

interface Parts {
  readonly dns: DnsService | undefined
  readonly page: OpenPage | undefined
  /** Call when what guards hold was stored. */
  readonly onHeld: () => void
  readonly log: Logger
  readonly clock: Clock
  readonly killSwitch: KillSwitchControl
  /** Throws while nothing may be written. */
  readonly checkWrite: () => void
  /** The webhooks that the manager serves. */
  readonly serving: AppOptions['admission']
}

/**
 * Adds the capabilities that the options contain to the manager, and what they share. `current` returns the options that are in
 * effect: each control is declared from them.
 */
export function setUpCapabilities(mgr: Manager, current: () => AppOptions, parts: Parts): void {
  const { dns, page } = parts
  const options = current()
  const switches = setUpServing(mgr, options, parts)
  const members = new Members(mgr, current, parts)
  const leadership = { reported: '' }
  if (options.onReady !== undefined) {
    const { onReady } = options
    mgr.add('ready', async ({ signal: running }) => {
      onReady({
        ...mgr.addresses,
        ...(dns !== undefined && { dns: dns.addresses.map(serverText) }),
        ...(page?.url !== undefined && { page: page.url }),
      })
      await untilAborted(running)
    })
  }
  mgr.control((control, ended) => setUpControl(control, current(), { ...parts, switches, members, leadership, ended }))
}

interface ControlParts extends Parts {
  readonly switches: Switches
  readonly members: Members
  readonly leadership: { reported: string }
  /** Aborts with the term. */
  readonly ended: AbortSignal
}

/**
 * Member clusters, for all capabilities that use them: their connections and caches outlive a term. Which Secrets register them
 * is read again in each.
 */
class Members {
  readonly #mgr: Manager
  readonly #options: () => AppOptions
  readonly #parts: Parts
  #registry: MemberRegistry | undefined

  constructor(mgr: Manager, options: () => AppOptions, parts: Parts) {
    this.#mgr = mgr
    this.#options = options
    this.#parts = parts
  }

  renew(): void {
    this.#registry?.renew()
  }

  get(): MemberRegistry {
    const { namespace, allowLoopback = false, connectMember } = this.#options()
    const { checkWrite, clock, log } = this.#parts
    this.#registry ??= setUpMembers(this.#mgr, {
      namespace,
      allowLoopback,
      denyAddresses: () => this.#options().denyAddresses ?? [],
      guard: (member) => gateWrites(member, checkWrite),
      connect:
        connectMember === undefined
          ? (config, name) => this.#mgr.connect(config, name)
          : (config, name) => connectMember(config, { name, clock, log }),
    })
    return this.#registry
  }
}

/** What one term of leadership does. */
function setUpControl(
  mgr: Manager,
  options: AppOptions,
  { dns, clock, killSwitch, serving, members, leadership, ended, onHeld, switches: always }: ControlParts,
): void {
  const { publish, wildcard, fleet, records, namespace, mode, grants = [] } = options
  const { registry } = mgr.metrics
  members.renew()
  const switches = switchesUntil(always, ended)
  const { peers, common } = setUpProcess(mgr, options, { dns, clock, killSwitch, switches, leadership })
  const stores: RecordsStores | undefined =
    records === undefined
      ? undefined
      : observedStores(openRecordsStores(mgr.client, namespace, records.config.stateFolder), onHeld)
  const { approvals, heldObjects, massLimits } = setUpSafety(mgr, options, {
    ...common,
    switches,
    records: stores?.store,
    onHeld,
  })
  const guarded = { ...common, heldObjects, massLimits }
  const findNameFault = nameRule(grants)
  const heldRecords =
    records?.config.dnsEndpoints.enabled === true
      ? new HeldRecords(
          (object, reason) =>
            reason === 'NoMatchingZone' &&
            records.leavesOtherZones === true &&
            (fleet?.answeredElsewhere === true || isObserved(object)),
        )
      : undefined
  mgr.cache(DNSEndpoint, { projection: trimEndpoint, keepManagedFieldsOf: FIELD_MANAGER })
  const reporting = (capability: string): Manager => reportingAs(mgr, options.eventSource ?? `seamark-${capability}`)
  if (options.installsCrds ?? true)
    addCrdInstaller(mgr, {
      ...common,
      fleet: fleet !== undefined,
      balance: options.balance !== undefined,
      conversion: serving === undefined ? undefined : conversionAddress(serving.config, namespace),
    })
  const hostSources: HostSources[] = []
  if (publish !== undefined) {
    const { reportsInitialFindings = true } = options
    const parts = { fleet, balance: options.balance !== undefined }
    const ofPublish = setUpPublish(reporting('publish'), {
      ...guarded,
      ...(heldRecords !== undefined && { heldRecords }),
      options: { ...publish, grants, parts },
      reportsInitialFindings,
    })
    if (ofPublish !== undefined) hostSources.push(ofPublish)
  }
  if (wildcard !== undefined) {
    setUpWildcard(reporting('wildcard'), {
      ...guarded,
      options: wildcard,
      registry: members.get(),
      endpointScope: endpointScope(options, namespace),
    })
  }
  const ownServersOf: OwnServers = (name) =>
    dns === undefined ? [] : ownServers({ addresses: dns.addresses, zones: () => dns.zones() }, name)
  if (fleet !== undefined)
    setUpFleet(reporting('fleet'), {
      ...guarded,
      options: fleet,
      findNameFault,
      registry: members.get(),
      dnsClient: options.dnsClient,
      ownServers: ownServersOf,
      ...(dns !== undefined &&
        records?.leavesOtherZones === true &&
        !fleet.answeredElsewhere && { zones: () => dns.zones().map(({ zone }) => zone) }),
    })
  if (options.balance !== undefined) {
    const kinds = ROOT_KINDS.map(({ kind }) => kind)
    if (fleet !== undefined) hostSources.push(createClaimedHosts(mgr.cluster.informers, { kinds, findNameFault }))
    setUpBalance(reporting('balance'), {
      ...common,
      ...options.balance,
      findNameFault,
      namespace,
      hasFleet: fleet !== undefined,
      ...((heldRecords === undefined || records?.leavesOtherZones === true) && {
        removals: { heldObjects, massLimits },
      }),
      hostSources: joinHostSources(hostSources),
      guard: { allowLoopback: options.allowLoopback ?? false, deny: options.denyAddresses ?? [] },
      ownZones: dns?.zones().map(({ zone }) => zone) ?? [],
      dnsClient: options.dnsClient,
      findServers: findServersBy(
        { configured: fleet?.dnsServers ?? [], ownServers: ownServersOf, resolver: options.balance.config.resolver },
        () => performance.now(),
      ),
      ...(serving !== undefined && { webhooks: { hasAdmission: mode === 'enforce' } }),
    })
  }
  if (records !== undefined && stores !== undefined) {
    const { dnsEndpoints } = records.config
    setUpRecords(mgr, {
      ...records,
      grants,
      mode,
      namespace,
      untilMayWrite: common.untilMayWrite,
      killSwitch: pausedUntil(killSwitch, peers.done, ended),
      switches,
      stores,
      approvals,
      massLimits,
      ...(heldRecords !== undefined && { heldRecords }),
      clock,
      metrics: servingCompleteZones(
        createRecordsMetrics(registry, () => clock.now()),
        dns,
      ),
      endpointScope: endpointScope(options, dnsEndpoints.namespace),
    })
  }
  heldObjects.start(mgr)
  reportDeniedWatches(mgr, namespace)
}

function observedStores(stores: RecordsStores, onChange: () => void): RecordsStores {
  return { ...stores, store: observedStore(stores.store, onChange) }
}

/** A new zone is served when its first plan is written: not while the manager observes or is paused. */
function servingCompleteZones(metrics: RecordsMetrics, dns: DnsService | undefined): RecordsMetrics {
  if (dns === undefined) return metrics
  return {
    ...metrics,
    written({ provider, zone }) {
      if (provider === EMBEDDED_PROVIDER && zone !== '*') dns.complete(zone)
    },
  }
}

/** One watch of DNSEndpoints for all capabilities, with the widest scope that one of them needs. */
export function endpointScope({ publish, balance, records }: AppOptions, namespace: string): { namespace?: string } {
  const dnsEndpoints = records?.config.dnsEndpoints
  const isWide =
    publish !== undefined || balance !== undefined || (dnsEndpoints?.enabled === true && dnsEndpoints.namespace === '')
  return isWide ? {} : { namespace }
}
