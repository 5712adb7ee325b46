/** Hand-over while ExternalDNS runs, in both directions, interrupted after every write. */
import { describe, expect, it } from 'vitest'
import { memoryProvider } from '../../providers/memory.ts'
import { executorFixture } from '../../../testing/executor-fixture.ts'
import { type HandOver, planAdoption, planExclusive, planRelease, planTransfer } from './hand-over.ts'
import {
  printRegistryValue,
  readRegistryValue,
  registryNames,
  type RegistryOptions,
} from '../../rrset/external-dns-registry.ts'
import { isMarkerName } from '../../rrset/marker.ts'
import {
  applied,
  markerFor,
  NOW,
  OWNER,
  owned,
  plan,
  record,
  registryEntry,
  source,
  want,
  ZONE,
} from '../../../testing/plan-fixture.ts'
import type { Plan } from './plan.ts'
import { type ObservedRRset, printSet, type RRset, sameSet, setKey } from '../../rrset/rrset.ts'
import { createZoneView } from './zone-view.ts'

const { signal } = new AbortController()
const names = ['api', 'shop', 'www', '*']
const data = names.map((name) =>
  record(name, name === 'shop' ? 'CNAME' : 'A', [name === 'shop' ? 'lb.b.test.' : '192.0.2.1']),
)
const xdZone = (registry: RegistryOptions = {}): ObservedRRset[] => [
  ...data.flatMap((set) => [set, registryEntry(set, 'prod-a', registry)]),
  record('foreign', 'A', ['203.0.113.1']),
]
const fixtureOf = (observed: readonly ObservedRRset[], number = NOW, registry: RegistryOptions = {}): HandOver => ({
  provider: 'memory',
  zone: ZONE,
  view: createZoneView(observed, { origin: ZONE, registry }),
  owner: OWNER,
  number,
  types: ['A', 'AAAA', 'CNAME'],
})

/** What ExternalDNS with this owner id would write for the desired sets: its rules for records with a TXT registry. */
function externalDnsWrites(
  observed: readonly ObservedRRset[],
  desired: readonly RRset[],
  owner: string,
  registry: RegistryOptions = {},
): string[] {
  const byKey = new Map(observed.map((set) => [setKey(set), set]))
  const isOwned = (set: RRset) =>
    registryNames(set.name, set.type, registry).some((name) =>
      (byKey.get(`${name} TXT`)?.values ?? []).some((value) => {
        const reading = readRegistryValue(value, registry)
        return reading.kind === 'entry' && reading.entry.owner === owner
      }),
    )
  const writes: string[] = []
  for (const set of desired) {
    const there = byKey.get(setKey(set))
    if (there === undefined) writes.push(`create ${printSet(set)}`)
    else if (isOwned(there) && !sameSet(there, set)) writes.push(`update ${printSet(set)}`)
  }
  for (const set of observed) {
    const isDesired = desired.some((other) => setKey(other) === setKey(set))
    if (set.type !== 'TXT' && !isDesired && isOwned(set)) writes.push(`delete ${printSet(set)}`)
  }
  return writes
}

const answers = (observed: readonly ObservedRRset[]) => observed.filter(({ type }) => type !== 'TXT').map(printSet)

