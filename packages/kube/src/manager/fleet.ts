/**
 * A fleet: several member clusters under one manager, added and removed while it runs.
 *
 * Flow: `engage` starts a member's caches and, once this process leads, its controllers; `disengage` aborts its
 * reconciles, drops its keys, stops its caches and closes its connections. A member caches only the kinds required by
 * its controllers and by `watch`.
 * Guarantees: every member has its own sessions, caches, queues and back-off: an unavailable, slow or misconfigured
 * member never delays or stops another. A member that fails is restarted with back-off, without a limit of attempts.
 */
import type { Change, InformerOptions, WatchFailure } from '../cache/informer.ts'
import type { Clock } from '../clock.ts'
import type { Subscriptions } from '../cache/scoped-cluster.ts'
import { sleep } from '../clock.ts'
import type { Cluster } from '../cache/cluster.ts'
import type { ClusterConfig } from '../config/cluster-config.ts'
import { KubeError, messageOf } from '../errors.ts'
import type { Logger } from '../log.ts'
import { kindName, type Kind, type Obj } from '../object/object.ts'
import type { Signals } from '../controller/workers.ts'
import { sharedStop } from '../stop-signal.ts'

/**
 * `connecting`: no response yet. `unreachable`: no kind can be read; `message` is the error of the server, or why there
 * was no response. One denied kind does not make a member unreachable.
 */
export type Reachability =
  | { readonly type: 'connecting' }
  | { readonly type: 'reachable' }
  | {
      readonly type: 'unreachable'
      readonly reason: WatchFailure['reason']
      readonly message: string
      /** Time of the first of consecutive failures, ms since the epoch. */
      readonly sinceMs: number
    }

export interface FleetMember {
  readonly name: string
  readonly cluster: Cluster
  readonly reachability: Reachability
}

export interface EngageOptions {
  /** Names of the controllers that run on this member. @default all with `clusters: 'fleet'` or `'all'` */
  readonly controllers?: readonly string[]
}

export interface FleetEvent {
  readonly type: 'engaged' | 'disengaged' | 'reachability'
  readonly member: FleetMember
}

export interface Fleet {
  /** Clusters of the members by member name. */
  readonly clusters: ReadonlyMap<string, Cluster>
  readonly members: ReadonlyMap<string, FleetMember>
  /**
   * Takes ownership of the cluster: it is closed when the member leaves. Throws if a member of that name is engaged.
   */
  engage(cluster: Cluster, options?: EngageOptions): FleetMember
  /** Connects with the manager's metrics, log and field manager, and engages the cluster. */
  join(name: string, config: ClusterConfig, options?: EngageOptions): FleetMember
  /**
   * Replaces the credentials of a member without interrupting its watches. False if the configuration names another
   * server: disengage the member and join it again. Throws if there is no member of that name.
   */
  reconfigure(name: string, config: ClusterConfig): boolean
  /**
   * Resolves when the member's last reconcile has ended and it is closed; immediately if there is no member of that
   * name.
   */
  disengage(name: string): Promise<void>
  /**
   * Watches a kind in all current and future members. The handler receives the change sequence of each member, starting
   * with its cached objects. Returns the unsubscribe function.
   */
  watch<T extends Obj>(
    kind: Kind<T>,
    handler: (change: Change<T>, member: FleetMember) => void,
    options?: InformerOptions<T>,
  ): () => void
  /**
   * Calls the listener when a member joins, leaves, becomes unreachable or reachable. Returns the unsubscribe function.
   */
  subscribe(listener: (event: FleetEvent) => void): () => void
}

export interface FleetDeps {
  /** Runs the controllers and caches of one member until stopped. */
  run: (cluster: Cluster, signals: Signals, options: EngageOptions) => Promise<void>
  /** Called before any kind of a member is watched. */
  configure: (cluster: Cluster) => void
  connect: (config: ClusterConfig, name: string) => Cluster
  clock: Clock
  log: Logger
}

