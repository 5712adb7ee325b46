/**
 * Puts records into a manager: the engine, the kill switch and the release annotation on the manager's configuration
 * object (ConfigMap `seamark` in its namespace), and the loop over DNSEndpoints.
 */
import { type Clock, ConfigMap, createRecorder, type Informers, type Manager } from '@seamark/kube'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import type { Provider } from '../providers/provider.ts'
import { REASONS } from '../reasons.ts'
import type { RecordsConfig } from './config.ts'
import { configMapGuardStore } from './config-map-store.ts'
import { fileGuardStore } from './guard-state.ts'
import { isPausedBy, type KillSwitchControl } from './kill-switch.ts'
import { openEngine } from './open-engine.ts'
import { canonicalName, isInvalid } from './record-set.ts'
import { runSyncLoop } from './sync-loop.ts'

export interface RecordsSetUp {
  readonly config: RecordsConfig
  readonly mode: 'observe' | 'enforce'
  readonly namespace: string
  readonly killSwitch: KillSwitchControl
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
  /** For instance the embedded server of this process. */
  readonly providers?: readonly Provider[]
}

/** The manager's configuration object. */
export const CONFIGURATION_OBJECT = 'seamark'
const RELEASE_ANNOTATION = 'seamark.io/release'
const EVENT_SOURCE = 'seamark-records'

export function setUpRecords(manager: Manager, setUp: RecordsSetUp): void {
  const { config, killSwitch, namespace, clock } = setUp
  const { informers } = manager.cluster
  killSwitch.set('configuration', config.pause)
  const { labelFilter, annotationFilter } = config.dnsEndpoints
  const scope = {
    ...(config.dnsEndpoints.namespace === '' ? {} : { namespace: config.dnsEndpoints.namespace }),
    ...(labelFilter === '' ? {} : { labelSelector: labelFilter }),
  }
  const released = watchSwitches(informers, namespace, killSwitch)
  const informer = config.dnsEndpoints.enabled ? informers.informer(DNSEndpoint, scope) : undefined
  manager.add(
    'records',
    async (signal, client) => {
      const store =
        config.stateFolder === ''
          ? configMapGuardStore(client, `${namespace}/seamark-guard-state`)
          : fileGuardStore(config.stateFolder)
      const { engine } = await openEngine({
        config,
        mode: setUp.mode,
        env: setUp.env,
        client,
        store,
        killSwitch,
        clock,
        ...(setUp.providers === undefined ? {} : { providers: setUp.providers }),
      })
      try {
        if (informer === undefined) await untilAborted(signal)
        else {
          const recorder = createRecorder({
            client,
            log: manager.log,
            clock,
            reportingController: EVENT_SOURCE,
            reportingInstance: EVENT_SOURCE,
          })
          const sending = recorder.run(signal)
          await runSyncLoop(
            {
              client,
              informer,
              engine,
              killSwitch,
              defaultTtl: config.defaultTtl,
              annotationFilter,
              released,
              log: manager.log,
              clock,
              isWriting: setUp.mode === 'enforce',
              onRefused: ({ name, type, code, why }, object) => {
                if (object === undefined || killSwitch.isPaused) return
                recorder.record({
                  regarding: referenceTo(object),
                  type: 'Warning',
                  reason: code,
                  action: 'PlanRecords',
                  note: `${name} ${type}: ${REASONS[code]}: ${why}`,
                })
              },
            },
            signal,
          )
          await sending
        }
      } finally {
        await engine.close()
      }
    },
    { leader: true },
  )
}

function referenceTo({
  metadata,
}: {
  readonly metadata: { readonly name?: string; readonly namespace?: string; readonly uid?: string }
}) {
  const { name = '', namespace = '', uid = '' } = metadata
  return { apiVersion: 'externaldns.k8s.io/v1alpha1', kind: 'DNSEndpoint', name, namespace, uid }
}

/** Follows the annotations of the configuration object; returns what was released. */
export function watchSwitches(
  informers: Informers,
  namespace: string,
  killSwitch: KillSwitchControl,
): () => ReadonlySet<string> {
  let released: ReadonlySet<string> = new Set()
  informers
    .informer(ConfigMap, { namespace, fieldSelector: `metadata.name=${CONFIGURATION_OBJECT}` })
    .subscribe((change) => {
      const annotations = change.type === 'deleted' ? undefined : change.object.metadata.annotations
      killSwitch.set('annotation', isPausedBy(annotations))
      released = new Set(
        (annotations?.[RELEASE_ANNOTATION] ?? '').split(',').flatMap((text) => {
          const name = canonicalName(text.trim())
          return isInvalid(name) ? [] : [name]
        }),
      )
    })
  return () => released
}

async function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