describe.each<[string, RegistryOptions]>([
  ['plain', {}],
  ['with a prefix', { prefix: 'xd-' }],
  ['with a suffix and a replaced wildcard', { suffix: '-xd', wildcardReplacement: 'any' }],
  ['with the type in the prefix', { prefix: '%{record_type}-xd.' }],
])('a zone of ExternalDNS, registry %s', (_title, registry) => {
  it('is adopted by writing only markers; ExternalDNS finds no difference before, during and after', () => {
    const before = xdZone(registry)
    const adoption = planAdoption(fixtureOf(before, NOW, registry), 'external-dns/prod-a')
    expect(adoption.changes).toHaveLength(names.length)
    expect(
      adoption.changes.every(({ name, type, op }) => isMarkerName(name) && type === 'TXT' && op === 'create'),
    ).toBe(true)
    for (let done = 0; done <= adoption.changes.length; done++) {
      const during = applied(before, adoption.changes.slice(0, done))
      expect(answers(during).sort()).toEqual(answers(before).sort())
      expect(externalDnsWrites(during, data, 'prod-a', registry)).toEqual([])
      // Run again after an interruption here: only the remainder is left.
      expect(planAdoption(fixtureOf(during, NOW + 1, registry), 'external-dns/prod-a').changes).toHaveLength(
        names.length - done,
      )
    }
  })

  it('is released: the zone is as it was before, and ExternalDNS changes nothing', () => {
    const before = xdZone(registry)
    const adopted = applied(before, planAdoption(fixtureOf(before, NOW, registry), 'external-dns/prod-a').changes)
    const release = planRelease(fixtureOf(adopted, NOW + 1, registry))
    expect(new Set(release.changes.map(({ reason }) => reason))).toEqual(new Set(['Released']))
    for (let done = 0; done <= release.changes.length; done++) {
      const during = applied(adopted, release.changes.slice(0, done))
      expect(answers(during).sort()).toEqual(answers(before).sort())
      expect(externalDnsWrites(during, data, 'prod-a', registry)).toEqual([])
    }
    expect(applied(adopted, release.changes).map(printSet).sort()).toEqual(before.map(printSet).sort())
  })
})

