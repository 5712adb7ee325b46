/**
 * The manager's own view of DNS for those who only look: the same providers, guard state and switches, and no write. For
 * `seamark explain` and the page.
 */
import { type Client, NotFound } from '@seamark/kube'
import type { Grants } from '@seamark/dialects'
import { keyOf } from '@seamark/kube/object'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import { createKillSwitch } from '../process/kill-switch.ts'
import type { Provider } from '../providers/provider.ts'
import type { RecordsConfig } from '../records/config.ts'
import type { Owner } from '../records/plan/ownership.ts'
import type { Engine, Planned } from '../records/engine.ts'
import { type OpenedEngine, openEngine } from '../records/open-engine.ts'
import { openRecordsStores, type RecordsStores } from '../records/stores/stores.ts'
import { servedBy } from '../records/sync/set-up.ts'
import { desiredWithinLimits, sourceOf } from '../records/sync/sources/dns-endpoint-source.ts'
import { checkSources } from '../records/sync/sources/source-check.ts'
import { type TenantRules, tenantRules } from '../records/sync/tenants/tenant-rules.ts'
import { ProviderError } from '../rrset/error.ts'
import { massLimits, type SafetyConfig } from '../safety/config.ts'
import type { DnsConfig } from '../serve/config.ts'
import { storedZonesProvider } from '../serve/stored-zones-provider.ts'
import type { PlanFact } from './facts.ts'
import { findPlanFact, type PlanFactDeps } from './plan-fact.ts'
import { findRecordReports } from './record-reports.ts'

export interface PlanReaderDeps {
  readonly client: Client
  /** Of the manager. */
  readonly namespace: string
  /** As the manager uses them: without `records.enabled`, those of the zones of its DNS server. */
  readonly records: RecordsConfig
  readonly dns: Pick<DnsConfig, 'listen' | 'zones' | 'dataDir'>
  readonly mode: 'observe' | 'enforce'
  readonly isPaused: (signal: AbortSignal) => Promise<boolean>
  readonly safety: SafetyConfig
  readonly grants: Grants
  readonly env: Readonly<Record<string, string | undefined>>
  /** The zones of the DNS server. @default what it has stored */
  readonly ownZones?: Provider
}

interface Opened extends OpenedEngine, RecordsStores {
  readonly endpoints: readonly DNSEndpoint[]
  readonly rules: TenantRules
  readonly confirmGone: NonNullable<PlanFactDeps['confirmGone']>
}

export class PlanReader {
  readonly #deps: PlanReaderDeps

  constructor(deps: PlanReaderDeps) {
    this.#deps = deps
  }

  /** Undefined where the name is left to ExternalDNS: no provider, and in no zone of the DNS server. */
  async ofName(host: string, targets: readonly string[], signal: AbortSignal): Promise<PlanFact | undefined> {
    const { records, dns, client } = this.#deps
    if (records.providers.length === 0 && !isInZone(host, dns.zones)) return undefined
    try {
      return await this.#open(signal, async ({ engine, endpoints, rules, plans, confirmGone }) => {
        const deps: PlanFactDeps = {
          engine,
          endpoints,
          defaultTtl: records.defaultTtl,
          rules,
          plans,
          reports: async (requesting, name) => findRecordReports(requesting, name, client, signal),
        }
        return findPlanFact(host, targets, endpoints.length === 0 ? deps : { ...deps, confirmGone }, signal)
      })
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error
      const providerFault = { reason: error.code, message: error.message }
      return { zone: '', pending: [], refused: [], records: [], providerFault }
    }
  }

  /** The pending and the held changes of every zone. */
  async ofZones(signal: AbortSignal): Promise<Planned> {
    return this.#open(signal, async ({ engine, endpoints, rules, confirmGone }) => {
      const desired = desiredWithinLimits(endpoints, this.#deps.records.defaultTtl, rules)
      const present = new Set(endpoints.map((object) => sourceOf(object).uid))
      const requesting = new Set(desired.desired.map(({ source }) => source.uid))
      const sources = async (owned: ReadonlyMap<string, number>) =>
        endpoints.length === 0
          ? { present, gone: new Set<string>(), requesting }
          : { ...(await confirmGone(owned)), requesting }
      return engine.plan({ ...desired, sources }, 'all', signal)
    })
  }

  /** What is in the zones now. `endpoints`: UID → `DNSEndpoint shop/web`. */
  async read<T>(
    body: (
      engine: Pick<Engine, 'targets' | 'view'>,
      owner: Owner,
      endpoints: ReadonlyMap<string, string>,
    ) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    return this.#open(signal, async ({ engine, owner, endpoints }) =>
      body(engine, owner, new Map(endpoints.map((each) => [sourceOf(each).uid, `DNSEndpoint ${keyOf(each)}`]))),
    )
  }

  async #open<T>(signal: AbortSignal, body: (opened: Opened) => Promise<T>): Promise<T> {
    const { client, namespace, records, dns, mode, safety, grants, env, ownZones } = this.#deps
    const stores = openRecordsStores(client, namespace, records.stateFolder)
    const limits = massLimits(safety)
    const isPaused = await this.#deps.isPaused(signal)
    const opened = await openEngine({
      config: records,
      mode,
      env,
      client,
      killSwitch: createKillSwitch(...(isPaused ? ['paused'] : [])),
      massLimits: limits,
      providers: dns.listen.length === 0 ? [] : [ownZones ?? storedZonesProvider({ config: dns, client, namespace })],
      ...stores,
    })
    try {
      const { namespace: only } = records.dnsEndpoints
      const isServed = servedBy(records)
      const options = { signal, ...(only !== '' && { namespace: only }) }
      const { items } = await client.list(DNSEndpoint, options).catch((error: unknown) => {
        // Without the CRD there is none.
        if (error instanceof NotFound) return { items: [] }
        throw error
      })
      const endpoints = items.filter(isServed)
      const present = new Set(endpoints.map((object) => sourceOf(object).uid))
      return await body({
        ...opened,
        ...stores,
        endpoints,
        rules: tenantRules(records, grants, namespace),
        confirmGone: async (owned) =>
          checkSources(client, { owned, present, isServed, now: Date.now(), massLimits: limits }, signal),
      })
    } finally {
      await opened.engine.close()
    }
  }
}

/** `zones`: NAME or NAME=FILE. */
function isInZone(host: string, zones: readonly string[]): boolean {
  const name = host.toLowerCase().replace(/\.$/, '')
  return zones.map(zoneName).some((zone) => name === zone || name.endsWith(`.${zone}`))
}

export function zoneName(text: string): string {
  return (text.split('=', 1)[0] ?? '').toLowerCase().replace(/\.$/, '')
}
