/**
 * Adds records to a manager: the engine with its guard state and applied plans, and the loop over DNSEndpoints, with
 * Events for held changes and for zones that cannot be read.
 */
import {
  type Client,
  type Clock,
  createRecorder,
  type Informer,
  type Manager,
  messageOf,
  type Recorder,
  sleep,
  untilAborted,
} from '@seamark/kube'
import { type LabelPredicate, parseLabelSelector } from '@seamark/kube/object'
import type { DNSEndpoint } from '../../api/dns-endpoint.ts'
import type { RecordsMetrics } from '../../metrics.ts'
import type { Provider } from '../../providers/provider.ts'
import { type Reason, REASONS } from '../../reasons.ts'
import { heldMessage } from '../plan/held-set.ts'
import type { ApprovalReport } from '../state/approve.ts'
import type { RecordsConfig } from '../config.ts'
import type { Engine, Unread } from '../engine.ts'
import { RecordsError } from '../../rrset/error.ts'
import type { Held } from './held-changes.ts'
import { type KillSwitch, pausedUnless } from '../../process/kill-switch.ts'
import { openEngine } from '../open-engine.ts'
import { isInvalid } from '../../rrset/rrset.ts'
import { openRecordsStores, type RecordsStores } from '../state/stores.ts'
import type { Grants } from '../../process/grants.ts'
import { tenantRules } from './tenant-rules.ts'
import type { Endpoint } from './source-index.ts'
import { CONFIGURATION_OBJECT, type Switches } from '../../process/switches.ts'
import { type BreakerReport, runSyncLoop } from './sync-loop.ts'

export interface RecordsSetUp {
  readonly config: RecordsConfig
  readonly mode: 'observe' | 'enforce'
  /** The names that a namespace may use. @default all */
  readonly grants?: Grants
  readonly namespace: string
  readonly killSwitch: KillSwitch
  readonly switches: Switches
  readonly metrics: RecordsMetrics
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
  /** Shared with publish and wildcard. Undefined: DNSEndpoints are not a source. */
  readonly endpoints: Informer<DNSEndpoint> | undefined
  /** For instance the embedded server of this process. */
  readonly providers?: readonly Provider[]
}

const EVENT_SOURCE = 'seamark-records'
const OPEN_RETRY_MS = 15_000

export function setUpRecords(manager: Manager, setUp: RecordsSetUp): void {
  // Expiry of the lease is computed: a process that was stalled is blocked from writing before any of its timers runs.
  const killSwitch = pausedUnless(setUp.killSwitch, () => manager.isLeading)
  manager.add('records', async ({ client, signal }) => run(manager, { ...setUp, killSwitch }, client, signal), {
    leader: true,
  })
}

async function run(manager: Manager, setUp: RecordsSetUp, client: Client, signal: AbortSignal): Promise<void> {
  const { config, mode, killSwitch, clock, endpoints, metrics, namespace } = setUp
  const stores = openRecordsStores(client, namespace, config.stateFolder)
  const engine = await openWhenPossible(manager, setUp, client, stores, signal)
  if (engine === undefined) return
  try {
    if (endpoints === undefined) {
      await untilAborted(signal)
      return
    }
    const recorder = createRecorder({
      client,
      log: manager.log,
      clock,
      reportingController: EVENT_SOURCE,
      reportingInstance: EVENT_SOURCE,
    })
    const sending = recorder.run(signal)
    const mayReport = (): boolean => mode === 'enforce' && !killSwitch.isPaused
    const scope = config.dnsEndpoints.namespace
    await runSyncLoop(
      {
        client,
        engine,
        killSwitch,
        clock,
        informer: endpoints,
        isServed: servedBy(config),
        defaultTtl: config.defaultTtl,
        rules: tenantRules(config, setUp.grants ?? [], namespace),
        switches: setUp.switches,
        log: manager.log,
        observer: metrics,
        isWriting: mode === 'enforce',
        onHeld: (held, object) => mayReport() && reportHeld(recorder, held, object),
        store: stores.store,
        onApproval: (report, isDeprecatedForm) =>
          mayReport() && reportApproval(recorder, namespace, report, isDeprecatedForm),
        onBreaker: (report) => mayReport() && reportBreaker(recorder, namespace, report),
        onUnread: (unread) => mayReport() && reportUnread(recorder, namespace, unread),
        ...(scope === '' ? {} : { namespace: scope }),
      },
      signal,
    )
    await sending
  } finally {
    await engine.close()
  }
}

