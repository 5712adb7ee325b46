/**
 * Wildcard as a controller of the manager: one key per registered cluster (clusters/member-registry.ts) observes its nodes,
 * decides (cluster-decision.ts) and acts.
 *
 * Guarantees: clusters are reconciled independently of each other, so a member that does not answer delays no other;
 * an apply that would change nothing is not sent.
 */
import { type Clock, type Cluster, type Context, type Manager, type Next, Node, requeue, Secret } from '@seamark/kube'
import { type Immutable, keyOf, type LabelPredicate, parseLabelSelector } from '@seamark/kube/object'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import type { MemberRegistry } from '../clusters/member-registry.ts'
import { CLUSTER_LABEL, localRegistration, type Registration } from '../clusters/registry.ts'
import { type Finding, warning } from '../finding.ts'
import type { ProductMetrics } from '../metrics.ts'
import { WILDCARD_FIELD_MANAGER } from '../process/field-manager.ts'
import type { Notify } from '../process/reports/notices.ts'
import type { SecondWriterGuard, StoppedWrite } from '../safety/second-writer-guard.ts'
import type { HeldObjects } from '../safety/held-objects.ts'
import { createMassGuard, type MassGuard } from '../safety/mass-guard.ts'
import type { MassLimits } from '../safety/mass-limits.ts'
import { type ClusterDecision, type ClusterFacts, type DampingState, decideCluster } from './cluster-decision.ts'
import { NODE_CACHE_LIMITS } from './limits.ts'
import { massRequestOf, massRequestsFor } from './mass-change.ts'
import { type Member, watchNodes } from './member.ts'
import { trimNode } from './node-fact.ts'
import type { WildcardOptions } from './options.ts'
import { ClusterReports } from './report.ts'
import { isUpToDate, objectName, type WildcardOwner } from './wildcard-endpoint.ts'

export interface WildcardSetUp {
  readonly options: WildcardOptions
  readonly metrics: ProductMetrics
  readonly namespace: string
  /** False in observe mode and while writing is paused. */
  readonly isWriting: () => boolean
  /** Resolves once it is known whether this process may write; undefined when it is known. */
  readonly untilMayWrite: (running: { readonly signal: AbortSignal }) => Promise<unknown> | undefined
  readonly secondWriter: SecondWriterGuard
  readonly heldObjects: HeldObjects
  readonly massLimits: MassLimits
  readonly clock: Clock
  readonly notify: Notify
  readonly registry: MemberRegistry
  /** Of the watch of DNSEndpoints that the capabilities share. */
  readonly endpointScope: { readonly namespace?: string }
}

/** While nothing may be written each cluster is decided again this often, so that the end of a pause is noticed. */
const IDLE_RETRY_MS = 10_000
/** A held write is requested again this often: whether the others are still requested may differ. */
const HELD_RETRY_MS = 60_000
/** How soon a member that was lost, or returned, is reported when none of its nodes changes. */
const REACHABILITY_CHECK = '5s'
/** Of one reconcile; a list past the cache has a shorter time of its own. */
const TIMEOUT = '1m'
const CONCURRENCY = 8

const CLUSTER_PREFIX = 'cluster '

export function setUpWildcard(manager: Manager, setUp: WildcardSetUp): void {
  manager.cache(Node, { projection: trimNode, limits: NODE_CACHE_LIMITS })
  const wildcard = new Wildcard(manager, setUp)
  manager
    .keyedController('wildcard', { concurrency: CONCURRENCY, timeout: TIMEOUT })
    .watches(
      DNSEndpoint,
      ({ metadata: { labels } }) => {
        const cluster = labels?.[CLUSTER_LABEL]
        return cluster === undefined ? [] : [`${CLUSTER_PREFIX}${cluster}`]
      },
      { optional: true, ...setUp.endpointScope },
    )
    .triggers((mark) => {
      const markCluster = (cluster: string): void => mark([`${CLUSTER_PREFIX}${cluster}`])
      wildcard.onNodes = markCluster
      for (const cluster of wildcard.clusters()) markCluster(cluster)
      const unsubscribeRegistry = setUp.registry.subscribe(markCluster)
      const unsubscribe = setUp.secondWriter.subscribe((clusters) => clusters.forEach(markCluster))
      wildcard.onApproved = () => wildcard.clusters().forEach(markCluster)
      return () => {
        unsubscribeRegistry()
        wildcard.onNodes = () => undefined
        wildcard.onApproved = () => undefined
        unsubscribe()
      }
    })
    .every(REACHABILITY_CHECK, () => wildcard.findReachabilityChanges().map((cluster) => `${CLUSTER_PREFIX}${cluster}`))
    .reconcile((key, context) => wildcard.reconcile(key.slice(CLUSTER_PREFIX.length), context))
}

