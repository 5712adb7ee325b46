/**
 * Controller of Clusters: contact with each member every ten seconds, and its conditions. A Cluster that is being deleted is
 * drained first: its finalizer goes when no leaf is left on it.
 */
import {
  type Context,
  type Index,
  type Manager,
  type Next,
  addFinalizer,
  removeFinalizer,
  requeue,
} from '@seamark/kube'
import { byAge } from '@seamark/dialects'
import type { Immutable } from '@seamark/kube/object'
import { Cluster } from '../../api/cluster.ts'
import { LeafIngress } from '../../api/leaf-ingress.ts'
import type { MemberRegistry } from '../../clusters/member-registry.ts'
import type { ProductMetrics } from '../../metrics.ts'
import {
  clusterEvents,
  type Contact,
  type ContactHistory,
  decideClusterStatus,
  NO_HISTORY,
  recordContact,
} from '../decide/cluster-status.ts'
import type { MemberViews } from './member-view.ts'
import { contactMember, isAnswering } from './member-access.ts'
import { CLUSTER_FINALIZER, FORCE_DETACH_ANNOTATION, LEAF_ANNOTATION } from '../names.ts'
import { ROOT_KINDS } from '../roots/root-kinds.ts'

export interface ClusterControllerOptions {
  readonly registry: MemberRegistry
  readonly views: MemberViews
  readonly metrics: ProductMetrics
  readonly leavesByCluster: Index<LeafIngress>
  /** Between two contacts. */
  readonly contactMs: number
  /** How long changes of leaves are collected. */
  readonly batchMs: () => number
  readonly isWriting: () => boolean
  readonly untilMayWrite: (running: { readonly signal: AbortSignal }) => Promise<unknown> | undefined
}

/** Between two whole checks: version, kinds, rights. */
const CHECK_INTERVAL_MS = 10 * 60_000
/** Many members may be unreachable at once, and each holds up its worker for the deadline. */
const CONCURRENCY = 32

interface Contacted {
  readonly contact: Contact
  readonly history: ContactHistory
  /** Monotonic, of the last whole check. */
  readonly checkedMs: number
  readonly checkedUnder: object | undefined
}

export function setUpClusters(manager: Manager, options: ClusterControllerOptions): void {
  const clusters = new Clusters(options)
  manager
    .controller('fleet-cluster', Cluster, { concurrency: CONCURRENCY, timeout: '30s' })
    // Counted in the status: the count of every leaf for a change of each would be quadratic.
    .watches(LeafIngress, ({ spec }) => [spec.cluster], { batchMs: options.batchMs })
    .watches(Cluster, ({ status, metadata }, cache) =>
      // A duplicate becomes the only one when the other goes.
      cache
        .list(Cluster)
        .filter((other) => other.status?.clusterUID === status?.clusterUID && other.metadata.name !== metadata.name)
        .map((other) => other.metadata.name),
    )
    .triggers((mark) => options.registry.subscribe((name) => mark([name])))
    .every(options.contactMs, (cache) => cache.list(Cluster).map(({ metadata }) => metadata.name))
    .gone(async (name) => clusters.forget(name))
    .reconcile((cluster, ctx) => clusters.reconcile(cluster, ctx))
}

class Clusters {
  readonly #options: ClusterControllerOptions
  readonly #contacted = new Map<string, Contacted>()

  constructor(options: ClusterControllerOptions) {
    this.#options = options
  }

  forget(name: string): void {
    this.#contacted.delete(name)
    this.#options.metrics.clusterReachable(name, undefined)
  }

