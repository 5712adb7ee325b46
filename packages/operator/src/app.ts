/**
 * The manager as a whole: which capabilities run, on which cluster, under which lease. `seamark run` and `seamark contour-plus`
 * are two ways to fill in these options; tests are a third.
 */
import { type Clock, type Cluster, createLogger, type Logger, manager, systemClock } from '@seamark/kube'
import { createProductMetrics } from './metrics.ts'
import { FIELD_MANAGER } from './publish/annotation-keys.ts'
import type { PublishOptions } from './publish/options.ts'
import { setUpPublish } from './publish/set-up.ts'
import type { Provider } from './providers/provider.ts'
import type { RecordsConfig } from './records/config.ts'
import { createKillSwitch } from './records/kill-switch.ts'
import { setUpRecords, watchSwitches } from './records/set-up.ts'
import type { WildcardOptions } from './wildcard/options.ts'
import { setUpWildcard } from './wildcard/set-up.ts'

interface RecordsOptions {
  readonly config: RecordsConfig
  readonly env: Readonly<Record<string, string | undefined>>
  /** Beside those of the configuration: the embedded server of this process. */
  readonly providers?: readonly Provider[]
}

export interface AppOptions {
  readonly cluster: Cluster
  readonly publish?: PublishOptions
  readonly wildcard?: WildcardOptions
  readonly records?: RecordsOptions
  /** observe decides and reports, and writes nothing. */
  readonly mode: 'observe' | 'enforce'
  /** The manager's own: Secrets of registered clusters, wildcards, state. */
  readonly namespace: string
  /** @default no election: this process writes */
  readonly leader?: { readonly lease: string; readonly namespace: string }
  /** `:8180`; undefined serves none. */
  readonly metrics?: string
  readonly probes?: string
  readonly log?: Logger
  readonly clock?: Clock
  /** Tell users also what was already so at the start. @default true */
  readonly isInitialTold?: boolean
  /** Registered clusters may be on this machine: for the playground and tests. @default false */
  readonly allowLoopback?: boolean
  /** Obey `seamark.io/pause` on the ConfigMap `seamark` of the manager's namespace. @default true */
  readonly hasPause?: boolean
  /** The servers listen. */
  readonly onReady?: (addresses: { readonly metrics?: string; readonly probes?: string }) => void
}

/** A stop has to end within 5 s, whatever hangs. */
const GRACE_MS = 4_500

export async function runApp(options: AppOptions, signal: AbortSignal): Promise<void> {
  const { cluster, publish, wildcard, namespace, mode, clock = systemClock } = options
  const log = options.log ?? createLogger({ level: 'silent' })
  const mgr = await manager({
    cluster,
    fieldManager: FIELD_MANAGER,
    log,
    clock,
    grace: GRACE_MS,
    ...(options.leader !== undefined && { leader: options.leader }),
    ...(options.metrics !== undefined && { metrics: options.metrics }),
    ...(options.probes !== undefined && { probes: options.probes }),
  })
  const metrics = createProductMetrics(mgr.metrics.registry)
  const killSwitch = createKillSwitch()
  if (options.records === undefined && (options.hasPause ?? true))
    watchSwitches(cluster.informers, namespace, killSwitch)
  const isWriting = (): boolean => mode === 'enforce' && !killSwitch.isPaused
  if (publish !== undefined) {
    setUpPublish(mgr, {
      options: publish,
      metrics,
      namespace,
      isWriting,
      clock,
      isInitialTold: options.isInitialTold ?? true,
    })
  }
  if (wildcard !== undefined) {
    setUpWildcard(mgr, {
      options: wildcard,
      metrics,
      namespace,
      isWriting,
      clock,
      allowLoopback: options.allowLoopback ?? false,
    })
  }
  if (options.records !== undefined) setUpRecords(mgr, { ...options.records, mode, namespace, killSwitch, clock })
  if (options.onReady !== undefined) {
    const { onReady } = options
    mgr.add('ready', async (running) => {
      onReady(mgr.addresses)
      await new Promise<void>((resolve) => running.addEventListener('abort', () => resolve(), { once: true }))
    })
  }
  await mgr.run(signal)
}