/** A cluster that is registered, or the local one. */
interface Entry {
  registration: Registration
  /** Whose nodes are watched; undefined: the kubeconfig was refused. */
  readonly cluster: Cluster | undefined
  readonly member: Member | undefined
  refusal: Finding | undefined
  damping: DampingState
  /** State of the last reading that was acted on. */
  readingState: string
  /** What was last logged as not written. */
  pending: string
}

/** A write that waits for others to be counted has no finding. */
interface HeldWrite {
  readonly finding?: Finding
  readonly afterMs: number
}

interface Done {
  readonly hasWritten: boolean
  /** Another writer undoes what is written, or too many wildcards would change at once. */
  readonly stopped?: StoppedWrite | HeldWrite
}

const NOTHING_DONE: Done = { hasWritten: false }
const NO_DAMPING: DampingState = { lostSince: new Map(), lastWriteMs: undefined }

class Wildcard {
  onNodes: (cluster: string) => void = () => undefined
  onApproved: () => void = () => undefined
  readonly #guard: MassGuard
  /** Keys of the DNSEndpoints that are published, by cluster: the base of the share of a mass change. */
  readonly #published = new Map<string, string>()
  readonly #manager: Manager
  readonly #setUp: WildcardSetUp
  readonly #isSelected: LabelPredicate
  readonly #reports: ClusterReports
  readonly #entries = new Map<string, Entry>()

