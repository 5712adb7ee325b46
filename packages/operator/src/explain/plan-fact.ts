/**
 * The plan and the records of our own providers for one name: the plan that the manager makes, restricted to this name,
 * and the current records. Read-only.
 *
 * A zone that cannot be read is a fault of the provider, not an empty zone. A change is called pending only when the plan of
 * the whole zone has it too: some guards judge all names of a zone.
 */
import { timestamp } from '@seamark/kube'
import type { DNSEndpoint } from '../api/dns-endpoint.ts'
import { desiredWithinLimits, sourceOf } from '../records/sync/sources/dns-endpoint-source.ts'
import type { TenantRules } from '../records/sync/tenants/tenant-rules.ts'
import type { Engine, Target } from '../records/engine.ts'
import { heldMessage } from '../records/plan/held-set.ts'
import type { Change, Refusal, SourceView } from '../records/plan/plan.ts'
import { canonicalName, isInvalid } from '../rrset/rrset.ts'
import type { Finding } from '../finding.ts'
import type { PlanStore } from '../records/stores/plan-store.ts'
import type { PlanFact } from './facts.ts'

export interface PlanFactDeps {
  readonly engine: Pick<Engine, 'plan' | 'targets' | 'view'>
  /** Every DNSEndpoint that the records capability selects: others may name the same host. */
  readonly endpoints: readonly DNSEndpoint[]
  readonly defaultTtl: number
  readonly rules: TenantRules
  /** Confirms by live reads which sources are gone, as the manager does. @default none is confirmed */
  readonly confirmGone?: (owned: ReadonlyMap<string, number>) => Promise<SourceView>
  /** Applied plans, for a name that nothing requests any more. */
  readonly plans?: Pick<PlanStore, 'list' | 'load'>
  /** What the manager reported about the DNSEndpoints that request a name. */
  readonly reports?: (endpoints: readonly DNSEndpoint[], name: string) => Promise<readonly Finding[]>
}

const ADDRESS_TYPES = ['A', 'AAAA', 'CNAME']

export async function findPlanFact(
  host: string,
  expected: readonly string[],
  { engine, endpoints, defaultTtl, rules, confirmGone, plans: applied, reports }: PlanFactDeps,
  signal: AbortSignal,
): Promise<PlanFact> {
  const none = { zone: '', pending: [], refused: [], records: [] }
  const name = canonicalName(host)
  if (isInvalid(name)) return { ...none, refused: [{ reason: 'HostInvalid', message: `${host} ${name.invalid}` }] }
  const present = new Set(endpoints.map((object) => sourceOf(object).uid))
  const desired = desiredWithinLimits(endpoints, defaultTtl, rules)
  const requesting = new Set(desired.desired.map(({ source }) => source.uid))
  const sources = async (owned: ReadonlyMap<string, number>): Promise<SourceView> => ({
    ...((await confirmGone?.(owned)) ?? { present, gone: new Set() }),
    requesting,
  })
  const request = { ...desired, sources }
  const restricted = await engine.plan(request, new Set([name]), signal)
  const { unread, withoutZone, withoutState } = restricted
  const lost = withoutZone.find((item) => item.name === name)
  const fault = unread[0]
  const providerFault = fault && { reason: fault.code, message: `${fault.provider}, zone ${fault.zone}: ${fault.why}` }
  const isAbout = (item: { name: string; type: string }) => item.name === name && ADDRESS_TYPES.includes(item.type)
  const isPending = restricted.plans.some(({ changes }) => changes.some(isAbout))
  const whole = isPending ? await engine.plan(request, 'all', signal) : restricted
  // What could be read a moment ago cannot be read now: the plan that was made counts.
  const confirmed = whole.plans.filter(({ zone }) => restricted.plans.some((each) => each.zone === zone))
  const plans = confirmed.length < restricted.plans.length ? restricted.plans : confirmed
  const [plan] = plans
  if (plan === undefined) {
    // When a provider is unread, it is unknown whether it serves the zone.
    if (providerFault !== undefined) return { ...none, providerFault }
    const message = lost?.message ?? `no provider serves a zone for ${host}`
    return { ...none, refused: [{ reason: lost?.code ?? 'NoMatchingZone', message }] }
  }
  const records = await findRecords(name, expected, plan.zone, engine, signal)
  const pending = plans.flatMap((each) => each.changes.filter(isAbout).map((change) => describe(change)))
  const isRequested = desired.desired.some(({ set }) => set.name === name)
  const removed =
    isRequested || records.length > 0 || applied === undefined ? undefined : await findRemoval(name, plan.zone, applied)
  const requesters = new Set(desired.desired.filter(({ set }) => set.name === name).map(({ source }) => source.uid))
  const reported =
    pending.length === 0 || reports === undefined
      ? []
      : await reports(
          endpoints.filter((object) => requesters.has(sourceOf(object).uid)),
          name,
        )
  return {
    zone: plan.zone.replace(/\.$/, ''),
    pending,
    refused: plans.flatMap((each) =>
      each.refused.filter(isAbout).map((refusal) => ({ reason: refusal.code, message: describeHeld(refusal) })),
    ),
    records,
    ...(providerFault !== undefined && { providerFault }),
    ...(withoutState.some(({ zone }) => zone === plan.zone) && { isWithoutState: true }),
    ...(removed !== undefined && { removed }),
    ...(reported.length > 0 && { reported }),
  }
}

/** The newest plan that changed the name, if it removed what was there. */
async function findRemoval(
  name: string,
  zone: string,
  applied: NonNullable<PlanFactDeps['plans']>,
): Promise<PlanFact['removed']> {
  for (const stored of await applied.list()) {
    if (stored.zone !== zone) continue
    for (const plan of await applied.load(stored.number)) {
      const changes = plan.changes.filter((change) => change.name === name && ADDRESS_TYPES.includes(change.type))
      const [first] = changes
      if (plan.zone !== zone || first === undefined) continue
      if (changes.some(({ op }) => op !== 'delete')) return undefined
      return { at: timestamp(plan.number), reason: first.reason, plan: plan.number }
    }
  }
  return undefined
}

/** With the times and the command of every message about a held change. */
function describeHeld(refusal: Refusal): string {
  const since = refusal.since === undefined ? '' : `; held since ${new Date(refusal.since).toISOString()}`
  return heldMessage({ ...refusal, why: `${refusal.why}${since}` })
}

function describe({ op, type, to, from }: Change): string {
  return `${op} ${type} ${(to ?? from)?.values.join(', ') ?? ''}`
}

/** Of several providers that serve the zone, one whose records differ from the expected ones. */
async function findRecords(
  name: string,
  expected: readonly string[],
  zone: string,
  engine: PlanFactDeps['engine'],
  signal: AbortSignal,
): Promise<string[]> {
  const { targets } = await engine.targets(signal)
  const read = async (target: Target): Promise<string[]> => {
    const view = await engine.view(target, new Set([name]), signal)
    const sets = view.typesAt(name).filter(({ type }) => ADDRESS_TYPES.includes(type))
    return sets.flatMap(({ values }) => values.map((value) => value.replace(/\.$/, '')))
  }
  const all = await Promise.all(targets.filter((target) => target.zone.name === zone).map(read))
  const isOther = (records: string[]) => records.toSorted().join() !== expected.toSorted().join()
  return all.find(isOther) ?? all[0] ?? []
}
