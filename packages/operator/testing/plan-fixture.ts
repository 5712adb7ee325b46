/** Builders for tests of plans: RRsets, desired RRsets with modifiers, and generated zones with records of other owners. */
import fc from 'fast-check'
import { planZone } from '../src/records/plan-zone.ts'
import { EMPTY_STATE } from '../src/records/state/guard-state.ts'
import { DEFAULT_LIMITS } from '../src/records/plan/limits.ts'
import { type Marker, markerName, printMarker } from '../src/rrset/marker.ts'
import { printRegistryValue, registryNames, type RegistryOptions } from '../src/rrset/external-dns-registry.ts'
import { orderedWrites } from '../src/records/execute/batch.ts'
import { type Desired, type Plan, type PlanInput, type Policy, type RecordSource } from '../src/records/plan/plan.ts'
import { compareSets, type ObservedRRset, type RRset, setKey, sortedUnique } from '../src/rrset/rrset.ts'
import { createZoneView } from '../src/records/plan/zone-view.ts'

export const ZONE = 'a.test.'
export const OWNER = { id: 'prod', cluster: 'cluster-1' }
export const NOW = 1_800_000_000_000

export function record(name: string, type: string, values: string[], ttl = 60): RRset {
  return { name: `${name}.${ZONE}`, type, ttl, values: sortedUnique(values) }
}

/** @param second of its creation time */
export function source(
  uid: string,
  { second, ...more }: Partial<RecordSource> & { second?: number } = {},
): RecordSource {
  const createdAt = second === undefined ? '' : `2030-01-01T00:00:0${second}Z`
  return {
    uid,
    label: `Test ${uid}`,
    age: { createdAt, namespace: more.namespace ?? '', name: uid, kind: 'Test' },
    ...more,
  }
}

export function want(set: RRset, from: RecordSource = source(`s-${set.name}`), policy?: Policy): Desired {
  return policy === undefined ? { set, source: from } : { set, source: from, policy }
}

/** The marker set that `OWNER`, or another owner, would have written. */
export function markerFor(set: { name: string; type: string }, more: Partial<Marker> = {}, ...others: Marker[]): RRset {
  const own: Marker = { owner: OWNER.id, cluster: OWNER.cluster, source: `s-${set.name}`, plan: 1, ...more }
  const values = [own, ...others].map((marker) => printMarker(set, marker))
  return { name: markerName(set.name, set.type), type: 'TXT', ttl: 300, values: sortedUnique(values) }
}

export function registryEntry(set: RRset, owner = 'xd', options: RegistryOptions = {}): RRset {
  const name = registryNames(set.name, set.type, options)[0] ?? set.name
  return { name, type: 'TXT', ttl: 300, values: [printRegistryValue({ owner }, options)] }
}

/** A set with our marker beside it. */
export function owned(set: RRset, more: Partial<Marker> = {}): RRset[] {
  return [set, markerFor(set, more)]
}

export interface PlanFixture extends Partial<Omit<PlanInput, 'view' | 'desired'>> {
  readonly observed?: readonly ObservedRRset[]
  readonly desired?: readonly Desired[]
  readonly registry?: RegistryOptions
}

export function inputOf(fixture: PlanFixture): PlanInput {
  const { observed = [], desired = [], registry = {}, ...rest } = fixture
  const key = rest.owner?.key
  const view = createZoneView(observed, { origin: ZONE, registry, ...(key !== undefined && { markerKey: key }) })
  const present = new Set(desired.map(({ source: from }) => from.uid))
  return {
    provider: 'memory',
    zone: ZONE,
    owner: OWNER,
    view,
    scope: 'all',
    desired,
    sources: { present, gone: new Set() },
    state: EMPTY_STATE,
    limits: DEFAULT_LIMITS,
    isAtomic: true,
    types: ['A', 'AAAA', 'CNAME', 'TXT'],
    mode: 'enforce',
    isPaused: false,
    number: NOW,
    now: NOW,
    ...rest,
  }
}