  constructor(manager: Manager, setUp: WildcardSetUp) {
    this.#manager = manager
    this.#setUp = setUp
    const selector = parseLabelSelector(setUp.options.nodeSelector)
    this.#isSelected = typeof selector === 'function' ? selector : () => false
    this.#reports = new ClusterReports(setUp.clock, setUp.notify)
    this.#guard = createMassGuard({
      clock: setUp.clock,
      limits: setUp.massLimits,
      countPublished: () => this.#published.size,
      idPrefix: 'w',
      cause: 'check the zones and the selector of nodes',
      noun: () => 'wildcards',
    })
    setUp.metrics.wildcardsHeld(() => this.#guard.held)
    setUp.heldObjects.add('wildcard', this.#guard, () => this.onApproved())
  }

  /** Clusters whose nodes became readable or unreadable since they were reconciled. */
  findReachabilityChanges(): string[] {
    const changed: string[] = []
    for (const [cluster, { member, readingState }] of this.#entries)
      if (member !== undefined && member.read().state !== readingState) changed.push(cluster)
    return changed
  }

  /** The registered clusters and the local one. */
  clusters(): string[] {
    const { registry, options } = this.#setUp
    return [...registry.clusters.keys(), ...(options.localCluster === '' ? [] : [options.localCluster])]
  }

  /** The entry as the registry has it now; watches of a cluster that was removed or connected anew are closed. */
  #entryOf(cluster: string): Entry | undefined {
    const { registry, options, namespace, clock, metrics } = this.#setUp
    const registered = registry.clusters.get(cluster)
    const isLocal = registered === undefined && cluster === options.localCluster
    const current = isLocal ? this.#manager.cluster : registered?.cluster
    const entry = this.#entries.get(cluster)
    if (registered === undefined && !isLocal) {
      entry?.member?.close()
      this.#notPublished(cluster)
      if (!this.#entries.delete(cluster)) return undefined
      metrics.wildcardTargets(cluster, undefined)
      this.#reports.forget(cluster)
      return undefined
    }
    const registration = registered?.registration ?? localRegistration(cluster, namespace)
    const refusal = registered?.refusal
    if (entry !== undefined && entry.cluster === current) return Object.assign(entry, { registration, refusal })
    entry?.member?.close()
    const onChange = (): void => this.onNodes(cluster)
    const next: Entry = {
      registration,
      refusal,
      cluster: current,
      member: current === undefined ? undefined : watchNodes(current, clock, onChange),
      damping: entry?.damping ?? NO_DAMPING,
      readingState: '',
      pending: '',
    }
    this.#entries.set(cluster, next)
    return next
  }

  async reconcile(cluster: string, context: Context): Promise<Next> {
    await this.#setUp.untilMayWrite(context)
    const entry = this.#entryOf(cluster)
    if (entry === undefined) return
    const { clock, isWriting, massLimits } = this.#setUp
    const options = { ...this.#setUp.options, massLimits }
    const owner = ownerOf(entry.registration)
    const live = context.get(DNSEndpoint, `${owner.namespace}/${objectName(owner, options)}`)
    if (live === undefined) this.#notPublished(cluster)
    else this.#published.set(cluster, keyOf(live))
    const reading = entry.member?.read() ?? ({ state: 'syncing' } as const)
    entry.readingState = reading.state
    let facts = this.#factsOf(entry, owner, live, reading)
    let decision = decideCluster(facts, options, this.#isSelected)
    if (decision.needsConfirmation && entry.member !== undefined) {
      facts = this.#factsOf(entry, owner, live, await entry.member.readAfresh(context.signal))
      decision = decideCluster(facts, options, this.#isSelected)
    }
    if (!isWriting()) reportPending(entry, decision, live, context)
    const { hasWritten, stopped } = isWriting() ? await this.#act(cluster, decision, live, context) : NOTHING_DONE
    const lastWriteMs = hasWritten ? facts.nowMs : entry.damping.lastWriteMs
    entry.damping = { lostSince: decision.lostSince, lastWriteMs }
    this.#setUp.metrics.wildcardTargets(cluster, decision.targets.length)
    const findings = [...(stopped?.finding === undefined ? [] : [stopped.finding]), ...decision.findings]
    if (isWriting()) await this.#reports.report(cluster, entry.registration, live, findings, context)
    const afterMs =
      stopped?.afterMs ??
      (decision.againAtMs === undefined ? undefined : Math.max(1, decision.againAtMs - clock.monotonic()))
    if (isWriting()) return afterMs === undefined ? undefined : requeue(afterMs)
    return requeue(Math.min(afterMs ?? IDLE_RETRY_MS, IDLE_RETRY_MS))
  }

  #notPublished(cluster: string): void {
    const key = this.#published.get(cluster)
    if (key === undefined) return
    this.#published.delete(cluster)
    for (const request of massRequestsFor(key)) this.#guard.withdraw(request)
  }

  /** Undefined: the write may be made. */
  #ask(
    cluster: string,
    action: ClusterDecision['action'],
    live: Immutable<DNSEndpoint> | undefined,
  ): HeldWrite | undefined {
    const request = massRequestOf(live, action)
    const key = this.#published.get(cluster)
    for (const other of key === undefined ? [] : massRequestsFor(key))
      if (other.change !== request?.change) this.#guard.withdraw(other)
    const answer = request === undefined ? undefined : this.#guard.ask(request)
    if (answer === undefined || answer.state === 'go') return undefined
    if (answer.state === 'wait') return { afterMs: answer.afterMs }
    return { afterMs: HELD_RETRY_MS, finding: warning('GuardTripped', answer.message) }
  }

  #factsOf(
    { registration, refusal, damping }: Entry,
    owner: WildcardOwner,
    live: Immutable<DNSEndpoint> | undefined,
    reading: ClusterFacts['reading'],
  ): ClusterFacts {
    const zone = registration.zone === '' ? this.#setUp.options.zone : registration.zone
    return { owner, zone, live, refusal, reading, damping, nowMs: this.#setUp.clock.monotonic() }
  }

  async #act(
    cluster: string,
    { action }: ClusterDecision,
    live: Immutable<DNSEndpoint> | undefined,
    context: Context,
  ): Promise<Done> {
    const held = this.#ask(cluster, action, live)
    if (held !== undefined) return { hasWritten: false, stopped: held }
    switch (action.state) {
      case 'keep':
        return NOTHING_DONE
      case 'delete':
        if (live === undefined) return NOTHING_DONE
        await context.delete(DNSEndpoint, live)
        return { hasWritten: true }
      case 'apply': {
        const { desired } = action
        if (isUpToDate(live, desired)) return NOTHING_DONE
        const { secondWriter } = this.#setUp
        const fieldManager = WILDCARD_FIELD_MANAGER
        const write = { kind: DNSEndpoint, key: keyOf(desired), desired, live, fieldManager, source: cluster }
        const stopped = await secondWriter.check(write)
        if (stopped !== undefined) return { hasWritten: false, stopped }
        if (live === undefined && !(await isRegistered(desired, context))) return NOTHING_DONE
        const { client, signal } = context
        await client.apply(DNSEndpoint, desired, { fieldManager, force: true, signal })
        secondWriter.note(write)
        return { hasWritten: true }
      }
    }
  }
}

/** Once per content: the log of observe mode shows what enforce would do. */
function reportPending(
  entry: Entry,
  { action, targets }: ClusterDecision,
  live: Immutable<DNSEndpoint> | undefined,
  { log }: Context,
): void {
  const isPending = action.state === 'apply' ? !isUpToDate(live, action.desired) : action.state === 'delete'
  const pending = isPending ? `${action.state} ${targets.join(',')}` : ''
  if (pending !== '' && pending !== entry.pending) {
    const { cluster } = entry.registration
    log.info({ cluster, action: action.state, targets }, 'wildcard not written: observe mode or pause')
  }
  entry.pending = pending
}

function ownerOf({ cluster, namespace, secret }: Registration): WildcardOwner {
  return { cluster, namespace, ...(secret !== undefined && { secret }) }
}

/** A wildcard whose owner is gone would be collected, created and collected again until the watch reports the deletion. */
async function isRegistered(desired: DNSEndpoint, { client, signal }: Context): Promise<boolean> {
  const { namespace, ownerReferences } = desired.metadata
  const owner = ownerReferences?.find((reference) => reference.controller === true)
  if (owner === undefined) return true
  const secret = await client.find(Secret, `${namespace}/${owner.name}`, { signal })
  return secret !== undefined && secret.metadata.uid === owner.uid
}
