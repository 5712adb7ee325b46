/**
 * The plan and the records of our own providers for one name: the plan that the manager makes, restricted to this name,
 * and the current records. Read-only.
 *
 * A zone that cannot be read is a fault of the provider, not an empty zone.
 */
import type { DNSEndpoint } from '../api/dns-endpoint.ts'
import { desiredWithinLimits, sourceOf } from '../records/sync/sources/dns-endpoint-source.ts'
import type { TenantRules } from '../records/sync/tenants/tenant-rules.ts'
import type { Engine, Target } from '../records/engine.ts'
import { heldMessage } from '../records/plan/held-set.ts'
import type { Change, Refusal, SourceView } from '../records/plan/plan.ts'
import { canonicalName, isInvalid } from '../rrset/rrset.ts'
import type { PlanFact } from './chain.ts'

export interface PlanFactDeps {
  readonly engine: Pick<Engine, 'plan' | 'targets' | 'view'>
  /** Every DNSEndpoint that the records capability selects: others may name the same host. */
  readonly endpoints: readonly DNSEndpoint[]
  readonly defaultTtl: number
  readonly rules: TenantRules
  /** Confirms by live reads which sources are gone, as the manager does. @default none is confirmed */
  readonly confirmGone?: (owned: ReadonlyMap<string, number>) => Promise<SourceView>
}

const ADDRESS_TYPES = ['A', 'AAAA', 'CNAME']

export async function findPlanFact(
  host: string,
  expected: readonly string[],
  { engine, endpoints, defaultTtl, rules, confirmGone }: PlanFactDeps,
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
  const { plans, unread, withoutZone, withoutState } = await engine.plan(
    { ...desired, sources },
    new Set([name]),
    signal,
  )
  const lost = withoutZone.find((item) => item.name === name)
  const fault = unread[0]
  const providerFault = fault && { reason: fault.code, message: `${fault.provider}, zone ${fault.zone}: ${fault.why}` }
  const [plan] = plans
  if (plan === undefined) {
    // When a provider is unread, it is unknown whether it serves the zone.
    if (providerFault !== undefined) return { ...none, providerFault }
    const message = lost?.message ?? `no provider serves a zone for ${host}`
    return { ...none, refused: [{ reason: lost?.code ?? 'NoMatchingZone', message }] }
  }
  const isAbout = (item: { name: string; type: string }) => item.name === name && ADDRESS_TYPES.includes(item.type)
  return {
    zone: plan.zone.replace(/\.$/, ''),
    pending: plans.flatMap((each) => each.changes.filter(isAbout).map((change) => describe(change))),
    refused: plans.flatMap((each) =>
      each.refused.filter(isAbout).map((refusal) => ({ reason: refusal.code, message: describeHeld(refusal) })),
    ),
    records: await findRecords(name, expected, plan.zone, engine, signal),
    ...(providerFault !== undefined && { providerFault }),
    ...(withoutState.some(({ zone }) => zone === plan.zone) && { isWithoutState: true }),
  }
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
