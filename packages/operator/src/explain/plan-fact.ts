/**
 * What our own providers plan and have for one name: the same plan the manager makes, about this name only, and the
 * records as they stand. Reads, and writes nothing.
 *
 * A zone that cannot be read is a fault of the provider, not an empty zone.
 */
import type { DNSEndpoint } from '../api/dns-endpoint.ts'
import { desiredOf, sourceOf } from '../records/sync/dns-endpoint-source.ts'
import type { Engine, Target } from '../records/engine.ts'
import type { Change } from '../records/plan/plan.ts'
import { canonicalName, isInvalid } from '../rrset/rrset.ts'
import type { PlanFact } from './chain.ts'

export interface PlanFactDeps {
  readonly engine: Pick<Engine, 'plan' | 'targets' | 'view'>
  /** Every DNSEndpoint that the records capability serves: others may name the same host. */
  readonly endpoints: readonly DNSEndpoint[]
  readonly defaultTtl: number
}

const ADDRESS_TYPES = ['A', 'AAAA', 'CNAME']

export async function findPlanFact(
  host: string,
  wanted: readonly string[],
  { engine, endpoints, defaultTtl }: PlanFactDeps,
  signal: AbortSignal,
): Promise<PlanFact> {
  const none = { zone: '', pending: [], refused: [], records: [] }
  const name = canonicalName(host)
  if (isInvalid(name)) return { ...none, refused: [{ reason: 'HostInvalid', message: `${host} ${name.invalid}` }] }
  const sources = { present: new Set(endpoints.map((object) => sourceOf(object).uid)), gone: new Set<string>() }
  const wishes = desiredOf(endpoints, defaultTtl)
  const { plans, unread, withoutZone } = await engine.plan({ ...wishes, sources }, new Set([name]), signal)
  const lost = withoutZone.find((item) => item.name === name)
  const fault = unread[0]
  const providerFault = fault && { reason: fault.code, message: `${fault.provider}, zone ${fault.zone}: ${fault.why}` }
  const [plan] = plans
  if (plan === undefined) {
    // With a provider unread it is not known whether it serves the zone.
    if (providerFault !== undefined) return { ...none, providerFault }
    const message = lost?.message ?? `no provider serves a zone for ${host}`
    return { ...none, refused: [{ reason: lost?.code ?? 'NoMatchingZone', message }] }
  }
  const isAbout = (item: { name: string; type: string }) => item.name === name && ADDRESS_TYPES.includes(item.type)
  return {
    zone: plan.zone.replace(/\.$/, ''),
    pending: plans.flatMap((each) => each.changes.filter(isAbout).map((change) => describe(change))),
    refused: plans.flatMap((each) =>
      each.refused.filter(isAbout).map(({ code, why }) => ({ reason: code, message: why })),
    ),
    records: await findRecords(name, wanted, plan.zone, engine, signal),
    ...(providerFault !== undefined && { providerFault }),
  }
}

function describe({ op, type, to, from }: Change): string {
  return `${op} ${type} ${(to ?? from)?.values.join(', ') ?? ''}`
}

/** Of several providers that serve the zone, the one that has something else than wanted. */
async function findRecords(
  name: string,
  wanted: readonly string[],
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
  const isOther = (records: string[]) => records.toSorted().join() !== wanted.toSorted().join()
  return all.find(isOther) ?? all[0] ?? []
}
