/**
 * The push syncer: applies the manifests of LeafIngresses on their member, corrects drift and deletes what is drained.
 *
 * Place in the flow: one instance of the controller per member, with queue, workers and rate limit of its own, so that a slow
 * member never delays another. It reads LeafIngresses from the cache of the hub and reports through SyncResults.
 * Guarantees: a LeafIngress that the planner did not render is refused (decide/leaf-check.ts), and so are objects of others on
 * the member (decide/sync.ts); deletes carry the UID of a live read; while a member is
 * unreachable nothing is sent to it, and its leaves continue when it returns.
 */
import {
  type Client,
  type Clock,
  Conflict,
  type Context,
  Forbidden,
  type Index,
  Invalid,
  type Kind,
  type Manager,
  messageOf,
  Namespace,
  type Next,
  NotFound,
  requeue,
  Secret,
} from '@seamark/kube'
import { type Immutable, keyOf, type Obj } from '@seamark/kube/object'
import { LeafIngress } from '../../api/leaf-ingress.ts'
import { FIELD_MANAGER } from '../../process/field-manager.ts'
import type { ProductMetrics } from '../../metrics.ts'
import type { Notify } from '../../process/reports/notices.ts'
import type { HeldObjects } from '../../safety/held-objects.ts'
import type { MassLimits } from '../../safety/mass-limits.ts'
import type { GuardedWrite, SecondWriterGuard } from '../../safety/second-writer-guard.ts'
import { checkLeaf, usableManifests } from '../decide/leaf-check.ts'
import { decideSync, isOurs } from '../decide/sync.ts'
import { deleteExactly } from './exact-delete.ts'
import { LeafTriggers } from './leaf-triggers.ts'
import { LEAF_CACHE_LIMITS } from './limits.ts'
import type { MemberViews } from './member-view.ts'
import { FLEET_FIELD_MANAGER, LEAF_ANNOTATION } from '../names.ts'
import { MANAGED_LABEL } from '../../hosts/root.ts'
import type { PlannedLeaves } from './planned-leaves.ts'
import { RateLimit } from './rate-limit.ts'
import type { Manifest } from '../roots/root-kind.ts'
import { ROOT_KINDS } from '../roots/root-kinds.ts'
import { createLeafGuard, type LeafGuard, sweepMember } from './sweep.ts'
import type { SyncResults } from './sync-results.ts'
import { TlsSecrets } from './tls-secrets.ts'

export interface SyncerOptions {
  /** Whether TLS Secrets are copied. */
  readonly hasTlsSecrets: boolean
  readonly results: SyncResults
  readonly planned: PlannedLeaves
  readonly views: MemberViews
  readonly metrics: ProductMetrics
  readonly leavesByCluster: Index<LeafIngress>
  readonly hubId: (client: Client) => Promise<string>
  readonly isWriting: () => boolean
  readonly untilMayWrite: (running: { readonly signal: AbortSignal }) => Promise<unknown> | undefined
  readonly secondWriter: SecondWriterGuard
  readonly heldObjects: HeldObjects
  readonly massLimits: MassLimits
  readonly notify: Notify
  readonly clock: Clock
}

/** While a member is unreachable, or nothing may be written. */
const RETRY = '10s'
const CONFLICT_RETRY = '1m'
const SWEEP_INTERVAL = '10m'
const SWEEP_KEY = 'sweep'
/** Requests that write, per member. */
const WRITES_PER_SECOND = 20
/** Of the sources that the guard against a second writer names. */
const SOURCE_PREFIX = 'LeafIngress '

export function setUpSyncer(manager: Manager, options: SyncerOptions): void {
  const leaves = new LeafTriggers(manager, options.leavesByCluster)
  const secrets = options.hasTlsSecrets ? new TlsSecrets(manager, (leaf) => leaves.mark(leaf)) : undefined
  options.planned.onChange = (key) => {
    const leaf = manager.cluster.informers.get(LeafIngress, key)
    if (leaf !== undefined) leaves.mark(leaf)
  }
  const guard = createLeafGuard(options.clock, options.massLimits)
  options.metrics.leavesHeld(() => guard.held)
  options.heldObjects.add('fleet', guard, () => leaves.markEach(SWEEP_KEY))
  const syncer = new Syncer(manager, options, secrets, guard)
  const controller = manager.keyedController('fleet-sync', { clusters: 'fleet', timeout: '1m' })
  for (const { kind } of ROOT_KINDS)
    controller.watches<Obj>(
      kind,
      ({ metadata: { namespace, annotations } }) => [`${namespace}/${annotations?.[LEAF_ANNOTATION] ?? ''}`],
      { labelSelector: `${MANAGED_LABEL}=true`, optional: true, limits: LEAF_CACHE_LIMITS },
    )
  controller
    .triggers((mark, cluster) => leaves.start(mark, cluster))
    .triggers((mark) =>
      options.secondWriter.subscribe((sources) =>
        mark(sources.flatMap((each) => (each.startsWith(SOURCE_PREFIX) ? [each.slice(SOURCE_PREFIX.length)] : []))),
      ),
    )
    .every(SWEEP_INTERVAL, () => [SWEEP_KEY])
    .reconcile((key, ctx) => (key === SWEEP_KEY ? syncer.sweep(ctx) : syncer.reconcile(key, ctx)))
}

