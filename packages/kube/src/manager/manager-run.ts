/**
 * One run of a manager: starts its parts in order, waits for the stop or the first failure, stops them in order. The
 * orders and their reasons are in manager.ts.
 */
import { setMaxListeners } from 'node:events'
import type { Aggregator } from '../controller/aggregator.ts'
import type { KeyedAggregator } from '../controller/keyed-aggregator.ts'
import { waitForSync } from '../controller/cache-sync.ts'
import { sharedStop, untilAborted } from '../stop-signal.ts'
import type { Cluster } from '../cache/cluster.ts'
import { createRunnableContext, type Environment } from '../controller/context.ts'
import type { Controller } from '../controller/controller.ts'
import { KubeError, messageOf } from '../errors.ts'
import { restartOnFailure, type EngageOptions, type RunningFleet } from './fleet.ts'
import type { Informer } from '../cache/informer.ts'
import { LeadershipLost, openFence, type WriteFence } from '../apply/write-fence.ts'
import { type Clock, sleep } from '../clock.ts'
import type { Control, Declarations } from './control.ts'
import { startListener, type Listener } from './listener.ts'
import type { ManagerOptions } from './manager.ts'
import { Phase } from './phase.ts'
import type { ClusterStats } from '../metrics.ts'
import { kindName, type Obj } from '../object/object.ts'
import { metricsHandler, probesHandler, type Check } from './probes.ts'
import type { CertificateKeeper } from '../webhook/certificate-keeper.ts'
import { webhookHandler, type WebhookRegistry } from '../webhook/server.ts'
import type { Signals } from '../controller/workers.ts'

export interface ManagerParts {
  readonly options: ManagerOptions
  readonly graceMs: number
  readonly syncTimeoutMs: number
  /** Of what every replica runs for as long as the manager runs. */
  readonly environment: Environment
  readonly environmentOf: (cluster: Cluster, fence: WriteFence) => Environment
  /** The present control. */
  readonly control: () => Control
  /** Replaces a control that has ended by the next one, declared anew. */
  readonly renewControl: () => Control
  /** Declared on the manager itself: its controllers run under every control. */
  readonly declarations: Declarations
  readonly indexes: readonly ((cluster: Cluster) => void)[]
  readonly registry: WebhookRegistry
  readonly keeper: CertificateKeeper | undefined
  readonly checks: { readonly healthz: Map<string, Check>; readonly readyz: Map<string, Check> }
  readonly addresses: { metrics?: string; probes?: string; webhooks?: string }
  readonly fleet: RunningFleet
  /** Set while running: runs the controllers and caches of a fleet member. */
  runMember?: (cluster: Cluster, signals: Signals, options: EngageOptions) => Promise<void>
}

/** Fraction of the grace period left to reconciles after their signals aborted. */
const KILL_FRACTION = 0.2
/** Grace period for open requests of the servers that are stopped last, ms. */
const SERVER_GRACE_MS = 1_000

/** Before a control that failed is followed by the next one. */
const RETRY_BASE_MS = 1_000
const RETRY_LIMIT_MS = 60_000
/** A control that led for this long was no failure. */
const SUCCESS_MS = 60_000
/** How long a new leader waits for watches that fail: afterwards the last state that was read counts. */
const FRESH_TIMEOUT_MS = 60_000
const FRESH_POLL_MS = 100

