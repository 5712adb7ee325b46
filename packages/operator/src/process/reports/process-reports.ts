/**
 * Reports about the process: the kill switch, the mode and the leadership, when they change. Keeps the manager's configuration
 * object: it is created when absent, so that users find what to annotate, and it records the last mode that wrote.
 *
 * Guarantees: nothing is written in observe mode, and while writing is paused only the Event that reports the pause. Nothing is
 * written when the object exists and the mode is the remembered one.
 */
import { type Client, type Clock, ConfigMap, Lease, type Manager, messageOf, untilAborted } from '@seamark/kube'
import { PROCESS_FIELD_MANAGER } from '../field-manager.ts'
import type { KillSwitchControl } from '../kill-switch.ts'
import type { Notify } from './notices.ts'
import { sendPauseEvent } from './pause-event.ts'
import { CONFIGURATION_OBJECT, type Switches } from '../switches.ts'

export interface ProcessReportDeps {
  readonly namespace: string
  readonly mode: 'observe' | 'enforce'
  readonly killSwitch: KillSwitchControl
  readonly switches: Pick<Switches, 'ready'>
  readonly isWriting: () => boolean
  /** `namespace/name` of the Lease; undefined without election. */
  readonly lease: string | undefined
  /** Create the configuration object, and report the mode and the leadership on it. */
  readonly ownsConfigurationObject: boolean
  readonly notify: Notify
  readonly clock: Clock
  /** The last report of the leadership, which is not repeated when only the settings of a term change. */
  readonly leadership: { reported: string }
}

/** The last mode in which a manager wrote. */
const MODE_ANNOTATION = 'seamark.io/mode'

export function addProcessReports(manager: Manager, deps: ProcessReportDeps): void {
  const { killSwitch, switches, mode, notify, namespace } = deps
  manager.add('pause-report', async ({ signal }) => {
    await switches.ready(signal)
    if (mode === 'observe')
      manager.log.warn(
        { mode },
        'observe mode: decisions are reported, and nothing is written; set mode: enforce to write',
      )
    const report = (isPaused: boolean): void => notify(isPaused ? pauseNotice(killSwitch.by, namespace) : RESUMED)
    if (killSwitch.isPaused && !signal.aborted) report(true)
    const unsubscribe = killSwitch.subscribe(report)
    await untilAborted(signal)
    unsubscribe()
  })
  if (!deps.ownsConfigurationObject) return
  if (mode === 'enforce') addPauseEvent(manager, deps)
  manager
    .keyedController('configuration-object', { concurrency: 1 })
    .triggers((mark) => {
      mark([CONFIGURATION_OBJECT])
      return killSwitch.subscribe(() => mark([CONFIGURATION_OBJECT]))
    })
    .reconcile(async (_, { client, signal, log }) => {
      await switches.ready(signal)
      if (!deps.isWriting()) return
      await keepConfigurationObject(client, deps, signal).catch((error: unknown) =>
        log.warn(
          { error: messageOf(error) },
          `ConfigMap ${namespace}/${CONFIGURATION_OBJECT} is not written; grant get, create and patch on configmaps in namespace ${namespace}`,
        ),
      )
    })
  const { lease } = deps
  if (lease === undefined) return
  manager.add(
    'leadership-report',
    async ({ client, signal }) => {
      await switches.ready(signal)
      const found = await client.find(Lease, lease, { signal }).catch(() => undefined)
      const { holderIdentity = 'this process', leaseTransitions = 0 } = found?.spec ?? {}
      const message = `${holderIdentity} holds Lease ${lease} (transition ${leaseTransitions}) and writes; other replicas wait`
      if (!signal.aborted && deps.leadership.reported !== message) {
        deps.leadership.reported = message
        notify({ reason: 'LeaderElected', severity: 'Normal', message })
      }
      await untilAborted(signal)
    },
    { leader: true },
  )
}

/** A pause that was there at the start was reported by an earlier process. */
function addPauseEvent(manager: Manager, { killSwitch, switches, namespace, clock }: ProcessReportDeps): void {
  manager.add(
    'pause-event',
    async ({ client, signal, log }) => {
      await switches.ready(signal)
      const unsubscribe = killSwitch.subscribe((isPaused) => {
        if (!isPaused) return
        const notice = pauseNotice(killSwitch.by, namespace)
        sendPauseEvent(client, notice, { namespace, nowMs: clock.now(), signal }).catch((error: unknown) =>
          log.warn(
            { error: messageOf(error) },
            'the Event about the pause is not written; grant patch on events.k8s.io events',
          ),
        )
      })
      await untilAborted(signal)
      unsubscribe()
    },
    { leader: true },
  )
}

const RESUMED = {
  reason: 'Resumed',
  severity: 'Normal',
  message: 'writing is not paused any more; what changed meanwhile is written now',
} as const

function pauseNotice(by: readonly string[], namespace: string): Parameters<Notify>[0] {
  const remedy = by.includes('configuration')
    ? 'set pause: false in the configuration file; a flag or a variable needs a restart'
    : `kubectl -n ${namespace} annotate configmap ${CONFIGURATION_OBJECT} seamark.io/pause-`
  return {
    reason: 'Paused',
    severity: 'Warning',
    message: `writing is paused by ${by.join(' and ')}: nothing is written, neither DNS nor Kubernetes; to resume: ${remedy}`,
  }
}

async function keepConfigurationObject(
  client: Client,
  { namespace, mode, notify }: ProcessReportDeps,
  signal: AbortSignal,
): Promise<void> {
  const found = await client.find(ConfigMap, `${namespace}/${CONFIGURATION_OBJECT}`, { signal })
  const before = found?.metadata.annotations?.[MODE_ANNOTATION]
  if (before === mode) return
  const metadata = { namespace, name: CONFIGURATION_OBJECT, annotations: { [MODE_ANNOTATION]: mode } }
  await client.apply(ConfigMap, { metadata }, { fieldManager: PROCESS_FIELD_MANAGER, force: true, signal })
  notify({
    reason: 'ModeChanged',
    severity: 'Normal',
    message: `mode is ${mode}: decisions are written${before === undefined ? '' : `; it was ${before}`}`,
  })
}
