/**
 * One zone of a provider, as load balancers read and publish it: names that are requested at the same time are read
 * together, and published with one plan. So a large failover costs a few requests to the service and a few writes of guard
 * state, instead of some for each name.
 *
 * Guarantees: a name that the planner or the service refuses affects no other; nothing of a refused name is written; in a dry
 * run nothing is sent.
 */
import { GroupedCalls, type Logger, messageOf } from '@seamark/kube'
import { ORIGINAL_CLUSTER, ORIGINAL_TYPES, ownerIdOf } from '../../providers/original-ownership.ts'
import type { Engine, Planned, Target } from '../../records/engine.ts'
import type { Reason } from '../../reasons.ts'
import { failuresOf, type PlanOutcome } from '../../records/execute/result.ts'
import { ownershipOf } from '../../records/plan/ownership.ts'
import type { Desired, Plan, SourceView } from '../../records/plan/plan.ts'
import type { ZoneView } from '../../records/plan/zone-view.ts'
import { POLICY_SET_TYPE, policyForType } from '../../rrset/answer-policy.ts'
import type { BalancedSet } from '../decide/answer-shares.ts'
import type { DeletedRecord } from './record-notice.ts'
import type { PublishedFact } from '../write/record-publisher.ts'

export interface PublishedZoneOptions {
  readonly engine: Engine
  /** Canonical name. */
  readonly zone: string
  /** Name of the provider, for messages. */
  readonly provider: string
  /** Owner in the ownership records. */
  readonly identity: string
  readonly isDryRun: boolean
  readonly log: Pick<Logger, 'info'>
  readonly onDeleted: (deleted: DeletedRecord) => void
}

interface PublishRequest {
  readonly name: string
  readonly desired: readonly Desired[]
  /** Of what is deleted. */
  readonly reason: Reason
  readonly loadBalancer: string
}

type Outcome = 'published' | 'skipped'

/** Names in one plan: some hundred records and their markers, which every provider sends in a few batches. */
const GROUP_LIMIT = 500

export const EXISTING_SOURCES: SourceView = { present: { has: () => true }, gone: { has: () => false } }

export class PublishedZone {
  readonly #options: PublishedZoneOptions
  readonly #reads: GroupedCalls<string, PublishedFact>
  readonly #writes: GroupedCalls<PublishRequest, Outcome>

  constructor(options: PublishedZoneOptions) {
    this.#options = options
    this.#reads = new GroupedCalls({
      keyOf: (name) => name,
      limit: GROUP_LIMIT,
      perform: async (names, signal) => this.#readAll(names, signal),
    })
    this.#writes = new GroupedCalls({
      keyOf: ({ name }) => name,
      limit: GROUP_LIMIT,
      perform: async (requests, signal) => this.#publishAll(requests, signal),
    })
  }

  async read(name: string, signal: AbortSignal): Promise<PublishedFact> {
    return this.#reads.call(name, signal)
  }

  /** Rejects with what the planner or the service said about this name. */
  async publish(request: PublishRequest, signal: AbortSignal): Promise<Outcome> {
    return this.#writes.call(request, signal)
  }

  async #readAll(names: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, PublishedFact>> {
    const { engine, zone, identity } = this.#options
    const { targets, unread } = await engine.targets(signal)
    const target = targets.find((each) => each.zone.name === zone)
    if (target === undefined) throw this.#notServed(unread)
    const view = await engine.view(target, new Set(names), signal)
    return new Map(names.map((name) => [name, factFrom(name, view, target, identity)]))
  }

  async #publishAll(
    requests: readonly PublishRequest[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, Outcome | Error>> {
    const results = new Map<string, Outcome | Error>()
    let left = requests
    for (;;) {
      const planned = await this.#plan(left, signal)
      const refused = refusalsIn(planned)
      for (const [name, error] of refused) results.set(name, error)
      if (refused.size === 0) {
        for (const plan of planned.plans) await this.#apply(plan, left, results, signal)
        for (const { name } of left) if (!results.has(name)) results.set(name, this.#notServed(planned.unread))
        return results
      }
      // Nothing of a name is written when one of its sets is refused: the others are planned without it.
      const others = left.filter(({ name }) => !refused.has(name))
      if (others.length === left.length) throw [...refused.values()][0]
      left = others
      if (left.length === 0) return results
    }
  }

  async #plan(requests: readonly PublishRequest[], signal: AbortSignal): Promise<Planned> {
    const desired = requests.flatMap((request) => request.desired)
    const names = new Set(requests.map(({ name }) => name))
    return this.#options.engine.plan({ desired, unusable: [], sources: EXISTING_SOURCES }, names, signal)
  }

  async #apply(
    plan: Plan,
    requests: readonly PublishRequest[],
    results: Map<string, Outcome | Error>,
    signal: AbortSignal,
  ): Promise<void> {
    const { engine, isDryRun, log, provider, onDeleted } = this.#options
    const names = plan.scope === 'all' ? [] : plan.scope
    if (isDryRun) {
      logDryRun(log, plan)
      for (const name of names) results.set(name, 'skipped')
      return
    }
    try {
      const outcome = await engine.apply(plan, signal)
      const failures = failuresOf(outcome)
      const requested = new Map(requests.map((request) => [request.name, request]))
      for (const deleted of deletionsIn(outcome, provider)) {
        const request = requested.get(deleted.name)
        if (request !== undefined) onDeleted({ ...deleted, reason: request.reason, loadBalancer: request.loadBalancer })
      }
      for (const name of names) results.set(name, 'published')
      for (const { change, code, why } of failures) results.set(change.group, new Error(`${code ?? ''}: ${why ?? ''}`))
    } catch (error) {
      for (const name of names) results.set(name, error instanceof Error ? error : new Error(messageOf(error)))
    }
  }

  #notServed(unread: Planned['unread']): Error {
    const why = unread.map((each) => each.why).join('; ')
    const { provider, zone } = this.#options
    return new Error(why === '' ? `provider '${provider}' does not serve ${zone} any more` : why)
  }
}

