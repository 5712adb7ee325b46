/**
 * One run of a manager: starts its parts in order, waits for the stop or the first failure, stops them in order. The
 * orders and their reasons are in manager.ts.
 */
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
import { type Election } from './lease.ts'
import { LeadershipLost, openFence } from '../apply/write-fence.ts'
import { startListener, type Listener } from './listener.ts'
import type { ManagerOptions, Runnable } from './manager.ts'
import type { ClusterStats } from '../metrics.ts'
import { kindName, type Obj } from '../object/object.ts'
import { metricsHandler, probesHandler, type Check } from './probes.ts'
import type { CertificateKeeper } from '../webhook/certificate-keeper.ts'
import { webhookHandler, type WebhookRegistry } from '../webhook/server.ts'
import type { Signals } from '../controller/workers.ts'

interface RunnablePart {
  readonly name: string
  readonly run: Runnable
  readonly leader: boolean
  readonly reportingController: string | undefined
}

export interface ManagerParts {
  readonly options: ManagerOptions
  readonly graceMs: number
  readonly syncTimeoutMs: number
  readonly environment: Environment
  readonly environmentOf: (cluster: Cluster) => Environment
  readonly election: Election | undefined
  readonly controllers: readonly Controller[]
  readonly aggregators: readonly (Aggregator | KeyedAggregator)[]
  readonly indexes: readonly ((cluster: Cluster) => void)[]
  readonly registry: WebhookRegistry
  readonly keeper: CertificateKeeper | undefined
  readonly checks: { readonly healthz: Map<string, Check>; readonly readyz: Map<string, Check> }
  readonly runnables: RunnablePart[]
  readonly addresses: { metrics?: string; probes?: string; webhooks?: string }
  readonly fleet: RunningFleet
  /** Set while running: runs the controllers and caches of a fleet member. */
  runMember?: (cluster: Cluster, signals: Signals, options: EngageOptions) => Promise<void>
}

/** Fraction of the grace period left to reconciles after their signals aborted. */
const KILL_FRACTION = 0.2
/** Grace period for open requests of the servers that are stopped last, ms. */
const SERVER_GRACE_MS = 1_000

/** Parts that start and stop together. */
interface Phase {
  readonly stop: AbortController
  readonly running: Promise<void>[]
}