class Syncer {
  readonly #manager: Manager
  readonly #options: SyncerOptions
  readonly #secrets: TlsSecrets | undefined
  readonly #limits = new Map<string, RateLimit>()
  readonly #guard: LeafGuard
  /** What was last reported as held, by member. */
  readonly #reported = new Map<string, string>()

  constructor(manager: Manager, options: SyncerOptions, secrets: TlsSecrets | undefined, guard: LeafGuard) {
    this.#manager = manager
    this.#options = options
    this.#secrets = secrets
    this.#guard = guard
  }

  async reconcile(key: string, ctx: Context): Promise<Next> {
    const { views, isWriting, untilMayWrite, hubId } = this.#options
    await untilMayWrite(ctx)
    const leaf = this.#manager.cluster.informers.get(LeafIngress, key)
    const limit = this.#limitOf(ctx.cluster)
    if (leaf === undefined || leaf.spec.cluster !== ctx.cluster) return limit.release(key)
    // Before anything is read: thousands of leaves may wait after a cluster joined.
    const turnMs = limit.waitMs(key, ctx.clock.monotonic())
    if (turnMs > 0) return requeue(turnMs)
    if (!isWriting() || views.readable(ctx.cluster) === undefined) return requeue(RETRY)
    const id = await hubId(this.#manager.client)
    if (leaf.status?.phase === 'Drained') {
      if (leaf.metadata.deletionTimestamp === undefined) return
      const waitMs = limit.take(key, ctx.clock.monotonic())
      if (waitMs > 0) return requeue(waitMs)
      return this.#remove(key, leaf, id, ctx)
    }
    return this.#apply(key, leaf, id, ctx)
  }

  async #apply(key: string, leaf: Immutable<LeafIngress>, hubId: string, ctx: Context): Promise<Next> {
    const { results, planned } = this.#options
    const check = checkLeaf({
      leaf,
      planned: planned.get(key),
      isApplied: this.#isApplied(key),
    })
    if (check.state === 'unplanned') return
    if (check.state === 'refused') {
      results.set(key, { reason: 'LeafNotPlanned', message: check.message, isGone: false })
      return
    }
    const adopt = leaf.spec.adopt === true
    const copies = this.#secrets?.copiesFor(leaf, hubId) ?? []
    // Certificates first: a leaf without its own would be served with another one.
    for (const manifest of [...copies, ...usableManifests(leaf)]) {
      if (typeof manifest === 'string') {
        results.set(key, { reason: 'ApplyRejected', message: manifest, isGone: false })
        return requeue(CONFLICT_RETRY)
      }
      const kind = manifest.kind === Secret.kind ? Secret : kindOf(manifest)
      if (kind === undefined) continue
      // The cache has only labelled objects: an object of another owner is found by a live read.
      const cached = kind === Secret ? undefined : ctx.get(kind, keyOf(manifest))
      const live = cached ?? (await ctx.client.find(kind, keyOf(manifest)))
      const decision = decideSync(manifest, live, { hubId, adopt })
      if (decision.step === 'none') continue
      if (decision.step === 'refuse') {
        results.set(key, { reason: 'ForeignObject', message: decision.message, isGone: false })
        return requeue(CONFLICT_RETRY)
      }
      const write = guardedWrite(kind, manifest, live, key, ctx)
      const stopped = await this.#options.secondWriter.check(write)
      if (stopped !== undefined) {
        results.set(key, { reason: 'SecondWriter', message: stopped.finding.message, isGone: false })
        return requeue(stopped.afterMs)
      }
      if (decision.why === 'drift') this.#options.metrics.driftCorrected(ctx.cluster)
      const waitMs = this.#limitOf(ctx.cluster).take(key, ctx.clock.monotonic())
      if (waitMs > 0) return requeue(waitMs)
      // Drift is of fields that were ours, so they are taken back; any other conflict is reported.
      const force = leaf.spec.force === true || decision.why === 'drift'
      const failure = await this.#send(kind, manifest, leaf, force, ctx)
      if (failure !== undefined) {
        results.set(key, { ...failure, isGone: false })
        return requeue(CONFLICT_RETRY)
      }
      this.#options.secondWriter.note(write)
    }
    results.set(key, undefined)
  }

