/**
 * Status of a Cluster from what contact with its API server brought. Pure.
 *
 * Reachable changes with hysteresis: False after three misses, at least five seconds apart, because changes of leaves cause
 * further contacts; True after two hits (at the first contact after one).
 * `lastContact` is written only when contact is lost, so that steady state writes nothing.
 */
import { type Condition, findCondition, setCondition, timestamp } from '@seamark/kube'
import type { Immutable } from '@seamark/kube/object'
import type { Cluster } from '../../api/cluster.ts'
import type { Finding } from '../../finding.ts'
import type { Reason } from '../../reasons.ts'

/** One attempt to reach the API server of a member. */
export type Contact =
  | {
      readonly state: 'answered'
      readonly uid: string
      readonly version: string
      readonly servedKinds: readonly string[]
      /** `create ingresses.networking.k8s.io` … */
      readonly missingVerbs: readonly string[]
    }
  | { readonly state: 'failed'; readonly isDenied: boolean; readonly message: string }

export interface ContactHistory {
  readonly hits: number
  readonly misses: number
  /** Wall clock, ms. */
  readonly lastHitMs: number | undefined
  /** Of the last miss that counts. Monotonic, ms. */
  readonly countedMissMs: number | undefined
}

export const NO_HISTORY: ContactHistory = { hits: 0, misses: 0, lastHitMs: undefined, countedMissMs: undefined }

const CONTACT_MS = 10_000

export interface ContactTime {
  readonly nowMs: number
  readonly monotonicMs: number
  /** Between two contacts: misses that are closer are one. @default 10 s */
  readonly contactMs?: number
}

export function recordContact(
  { hits, misses, lastHitMs, countedMissMs }: ContactHistory,
  isHit: boolean,
  { nowMs, monotonicMs, contactMs = CONTACT_MS }: ContactTime,
): ContactHistory {
  if (isHit) return { hits: hits + 1, misses: 0, lastHitMs: nowMs, countedMissMs: undefined }
  if (countedMissMs !== undefined && monotonicMs - countedMissMs < contactMs / 2)
    return { hits: 0, misses, lastHitMs, countedMissMs }
  return { hits: 0, misses: misses + 1, lastHitMs, countedMissMs: monotonicMs }
}

export interface ClusterFacts {
  readonly cluster: Immutable<Cluster>
  /** Undefined: no Secret registers it. */
  readonly registration: { readonly refusal: Finding | undefined } | undefined
  /** The last contact; undefined: none yet. */
  readonly contact: Contact | undefined
  readonly history: ContactHistory
  /** Name of an older Cluster with the same UID. */
  readonly duplicateOf: string | undefined
  /** Leaves on the cluster, by their reason. */
  readonly leaves: ReadonlyMap<string, number>
  readonly orphans: NonNullable<NonNullable<Cluster['status']>['orphans']>
  readonly nowMs: number
}

type Status = NonNullable<Cluster['status']>

const MISSES = 3
const HITS = 2

export function decideClusterStatus(facts: ClusterFacts): Status {
  const { cluster, registration, contact, history, duplicateOf, nowMs } = facts
  const before = cluster.status
  let conditions: Immutable<Condition[]> = before?.conditions ?? []
  const set = (type: string, status: Condition['status'], reason: Reason, message: string): void => {
    const observedGeneration = cluster.metadata.generation ?? 0
    conditions = setCondition(conditions, { type, status, reason, message, observedGeneration }, nowMs)
  }
  const credentials = credentialsOf(cluster, registration, contact)
  set('CredentialsValid', credentials.status, credentials.reason, credentials.message)
  const reachable = reachableOf(facts)
  const failure = contact?.state === 'failed' ? contact.message : ''
  set(
    'Reachable',
    reachable,
    reachable === 'True' ? 'ClusterReady' : 'ClusterUnreachable',
    reachable === 'True' ? 'the API server answers' : failure || 'the API server has not answered yet',
  )
  const answered = contact?.state === 'answered' ? contact : undefined
  const missing = answered?.missingVerbs ?? []
  const servedKinds = answered?.servedKinds ?? before?.servedKinds
  const isServing = missing.length === 0 && (servedKinds ?? []).length > 0
  if (answered !== undefined || findCondition(conditions, 'ApisServed') === undefined)
    set(
      'ApisServed',
      answered === undefined ? 'Unknown' : isServing ? 'True' : 'False',
      answered === undefined ? 'ClusterUnreachable' : isServing ? 'ClusterReady' : 'AccessMissing',
      answered === undefined
        ? 'not known yet'
        : isServing
          ? `serves ${answered.servedKinds.join(', ')}`
          : missing.length === 0
            ? 'it serves none of the kinds of roots'
            : `the credentials may not: ${missing.join(', ')}; ${newToken(cluster)}`,
    )
  const draining = drainingOf(facts)
  set('Draining', draining.status, draining.reason, draining.message)
  const apis = findCondition(conditions, 'ApisServed')
  const [status, reason, message] = readyOf(credentials, reachable, apis, duplicateOf, failure)
  set('Ready', status, reason, message)
  const isLost = reachable === 'False' && findCondition(before?.conditions, 'Reachable')?.status !== 'False'
  const lastContact = isLost && history.lastHitMs !== undefined ? timestamp(history.lastHitMs) : before?.lastContact
  const uid = answered?.uid ?? before?.clusterUID
  const version = answered?.version ?? before?.version
  return {
    observedGeneration: cluster.metadata.generation ?? 0,
    ...(uid !== undefined && { clusterUID: uid }),
    ...(version !== undefined && { version }),
    ...(servedKinds !== undefined && { servedKinds: [...servedKinds] }),
    ...(lastContact !== undefined && { lastContact }),
    leafCount: countLeaves(facts.leaves),
    ...(facts.orphans.length > 0 && { orphans: [...facts.orphans] }),
    conditions: conditions as Condition[],
  }
}