describe('hand-over', () => {
  it('interrupted by a crash after every write, it is completed by running it again; sampled answers never change', async () => {
    const before = xdZone()
    for (let crashAt = 1; crashAt <= names.length; crashAt++) {
      const memory = memoryProvider({ zones: [ZONE], capabilities: { maxChanges: 1 } })
      for (const set of before) memory.put(ZONE, set)
      const sampled = new Set<string>()
      const stop = new AbortController()
      const first = executorFixture([], { memory })
      first.faults.after = (_batch, call) => {
        sampled.add(JSON.stringify(answers(memory.dump(ZONE))))
        if (call === crashAt) stop.abort()
      }
      await first.executor.submit(planAdoption(fixtureOf(memory.dump(ZONE)), 'external-dns/prod-a'), stop.signal)
      const second = executorFixture([], { memory })
      second.faults.after = () => void sampled.add(JSON.stringify(answers(memory.dump(ZONE))))
      const outcome = await second.executor.submit(
        planAdoption(fixtureOf(memory.dump(ZONE), NOW + 1), 'external-dns/prod-a'),
        signal,
      )
      expect(outcome.results.every(({ result }) => result === 'applied')).toBe(true)
      expect(sampled.size).toBe(1)
      expect(planAdoption(fixtureOf(memory.dump(ZONE), NOW + 2), 'external-dns/prod-a').changes).toEqual([])
    }
  })

  it('adopts nothing that belongs to another ExternalDNS owner, to another Seamark owner, or to no owner', () => {
    const set = record('www', 'A', ['192.0.2.1'])
    const zones: [ObservedRRset[], string][] = [
      [[set, registryEntry(set, 'prod-b')], 'ForeignOwner'],
      [[set, markerFor(set, { owner: 'other' })], 'ForeignOwner'],
      [[set], 'UnownedRecordExists'],
      [[{ ...set, opaque: 'an alias' }], 'UnownedRecordExists'],
      [[set, { ...registryEntry(set), values: ['"heritage=other"'] }], 'UnknownRegistry'],
    ]
    for (const [observed, code] of zones) {
      const named = planAdoption({ ...fixtureOf(observed), names: new Set([set.name]) }, 'external-dns/prod-a')
      expect(named).toMatchObject({ changes: [], refused: [{ code }] })
      // Without names only what may be of that owner was asked for.
      const { changes, refused } = planAdoption(fixtureOf(observed), 'external-dns/prod-a')
      expect([changes, refused.map((each) => each.code)]).toEqual([[], code === 'UnknownRegistry' ? [code] : []])
    }
  })

  it('keeps the resource of an entry over adoption, removal of the entry, transfer and a change of values', () => {
    const set = record('www', 'A', ['192.0.2.1'])
    const resource = 'ingress/web/shop'
    const value = printRegistryValue({ owner: 'prod-a', resource }, {})
    const before = [set, { ...registryEntry(set, 'prod-a'), values: [value] }]
    const adopted = applied(before, planAdoption(fixtureOf(before), 'external-dns/prod-a').changes)
    const alone = applied(adopted, planExclusive(fixtureOf(adopted, NOW + 1), 'external-dns/prod-a').changes)
    expect(alone.flatMap(({ values }) => values)).not.toContain(value)
    const item = want(record('www', 'A', ['192.0.2.9']), source('uid'))
    const changed = applied(alone, plan({ observed: alone, desired: [item], number: NOW + 2 }).changes)
    const other = { owner: 'other', cluster: 'c-2' }
    const given = applied(changed, planTransfer(fixtureOf(changed, NOW + 3), other).changes)
    const theirs = { ...fixtureOf(given, NOW + 4), owner: { id: other.owner, cluster: other.cluster } }
    const back = applied(given, planRelease(theirs, { owner: 'prod-b', registry: {} }).changes)
    expect(back.flatMap(({ type, values }) => (type === 'TXT' ? values : []))).toEqual([
      printRegistryValue({ owner: 'prod-b', resource }, {}),
    ])
  })

  it('adopts unmarked records when they are named explicitly', () => {
    const set = record('www', 'A', ['192.0.2.1'])
    expect(planAdoption({ ...fixtureOf([set]), names: new Set([set.name]) }, 'unmarked').changes).toHaveLength(1)
  })

  it('adopted by a command, a set belongs to the first source that requests it, and is not deleted before', () => {
    const before = [record('www', 'A', ['192.0.2.1'])]
    const adopted = applied(
      before,
      planAdoption({ ...fixtureOf(before), names: new Set(['www.a.test.']) }, 'unmarked').changes,
    )
    expect(plan({ observed: adopted, number: NOW + 1 })).toMatchObject({
      changes: [],
      refused: [{ code: 'AdoptedWithoutSource' }],
    })
    const item = want(record('www', 'A', ['192.0.2.9']), source('uid'))
    expect(plan({ observed: adopted, desired: [item], number: NOW + 1 }).changes).toMatchObject([{ to: item.set }])
  })

  it('makes an adopted set exclusively ours: ExternalDNS can no longer change it', () => {
    const adopted = applied(xdZone(), planAdoption(fixtureOf(xdZone()), 'external-dns/prod-a').changes)
    const exclusive = planExclusive(fixtureOf(adopted, NOW + 1), 'external-dns/prod-a')
    const after = applied(adopted, exclusive.changes)
    // ExternalDNS deletes nothing, even when it no longer requests the records.
    expect(externalDnsWrites(adopted, [], 'prod-a')).toHaveLength(names.length)
    expect(externalDnsWrites(after, [], 'prod-a')).toEqual([])
    const back = planRelease(fixtureOf(after, NOW + 2), { owner: 'prod-a', registry: {} })
    expect(externalDnsWrites(applied(after, back.changes), data, 'prod-a')).toEqual([])
    expect(externalDnsWrites(applied(after, back.changes), [], 'prod-a')).toHaveLength(names.length)
  })

  it('transfers sets to another owner in one write; afterwards they are not ours', () => {
    const observed = owned(record('www', 'A', ['192.0.2.1']))
    const transfer: Plan = planTransfer(fixtureOf(observed), { owner: 'east', cluster: 'cluster-2' })
    const after = applied(observed, transfer.changes)
    expect(transfer.changes).toMatchObject([{ op: 'update', type: 'TXT', reason: 'Transferred' }])
    expect(answers(after)).toEqual(answers(observed))
    expect(
      plan({ observed: after, desired: [want(record('www', 'A', ['192.0.2.2']))], number: NOW + 1 }),
    ).toMatchObject({
      changes: [],
      refused: [{ code: 'ForeignOwner' }],
    })
  })
})

