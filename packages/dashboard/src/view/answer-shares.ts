/**
 * What clients get for a name now: the addresses and names in the answers of our own DNS server, each with its share of the
 * answers. From the zone that queries are answered from, and the answer policy in it; not from any configuration. Pure.
 */
import { type AnswerPolicy, decodePolicy, type Fqdn, POLICY_TYPE, rdataFromText, type Zone } from '@seamark/dns'

export interface ZoneAnswer {
  /** Values without trailing dots, each in [0, 1]; together 1, or empty. */
  readonly shares: ReadonlyMap<string, number>
  /** Every value of the RRsets, answered or not. */
  readonly values: readonly string[]
  /** Seconds; undefined without a record. */
  readonly ttl: number | undefined
}

const TYPES = ['A', 'AAAA', 'CNAME'] as const

export function zoneAnswerOf(zone: Pick<Zone, 'find'>, name: Fqdn): ZoneAnswer {
  const sets = TYPES.flatMap((type) => zone.find(name, type) ?? [])
  const policies = sets.length === 0 ? [] : policiesOf(zone, name)
  const shares = new Map<string, number>()
  for (const { type, values } of sets) {
    const policy = policies.find((each) => each.type === type)
    // Clients ask for A and for AAAA: the addresses of both types have the whole.
    for (const [value, share] of policy === undefined ? evenly(values) : sharesOf(policy, values))
      shares.set(textOf(value), (shares.get(textOf(value)) ?? 0) + share / sets.length)
  }
  const [first] = sets
  return { shares, values: sets.flatMap(({ values }) => values.map(textOf)), ttl: first?.ttl }
}

function policiesOf(zone: Pick<Zone, 'find'>, name: Fqdn): AnswerPolicy[] {
  const set = zone.find(name, `TYPE${POLICY_TYPE}`)
  return (set?.values ?? []).flatMap((value) => decodePolicy(rdataFromText(POLICY_TYPE, value)) ?? [])
}

function evenly(values: readonly string[]): [string, number][] {
  return values.map((value) => [value, 1 / values.length])
}

/** As a client of each region gets it, and one of none: where clients are is not known, so that each counts the same. */
function sharesOf({ mode, entries }: AnswerPolicy, values: readonly string[]): [string, number][] {
  const known = new Map(entries.map((entry) => [entry.value, entry]))
  const records = values.map((value) => ({ value, weight: 1, priority: 0, regions: [], ...known.get(value) }))
  const anywhere = records.filter(({ regions }) => regions.length === 0)
  const regions = new Set(records.flatMap((record) => record.regions))
  const groups = [
    anywhere.length > 0 ? anywhere : records,
    ...[...regions].map((region) => records.filter((record) => record.regions.includes(region))),
  ]
  const shares = new Map<string, number>()
  for (const group of groups) {
    const best = Math.min(...group.map(({ priority }) => priority))
    const chosen = group.filter(({ priority }) => priority === best)
    const total = chosen.reduce((sum, { weight }) => sum + weight, 0)
    for (const { value, weight } of chosen) {
      const isWeighted = mode === 'weighted' && total > 0
      const share = isWeighted ? weight / total : 1 / chosen.length
      shares.set(value, (shares.get(value) ?? 0) + share / groups.length)
    }
  }
  return [...shares]
}

const textOf = (value: string): string => value.replace(/\.$/, '')
