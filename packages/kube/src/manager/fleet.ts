/**
 * A fleet: several clusters under one manager, which come and go while it runs.
 *
 * Flow: `engage` starts a member's caches and, once this process leads, its controllers; `disengage` aborts its
 * reconciles, drops its keys, stops its caches and closes its connections.
 * Guarantees: every member has sessions, caches, queues and back-off of its own, and runs on its own: one that is dead,
 * slow or misconfigured never delays or stops another. A member that fails is started again with back-off, for ever.
 */
import type { Clock } from '../clock.ts'
import { sleep } from '../clock.ts'
import type { Cluster } from '../client/cluster.ts'
import { KubeError, messageOf } from '../errors.ts'
import type { Logger } from '../log.ts'
import type { Signals } from '../controller/workers.ts'

export interface Fleet {
  /** Members by name. */
  readonly clusters: ReadonlyMap<string, Cluster>
  /** Takes the cluster over: it is closed when it leaves. Throws when one of that name is engaged. */
  engage(cluster: Cluster): void
  /** Resolves when the member's last reconcile has ended and it is closed; at once when there is none of that name. */
  disengage(name: string): Promise<void>
}

export interface FleetDeps {
  /** Runs everything of one member until stopped. */
  run: (cluster: Cluster, signals: Signals) => Promise<void>
  /** Before anything of a member is watched. */
  configure: (cluster: Cluster) => void
  clock: Clock
  log: Logger
}

export interface RunningFleet extends Fleet {
  /** Members engaged earlier start now. */
  start(): void
  stop(signals: Signals): Promise<void>
}

interface Member {
  readonly cluster: Cluster
  readonly stop: AbortController
  readonly kill: AbortController
  running: Promise<void> | undefined
}

const retryBaseMs = 1_000
const retryLimitMs = 60_000

/** Runs until stopped; a failure, or an end that nobody asked for, is logged and followed by another try. Never rejects. */
export async function keepTrying(
  { log, clock, stop }: { log: Logger; clock: Clock; stop: AbortSignal },
  run: () => Promise<void>,
): Promise<void> {
  for (let failures = 0; !stop.aborted; failures++) {
    try {
      await run()
      if (stop.aborted) return
      throw new KubeError('MEMBER_ENDED', 'it ended by itself')
    } catch (error) {
      const retryMs = Math.min(retryBaseMs * 2 ** failures, retryLimitMs)
      if (!stop.aborted) log.error({ err: error, retryMs }, 'part of a member cluster failed; it starts again')
      await sleep(clock, retryMs, stop)
    }
  }
}

export function createFleet({ run, configure, clock, log }: FleetDeps): RunningFleet {
  const members = new Map<string, Member>()
  const clusters = new Map<string, Cluster>()
  let isStarted = false
  let isStopped = false

  async function keepRunning({ cluster, stop, kill }: Member): Promise<void> {
    const what = { log: log.child({ cluster: cluster.name }), clock, stop: stop.signal }
    await keepTrying(what, async () => run(cluster, { stop: stop.signal, kill: kill.signal }))
  }

  async function end(member: Member, name: string): Promise<void> {
    await member.running
    try {
      await member.cluster.close()
    } catch (error) {
      log.warn({ cluster: name, error: messageOf(error) }, 'connections of a cluster did not close')
    }
  }

  return {
    clusters,
    engage(cluster) {
      const { name } = cluster
      if (members.has(name)) throw new KubeError('ENGAGED', `cluster ${name} is engaged already; disengage it first`)
      if (isStopped) throw new KubeError('STOPPED', `cluster ${name} cannot be engaged: the manager is stopping`)
      const member: Member = { cluster, stop: new AbortController(), kill: new AbortController(), running: undefined }
      configure(cluster)
      members.set(name, member)
      clusters.set(name, cluster)
      log.info({ cluster: name }, 'cluster engaged')
      if (isStarted) member.running = keepRunning(member)
    },
    async disengage(name) {
      const member = members.get(name)
      if (member === undefined) return
      members.delete(name)
      clusters.delete(name)
      const reason = new KubeError('DISENGAGED', `cluster ${name} was disengaged`)
      member.stop.abort(reason)
      member.kill.abort(reason)
      await end(member, name)
      log.info({ cluster: name }, 'cluster disengaged')
    },
    start() {
      isStarted = true
      for (const member of members.values()) member.running ??= keepRunning(member)
    },
    async stop({ stop, kill }) {
      isStopped = true
      const all = [...members]
      const killAll = () => {
        for (const [, member] of all) member.kill.abort(kill.reason)
      }
      for (const [, member] of all) member.stop.abort(stop.reason)
      kill.addEventListener('abort', killAll)
      if (kill.aborted) killAll()
      await Promise.all(all.map(async ([name, member]) => end(member, name)))
      kill.removeEventListener('abort', killAll)
      members.clear()
      clusters.clear()
    },
  }
}