describe('a zone of dnslb-controller-manager', () => {
  const registry: RegistryOptions = { dnslbIdentity: 'GardenRing' }
  const from = 'dnslb/GardenRing'
  const a = record('www', 'A', ['192.0.2.1'])
  const aaaa = record('www', 'AAAA', ['2001:db8::1'])
  const comment = record('comment-www', 'TXT', ['"owner=GardenRing"', '"prefix=comment-"', '"cnames=b.test"'], 600)
  const zone = [a, aaaa, comment]
  const moved = record('www', 'A', ['192.0.2.9'])
  const lb = source('lb')

  it('is left alone without its identity in the configuration', () => {
    const { changes, refused } = plan({ observed: zone, desired: [want(moved, lb, { adopt: from })] })
    expect(changes).toEqual([])
    expect(refused).toMatchObject([{ code: 'AdoptionMismatch' }])
  })

  it('is refused to sources that do not adopt, with the command that adopts', () => {
    const { changes, refused } = plan({ observed: zone, registry, desired: [want(moved, lb)] })
    expect(changes).toEqual([])
    expect(refused).toMatchObject([
      { code: 'ForeignOwner', why: expect.stringContaining('seamark adopt --from dnslb/GardenRing www.a.test') },
    ])
  })

  it('is adopted by marker only; the values follow, and types that were not there are ours', () => {
    const desired = [moved, aaaa].map((set) => want(set, lb, { adopt: from }))
    const adoption = plan({ observed: zone, registry, desired })
    expect(adoption.refused).toEqual([])
    expect(adoption.changes.map(({ name, reason }) => [name, reason])).toEqual([
      ['_seamark-a.www.a.test.', 'Adopted'],
      ['_seamark-aaaa.www.a.test.', 'Adopted'],
    ])
    const adopted = applied(zone, adoption.changes)
    expect(answers(adopted)).toEqual(answers(zone))
    const after = plan({ observed: adopted, registry, desired })
    expect(after.changes.map(({ op, name, type }) => `${op} ${name} ${type}`)).toEqual(['update www.a.test. A'])
    // Given back: the entry of the original was kept.
    const released = applied(adopted, planRelease(fixtureOf(adopted, NOW, registry)).changes)
    expect(released).toEqual(applied(zone, []))
    const first = plan({ observed: [a, comment], registry, desired })
    expect(first.changes.map(({ op, name }) => `${op} ${name}`).toSorted()).toEqual([
      'create _seamark-a.www.a.test.',
      'create www.a.test.',
    ])
  })

  it('loses its entry once, with the first type, when the name is removed or taken for ourselves alone', () => {
    const adopted = applied(zone, planAdoption(fixtureOf(zone, NOW, registry), from).changes)
    const gone = plan({
      observed: adopted,
      registry,
      sources: { present: new Set(), gone: new Set(['adopted']) },
    })
    const removed = [...gone.changes, ...gone.refused].length
    expect(removed).toBe(2)
    const exclusive = planExclusive(fixtureOf(adopted, NOW, registry), from)
    const entries = exclusive.changes.flatMap(({ markers }) => markers.map((marker) => marker.from?.name))
    expect(entries.filter((name) => name === comment.name)).toEqual([comment.name])
    expect(applied(adopted, exclusive.changes).map(setKey)).not.toContain(setKey(comment))
  })

  it('is recognised by the entry of its first release too, whose neighbours in the TXT set stay', () => {
    const legacy = record('www', 'TXT', ['"GardenRing"', '"v=spf1 -all"'], 600)
    const old = [a, legacy]
    const adopted = applied(old, planAdoption(fixtureOf(old, NOW, registry), from).changes)
    const exclusive = applied(adopted, planExclusive(fixtureOf(adopted, NOW, registry), from).changes)
    expect(exclusive.find((set) => setKey(set) === setKey(legacy))?.values).toEqual(['"v=spf1 -all"'])
    const word = [a, record('www', 'TXT', ['"verification"'])]
    expect(planAdoption(fixtureOf(word, NOW, registry), from).changes).toEqual([])
  })
})
