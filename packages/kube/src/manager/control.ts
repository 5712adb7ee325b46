/**
 * One control of a manager: all that needs the Lease, from its declaration to the end of its term.
 *
 * Flow: declared → stands by: what every replica runs → acquires the Lease → leads → the Lease is lost, or it is to be declared
 * anew (`renew`: the Lease is kept), or the manager stops.
 * A manager has one control after the other on the same caches, each declared anew (`Manager.control`).
 * Guarantees: once it has ended nothing of it writes, also when the process leads again: its fence, its client and its
 * `isLeading` are its own. The next one begins when every part of this one has ended.
 * Caveats: a request that was sent before the end may still arrive; see lease.ts.
 */
import type { Registry } from 'prom-client'
import { fencedClient } from '../apply/writer.ts'
import { LeadershipLost, type WriteFence } from '../apply/write-fence.ts'
import type { Cluster } from '../cache/cluster.ts'
import { scopedCluster, Subscriptions } from '../cache/scoped-cluster.ts'
import type { Aggregator } from '../controller/aggregator.ts'
import { createRunnableContext, type Environment } from '../controller/context.ts'
import type { Controller } from '../controller/controller.ts'
import type { KeyedAggregator } from '../controller/keyed-aggregator.ts'
import type { Signals } from '../controller/workers.ts'
import { ApiError, KubeError, TransportError } from '../errors.ts'
import type { Logger } from '../log.ts'
import { sharedStop } from '../stop-signal.ts'
import type { Clock } from '../clock.ts'
import type { Election } from './lease.ts'
import type { Runnable } from './manager.ts'
import { Phase } from './phase.ts'

interface RunnablePart {
  readonly name: string
  readonly run: Runnable
  readonly leader: boolean
  readonly reportingController: string | undefined
}

/** What was declared, on the manager itself or for one control. */
export interface Declarations {
  readonly controllers: Controller[]
  readonly aggregators: (Aggregator | KeyedAggregator)[]
  readonly runnables: RunnablePart[]
}

export function newDeclarations(): Declarations {
  return { controllers: [], aggregators: [], runnables: [] }
}

export interface ControlDeps {
  readonly cluster: Cluster
  readonly log: Logger
  readonly clock: Clock
  /** Undefined: without election the process always leads. */
  readonly election: Election | undefined
  /** The manager runs. */
  readonly isRunning: () => boolean
  /** For the metrics of this control. */
  readonly registry: Registry
  readonly environmentOf: (fence: WriteFence) => Environment
}

/** A control that takes longer to end is named in the log. */
const SLOW_END_MS = 30_000
/** Running reconciles of a control that is declared anew have this long to end before they are aborted. */
const RENEWAL_GRACE_MS = 500

export class Control {
  readonly declarations = newDeclarations()
  /** Taken by its declarations. */
  readonly names = new Set<string>()
  readonly registry: Registry
  readonly election: Election | undefined
  readonly subscriptions = new Subscriptions()
  /** As the declarations of this control use it. */
  readonly cluster: Cluster
  readonly fence: WriteFence
  /** Of its controllers in the manager's own cluster. */
  readonly environment: Environment
  /** Resolves when its controllers start. */
  readonly begun: Promise<void>
  begin: () => void = () => undefined
  readonly #deps: ControlDeps
  /** Closed when this control has ended; open whether it leads or not. */
  readonly #livingFence: WriteFence
  readonly #stop = sharedStop()
  readonly #kill = sharedStop()
  readonly #over = sharedStop()
  readonly #runnables: Phase
  readonly #controllers: Phase
  readonly #recorders: Phase
  readonly #lease: Phase
  #hasStartedLeading = false
  #failure: unknown
  #renewal: string | undefined

