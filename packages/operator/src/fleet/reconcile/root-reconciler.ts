/**
 * One root, from its objects to its objects: claims → plan → GlobalIngress and LeafIngresses → phases of the leaves → DNS
 * objects → status.
 *
 * Guarantees: every step is repeated from the stored objects, so that any prefix of the writes is continued after a crash;
 * a pass that finds everything as decided writes nothing.
 */
import {
  addFinalizer,
  type Context,
  findCondition,
  Forbidden,
  isConditionTrue,
  messageOf,
  type Next,
  requeue,
} from '@seamark/kube'
import type { Immutable, Obj } from '@seamark/kube/object'
import { DEFAULT_POLICY_NAME } from '../../api/global-ingress-policy.ts'
import type { GlobalIngress } from '../../api/global-ingress.ts'
import type { ProductMetrics } from '../../metrics.ts'
import type { Claims } from '../claims.ts'
import { confirmDefaultPolicy, confirmPolicies } from './confirmed-facts.ts'
import { type Finding, warning } from '../../finding.ts'
import { type Feed, feedBalance } from '../decide/dns-feed.ts'
import { decideLeaves, isHostAnswered, type LeavesFacts, needsAnswers, summarizeLeaf } from '../decide/leaves.ts'
import { resolvePolicy } from '../decide/policy.ts'
import type { LeafSummary } from '../decide/status.ts'
import { AnswerCheck, type AnswerFacts, type AnswerVerdict, NO_OWN_HOST } from '../dns/answer-check.ts'
import type { AuthoritativeDns } from '../dns/authoritative-dns.ts'
import { syncFeed } from '../dns/feed.ts'
import { rootKey } from '../names.ts'
import { isRoot, isStillRoot, ROOT_FINALIZER } from '../../hosts/root.ts'
import { writeLeafStatus } from './root-objects.ts'
import { type RootPass, type RootPassDeps, startPass } from './root-pass.ts'
import { reportRoot } from './root-report.ts'
import { refuseRoot } from './root-status.ts'
import type { RootKind } from '../roots/root-kind.ts'
import { isLedByOther, sharedClusters, ttlsOf, unsharedHosts } from './shared-hosts.ts'
import type { Teardown } from './teardown.ts'

export interface RootReconcilerDeps extends RootPassDeps {
  readonly namespace: string
  readonly claims: Claims
  readonly metrics: ProductMetrics
  readonly teardown: Teardown
  /** Undefined: what balance published counts as answered. */
  readonly dns: AuthoritativeDns | undefined
  /** How long changes of leaves are collected. */
  readonly batchMs: () => number
  /** What this process lacks to publish hosts: a kind that is not installed or may not be read, a zone. */
  readonly findBlocked: (hosts: readonly string[]) => Finding | undefined
  readonly isWriting: () => boolean
  readonly untilMayWrite: (running: { readonly signal: AbortSignal }) => Promise<unknown> | undefined
}

const IDLE_RETRY = '10s'
const UNREAD_RETRY_MS = 10_000
/** Until a kind or a right that is missing is looked for again. */
const BLOCKED_RETRY_MS = 5_000
/** Between two queries of the DNS servers for a host: while a change should show, and later. */
const VERIFY_MS = 2_000
const LATE_VERIFY_MS = 60_000

export class RootReconciler {
  readonly #deps: RootReconcilerDeps
  /** Undefined: DNS servers are not asked. */
  readonly #answers: AnswerCheck | undefined

  constructor(deps: RootReconcilerDeps) {
    this.#deps = deps
    this.#answers = deps.dns === undefined || !deps.options.dns ? undefined : new AnswerCheck(deps.dns)
  }

