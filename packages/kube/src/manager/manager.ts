/**
 * The manager: one process with its clusters, controllers, servers and leader election.
 *
 * Two lifetimes: what serves (connections, caches, servers, runnables and aggregators of every replica) ends with the
 * manager; control (control.ts: controllers, what else needs the Lease) ends with the Lease, and is started again on the
 * same caches.
 *
 * Flow (start): metrics and probes → webhooks → caches, until they are synced → runnables → leader election →
 * controllers. Webhooks serve before any cache lists, because a list of an old version may need their conversion.
 * Flow (Lease lost, or the API server failed a part of control): its reconciles are aborted, what it left cannot write →
 * everything of it has ended → leader election → controllers.
 * Flow (stop): runnables → controllers → caches → webhooks → probes and metrics → lease, so that nothing writes when
 * another process may lead, and probes and metrics are served while the rest drains.
 *
 * Guarantees: `run` settles when everything has stopped, at the latest after the grace period. It rejects with the
 * first failure of any part, after stopping the others, but for those after which control starts again.
 * Caveats: a manager runs once.
 */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { defineAggregator, type AggregatorOptions } from '../controller/aggregator.ts'
import type { Index, Reader } from '../cache/cache.ts'
import type { CertificatePair } from '../certificates.ts'
import type { CacheOptions } from '../cache/informer.ts'
import type { Client } from '../client/client.ts'
import { systemClock, type Clock } from '../clock.ts'
import { connect, type Cluster } from '../cache/cluster.ts'
import type { ClusterConfig } from '../config/cluster-config.ts'
import { loadConfig } from '../config/config.ts'
import type { Context, Environment, RunnableContext } from '../controller/context.ts'
import {
  defineController,
  defineKeyedController,
  type ControllerBuilder,
  type ControllerOptions,
  type KeyedControllerBuilder,
  type KeyedControllerOptions,
} from '../controller/controller.ts'
import {
  defineKeyedAggregator,
  type KeyedAggregatorBuilder,
  type KeyedAggregatorOptions,
} from '../controller/keyed-aggregator.ts'
import { createLearnedDefaults } from '../apply/learned-defaults.ts'
import { type Duration, durationMs } from '../duration.ts'
import { KubeError } from '../errors.ts'
import { createRecorder } from '../controller/events.ts'
import { createFleet, scopedFleet, type Fleet } from './fleet.ts'
import { untilAborted } from '../stop-signal.ts'
import { createElection, type LeaseOptions } from './lease.ts'
import type { WriteFence } from '../apply/write-fence.ts'
import { Control, newDeclarations, type Declarations } from './control.ts'
import { createLogger, type Logger } from '../log.ts'
import { runManager, type ManagerParts } from './manager-run.ts'
import type { MassLimits } from '../mass-limits.ts'
import type { Metrics } from '../metrics.ts'
import type { Immutable, Kind, Obj } from '../object/object.ts'
import type { Next } from '../controller/reconcile-result.ts'
import type { Check } from './probes.ts'
import type { AdmissionHooks } from '../webhook/admission.ts'
import { createFileKeeper, type CertificateFiles } from '../webhook/certificate-files.ts'
import {
  createCertificateKeeper,
  type CertificateKeeper,
  type SelfIssuedOptions,
} from '../webhook/certificate-keeper.ts'
import { defineConversion, type Spoke } from '../webhook/conversion.ts'
import { admissionPath, type WebhookRegistry } from '../webhook/server.ts'

export interface ManagerOptions {
  /** The cluster of the controllers, the lease and the events. @default from kubeconfig or in-cluster credentials */
  cluster?: Cluster
  /** Connection settings, instead of `cluster`. */
  config?: ClusterConfig
  /** Field manager of applied fields. Must be the same in every version of a program. @default seamark */
  fieldManager?: string
  /**
   * Only the holder of this Lease runs controllers. A process that loses it stops them and waits to lead again; it
   * continues to serve. @default no election: this process leads
   */
  leader?: LeaseOptions
  /** `HOST:PORT` or `:PORT`. @default none */
  metrics?: string
  /** `HOST:PORT` or `:PORT`. @default none */
  probes?: string
  /** Required if a webhook or conversion is declared. */
  webhooks?: { listen: string; certificate: SelfIssuedOptions | CertificateFiles | CertificatePair }
  /** client-go's histograms of every request, in addition to `rest_client_requests_total`. @default false */
  clientHistograms?: boolean
  /** Those of another manager of this process, so that one registry has both. @default its own */
  sharedMetrics?: Metrics
  log?: Logger
  /** Time for the whole stop. @default 30s */
  grace?: Duration
  /** Of the clusters that it connects: removals by one sync that a second one has to confirm. @default that of `connect` */
  removalLimits?: MassLimits
  /** Time for a cache to sync. @default 2m */
  syncTimeout?: Duration
  clock?: Clock
}