  /** Undefined: applied. What a retry may mend is thrown. */
  async #send(
    kind: Kind,
    manifest: Immutable<Manifest>,
    leaf: Immutable<LeafIngress>,
    force: boolean,
    ctx: Context,
  ): Promise<{ reason: 'ApplyConflict' | 'NamespaceMissing' | 'ApplyRejected'; message: string } | undefined> {
    const options = { fieldManager: FLEET_FIELD_MANAGER, force }
    try {
      await ctx.client.apply(kind, manifest, options)
      return undefined
    } catch (error) {
      const message = messageOf(error)
      if (error instanceof Conflict) return { reason: 'ApplyConflict', message }
      if (error instanceof Invalid || error instanceof Forbidden) return { reason: 'ApplyRejected', message }
      if (!(error instanceof NotFound)) throw error
      if (leaf.spec.namespacePolicy !== 'Create')
        return {
          reason: 'NamespaceMissing',
          message: `namespace ${manifest.metadata.namespace} does not exist on cluster ${ctx.cluster}; create it, or set namespacePolicy: Create on the Cluster`,
        }
      await ctx.client.create(Namespace, { metadata: { name: manifest.metadata.namespace } })
      await ctx.client.apply(kind, manifest, options)
      return undefined
    }
  }

  async #remove(key: string, leaf: Immutable<LeafIngress>, hubId: string, ctx: Context): Promise<void> {
    for (const manifest of usableManifests(leaf)) {
      const kind = kindOf(manifest)
      if (kind === undefined) continue
      const live = await ctx.client.find(kind, keyOf(manifest))
      if (
        live === undefined ||
        !isOurs(live, hubId) ||
        live.metadata.annotations?.[LEAF_ANNOTATION] !== leaf.metadata.name
      )
        continue
      await deleteExactly(ctx.client, kind, live)
      // A later apply of the same content does not undo what another client did.
      this.#options.secondWriter.note({ ...guardedWrite(kind, manifest, live, key, ctx), desired: undefined })
      // With finalizers of others it is still there: the watch reports when it is gone.
      if ((await ctx.client.find(kind, keyOf(manifest))) !== undefined) return
    }
    for (const { kind, key: unused } of (await this.#secrets?.unusedBy(leaf, ctx.signal)) ?? []) {
      const live = await ctx.client.find(kind, unused)
      if (live !== undefined && isOurs(live, hubId)) await deleteExactly(ctx.client, kind, live)
    }
    this.#options.results.set(key, { reason: 'DrainCompleted', message: '', isGone: true })
  }

  async sweep(ctx: Context): Promise<void> {
    const { informers } = this.#manager.cluster
    if (!this.#options.isWriting() || this.#options.views.readable(ctx.cluster) === undefined) return
    const deps = {
      hubId: await this.#options.hubId(this.#manager.client),
      isHubSynced: informers.informer(LeafIngress).hasSynced,
      findLeaf: (key: string) => informers.get(LeafIngress, key),
      readLeaf: async (key: string) => this.#manager.client.find(LeafIngress, key),
      guard: this.#guard,
    }
    this.#reportHeld(await sweepMember(deps, ctx), ctx)
    if (deps.isHubSynced) await this.#secrets?.sweep(ctx, deps.hubId)
  }

  /** Whether our field manager applied the LeafIngress, as far as the cache knows. */
  #isApplied(key: string): boolean {
    return this.#manager.cluster.informers.ownFields(LeafIngress, key, FIELD_MANAGER) !== undefined
  }

  /** Once for each set: a sweep repeats what is held. */
  #reportHeld(messages: readonly string[], { cluster }: Context): void {
    const text = messages.join('\n')
    if (this.#reported.get(cluster) === text) return
    this.#reported.set(cluster, text)
    for (const message of messages)
      this.#options.notify({ reason: 'GuardTripped', severity: 'Warning', message, fields: { cluster } })
  }

  #limitOf(cluster: string): RateLimit {
    let limit = this.#limits.get(cluster)
    if (limit === undefined) {
      limit = new RateLimit(WRITES_PER_SECOND)
      this.#limits.set(cluster, limit)
    }
    return limit
  }
}

function kindOf({ kind }: Immutable<Manifest>): Kind | undefined {
  return ROOT_KINDS.find((each) => each.kind.kind === kind)?.kind
}

function guardedWrite(
  kind: Kind,
  manifest: Immutable<Manifest>,
  live: Immutable<Obj> | undefined,
  leaf: string,
  { cluster, client }: Context,
): GuardedWrite {
  const source = `${SOURCE_PREFIX}${leaf}`
  const member = { name: cluster, client }
  return { kind, key: keyOf(manifest), desired: manifest, live, fieldManager: FLEET_FIELD_MANAGER, source, member }
}