export interface RunningFleet extends Fleet {
  /** Starts members engaged before. */
  start(): void
  stop(signals: Signals): Promise<void>
}

interface Watch {
  readonly kind: Kind
  readonly handler: (change: Change<Obj>, member: FleetMember) => void
  readonly options: InformerOptions<Obj>
  /** Unsubscribe functions by member name. */
  readonly unsubscribes: Map<string, () => void>
}

const RETRY_BASE_MS = 1_000
const RETRY_LIMIT_MS = 60_000

/** Runs until stopped; a failure or unexpected end is logged and followed by another attempt. Never rejects. */
export async function restartOnFailure(
  { log, clock, stop }: { log: Logger; clock: Clock; stop: AbortSignal },
  run: () => Promise<void>,
): Promise<void> {
  for (let failures = 0; !stop.aborted; failures++) {
    try {
      await run()
      if (stop.aborted) return
      throw new KubeError('MEMBER_ENDED', 'it ended by itself')
    } catch (error) {
      const retryMs = Math.min(RETRY_BASE_MS * 2 ** failures, RETRY_LIMIT_MS)
      if (!stop.aborted) log.error({ err: error, retryMs }, 'part of a member cluster failed; it starts again')
      await sleep(clock, retryMs, stop)
    }
  }
}

class Member implements FleetMember {
  readonly cluster: Cluster
  readonly options: EngageOptions
  readonly stop = sharedStop()
  readonly kill = sharedStop()
  running: Promise<void> | undefined
  /** Ends the subscription to the failures of the member's watches. */
  unsubscribe: () => void = () => undefined

  constructor(cluster: Cluster, options: EngageOptions) {
    this.cluster = cluster
    this.options = options
  }

  get name(): string {
    return this.cluster.name
  }

  get reachability(): Reachability {
    const informers = this.cluster.informers.all()
    if (informers.some(({ failure, lastReceivedAt }) => failure === undefined && lastReceivedAt !== undefined))
      return { type: 'reachable' }
    const failing = informers.find(({ failure }) => failure !== undefined)
    if (failing?.failure === undefined) return { type: 'connecting' }
    const { reason, message, sinceMs } = failing.failure
    return { type: 'unreachable', reason, message: `${kindName(failing.kind)}: ${message}`, sinceMs }
  }
}

/** The same fleet; what is subscribed to through this one ends with `subscriptions`. */
export function scopedFleet(fleet: Fleet, subscriptions: Subscriptions): Fleet {
  return {
    get clusters() {
      return fleet.clusters
    },
    get members() {
      return fleet.members
    },
    engage: (cluster, options) => fleet.engage(cluster, options),
    join: (name, config, options) => fleet.join(name, config, options),
    reconfigure: (name, config) => fleet.reconfigure(name, config),
    disengage: async (name) => fleet.disengage(name),
    watch: (kind, handler, options) => subscriptions.add(fleet.watch(kind, handler, options)),
    subscribe: (listener) => subscriptions.add(fleet.subscribe(listener)),
  }
}

