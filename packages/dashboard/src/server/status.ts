/**
 * The same value as the page's for a command: from the objects of the cluster, with the rights of whoever asks, as `seamark explain`
 * reads them. The zones of the manager's own DNS server are read where it stores them.
 */
import { randomUUID } from 'node:crypto'
import { createDnsClient, type Fqdn, fqdn, type Zone } from '@seamark/dns'
import { type Cluster, ConfigMap, Event, Lease } from '@seamark/kube'
import {
  CachedHosts,
  CONFIGURATION_OBJECT,
  type DnsConfig,
  findHostAnswers,
  findManagerLease,
  isPausedBy,
  loadStoredZone,
  type PublishOptions,
  type StoredZonesProviderOptions,
  zoneName,
} from '@seamark/operator'
import type { ManagerView, State } from '../api/state.ts'
import { EventLog, trimEvent } from '../view/event-log.ts'
import { Overview } from '../view/overview.ts'
import { OwnZones } from '../view/own-zones.ts'
import { dataAge } from './data-age.ts'
import { readHeld } from './held-source.ts'

export interface StatusOptions {
  readonly cluster: Cluster
  readonly namespace: string
  readonly version: string
  readonly mode: 'observe' | 'enforce'
  readonly isPaused: boolean
  readonly capabilities: readonly string[]
  /** Undefined: publish is off. */
  readonly publish: PublishOptions | undefined
  /** `namespace/name`; undefined: no election. */
  readonly lease: string | undefined
  /** Undefined: no records are written. */
  readonly stateFolder: string | undefined
  readonly zones: StoredZonesProviderOptions['config'] & Pick<DnsConfig, 'listen' | 'nameServers'>
  readonly hasOnlyOwnZones: boolean
}

export interface OpenStatus {
  /** Reads what is not watched, and returns the state now. */
  read(): Promise<State>
  close(): Promise<void>
}

export async function openStatus(options: StatusOptions, signal: AbortSignal): Promise<OpenStatus> {
  const { cluster, namespace } = options
  const stopping = new AbortController()
  const running = cluster.informers.start(AbortSignal.any([signal, stopping.signal]))
  const hosts = new CachedHosts({
    informers: cluster.informers,
    hasFleet: true,
    hasBalance: true,
    publish: options.publish,
    endpointScope: {},
  })
  const stop = hosts.start(() => undefined)
  const log = new EventLog()
  const age = dataAge(cluster.informers)
  const stored = new StoredZones(options)
  const hasZones = options.zones.zones.length > 0
  let view = managerView(options, { pausedBy: [], leader: undefined })
  const overview = new Overview({
    hosts,
    zones: hasZones ? new OwnZones(stored, 'the DNS server of the manager') : undefined,
    log,
    manager: () => ({ ...view, data: age() }),
    hasOnlyOwnZones: hasZones && options.hasOnlyOwnZones,
    epoch: randomUUID().slice(0, 8),
    now: () => Date.now(),
  })
  await hosts.synced(signal)
  await readEvents(cluster, log, signal)
  return {
    async read() {
      await stored.load(signal)
      const { held, zones } = await readHeld(cluster.client, namespace, options.stateFolder).catch(() => NONE)
      overview.setHeld(held, zones)
      view = await readManager(options, signal)
      overview.update()
      return overview.state()
    },
    async close() {
      stop()
      stopping.abort()
      await running
    },
  }
}

const NONE = { held: [], zones: [] }

/** Those of the last hour; without the right to read them there are none. */
async function readEvents({ client }: Cluster, log: EventLog, signal: AbortSignal): Promise<void> {
  const { items } = await client.list(Event, { signal }).catch(() => ({ items: [] }))
  for (const event of items.map(trimEvent)) log.note(event)
}

type ManagerFacts = Pick<ManagerView, 'pausedBy'> & { readonly leader: string | undefined }

function managerView(
  { version, namespace, mode, capabilities }: StatusOptions,
  { pausedBy, leader }: ManagerFacts,
): Omit<ManagerView, 'data'> {
  return {
    version,
    namespace,
    mode,
    pausedBy,
    isLeading: false,
    capabilities,
    ...(leader !== undefined && { leader }),
  }
}

async function readManager(options: StatusOptions, signal: AbortSignal): Promise<Omit<ManagerView, 'data'>> {
  const { cluster, namespace, lease, isPaused } = options
  const { client } = cluster
  const [held, switches] = await Promise.all([
    lease === undefined ? undefined : client.find(Lease, lease, { signal }).catch(() => undefined),
    client.find(ConfigMap, `${namespace}/${CONFIGURATION_OBJECT}`, { signal }).catch(() => undefined),
  ])
  const pausedBy = [
    ...(isPaused ? ['configuration'] : []),
    ...(isPausedBy(switches?.metadata.annotations) ? ['annotation'] : []),
  ]
  const holder = held?.spec?.holderIdentity
  return managerView(options, { pausedBy, leader: holder === '' ? undefined : holder })
}

/** As the manager has stored them; one that cannot be read has a fault. */
class StoredZones {
  readonly #options: StatusOptions
  readonly #zones = new Map<Fqdn, Zone>()
  readonly #faults = new Map<Fqdn, string>()

  constructor(options: StatusOptions) {
    this.#options = options
  }

  async load(signal: AbortSignal): Promise<void> {
    const { zones: config, cluster, namespace } = this.#options
    if (config.zones.length === 0) return
    const faults = await this.#findSilent(signal)
    for (const text of config.zones) {
      const origin = fqdn(zoneName(text))
      try {
        const zone = await loadStoredZone(origin, { config, client: cluster.client, namespace })
        // An unchanged zone stays the same value.
        if (this.#zones.get(origin)?.serial !== zone.serial) this.#zones.set(origin, zone)
        this.#faults.delete(origin)
        const fault = faults.get(origin)
        if (fault === undefined) continue
        this.#zones.delete(origin)
        this.#faults.set(origin, fault)
      } catch (error) {
        this.#faults.set(origin, error instanceof Error ? error.message : String(error))
      }
    }
  }

  /** Zones that no server of the manager answers for now, and why: what is stored is no answer then. */
  async #findSilent(signal: AbortSignal): Promise<ReadonlyMap<Fqdn, string>> {
    const { zones: dns, cluster, lease: key } = this.#options
    const lease =
      key === undefined
        ? undefined
        : await findManagerLease(cluster.client, key, { isExact: true, nowMs: Date.now(), signal })
    const client = createDnsClient({ tries: 2, timeoutMs: 500 })
    try {
      const asked = await Promise.all(
        dns.zones.map(async (text): Promise<[Fqdn, string][]> => {
          const options = { configured: [], dns, lease, primaries: () => [] }
          const answers = await findHostAnswers(zoneName(text), options, client, signal)
          const faults = answers.flatMap(({ server, fault }) => (fault === undefined ? [] : [`${server}: ${fault}`]))
          const isSilent = answers.length > 0 && faults.length === answers.length
          return isSilent ? [[fqdn(zoneName(text)), faults.join('; ')]] : []
        }),
      )
      return new Map(asked.flat())
    } finally {
      await client.close()
    }
  }

  zones() {
    return this.#options.zones.zones.map((text) => {
      const zone = fqdn(zoneName(text))
      const fault = this.#faults.get(zone)
      return { zone, isServed: this.#zones.has(zone), ...(fault !== undefined && { fault }) }
    })
  }

  findZone(zone: Fqdn): Zone | undefined {
    return this.#zones.get(zone)
  }
}