export interface ClusterEvent {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly note: string
}

/**
 * When the Cluster becomes ready or is not any more, and when a drain exceeds its deadline. The time makes each outage an Event of
 * its own: without it the second one would be counted on the first.
 */
export function clusterEvents(before: Immutable<Cluster>['status'], status: Status): ClusterEvent[] {
  const events: ClusterEvent[] = []
  const [readyBefore, ready] = [before, status].map((each) => findCondition(each?.conditions, 'Ready'))
  if (
    ready !== undefined &&
    readyBefore?.status !== ready.status &&
    (readyBefore !== undefined || ready.status === 'False')
  )
    events.push({
      type: ready.status === 'True' ? 'Normal' : 'Warning',
      reason: ready.reason ?? '',
      note: `${ready.message}; since ${ready.lastTransitionTime}`,
    })
  const [drainBefore, draining] = [before, status].map((each) => findCondition(each?.conditions, 'Draining'))
  if (draining?.reason === 'DrainDeadlineReached' && drainBefore?.reason !== draining.reason)
    events.push({ type: 'Warning', reason: draining.reason, note: draining.message ?? '' })
  return events
}

/** Whether leaves are moved away from the cluster. */
function isDraining({ spec, metadata }: Immutable<Cluster>): boolean {
  return spec.drain?.enabled === true || metadata.deletionTimestamp !== undefined
}

/** Wall clock, ms, by which the drain should be over; undefined: it does not drain, or has no deadline. */
export function drainDeadlineMs(cluster: Immutable<Cluster>): number | undefined {
  const { deadline } = cluster.spec.drain ?? {}
  if (deadline === undefined || !isDraining(cluster)) return undefined
  const ms = Date.parse(deadline)
  return Number.isNaN(ms) ? undefined : ms
}

function drainingOf({ cluster, leaves, nowMs }: ClusterFacts): Verdict {
  if (!isDraining(cluster)) return { status: 'False', reason: 'ClusterReady', message: 'not asked for' }
  const count = countLeaves(leaves)
  const deadlineMs = drainDeadlineMs(cluster)
  if (count === 0 || deadlineMs === undefined || nowMs < deadlineMs)
    return { status: 'True', reason: 'ClusterDraining', message: leavesLeft(count) }
  const reasons = [...leaves].map(([reason, number]) => `${number} ${reason}`).sort()
  return {
    status: 'True',
    reason: 'DrainDeadlineReached',
    message: `the deadline ${cluster.spec.drain?.deadline} has passed and ${leavesLeft(count)}: ${reasons.join(', ')}; they go on serving. For NoReplacement place the root on another cluster; to leave the leaves on the member run seamark cluster remove ${cluster.metadata.name} --force`,
  }
}

function leavesLeft(count: number): string {
  return count === 1 ? '1 leaf is left' : `${count} leaves are left`
}

function countLeaves(leaves: ReadonlyMap<string, number>): number {
  return [...leaves.values()].reduce((sum, count) => sum + count, 0)
}

type Verdict = { readonly status: Condition['status']; readonly reason: Reason; readonly message: string }

/** The command makes the account and its role what they should be, too. */
function newToken({ metadata }: Immutable<Cluster>): string {
  return `run seamark cluster token ${metadata.name}`
}

function credentialsOf(
  cluster: Immutable<Cluster>,
  registration: ClusterFacts['registration'],
  contact: Contact | undefined,
): Verdict {
  if (registration === undefined)
    return {
      status: 'False',
      reason: 'CredentialsMissing',
      message:
        'no Secret with the label seamark.io/cluster registers it; run seamark cluster add, or create one with the key kubeconfig',
    }
  if (registration.refusal !== undefined)
    return { status: 'False', reason: registration.refusal.reason, message: registration.refusal.message }
  if (contact?.state === 'failed' && contact.isDenied)
    return { status: 'False', reason: 'AccessMissing', message: `${contact.message}; ${newToken(cluster)}` }
  if (contact?.state === 'answered')
    return { status: 'True', reason: 'ClusterReady', message: 'accepted by the API server' }
  return { status: 'Unknown', reason: 'ClusterUnreachable', message: 'not known yet' }
}

function reachableOf({ cluster, history, contact, registration }: ClusterFacts): 'True' | 'False' | 'Unknown' {
  const before = findCondition(cluster.status?.conditions, 'Reachable')?.status ?? 'Unknown'
  if (registration === undefined || registration.refusal !== undefined) return before === 'True' ? 'False' : before
  if (contact === undefined) return before
  if (history.misses >= MISSES) return 'False'
  if (history.hits >= HITS || (before !== 'False' && history.hits > 0)) return 'True'
  return before
}

function readyOf(
  credentials: Verdict,
  reachable: Condition['status'],
  apis: Immutable<Condition> | undefined,
  duplicateOf: string | undefined,
  failure: string,
): [Condition['status'], Reason, string] {
  if (duplicateOf !== undefined)
    return ['False', 'DuplicateCluster', `Cluster ${duplicateOf} has the same API server; delete one of them`]
  if (credentials.status === 'False') return ['False', credentials.reason, credentials.message]
  if (reachable !== 'True') return [reachable, 'ClusterUnreachable', failure || 'the API server has not answered yet']
  if (apis?.status !== 'True')
    return ['False', (apis?.reason as Reason | undefined) ?? 'AccessMissing', apis?.message ?? '']
  return ['True', 'ClusterReady', 'leaves can be placed on it']
}