export function createFleet({ run, configure, connect, clock, log }: FleetDeps): RunningFleet {
  const members = new Map<string, Member>()
  const clusters = new Map<string, Cluster>()
  const watches = new Set<Watch>()
  const listeners = new Set<(event: FleetEvent) => void>()
  let isStarted = false
  let isStopped = false

  async function keepRunning(member: Member): Promise<void> {
    const { cluster, stop, kill, options } = member
    const what = { log: log.child({ cluster: cluster.name }), clock, stop: stop.signal }
    await restartOnFailure(what, async () => run(cluster, { stop: stop.signal, kill: kill.signal }, options))
  }

  async function end(member: Member): Promise<void> {
    await member.running
    try {
      await member.cluster.close()
    } catch (error) {
      log.warn({ cluster: member.name, error: messageOf(error) }, 'connections of a cluster did not close')
    }
  }

  function notify(type: FleetEvent['type'], member: FleetMember): void {
    for (const listener of listeners) {
      try {
        listener({ type, member })
      } catch (error) {
        log.error({ err: error, cluster: member.name }, 'fleet listener failed')
      }
    }
  }

  function startWatch({ kind, handler, options, unsubscribes }: Watch, member: Member): void {
    const informer = member.cluster.informers.informer(kind, options)
    const onError = (error: unknown) =>
      log.error({ err: error, cluster: member.name, kind: kindName(kind) }, 'fleet watch handler failed and is dropped')
    unsubscribes.set(
      member.name,
      informer.subscribe((change) => handler(change, member), { onError }),
    )
  }

  function endWatches(name: string): void {
    for (const { unsubscribes } of watches) {
      unsubscribes.get(name)?.()
      unsubscribes.delete(name)
    }
  }

  /** Tracks the reachability of a member; also reports a change from one failure to another. */
  function trackReachability(member: Member): void {
    let lastReported = JSON.stringify(member.reachability)
    member.unsubscribe = member.cluster.informers.onHealthChange(() => {
      const now = JSON.stringify(member.reachability)
      if (now === lastReported) return
      lastReported = now
      notify('reachability', member)
    })
  }

  const fleet: RunningFleet = {
    clusters,
    members,
    engage(cluster, options = {}) {
      const { name } = cluster
      if (members.has(name)) throw new KubeError('ENGAGED', `cluster ${name} is engaged already; disengage it first`)
      if (isStopped) throw new KubeError('STOPPED', `cluster ${name} cannot be engaged: the manager is stopping`)
      const member = new Member(cluster, options)
      configure(cluster)
      members.set(name, member)
      clusters.set(name, cluster)
      trackReachability(member)
      for (const watch of watches) startWatch(watch, member)
      log.info({ cluster: name }, 'cluster engaged')
      if (isStarted) member.running = keepRunning(member)
      notify('engaged', member)
      return member
    },
    join: (name, config, options) => fleet.engage(connect(config, name), options),
    reconfigure(name, config) {
      const member = members.get(name)
      if (member === undefined) throw new KubeError('NOT_ENGAGED', `cluster ${name} is not engaged`)
      return member.cluster.reconfigure(config)
    },
    async disengage(name) {
      const member = members.get(name)
      if (member === undefined) return
      members.delete(name)
      clusters.delete(name)
      endWatches(name)
      member.unsubscribe()
      const reason = new KubeError('DISENGAGED', `cluster ${name} was disengaged`)
      member.stop.abort(reason)
      member.kill.abort(reason)
      notify('disengaged', member)
      await end(member)
      log.info({ cluster: name }, 'cluster disengaged')
    },
    watch(kind, handler, options = {}) {
      const watch: Watch = {
        kind,
        handler: handler as unknown as Watch['handler'],
        options: options as unknown as InformerOptions<Obj>,
        unsubscribes: new Map(),
      }
      watches.add(watch)
      for (const member of members.values()) startWatch(watch, member)
      return () => {
        watches.delete(watch)
        for (const unsubscribe of watch.unsubscribes.values()) unsubscribe()
      }
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    start() {
      isStarted = true
      for (const member of members.values()) member.running ??= keepRunning(member)
    },
    async stop({ stop, kill }) {
      isStopped = true
      const all = [...members.values()]
      const killAll = () => {
        for (const member of all) member.kill.abort(kill.reason)
      }
      for (const member of all) {
        member.unsubscribe()
        member.stop.abort(stop.reason)
      }
      kill.addEventListener('abort', killAll)
      if (kill.aborted) killAll()
      await Promise.all(all.map(async (member) => end(member)))
      kill.removeEventListener('abort', killAll)
      members.clear()
      clusters.clear()
    },
  }
  return fleet
}