export function plan(fixture: PlanFixture): Plan {
  return planZone(inputOf(fixture))
}

/** The zone after a plan was applied by an ideal provider. */
export function applied(observed: readonly ObservedRRset[], changes: Plan['changes']): ObservedRRset[] {
  const zone = new Map(observed.map((set) => [setKey(set), set]))
  const writes = changes.flatMap(orderedWrites)
  for (const { from, to } of writes) if (from !== undefined && to === undefined) zone.delete(setKey(from))
  for (const { to } of writes) if (to !== undefined) zone.set(setKey(to), to)
  return [...zone.values()].sort(compareSets)
}

const LABELS = ['www', 'api', 'shop', 'db', '*', 'mail', 'x.y'] as const
const ADDRESSES = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '198.51.100.7'] as const

const setOf = (label: string): fc.Arbitrary<RRset> =>
  fc.oneof(
    fc
      .tuple(fc.subarray([...ADDRESSES], { minLength: 1 }), fc.constantFrom(30, 60))
      .map(([values, ttl]) => record(label, 'A', values, ttl)),
    fc.constantFrom('2001:db8::1', '2001:db8::2').map((value) => record(label, 'AAAA', [value])),
    fc.constantFrom('lb.b.test.', 'lb.c.test.').map((value) => record(label, 'CNAME', [value])),
  )

const OTHER_OWNER: Marker = { owner: 'other', cluster: 'cluster-9', source: 's-9', plan: 5 }

/** The possible content of one name of a generated zone, by owner. */
const NAME_CONTENTS: readonly ((set: RRset) => RRset[])[] = [
  (set) => owned(set), // ours
  (set) => [set], // unmarked
  (set) => [markerFor(set)], // a marker without a record
  (set) => [set, markerFor(set, OTHER_OWNER)], // another owner's
  (set) => [set, markerFor(set, {}, OTHER_OWNER)], // marked twice
  (set) => [set, registryEntry(set)], // ExternalDNS'
  (set) => [...owned(set), registryEntry(set)], // ours and ExternalDNS', without an adoption
  (set) => [...owned(set, { from: 'external-dns/xd' }), registryEntry(set)], // adopted
  (set) => [set, { ...markerFor(set), values: ['"v=spf1 -all"'] }], // invalid text at the marker's name
  (set) => [set, { ...markerFor(set), values: ['"v=seamark9,new"'] }], // a newer version
  (set) => [{ ...set, opaque: 'alias' } as RRset], // an alias
]

const nameContent = (label: string): fc.Arbitrary<RRset[]> =>
  fc.tuple(setOf(label), fc.constantFrom(...NAME_CONTENTS)).map(([set, settle]) => settle(set))

const unique = (sets: readonly RRset[]): RRset[] => [...new Map(sets.map((set) => [setKey(set), set])).values()]

export interface GeneratedPlanInput {
  readonly observed: readonly ObservedRRset[]
  readonly desired: readonly Desired[]
  readonly gone: ReadonlySet<string>
}

export const planFixtures: fc.Arbitrary<GeneratedPlanInput> = fc
  .record({
    zone: fc.tuple(...LABELS.map((label) => fc.option(nameContent(label), { nil: [] }))),
    desiredSets: fc.tuple(...LABELS.map((label) => fc.option(setOf(label), { nil: undefined }))),
    isGone: fc.boolean(),
  })
  .map(({ zone, desiredSets, isGone }) => {
    const observed = unique(zone.flat())
    const desired = desiredSets.flatMap((set) =>
      set === undefined ? [] : [want(set, undefined, { isApproved: true })],
    )
    const wanted = new Set(desired.map((item) => item.source.uid))
    const gone = isGone ? LABELS.map((label) => `s-${label}.${ZONE}`).filter((uid) => !wanted.has(uid)) : []
    return { observed, desired, gone: new Set(gone) }
  })
