/**
 * Adds records to a manager: the engine with its guard state and applied plans, and the passes over DNSEndpoints, with
 * Events for held changes and for zones that cannot be read.
 */
import type { Client, Clock, Manager } from '@seamark/kube'
import { type LabelPredicate, parseLabelSelector } from '@seamark/kube/object'
import type { RecordsMetrics } from './records-metrics.ts'
import type { Provider } from '../../providers/provider.ts'
import type { RecordsConfig } from '../config.ts'
import { type KillSwitch, pausedUnless } from '../../process/kill-switch.ts'
import { openEngine } from '../open-engine.ts'
import { isInvalid } from '../../rrset/rrset.ts'
import type { Approvals } from '../../safety/annotated-approvals.ts'
import type { HeldRecords } from '../../safety/held-records.ts'
import type { MassLimits } from '../../safety/mass-limits.ts'
import type { RecordsStores } from '../stores/stores.ts'
import type { Grants } from '@seamark/dialects'
import { tenantRules } from './tenants/tenant-rules.ts'
import type { Endpoint } from './sources/source-index.ts'
import type { Switches } from '../../process/switches.ts'
import { EngineLifetime, type OpenedRecords } from './engine-lifetime.ts'
import { reportBreaker, reportHeld, reportReleased, reportShared, reportUnread } from './events.ts'
import { setUpSync, type SyncOptions } from './sync.ts'

export interface RecordsSetUp {
  readonly config: RecordsConfig
  readonly mode: 'observe' | 'enforce'
  /** The names that a namespace may use. @default all */
  readonly grants?: Grants
  readonly namespace: string
  readonly killSwitch: KillSwitch
  readonly switches: Switches
  readonly stores: RecordsStores
  readonly approvals: Approvals
  readonly massLimits: MassLimits
  readonly metrics: RecordsMetrics
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
  /** In [0, 1): spreads the calls of providers. @default Math.random */
  readonly random?: () => number
  /** The watch of DNSEndpoints, shared with publish and wildcard. */
  readonly endpointScope: { readonly namespace?: string }
  /** For instance the embedded server of this process. */
  readonly providers?: readonly Provider[]
  /** For the reports of publish. */
  readonly heldRecords?: HeldRecords
  /** Settles once it is known whether anything may be written. */
  readonly untilMayWrite?: SyncOptions['untilMayWrite']
}

export function setUpRecords(manager: Manager, setUp: RecordsSetUp): void {
  const { config, mode, namespace, switches, metrics, clock } = setUp
  // Expiry of the lease is computed: a process that was stalled is blocked from writing before any of its timers runs.
  const killSwitch = pausedUnless(setUp.killSwitch, () => manager.isLeading)
  const engine = new EngineLifetime(async (client) => open({ ...setUp, killSwitch }, client))
  manager.add('records engine', async (context) => engine.run(context), { leader: true })
  if (!config.dnsEndpoints.enabled) return
  const scope = config.dnsEndpoints.namespace
  setUpSync(manager, {
    engine,
    killSwitch,
    clock,
    switches,
    approvals: setUp.approvals,
    massLimits: setUp.massLimits,
    endpointScope: setUp.endpointScope,
    isServed: servedBy(config),
    defaultTtl: config.defaultTtl,
    rules: tenantRules(config, setUp.grants ?? [], namespace),
    observer: metrics,
    isWriting: mode === 'enforce',
    ...(setUp.heldRecords !== undefined && { heldRecords: setUp.heldRecords }),
    ...(scope !== '' && { namespace: scope }),
    ...(setUp.untilMayWrite !== undefined && { untilMayWrite: setUp.untilMayWrite }),
    reports(context) {
      const mayReport = (): boolean => mode === 'enforce' && !killSwitch.isPaused
      return {
        held: (held, object) => mayReport() && reportHeld(context, held, object),
        shared: (held, object, holder) => mayReport() && reportShared(context, held, object, holder),
        unread: (unread) => mayReport() && reportUnread(context, namespace, unread),
        breaker: (change) => mayReport() && reportBreaker(context, namespace, change),
        released: (report) => mayReport() && reportReleased(context, namespace, report),
      }
    },
  })
}

async function open(setUp: RecordsSetUp, client: Client): Promise<OpenedRecords> {
  const { config, mode, env, killSwitch, clock, metrics, stores, massLimits, providers, random } = setUp
  const { engine } = await openEngine({
    config,
    mode,
    env,
    client,
    killSwitch,
    clock,
    massLimits,
    ...stores,
    retriesUnavailable: true,
    observer: metrics,
    ...(providers !== undefined && { providers }),
    ...(random !== undefined && { random }),
  })
  return { engine, store: stores.store }
}

/** The filters of ExternalDNS: labels, annotations, one namespace. */
export function servedBy({ dnsEndpoints }: RecordsConfig): (object: Endpoint) => boolean {
  const read = (text: string, hasFreeValues: boolean): LabelPredicate => {
    const selector = parseLabelSelector(text, { hasFreeValues })
    // The configuration was validated when it was loaded.
    return isInvalid(selector) ? () => false : selector
  }
  const labels = read(dnsEndpoints.labelFilter, false)
  const annotations = read(dnsEndpoints.annotationFilter, true)
  return ({ metadata }) =>
    (dnsEndpoints.namespace === '' || metadata.namespace === dnsEndpoints.namespace) &&
    labels(metadata.labels ?? {}) &&
    annotations(metadata.annotations ?? {})
}