/** A missing Secret is retried: a fault of one capability does not end the others. */
async function openWhenPossible(
  { log }: Manager,
  { config, mode, env, killSwitch, clock, metrics, providers }: RecordsSetUp,
  client: Client,
  stores: RecordsStores,
  signal: AbortSignal,
): Promise<Engine | undefined> {
  while (!signal.aborted) {
    try {
      const { engine } = await openEngine({
        config,
        mode,
        env,
        client,
        killSwitch,
        clock,
        ...stores,
        retriesUnavailable: true,
        observer: metrics,
        ...(providers !== undefined && { providers }),
      })
      return engine
    } catch (error) {
      if (error instanceof RecordsError) throw error
      log.warn({ reason: messageOf(error), retryMs: OPEN_RETRY_MS }, 'records cannot start yet')
      await sleep(clock, OPEN_RETRY_MS, signal)
    }
  }
  return undefined
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

function reportHeld(recorder: Recorder, held: Held, object: Endpoint | undefined): void {
  const { name, type, code } = held
  if (object === undefined) return
  const { name: objectName = '', namespace = '', uid = '' } = object.metadata
  recorder.record({
    regarding: { apiVersion: 'externaldns.k8s.io/v1alpha1', kind: 'DNSEndpoint', name: objectName, namespace, uid },
    type: 'Warning',
    reason: code,
    action: 'PlanRecords',
    note: `${name} ${type}: ${REASONS[code]}: ${heldMessage(held)}`,
  })
}

function reportApproval(
  recorder: Recorder,
  namespace: string,
  { id, result, covered }: ApprovalReport,
  isDeprecatedForm: boolean,
): void {
  if (result === 'active') return
  const approved = `${covered.length} held changes are approved for one hour`
  const note = isDeprecatedForm
    ? `seamark.io/release: ${id}: ${approved}; later ones are not. The annotation is deprecated: use seamark approve ID, or seamark.io/approve-held: ID`
    : result === 'approved'
      ? `seamark.io/approve-held: ${id}: ${approved}`
      : `seamark.io/approve-held: ${id}: ${REASONS[APPROVAL_CODES[result]]}; \`seamark approve\` lists what is held`
  recorder.record({
    regarding: { apiVersion: 'v1', kind: 'ConfigMap', name: CONFIGURATION_OBJECT, namespace },
    type: result === 'approved' && !isDeprecatedForm ? 'Normal' : 'Warning',
    reason: isDeprecatedForm ? 'ReleaseDeprecated' : APPROVAL_CODES[result],
    action: 'ApproveHeldChanges',
    note,
  })
}

function reportBreaker(
  recorder: Recorder,
  namespace: string,
  { provider, zone, code, why, changes, isOpen }: BreakerReport & { readonly isOpen: boolean },
): void {
  recorder.record({
    regarding: { apiVersion: 'v1', kind: 'ConfigMap', name: CONFIGURATION_OBJECT, namespace },
    type: isOpen ? 'Warning' : 'Normal',
    reason: code,
    action: isOpen ? 'OpenBreaker' : 'CloseBreaker',
    note: isOpen
      ? `zone ${zone} of ${provider}: ${changes} changes are held: ${why}`
      : `zone ${zone} of ${provider}: the breaker is closed again; nothing is held by it`,
  })
}

const APPROVAL_CODES = {
  approved: 'HeldChangesApproved',
  used: 'ApprovalUsed',
  expired: 'ApprovalExpired',
  unknown: 'ApprovalUnknown',
} as const satisfies Record<Exclude<ApprovalReport['result'], 'active'>, Reason>

/** Reported on the manager's configuration object, because a zone has no object of its own. */
function reportUnread(recorder: Recorder, namespace: string, { provider, zone, code, why }: Unread): void {
  recorder.record({
    regarding: { apiVersion: 'v1', kind: 'ConfigMap', name: CONFIGURATION_OBJECT, namespace },
    type: 'Warning',
    reason: code,
    action: 'ReadZone',
    note: `zone ${zone} of ${provider}: ${REASONS[code]}: ${why}`,
  })
}