  async reconcile(
    cluster: Immutable<Cluster> & { metadata: { name: string; uid: string } },
    ctx: Context,
  ): Promise<Next> {
    const { registry, leavesByCluster, isWriting, untilMayWrite, metrics, contactMs } = this.#options
    const { name, deletionTimestamp, finalizers = [] } = cluster.metadata
    await untilMayWrite(ctx)
    if (!isWriting()) return requeue(contactMs)
    if (!registry.isRead) return requeue('1s')
    const leaves = ctx.by(leavesByCluster, name)
    if (deletionTimestamp !== undefined && finalizers.includes(CLUSTER_FINALIZER)) {
      const isForced = cluster.metadata.annotations?.[FORCE_DETACH_ANNOTATION] !== undefined
      if (leaves.length === 0 || isForced) return removeFinalizer(ctx.client, Cluster, cluster, CLUSTER_FINALIZER)
    }
    if (deletionTimestamp === undefined && !finalizers.includes(CLUSTER_FINALIZER))
      await addFinalizer(ctx.client, Cluster, cluster, CLUSTER_FINALIZER)
    const registered = registry.clusters.get(name)
    const contacted = registered?.cluster === undefined ? undefined : await this.#contact(name, registered.cluster, ctx)
    const uid = contacted?.contact.state === 'answered' ? contacted.contact.uid : cluster.status?.clusterUID
    const status = decideClusterStatus({
      cluster,
      registration: registered,
      contact: contacted?.contact,
      history: contacted?.history ?? NO_HISTORY,
      duplicateOf: uid === undefined ? undefined : findOlder(cluster, uid, ctx.list(Cluster)),
      leaves: countByReason(leaves),
      orphans: this.#orphansOf(cluster),
      nowMs: ctx.clock.now(),
    })
    metrics.clusterReachable(
      name,
      status.conditions?.some(({ type, status: value }) => type === 'Reachable' && value === 'True'),
    )
    for (const { type, reason, note } of clusterEvents(cluster.status, status)) ctx.event(cluster, type, reason, note)
    await ctx.status(cluster, status)
  }

  async #contact(
    name: string,
    connection: NonNullable<ReturnType<MemberRegistry['clusters']['get']>>['cluster'],
    ctx: Context,
  ): Promise<Contacted | undefined> {
    if (connection === undefined) return undefined
    const before = this.#contacted.get(name)
    const nowMs = ctx.clock.monotonic()
    const isDue =
      before === undefined ||
      before.contact.state === 'failed' ||
      before.contact.missingVerbs.length > 0 ||
      before.checkedUnder !== connection ||
      nowMs - before.checkedMs >= CHECK_INTERVAL_MS
    let contact: Contact
    if (isDue) contact = await contactMember(connection.client, ctx.signal)
    else {
      const failure = await isAnswering(connection.client, ctx.signal)
      contact = failure === undefined ? before.contact : { state: 'failed', isDenied: false, message: failure }
    }
    const isHit = contact.state === 'answered'
    const next: Contacted = {
      contact,
      history: recordContact(before?.history ?? NO_HISTORY, isHit, {
        nowMs: ctx.clock.now(),
        monotonicMs: nowMs,
        contactMs: this.#options.contactMs,
      }),
      checkedMs: isDue ? nowMs : (before?.checkedMs ?? nowMs),
      checkedUnder: connection,
    }
    this.#contacted.set(name, next)
    return next
  }

  /** Orphans that are still there, as far as the member can be read. */
  #orphansOf({ metadata, status }: Immutable<Cluster>): NonNullable<NonNullable<Cluster['status']>['orphans']> {
    const orphans = (status?.orphans ?? []) as NonNullable<NonNullable<Cluster['status']>['orphans']>
    return orphans.filter(({ kind, namespace, name }) => {
      const root = ROOT_KINDS.find((each) => each.kind.kind === kind)
      if (root === undefined) return false
      const found = this.#options.views.find(metadata.name ?? '', root.kind, `${namespace}/${name}`)
      return found === 'unknown' || found?.metadata.annotations?.[LEAF_ANNOTATION] !== undefined
    })
  }
}

function countByReason(leaves: readonly Immutable<LeafIngress>[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { status } of leaves) {
    const reason = status?.reason ?? 'ApplyPending'
    counts.set(reason, (counts.get(reason) ?? 0) + 1)
  }
  return counts
}

/** The older of two Clusters with one API server keeps it. */
function findOlder(cluster: Immutable<Cluster>, uid: string, all: readonly Immutable<Cluster>[]): string | undefined {
  const compare = byAge(Cluster)
  return all.find(
    (other) =>
      other.metadata.name !== cluster.metadata.name && other.status?.clusterUID === uid && compare(other, cluster) < 0,
  )?.metadata.name
}