  async reconcile(kind: RootKind, root: Immutable<Obj>, ctx: Context): Promise<Next> {
    const { options, teardown, isWriting, untilMayWrite, metrics, namespace } = this.#deps
    const isOurs = root.metadata.finalizers?.includes(ROOT_FINALIZER) === true
    const isDeleted = root.metadata.deletionTimestamp !== undefined
    const isSelected = !isDeleted && isRoot(kind, root, options.roots, ctx)
    if (!isSelected && !isOurs) return
    await untilMayWrite(ctx)
    if (!isWriting()) return requeue(IDLE_RETRY)
    if (!isSelected && (isDeleted || !(await isStillRoot(kind, root, options.roots, ctx.client)))) {
      metrics.leavesDecided(ctx.key, [])
      this.#answers?.forget(root.metadata.uid ?? '')
      return teardown.root(kind, root, ctx)
    }
    const before = ctx.by(this.#deps.indexes.globalByRoot, rootKey(root.metadata))[0]
    const used = before?.status?.policy
    const policy = resolvePolicy({
      root,
      group: kind.kind.group,
      kind: kind.kind.kind,
      policies: await confirmPolicies(root.metadata.namespace, used, ctx),
      defaultPolicy: await confirmDefaultPolicy(`${namespace}/${DEFAULT_POLICY_NAME}`, used, ctx),
    })
    if (!('spec' in policy)) return refuseRoot(kind, root, policy.message, ctx)
    const accepted = isOurs ? root : await addFinalizer(ctx.client, kind.kind, root, ROOT_FINALIZER)
    const { managedDomain = '', customDomains } = policy.spec.hosts ?? {}
    const needsProof = customDomains === 'VerifiedOnly'
    const claimed = await this.#deps.claims.take(kind, accepted, { managedDomain, needsProof }, ctx)
    const pass = await startPass(kind, accepted, { policy, claimed }, this.#deps, ctx)
    return this.#carryOut(pass, ctx)
  }

  /** Decides the phases of the leaves, and writes them, the DNS objects and the statuses. */
  async #carryOut(pass: RootPass, ctx: Context): Promise<Next> {
    const { root, plan, leaves, global, claimed } = pass
    const { options, dns, metrics, teardown, indexes, views } = this.#deps
    const nowMs = ctx.clock.now()
    const isVerified = isConditionTrue(global.status?.conditions, 'DNSPublished')
    const uid = root.metadata.uid ?? ''
    const ownersOf = (host: string): readonly string[] => claimed.owners.get(host) ?? []
    const unasked: LeavesFacts = {
      spec: plan.spec,
      ttls: ttlsOf(plan.spec, root.metadata, ownersOf, indexes, ctx),
      lifecycles: new Map(plan.leaves.map(({ cluster, spec }) => [cluster, spec.lifecycle])),
      leaves,
      drainDeadlines: pass.drainDeadlines,
      answers: undefined,
      isGivenUp: claimed.isGivenUp,
      hasDns: options.dns,
      nowMs,
    }
    const hosts = unsharedHosts(plan.spec, uid, ownersOf)
    const isAsked = dns !== undefined && options.dns && hosts.length > 0 && needsAnswers(unasked, isVerified)
    const facts = isAsked ? { ...unasked, answers: await dns.ask(hosts, ctx.signal) } : unasked
    const decisions = decideLeaves(facts)
    const summaries: LeafSummary[] = []
    let againAtMs = Number.POSITIVE_INFINITY
    for (const [cluster, observed] of leaves) {
      const decision = decisions.get(cluster)
      if (decision === undefined) continue
      await writeLeafStatus(root, observed, decision, ctx)
      againAtMs = Math.min(againAtMs, decision.againAtMs ?? againAtMs)
      if (decision.phase === 'Drained') againAtMs = Math.min(againAtMs, await teardown.leaf(observed.leaf, root, ctx))
      // Reachable, but its objects are not read yet: there may be no event when they are.
      if (observed.seen.isApplied === undefined && !views.isLost(cluster))
        againAtMs = Math.min(againAtMs, nowMs + UNREAD_RETRY_MS)
      summaries.push(summarizeLeaf(observed, decision, facts))
    }
    metrics.leavesDecided(ctx.key, summaries)
    // The same of a cluster without a leaf: its Services are read again, and none of them changed.
    if (plan.placement.rejected.some(({ reason }) => reason === 'BackendUnknown'))
      againAtMs = Math.min(againAtMs, nowMs + UNREAD_RETRY_MS)
    const feed = feedBalance({
      name: global.metadata.name ?? '',
      namespace: global.metadata.namespace ?? '',
      spec: plan.spec,
      leaves: summaries.map(({ cluster, addresses }) => ({
        cluster,
        addresses,
        role: decisions.get(cluster)?.dns ?? 'none',
      })),
      sharedClusters: (host) => sharedClusters(ownersOf(host), root.metadata, indexes, ctx),
      isLedByOther: (host) => isLedByOther(ownersOf(host), uid),
    })
    const denied = options.dns ? await this.#feed(feed, root, global, ctx) : undefined
    const blocked = denied?.finding ?? (options.dns ? this.#deps.findBlocked(namesOf(plan.spec)) : undefined)
    if (blocked !== undefined) againAtMs = Math.min(againAtMs, nowMs + BLOCKED_RETRY_MS)
    // Once it was verified, a server that is silent for a moment changes nothing.
    const isAnswered = !options.dns || isHostAnswered(isVerified ? unasked : facts)
    if (isAsked && !isAnswered) againAtMs = Math.min(againAtMs, nowMs + verifyAfterMs(global, nowMs))
    const verdict = await this.#compare(pass, hosts, facts, ctx.signal)
    againAtMs = Math.min(againAtMs, verdict?.againAtMs ?? againAtMs)
    const { partialHosts } = feed
    await reportRoot(pass, { facts, leaves: summaries, partialHosts, isAnswered, verdict, blocked }, ctx)
    if (denied !== undefined) throw denied.error
    if (!Number.isFinite(againAtMs)) return undefined
    // Later by the batch, so that waits of several leaves that end one after another are handled at once.
    return requeue(Math.max(1, againAtMs - nowMs + this.#deps.batchMs()))
  }

  /** A right that is missing is reported on the root before the pass fails. */
  async #feed(
    feed: Feed,
    root: Immutable<Obj>,
    global: Immutable<GlobalIngress>,
    ctx: Context,
  ): Promise<{ readonly finding: Finding; readonly error: Forbidden } | undefined> {
    try {
      await syncFeed(feed, root, global, this.#deps.indexes, ctx)
      return undefined
    } catch (error) {
      if (!(error instanceof Forbidden)) throw error
      const message = `the manager lacks a right; allow it in its ClusterRole: ${messageOf(error)}`
      return { error, finding: warning('WatchForbidden', message) }
    }
  }

  /** The answers of the servers of these hosts, as soon as there is an address that could be answered. */
  async #compare(
    { root, global }: RootPass,
    hosts: readonly string[],
    { leaves, answers, spec, nowMs }: LeavesFacts,
    signal: AbortSignal,
  ): Promise<AnswerVerdict | undefined> {
    const seen = [...leaves].map(([cluster, leaf]) => ({ ...leaf.seen, cluster }))
    // What is published is not known yet: what was said stays.
    if (this.#answers === undefined || seen.some(({ dns }) => dns === 'unknown')) return undefined
    if (global.status === undefined || seen.every(({ addresses }) => addresses.length === 0)) return undefined
    if (hosts.length === 0) return NO_OWN_HOST
    const said = findCondition(global.status.conditions, 'DNSPublished')
    const before: AnswerFacts['before'] =
      said?.status === 'True' ? 'right' : said?.reason === 'AnswerDiffers' ? 'wrong' : undefined
    const weights = new Map(spec.clusters.map(({ name, weight }) => [name, weight]))
    const published = seen
      .filter(({ dns }) => dns === 'present')
      .map(({ addresses, cluster }) => ({ addresses, hasWeight: weights.get(cluster) !== 0 }))
    const facts = { uid: root.metadata.uid ?? '', hosts, published, before, known: answers, nowMs }
    return this.#answers.check(facts, signal)
  }
}

/** With a managed host the host itself may be a CNAME to it in a zone of others. */
function namesOf({ hosts }: Immutable<GlobalIngress>['spec']): string[] {
  return hosts.map(({ host, managed }) => managed ?? host)
}

function verifyAfterMs({ spec, status }: Immutable<GlobalIngress>, nowMs: number): number {
  const since = findCondition(status?.conditions, 'DNSPublished')?.lastTransitionTime
  const isLate = since !== undefined && nowMs - Date.parse(since) > spec.propagationTimeoutSeconds * 1000
  return isLate ? LATE_VERIFY_MS : VERIFY_MS
}