/** Runs until `context.signal` aborts; if it returns earlier, the manager stops. */
export type Runnable = (context: RunnableContext) => Promise<void>

export interface RunnableOptions {
  /**
   * Run only while leading, once for each term; writes are then fenced by the lease. Writes of other runnables are not
   * fenced, because every replica runs them. Events are sent by the leader only. @default false
   */
  leader?: boolean
  /** reportingController of its Events. @default the field manager */
  reportingController?: string
}

export interface Manager {
  readonly cluster: Cluster
  /** For live reads and for writes outside of controllers; not fenced. In `control` it ends with that control. */
  readonly client: Client
  readonly log: Logger
  readonly metrics: Metrics
  /** Member clusters, for controllers with `clusters: 'fleet'` or `'all'`. */
  readonly fleet: Fleet
  /** Connects a cluster with the metrics, logs and field manager of this manager, to engage it. */
  connect(config: ClusterConfig, name: string): Cluster
  /** True in the process whose controllers run. In `control`: while those of that control do. */
  readonly isLeading: boolean
  /** The bound `HOST:PORT` addresses; undefined before `run`, or if not configured. */
  readonly addresses: { readonly metrics?: string; readonly probes?: string; readonly webhooks?: string }
  /**
   * Sets how a kind is cached by every controller, aggregator and informer of the manager's own cluster and of every
   * member. Must be called before the kind is watched.
   */
  cache<T extends Obj>(kind: Kind<T>, options: CacheOptions<T>): void
  index<T extends Obj>(kind: Kind<T>, name: string, values: (object: Immutable<T>) => readonly string[]): Index<T>
  controller<T extends Obj>(name: string, kind: Kind<T>, options?: ControllerOptions<T>): ControllerBuilder<T>
  aggregator<A>(
    name: string,
    options: AggregatorOptions,
    build: (cache: Reader) => A | Promise<A>,
    act: (artefact: A, context: Context) => Promise<Next>,
  ): void
  /** A controller whose keys are not objects of one kind; one reconcile for each key. */
  keyedController(name: string, options?: KeyedControllerOptions): KeyedControllerBuilder
  /** One debounced pass over all dirty keys; see keyed-aggregator.ts. */
  keyedAggregator(name: string, options?: KeyedAggregatorOptions): KeyedAggregatorBuilder
  /** Admission at controller-runtime's paths: `/mutate-GROUP-VERSION-KIND`, `/validate-GROUP-VERSION-KIND`. */
  webhook<T extends Obj>(kind: Kind<T>, hooks: AdmissionHooks<T>): void
  /** Conversion at `/convert`, with the kind's own version as hub. */
  conversion<H extends Obj, S extends Obj>(hub: Kind<H>, spokes: readonly Spoke<H, S>[]): void
  /**
   * The CA bundle of the webhooks, base64, for a CRD or webhook configuration that this process writes itself. Undefined
   * before the webhooks are served, and when their certificate is not self-issued.
   */
  caBundle(): string | undefined
  /**
   * Declares what needs the Lease and keeps state: `declare` is called now, and again after the Lease was lost, on a
   * manager of its own with the same connections, caches and members. What it declares, subscribes to and registers as
   * metrics ends with that term; nothing of an earlier term writes, also when this process leads again. Webhooks,
   * indexes and options of caches are taken from the first call.
   */
  control(declare: (manager: Manager, ended: AbortSignal) => void): void
  /**
   * Declares every `control` anew, although the Lease was not lost: what they are declared from has changed. The process
   * keeps its Lease; running reconciles end, or are aborted half a second later.
   */
  renewControl(why: string): void
  /** Adds a function that runs with the manager. */
  add(name: string, run: Runnable, options?: RunnableOptions): void
  check(probe: 'healthz' | 'readyz', name: string, check: Check): void
  run(signal: AbortSignal): Promise<void>
}