export async function runManager(parts: ManagerParts, signal: AbortSignal): Promise<void> {
  const { environment, election, options, checks } = parts
  const { cluster, log, metrics } = environment
  const kill = sharedStop()
  const [runnables, controllers, caches, keeping, lease] = [newPhase(), newPhase(), newPhase(), newPhase(), newPhase()]
  const servers: Listener[] = []
  const webhooks: Listener[] = []
  let failure: { readonly error: unknown } | undefined
  /** Aborts as soon as the stop begins, for any reason. */
  const ending = sharedStop()
  const until = ending.signal
  const end = () => ending.abort(new KubeError('STOPPING', 'the manager is stopping'))
  let isDraining = false

  /** Runs a part in a phase; an unexpected end stops the manager. */
  function start(phase: Phase, name: string, run: (signal: AbortSignal) => Promise<void>): void {
    const part = (async () => {
      try {
        await run(phase.stop.signal)
        if (!phase.stop.signal.aborted) throw new KubeError('PART_ENDED', `${name} ended by itself`)
      } catch (error) {
        if (phase.stop.signal.aborted) log.warn({ part: name, error: messageOf(error) }, 'part failed while stopping')
        else failure ??= { error }
        end()
      }
    })()
    phase.running.push(part)
  }

  let onLead: () => void = () => undefined
  const leading = new Promise<void>((resolve) => (onLead = resolve))
  const controllersOf = (where: 'local' | 'fleet') => {
    return parts.controllers.filter(({ clusters }) => clusters === 'all' || clusters === where)
  }

  async function runMember(
    member: Cluster,
    { stop, kill: killMember }: Signals,
    { controllers: wanted }: EngageOptions,
  ): Promise<void> {
    const own = parts.environmentOf(member)
    const chosen = controllersOf('fleet').filter(({ name }) => wanted?.includes(name) ?? true)
    for (const index of parts.indexes) index(member)
    for (const controller of chosen) controller.prepare(own)
    const cacheStop = sharedStop()
    const running = [member.informers.start(cacheStop.signal), own.recorder.run(cacheStop.signal)]
    const forget = metrics.watchCluster(() => statsOf(own))
    try {
      await Promise.race([leading, untilAborted(stop)])
      const signals = { stop, kill: killMember, syncTimeoutMs: parts.syncTimeoutMs }
      // Separately: a kind that cannot be listed in a member must not delay its other controllers.
      const each = chosen.map(async (controller) => {
        const about = log.child({ controller: controller.name, cluster: member.name })
        await restartOnFailure({ log: about, clock: own.clock, stop }, async () => controller.run(own, signals))
      })
      await Promise.all(each)
      await untilAborted(stop)
    } finally {
      forget()
      cacheStop.abort()
      await Promise.all(running)
    }
  }

  async function startAll(): Promise<void> {
    if (until.aborted) return
    if (options.metrics !== undefined) {
      const listener = await startListener({ listen: options.metrics, handler: metricsHandler(metrics.registry) })
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

    const required = new Set<Informer<Obj>>()
    for (const controller of controllersOf('local')) {
      for (const informer of controller.prepare(environment)) required.add(informer)
    }
    for (const aggregator of parts.aggregators)
      for (const informer of aggregator.prepare(environment)) required.add(informer)
    checks.readyz.set('caches', () => {
      const waiting = [...required].filter(({ hasSynced }) => !hasSynced).map(({ kind }) => kindName(kind))
      return waiting.length === 0 ? undefined : `not synced: ${waiting.join(', ')}`
    })
    start(caches, 'caches', async (stop) => cluster.informers.start(stop))
    start(caches, 'events', async (stop) => environment.recorder.run(stop))
    const forgetStats = metrics.watchCluster(() => statsOf(environment))
    const forgetLoop = metrics.watchEventLoop()
    caches.stop.signal.addEventListener('abort', () => [forgetStats(), forgetLoop()], { once: true })
    // A denied kind delays only the controllers that need it: the others start, and the leader reports the denial.
    const wait = { name: 'manager', isOptional: true, skipsDenied: true, stop: until, timeoutMs: parts.syncTimeoutMs }
    await Promise.all([...required].map(async (informer) => waitForSync(environment, { ...wait, informer })))
    if (until.aborted) return

    for (const runnable of parts.runnables) if (!runnable.leader) startRunnable(runnable)
    const followers = parts.aggregators.filter(({ needsLeader }) => !needsLeader)
    for (const aggregator of followers) startController(aggregator)
    parts.runMember = runMember
    parts.fleet.start()
    if (election !== undefined) {
      await election.acquire(until)
      if (until.aborted) return
      start(lease, 'lease', async (stop) => election.hold(stop))
    }
    onLead()
    for (const controller of controllersOf('local')) startController(controller)
    for (const aggregator of parts.aggregators) if (aggregator.needsLeader) startController(aggregator)
    for (const runnable of parts.runnables) if (runnable.leader) startRunnable(runnable)
  }

  function startRunnable(runnable: RunnablePart): void {
    const own = runnable.leader ? environment : { ...environment, fence: openFence }
    start(runnables, runnable.name, async (stop) => runnable.run(createRunnableContext(own, runnable, stop)))
  }

  function startController(controller: Controller | Aggregator | KeyedAggregator): void {
    start(controllers, `controller ${controller.name}`, async (stop) => {
      await controller.run(environment, { stop, kill: kill.signal, syncTimeoutMs: parts.syncTimeoutMs })
    })
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
    start(keeping, 'webhook certificate', async (stop) => {
      await keeper.run(stop, (leaf) => listener.secure({ cert: leaf.certPem, key: leaf.keyPem }))
      await untilAborted(stop)
    })
  }

  async function stopAll(starting: Promise<void>): Promise<void> {
    isDraining = true
    const isLost = failure?.error instanceof LeadershipLost
    const graceMs = isLost ? 0 : parts.graceMs
    const reason = failure?.error ?? signal.reason
    const killTimer = setTimeout(() => kill.abort(reason), graceMs * (1 - KILL_FRACTION))
    let graceTimer: NodeJS.Timeout | undefined
    const graceOver = new Promise<void>((resolve) => (graceTimer = setTimeout(resolve, graceMs)))
    // Parts still starting must be registered before they can be stopped.
    await Promise.race([starting.catch(() => undefined), graceOver])
    const stopPhase = async ({ stop, running }: Phase) => {
      stop.abort(reason)
      await Promise.race([Promise.all(running), graceOver])
    }
    await stopPhase(runnables)
    const fleetStopped = parts.fleet.stop({ stop: AbortSignal.abort(reason), kill: kill.signal })
    await stopPhase(controllers)
    await Promise.race([fleetStopped, graceOver])
    await stopPhase(caches)
    await stopPhase(keeping)
    await Promise.all([...webhooks, ...servers].map(async (server) => server.close(Math.min(SERVER_GRACE_MS, graceMs))))
    // Released last: the next leader must find no active writer.
    await stopPhase(lease)
    if (!isLost) await election?.release()
    await Promise.race([cluster.close(), graceOver])
    clearTimeout(killTimer)
    clearTimeout(graceTimer)
  }

  signal.addEventListener('abort', end, { once: true })
  if (signal.aborted) end()
  const starting = startAll()
  starting.catch((error: unknown) => {
    if (!signal.aborted) failure ??= { error }
    end()
  })
  await untilAborted(until)
  await stopAll(starting)
  if (failure !== undefined) throw failure.error
}

function newPhase(): Phase {
  return { stop: sharedStop(), running: [] }
}

function statsOf({ cluster, clock }: Environment): ClusterStats {
  const now = clock.monotonic()
  const caches = cluster.informers.all().map((informer) => ({
    kind: kindName(informer.kind),
    objects: informer.size,
    bytes: informer.estimateBytes(),
    silentMs: informer.lastReceivedAt === undefined ? undefined : now - informer.lastReceivedAt,
  }))
  return { cluster: cluster.name, caches, sessions: cluster.stats?.sessions ?? 0, streams: cluster.stats?.streams ?? 0 }
}