export async function runManager(parts: ManagerParts, signal: AbortSignal): Promise<void> {
  const { environment, options, checks, declarations } = parts
  const { cluster, clock, log, metrics } = environment
  const kill = sharedStop()
  let failure: { readonly error: unknown } | undefined
  /** Aborts as soon as the stop begins, for any reason. */
  const ending = sharedStop()
  const until = ending.signal
  const end = () => ending.abort(new KubeError('STOPPING', 'the manager is stopping'))
  const fail = (error: unknown): void => {
    failure ??= { error }
    end()
  }
  const newPhase = () => new Phase(log, fail)
  const [runnables, controllers, caches, keeping] = [newPhase(), newPhase(), newPhase(), newPhase()]
  const servers: Listener[] = []
  const webhooks: Listener[] = []
  let isDraining = false

  /** Controllers of the present control that run on members. */
  const onMembers = new Set<Promise<void>>()

  const controllersOf = (control: Control, where: 'local' | 'fleet'): Controller[] =>
    [...declarations.controllers, ...control.declarations.controllers].filter(
      ({ clusters }) => clusters === 'all' || clusters === where,
    )

  async function runMember(
    member: Cluster,
    { stop, kill: killMember }: Signals,
    { controllers: wanted }: EngageOptions,
  ): Promise<void> {
    for (const index of parts.indexes) index(member)
    const cacheStop = sharedStop()
    const running = member.informers.start(cacheStop.signal)
    const forget = metrics.watchCluster(() => statsOf(member, clock))
    try {
      while (!stop.aborted) {
        const control = parts.control()
        const chosen = controllersOf(control, 'fleet').filter(({ name }) => wanted?.includes(name) ?? true)
        const own = parts.environmentOf(member, control.fence)
        for (const controller of chosen) controller.prepare(own)
        await Promise.race([control.begun, untilAborted(control.over), untilAborted(stop)])
        if (control.over.aborted) {
          await Promise.race([renewed(control), untilAborted(stop)])
          continue
        }
        if (stop.aborted) break
        const term = control.signals
        const signals = {
          stop: anyOf(stop, term.stop),
          kill: anyOf(killMember, term.kill),
          syncTimeoutMs: parts.syncTimeoutMs,
        }
        // Separately: a kind that cannot be listed in a member must not delay its other controllers.
        const each = chosen.map(async (controller) => {
          const about = log.child({ controller: controller.name, cluster: member.name })
          const what = { log: about, clock: own.clock, stop: signals.stop }
          await restartOnFailure(what, async () => controller.run(own, signals))
        })
        const work = Promise.all([...each, own.recorder.run(signals.stop)]).then(async () => untilAborted(signals.stop))
        onMembers.add(work)
        await work.finally(() => onMembers.delete(work))
      }
    } finally {
      forget()
      cacheStop.abort()
      await running
    }
  }

  /** Resolves when another control has replaced this one. */
  let onRenewed: () => void = () => undefined
  let nextRenewal = new Promise<void>((resolve) => (onRenewed = resolve))
  async function renewed(control: Control): Promise<void> {
    while (parts.control() === control && !until.aborted) await Promise.race([nextRenewal, untilAborted(until)])
  }

  async function startAll(): Promise<void> {
    if (until.aborted) return
    if (options.metrics !== undefined) {
      const handler = metricsHandler(() => [metrics.registry, parts.control().registry])
      const listener = await startListener({ listen: options.metrics, handler })
      servers.push(listener)
      parts.addresses.metrics = listener.address
    }
    if (options.probes !== undefined) {
      checks.readyz.set('draining', () => (isDraining ? 'the manager is stopping' : undefined))
      const listener = await startListener({ listen: options.probes, handler: probesHandler(checks) })
      servers.push(listener)
      parts.addresses.probes = listener.address
    }
    await startWebhooks()
    if (until.aborted) return

    const required = requiredInformers(parts.control())
    checks.readyz.set('caches', () => {
      const waiting = [...required].filter(({ hasSynced }) => !hasSynced).map(({ kind }) => kindName(kind))
      return waiting.length === 0 ? undefined : `not synced: ${waiting.join(', ')}`
    })
    caches.start('caches', async (stop) => cluster.informers.start(stop))
    const forgetStats = metrics.watchCluster(() => statsOf(cluster, clock))
    const forgetLoop = metrics.watchEventLoop()
    caches.signal.addEventListener('abort', () => [forgetStats(), forgetLoop()], { once: true })
    // A denied kind delays only the controllers that need it: the others start, and the leader reports the denial.
    const wait = { name: 'manager', isOptional: true, skipsDenied: true, stop: until, timeoutMs: parts.syncTimeoutMs }
    await Promise.all([...required].map(async (informer) => waitForSync(environment, { ...wait, informer })))
    if (until.aborted) return

    for (const runnable of declarations.runnables)
      if (!runnable.leader) startRunnable(runnables, runnable, { ...environment, fence: openFence })
    for (const aggregator of declarations.aggregators) if (!aggregator.needsLeader) startAggregator(aggregator)
    parts.runMember = runMember
    parts.fleet.start()
    await runControls(required)
  }

  function startAggregator(aggregator: Aggregator | KeyedAggregator): void {
    controllers.start(`controller ${aggregator.name}`, async (stop) => {
      await aggregator.run(environment, { stop, kill: kill.signal, syncTimeoutMs: parts.syncTimeoutMs })
    })
  }

  /** What every controller and aggregator of the manager's own cluster reads. */
  function requiredInformers(control: Control): Set<Informer<Obj>> {
    const required = new Set<Informer<Obj>>()
    const aggregators = [...declarations.aggregators, ...control.declarations.aggregators]
    for (const part of [...controllersOf(control, 'local'), ...aggregators])
      for (const informer of part.prepare(control.environment)) required.add(informer)
    return required
  }

  /** One control after the other, until the manager stops or one fails for good. */
  async function runControls(required: ReadonlySet<Informer<Obj>>): Promise<void> {
    let failures = 0
    for (let isFirst = true; ; isFirst = false) {
      const control = parts.control()
      const startedAt = clock.monotonic()
      await runControl(control, isFirst ? new Set() : required)
      if (until.aborted) return
      if (control.renewal !== undefined) {
        log.info({ why: control.renewal }, 'control starts again')
        await control.endForRenewal(async () => Promise.all(onMembers))
        if (until.aborted) return control.release(control.renewal)
        replaceControl()
        continue
      }
      if (!control.isRepeatable) return fail(control.failure)
      log.warn(
        { error: messageOf(control.failure) },
        'control has ended; what this process serves is not affected, and control starts again',
      )
      await control.end(Promise.all(onMembers).then(() => undefined))
      failures = clock.monotonic() - startedAt < SUCCESS_MS ? failures + 1 : 0
      const isLost = control.failure instanceof LeadershipLost
      if (!isLost) await sleep(clock, Math.min(RETRY_BASE_MS * 2 ** failures, RETRY_LIMIT_MS), until)
      if (until.aborted) return
      replaceControl()
    }
  }

  function replaceControl(): void {
    parts.renewControl()
    requiredInformers(parts.control())
    onRenewed()
    nextRenewal = new Promise<void>((resolve) => (onRenewed = resolve))
  }

  /** Resolves when the control is over, or when the manager stops. */
  async function runControl(control: Control, reread: ReadonlySet<Informer<Obj>>): Promise<void> {
    const { election, over } = control
    const ended = anyOf(over, until)
    control.standBy(parts.syncTimeoutMs)
    await election?.acquire(ended)
    if (ended.aborted) return
    control.hold()
    await untilFresh(reread, ended)
    if (ended.aborted) return
    control.lead(declarations, parts.syncTimeoutMs)
    await untilAborted(ended)
  }

  /** The API server answers again, but some watches wait until they try again: what they would report is not known. */
  async function untilFresh(required: ReadonlySet<Informer<Obj>>, ended: AbortSignal): Promise<void> {
    const isStale = ({ failure }: Informer<Obj>) => failure !== undefined && failure.reason !== 'denied'
    const deadline = clock.monotonic() + FRESH_TIMEOUT_MS
    while (!ended.aborted && [...required].some(isStale)) {
      if (clock.monotonic() >= deadline) {
        const kinds = [...required].filter(isStale).map(({ kind }) => kindName(kind))
        log.warn({ kinds }, 'kinds cannot be read since this process leads; their last state counts')
        return
      }
      await sleep(clock, FRESH_POLL_MS, ended)
    }
  }

  async function startWebhooks(): Promise<void> {
    const { keeper, registry } = parts
    if (keeper === undefined || options.webhooks === undefined) return
    checks.readyz.set('webhooks', () => (webhooks.length === 0 ? 'not serving yet' : undefined))
    const { certPem, keyPem } = await keeper.start(until)
    const handler = webhookHandler(registry, metrics, log)
    const listener = await startListener({
      listen: options.webhooks.listen,
      handler,
      tls: { cert: certPem, key: keyPem },
    })
    webhooks.push(listener)
    parts.addresses.webhooks = listener.address
    keeping.start('webhook certificate', async (stop) => {
      await keeper.run(stop, (leaf) => listener.secure({ cert: leaf.certPem, key: leaf.keyPem }))
      await untilAborted(stop)
    })
  }

  async function stopAll(starting: Promise<void>): Promise<void> {
    isDraining = true
    const { graceMs } = parts
    const control = parts.control()
    const reason = failure?.error ?? signal.reason
    const killAll = () => {
      kill.abort(reason)
      control.kill(reason)
    }
    const killTimer = setTimeout(killAll, graceMs * (1 - KILL_FRACTION))
    let graceTimer: NodeJS.Timeout | undefined
    const graceOver = new Promise<void>((resolve) => (graceTimer = setTimeout(resolve, graceMs)))
    const within = async (...stopping: readonly Promise<unknown>[]) => Promise.race([Promise.all(stopping), graceOver])
    // Parts still starting must be registered before they can be stopped.
    await within(starting.catch(() => undefined))
    await within(runnables.stop(reason), control.stopRunnables(reason))
    const fleetStopped = parts.fleet.stop({ stop: AbortSignal.abort(reason), kill: kill.signal })
    await within(controllers.stop(reason), control.stopControllers(reason))
    await within(fleetStopped)
    await within(caches.stop(reason))
    await within(keeping.stop(reason))
    await Promise.all([...webhooks, ...servers].map(async (server) => server.close(Math.min(SERVER_GRACE_MS, graceMs))))
    // Released last: the next leader must find no active writer.
    await within(control.release(reason))
    await within(cluster.close())
    clearTimeout(killTimer)
    clearTimeout(graceTimer)
  }

  signal.addEventListener('abort', end, { once: true })
  if (signal.aborted) end()
  const starting = startAll()
  starting.catch((error: unknown) => {
    if (signal.aborted) end()
    else fail(error)
  })
  await untilAborted(until)
  await stopAll(starting)
  if (failure !== undefined) throw failure.error
}

/** Aborts with the first of them. */
function anyOf(...signals: readonly AbortSignal[]): AbortSignal {
  const any = AbortSignal.any([...signals])
  setMaxListeners(0, any)
  return any
}

function startRunnable(phase: Phase, runnable: Declarations['runnables'][number], environment: Environment): void {
  phase.start(runnable.name, async (stop) => runnable.run(createRunnableContext(environment, runnable, stop)))
}

function statsOf(cluster: Cluster, clock: Clock): ClusterStats {
  const now = clock.monotonic()
  const caches = cluster.informers.all().map((informer) => ({
    kind: kindName(informer.kind),
    objects: informer.size,
    bytes: informer.estimateBytes(),
    silentMs: informer.lastReceivedAt === undefined ? undefined : now - informer.lastReceivedAt,
  }))
  return { cluster: cluster.name, caches, sessions: cluster.stats?.sessions ?? 0, streams: cluster.stats?.streams ?? 0 }
}