/** Reads credentials, but opens no connection. */
export async function manager(options: ManagerOptions = {}): Promise<Manager> {
  const { fieldManager = 'seamark', clock = systemClock } = options
  const log = options.log ?? createLogger()
  // Imported here, so that programs that use only the client do not load prom-client.
  const { createMetrics, createRegistry } = await import('../metrics.ts')
  const metrics = options.sharedMetrics ?? createMetrics({ clientHistograms: options.clientHistograms ?? false })
  const connectTo = (config: ClusterConfig, name?: string) => {
    return connect(config, {
      fieldManager,
      log,
      clock,
      observer: metrics.client,
      ...(options.removalLimits !== undefined && { removalLimits: options.removalLimits }),
      ...(name !== undefined && { name }),
    })
  }
  const cluster = options.cluster ?? connectTo(options.config ?? (await loadConfig()))
  // A cluster that was connected elsewhere does not report to these metrics.
  if (options.cluster !== undefined) cluster.observe?.(metrics.client)
  const identity = options.leader?.identity ?? `${hostname()}_${randomUUID()}`
  const defaults = createLearnedDefaults()
  const environmentOf = (of: Cluster, fence: WriteFence): Environment => {
    const by = { reportingController: fieldManager, reportingInstance: identity }
    const recorder = createRecorder({ client: of.client, log: log.child({ cluster: of.name }), clock, fence, ...by })
    return { cluster: of, fieldManager, fence, defaults, recorder, metrics, clock, log }
  }
  const { leader } = options
  const newControl = (): Control =>
    new Control({
      cluster,
      log,
      clock,
      // One for each term: an election that was lost is never won again.
      election:
        leader === undefined
          ? undefined
          : createElection(leader, {
              client: cluster.client,
              log,
              identity,
              clock,
              onChange: (isLeader) => metrics.leading(leader.lease, isLeader),
            }),
      isRunning: () => hasRun,
      registry: createRegistry(),
      environmentOf: (fence) => environmentOf(cluster, fence),
    })
  if (leader !== undefined) metrics.leading(leader.lease, false)

  const declarations = newDeclarations()
  const names = new Set<string>()
  const registry: WebhookRegistry = { admissions: new Map(), conversions: [] }
  const checks = { healthz: new Map<string, Check>([['ping', () => undefined]]), readyz: new Map<string, Check>() }
  const addresses: { metrics?: string; probes?: string; webhooks?: string } = {}
  const indexes: ((cluster: Cluster) => void)[] = []
  const caches: ((cluster: Cluster) => void)[] = []
  const controls: Parameters<Manager['control']>[0][] = []
  let hasRun = false
  let control = newControl()

  const isLeading = () => control.isLeading
  const fleet = createFleet({
    run: async (member, signals, engaged) => parts.runMember?.(member, signals, engaged),
    connect: connectTo,
    configure: (member) => {
      for (const configure of caches) configure(member)
    },
    clock,
    log,
  })
  const parts: ManagerParts = {
    options,
    graceMs: durationMs(options.grace ?? '30s'),
    syncTimeoutMs: durationMs(options.syncTimeout ?? '2m'),
    // Its Events are those of the leader, its fence that of the present term.
    environment: {
      ...environmentOf(cluster, { check: () => control.fence.check() }),
      recorder: {
        record: (event) => control.environment.recorder.record(event),
        run: async (signal) => untilAborted(signal),
      },
    },
    environmentOf,
    control: () => control,
    renewControl() {
      control = newControl()
      for (const declare of controls) declareOn(control, declare, false)
      assertComplete(control.declarations)
      return control
    },
    declarations,
    indexes,
    registry,
    keeper: keeperOf(options, { client: cluster.client, clock, log, metrics, isLeading }),
    checks,
    addresses,
    fleet,
  }

  function assertNotRunning(what: string): void {
    if (hasRun) throw new KubeError('RUNNING', `${what} comes too late: the manager runs already`)
  }

  /** Reserves a name: controllers are identified by name in metrics and logs. */
  function reserveName(name: string, taken: Set<string>): void {
    if (taken.has(name)) throw new KubeError('NAME_TAKEN', `a controller called ${name} exists already`)
    taken.add(name)
  }

  /** Calls `declare` with a manager whose declarations are those of one control. */
  function declareOn(of: Control, declare: Parameters<Manager['control']>[0], isFirst: boolean): void {
    let isOpen = true
    const reserve = (name: string): void => {
      if (!isOpen) throw new KubeError('RUNNING', `${name} comes too late: its control is declared already`)
      reserveName(name, isFirst ? names : of.names)
    }
    const scoped: Manager = {
      ...declaring(of.declarations, reserve, isFirst),
      cluster: of.cluster,
      client: of.cluster.client,
      metrics: { ...metrics, registry: of.registry },
      fleet: scopedFleet(fleet, of.subscriptions),
      get isLeading() {
        return of.isLeading
      },
      control: (nested) => nested(scoped, of.over),
    }
    declare(scoped, of.over)
    isOpen = false
  }

  function declaring(to: Declarations, reserve: (name: string) => void, isFirst: boolean): Omit<Manager, 'isLeading'> {
    return {
      cluster,
      client: cluster.client,
      log,
      metrics,
      fleet,
      connect: connectTo,
      addresses,
      cache(kind, cacheOptions) {
        if (!isFirst) return
        caches.push((of) => of.informers.configure(kind, cacheOptions))
        for (const member of fleet.clusters.values()) member.informers.configure(kind, cacheOptions)
        cluster.informers.configure(kind, cacheOptions)
      },
      index(kind, name, values) {
        if (!isFirst) return cluster.informers.index(kind, name, values)
        indexes.push((of) => of.informers.index(kind, name, values))
        for (const member of fleet.clusters.values()) member.informers.index(kind, name, values)
        return cluster.informers.index(kind, name, values)
      },
      controller(name, kind, given = {}) {
        reserve(name)
        const { builder, controller } = defineController(name, kind, given)
        to.controllers.push(controller)
        return builder
      },
      keyedController(name, given = {}) {
        reserve(name)
        const { builder, controller } = defineKeyedController(name, given)
        to.controllers.push(controller)
        return builder
      },
      keyedAggregator(name, given = {}) {
        reserve(name)
        const { builder, aggregator } = defineKeyedAggregator(name, given)
        to.aggregators.push(aggregator)
        return builder
      },
      aggregator(name, given, build, act) {
        reserve(name)
        to.aggregators.push(defineAggregator(name, given, build, act))
      },
      webhook(kind, hooks) {
        if (!isFirst) return
        const general = hooks as unknown as AdmissionHooks<Obj>
        if (hooks.default !== undefined)
          registry.admissions.set(admissionPath('mutate', kind), { hooks: general, verb: 'mutate' })
        if (hooks.validate !== undefined)
          registry.admissions.set(admissionPath('validate', kind), { hooks: general, verb: 'validate' })
      },
      conversion(hub, spokes) {
        if (isFirst) registry.conversions.push(defineConversion(hub, spokes))
      },
      caBundle: () => parts.keeper?.caBundle?.(),
      add: (name, run, { leader = false, reportingController } = {}) =>
        void to.runnables.push({ name, run, leader, reportingController }),
      check: (probe, name, check) => void checks[probe].set(name, check),
      control(declare) {
        assertNotRunning('a control')
        controls.push(declare)
        declareOn(control, declare, true)
      },
      renewControl: (why) => control.renew(why),
      async run(signal) {
        if (hasRun) throw new KubeError('RUNNING', 'a manager runs once')
        const needsWebhooks = registry.admissions.size + registry.conversions.length > 0
        if (needsWebhooks && parts.keeper === undefined) {
          throw new KubeError(
            'WEBHOOKS',
            'webhooks are declared, but the manager was given no `webhooks` to serve them with',
          )
        }
        assertComplete(declarations)
        assertComplete(control.declarations)
        hasRun = true
        await runManager(parts, signal)
      },
    }
  }

  const base = declaring(
    declarations,
    (name) => {
      reserveName(name, names)
      assertNotRunning(name)
    },
    true,
  )
  return Object.defineProperty(base, 'isLeading', { get: isLeading, enumerable: true }) as Manager
}

function assertComplete({ controllers, aggregators }: Declarations): void {
  const incomplete = [...controllers, ...aggregators].map((each) => each.incomplete)
  const missing = incomplete.find((message) => message !== undefined)
  if (missing !== undefined) throw new KubeError('INCOMPLETE', missing)
}

function keeperOf(
  { webhooks }: ManagerOptions,
  deps: Parameters<typeof createCertificateKeeper>[1],
): CertificateKeeper | undefined {
  if (webhooks === undefined) return undefined
  const { certificate } = webhooks
  if ('secret' in certificate) return createCertificateKeeper(certificate, deps)
  if ('certFile' in certificate) return createFileKeeper(certificate, deps)
  return { start: async () => certificate, run: async () => undefined }
}

/** Aborts at the first of these process signals; a second one has its default action and ends the process. */
export function untilSignalled(...names: readonly NodeJS.Signals[]): AbortSignal {
  const controller = new AbortController()
  const stop = (name: NodeJS.Signals) => {
    for (const each of names) process.removeListener(each, stop)
    controller.abort(new KubeError('SIGNALLED', `the process got ${name}`))
  }
  for (const name of names) process.on(name, stop)
  return controller.signal
}