/** The records that were deleted just now, without their ownership records. */
export function deletionsIn({ plan, results }: PlanOutcome, provider: string): Omit<DeletedRecord, 'reason'>[] {
  return results.flatMap(({ change: { op, name, type, from }, result }) =>
    op === 'delete' && result === 'applied' && type !== POLICY_SET_TYPE
      ? [{ provider, zone: plan.zone, name, type, values: from?.values ?? [] }]
      : [],
  )
}

function refusalsIn({ plans }: Planned): ReadonlyMap<string, Error> {
  const refused = new Map<string, Error>()
  for (const plan of plans)
    for (const { name, type, code, why } of plan.refused)
      if (!refused.has(name)) refused.set(name, new Error(`${name} ${type}: ${code}: ${why}`))
  return refused
}

/** What is published under a name, from a view that contains it. */
export function factFrom(name: string, view: ZoneView, target: Target, identity: string): PublishedFact {
  const owner = { id: ownerIdOf(identity), cluster: ORIGINAL_CLUSTER }
  const sets: BalancedSet[] = []
  const policies = view.find(name, POLICY_SET_TYPE)?.values ?? []
  for (const type of ORIGINAL_TYPES) {
    const set = view.find(name, type)
    const ownership = ownershipOf(view, name, type, owner)
    if (ownership.kind === 'theirs') return foreign(name, ownership.message, ownership.code)
    const policy = policyForType(policies, type)
    if (set !== undefined)
      sets.push({ name, type, ttl: set.ttl, values: set.values, ...(policy !== undefined && { policy }) })
  }
  const answersByPolicy = target.provider.capabilities.answersByPolicy === true
  const readFrom = target.provider.capabilities.readsServer === true ? 'server' : 'service'
  return { published: sets, provider: { state: 'ready' }, answersByPolicy, readFrom } satisfies PublishedFact
}

function foreign(name: string, message: string, code: string): PublishedFact {
  const dnsName = name.replace(/\.$/, '')
  const text =
    code === 'UnownedRecordExists'
      ? `DNS name '${dnsName}' exists but is not managed; delete its records, or add the ownership record`
      : `DNS name '${dnsName}' is not ours: ${message}`
  return { published: undefined, provider: { state: 'foreign', message: text } }
}

export function logDryRun(log: Pick<Logger, 'info'>, { provider, zone, changes }: Plan): void {
  for (const { op, name, type, from, to } of changes)
    log.info({ provider, zone, op, name, type, from: from?.values, to: to?.values }, 'no changes in dryrun mode')
}