  constructor(deps: ControlDeps) {
    this.#deps = deps
    this.registry = deps.registry
    this.election = deps.election
    this.#livingFence = {
      check: () => {
        if (this.hasEnded) throw new LeadershipLost('of an earlier term', 'that term has ended')
      },
    }
    this.fence = {
      check: () => {
        this.#livingFence.check()
        this.election?.fence.check()
      },
    }
    const phase = (): Phase => new Phase(deps.log, (error) => this.#fail(error))
    this.#runnables = phase()
    this.#controllers = phase()
    this.#recorders = phase()
    this.#lease = phase()
    this.environment = deps.environmentOf(this.fence)
    this.begun = new Promise((resolve) => (this.begin = resolve))
    const { cluster } = deps
    // Declarations may write before and while this control leads, as far as the process may.
    const client = fencedClient(cluster.client, this.#livingFence, this.#kill.signal)
    this.cluster = scopedCluster(cluster, client, this.subscriptions)
  }

  get hasEnded(): boolean {
    return this.#stop.signal.aborted
  }

  get isLeading(): boolean {
    if (this.hasEnded || !this.#deps.isRunning()) return false
    return this.election === undefined || this.election.isLeading
  }

  /** Aborts when the control begins to end: because a part failed, or because it was stopped. */
  get over(): AbortSignal {
    return this.#over.signal
  }

  /** Why it ended, if not because the manager stops. */
  get failure(): unknown {
    return this.#failure
  }

  /** Signals of controllers that run beside it, on members. */
  get signals(): Signals {
    return { stop: this.#stop.signal, kill: this.#kill.signal }
  }

  /** Why it is to be declared anew, where that is what ended it. */
  get renewal(): string | undefined {
    return this.#renewal
  }

  /** Ends it although nothing failed: what it was declared from has changed. */
  renew(why: string): void {
    if (this.#over.signal.aborted) return
    this.#renewal = why
    this.#over.abort(new KubeError('RENEWED', `control starts again: ${why}`))
  }

  /** Another control may succeed where this one failed: the Lease was lost, or the API server failed. */
  get isRepeatable(): boolean {
    const error = this.#failure
    const isOfServer = error instanceof ApiError || error instanceof TransportError || error instanceof LeadershipLost
    // What fails after the fence closed fails because of that.
    return isOfServer || (this.#hasStartedLeading && this.election !== undefined && !this.election.isLeading)
  }

  /** What every replica runs. */
  standBy(syncTimeoutMs: number): void {
    const { environment } = this
    this.#recorders.start('events', async (stop) => environment.recorder.run(stop, this.hasEnded ? 0 : undefined))
    for (const runnable of this.declarations.runnables) if (!runnable.leader) this.#startRunnable(runnable)
    for (const aggregator of this.declarations.aggregators)
      if (!aggregator.needsLeader) this.#startController(aggregator, syncTimeoutMs)
  }

  /** Call when the Lease is acquired. */
  hold(): void {
    const { election } = this
    this.#hasStartedLeading = true
    if (election !== undefined) this.#lease.start('lease', async (stop) => election.hold(stop))
  }

  /** Starts what needs the Lease: what was declared for this control, and `shared`, declared on the manager itself. */
  lead(shared: Declarations, syncTimeoutMs: number): void {
    this.begin()
    const all = [shared, this.declarations]
    for (const { controllers } of all)
      for (const controller of controllers)
        if (controller.clusters !== 'fleet') this.#startController(controller, syncTimeoutMs)
    for (const { aggregators } of all)
      for (const aggregator of aggregators) if (aggregator.needsLeader) this.#startController(aggregator, syncTimeoutMs)
    for (const { runnables } of all)
      for (const runnable of runnables) if (runnable.leader) this.#startRunnable(runnable)
  }

  #startRunnable(runnable: RunnablePart): void {
    // Writes of what every replica runs are not fenced by the Lease; Events are.
    const environment = runnable.leader ? this.environment : { ...this.environment, fence: this.#livingFence }
    this.#runnables.start(runnable.name, async (stop) =>
      runnable.run(createRunnableContext(environment, runnable, stop)),
    )
  }

  #startController(controller: Controller | Aggregator | KeyedAggregator, syncTimeoutMs: number): void {
    const kill = this.#kill.signal
    this.#controllers.start(`controller ${controller.name}`, async (stop) =>
      controller.run(this.environment, { stop, kill, syncTimeoutMs }),
    )
  }

  #fail(error: unknown): void {
    this.#failure ??= error
    this.#over.abort(error)
  }

  /** Aborts running reconciles. */
  kill(reason: unknown): void {
    this.#kill.abort(reason)
  }

  async stopRunnables(reason: unknown): Promise<void> {
    this.#over.abort(reason)
    await this.#runnables.stop(reason)
  }

  /** The Lease is still held: see `release`. */
  async stopControllers(reason: unknown): Promise<void> {
    this.#over.abort(reason)
    await this.#controllers.stop(reason)
    await this.#recorders.stop(reason)
    this.#stop.abort(reason)
    this.subscriptions.end()
  }

  /** Ends it at once, and resolves when every part has ended. `members` settles when its controllers on members have. */
  async end(members: Promise<void>): Promise<void> {
    const reason = this.#failure
    this.#kill.abort(reason)
    this.#stop.abort(reason)
    const cancel = this.#reportSlowEnd(
      'parts have not ended since leadership was lost; the lease is acquired when they have',
    )
    await Promise.all([this.stopRunnables(reason), this.stopControllers(reason), members])
    await this.release(reason)
    cancel()
  }

  /** Ends a control that is declared anew, and resolves when every part has ended. The Lease is held by this process. */
  async endForRenewal(members: () => Promise<unknown>): Promise<void> {
    const { reason } = this.#over.signal
    const cancel = this.#deps.clock.after(RENEWAL_GRACE_MS, () => this.#kill.abort(reason))
    const cancelReport = this.#reportSlowEnd('parts have not ended; control starts again when they have')
    await this.stopRunnables(reason)
    await this.stopControllers(reason)
    await members()
    this.#kill.abort(reason)
    await this.#lease.stop(reason)
    cancel()
    cancelReport()
  }

  #reportSlowEnd(message: string): () => void {
    const { clock, log } = this.#deps
    return clock.after(SLOW_END_MS, () => {
      const parts = [...this.#runnables.running, ...this.#controllers.running]
      log.error({ parts }, message)
    })
  }

  /** Call when nothing writes any more: another process may take the Lease at once. */
  async release(reason: unknown): Promise<void> {
    await this.#lease.stop(reason)
    await this.election?.release()
  }
}
