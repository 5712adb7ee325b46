import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { inverseOf } from './inverse.ts'
import { markedSet } from '../../rrset/marker.ts'
import { ownershipOf } from './ownership.ts'
import { parsePlanFile, printPlanJson } from './plan-file.ts'
import { printPlanMarkdown, printPlanText } from './plan-text.ts'
import {
  applied,
  inputOf,
  markerFor,
  NOW,
  OWNER,
  owned,
  plan,
  record,
  registryEntry,
  source,
  want,
  type PlanFixture,
  planFixtures,
  ZONE,
} from '../../../testing/plan-fixture.ts'
import { compareSets, type ObservedRRset, printSet, sameSet, setKey } from '../../rrset/rrset.ts'

const print = (sets: readonly ObservedRRset[]) => sets.toSorted(compareSets).map(printSet)

const fixtureOf = (generated: {
  observed: readonly ObservedRRset[]
  desired: PlanFixture['desired'] & object
  gone: ReadonlySet<string>
}): PlanFixture => ({
  observed: generated.observed,
  desired: generated.desired,
  sources: { present: new Set(generated.desired.map((item) => item.source.uid)), gone: generated.gone },
})

describe('a plan over 500 generated zones with records of other owners (T15)', () => {
  it('leaves every set that is not ours byte for byte as it was', () => {
    fc.assert(
      fc.property(planFixtures, (generated) => {
        const fixture = fixtureOf(generated)
        const { view } = inputOf(fixture)
        const { changes } = plan(fixture)
        const after = new Map(applied(generated.observed, changes).map((set) => [setKey(set), set]))
        for (const set of generated.observed) {
          const subject = markedSet(set.name) ?? set
          if (ownershipOf(view, subject.name, subject.type, OWNER).kind === 'ours') continue
          // A registry entry kept since an adoption is deleted with its record.
          if (set.type === 'TXT' && markedSet(set.name) === undefined) continue
          expect(after.get(setKey(set)), printSet(set)).toEqual(set)
        }
        for (const change of changes) {
          for (const { from } of change.markers) {
            if (from === undefined || markedSet(from.name) !== undefined) continue
            const ownership = ownershipOf(view, change.name, change.type, OWNER)
            expect(ownership.kind === 'ours' && ownership.mine.marker.from).toBe('external-dns/xd')
          }
        }
      }),
      { numRuns: 500 },
    )
  })

  it('produces the desired state, or a reason; a second plan is empty; its inverse restores the zone', () => {
    fc.assert(
      fc.property(planFixtures, (generated) => {
        const fixture = fixtureOf(generated)
        const first = plan(fixture)
        const after = applied(generated.observed, first.changes)
        const refused = new Set(first.refused.map(setKey))
        for (const { set } of generated.desired) {
          if (refused.has(setKey(set))) continue
          expect(
            sameSet(
              after.find((item) => setKey(item) === setKey(set)),
              set,
            ),
            printSet(set),
          ).toBe(true)
        }
        const second = plan({ ...fixture, observed: after, number: NOW + 1 })
        expect(second.changes).toEqual([])
        expect(print(applied(after, inverseOf(first, NOW + 1).changes))).toEqual(print(generated.observed))
      }),
      { numRuns: 500 },
    )
  })

  it('is parsed back from its file, and so is its inverse', () => {
    fc.assert(
      fc.property(planFixtures, (generated) => {
        const first = plan(fixtureOf(generated))
        const [again] = parsePlanFile(printPlanJson([first]))
        expect(again?.changes).toEqual(first.changes)
        expect(again?.base).toBe(first.base)
      }),
      { numRuns: 100 },
    )
  })

  it('does not depend on the order of its inputs', () => {
    fc.assert(
      fc.property(planFixtures, fc.nat(), (generated, seed) => {
        const shuffle = <T>(items: readonly T[]): T[] => items.toSorted((a, b) => hash(a, seed) - hash(b, seed))
        const fixture = fixtureOf(generated)
        const other = { ...fixture, observed: shuffle(generated.observed), desired: shuffle(generated.desired) }
        expect(plan(other)).toEqual(plan(fixture))
      }),
      { numRuns: 100 },
    )
  })
})

function hash(item: unknown, seed: number): number {
  let sum = seed
  for (const char of JSON.stringify(item)) sum = (sum * 31 + char.charCodeAt(0)) | 0
  return sum
}

describe('a plan', () => {
  it('creates a set and its marker as one change', () => {
    const set = record('www', 'A', ['192.0.2.1'])
    const { changes } = plan({ desired: [want(set, source('uid-1', { revision: '3' }))] })
    expect(changes).toHaveLength(1)
    expect(changes[0]).toMatchObject({
      op: 'create',
      to: set,
      reason: 'SourceWants',
      owner: 'prod',
      risk: 'low',
      ttlEffect: 0,
    })
    expect(changes[0]?.markers[0]?.to).toEqual({
      name: '_seamark-a.www.a.test.',
      type: 'TXT',
      ttl: 300,
      values: [`"v=seamark1,owner=prod,cluster=cluster-1,source=uid-1,plan=${NOW},rev=3"`],
    })
  })

  it('replaces an address by a CNAME in one group', () => {
    const { changes } = plan({
      observed: owned(record('www', 'A', ['192.0.2.1'])),
      desired: [want(record('www', 'CNAME', ['lb.b.test.']))],
    })
    expect(changes.map(({ op, type, group }) => [op, type, group])).toEqual([
      ['create', 'CNAME', 'www.a.test.'],
      ['delete', 'A', 'www.a.test.'],
    ])
  })

  it('restores a record that was deleted while its marker remained', () => {
    const set = record('www', 'A', ['192.0.2.1'])
    expect(plan({ observed: [markerFor(set)], desired: [want(set)] }).changes).toMatchObject([
      { reason: 'RecordRestored', to: set },
    ])
  })

  it('updates only the marker when another object requests the same values', () => {
    const set = record('www', 'A', ['192.0.2.1'])
    const { changes } = plan({ observed: owned(set, { source: 'old' }), desired: [want(set, source('new'))] })
    expect(changes).toMatchObject([{ op: 'update', reason: 'SourceReplaced', from: set, to: set }])
  })

  it('deletes a set because its source no longer requests it, or because its source is gone', () => {
    const observed = owned(record('www', 'A', ['192.0.2.1']), { source: 'uid' })
    const without = (present: string[], gone: string[]) =>
      plan({ observed, sources: { present: new Set(present), gone: new Set(gone) } }).changes
    expect(without(['uid'], [])).toMatchObject([{ op: 'delete', reason: 'NoLongerWanted' }])
    expect(without([], ['uid'])).toMatchObject([{ op: 'delete', reason: 'SourceGone' }])
  })

  it('orders adds, retargets, shrinks and deletes, each by name (INV-22)', () => {
    const { changes } = plan({
      observed: [
        ...owned(record('a', 'A', ['192.0.2.1'])),
        ...owned(record('b', 'A', ['192.0.2.1', '192.0.2.2'])),
        ...owned(record('c', 'A', ['192.0.2.1'])),
      ],
      desired: [
        want(record('z', 'A', ['192.0.2.1'])),
        want(record('d', 'A', ['192.0.2.1'])),
        want(record('b', 'A', ['192.0.2.1'])),
        want(record('c', 'A', ['192.0.2.9'])),
      ],
      sources: { present: new Set(), gone: new Set(['s-a.a.test.']) },
    })
    expect(changes.map(({ name }) => name[0])).toEqual(['d', 'z', 'c', 'b', 'a'])
  })

  it('writes JSON, Markdown and text', () => {
    const plans = [
      plan({
        observed: [...owned(record('www', 'A', ['192.0.2.1'])), record('api', 'A', ['192.0.2.9'])],
        desired: [want(record('www', 'A', ['192.0.2.2'], 30)), want(record('api', 'A', ['192.0.2.1']))],
      }),
    ]
    expect(JSON.parse(printPlanJson(plans))).toMatchObject({
      apiVersion: 'seamark.io/v1alpha1',
      kind: 'Plan',
      base: [{ zone: ZONE }],
      changes: [
        {
          op: 'update',
          name: 'www.a.test.',
          type: 'A',
          from: ['192.0.2.1'],
          to: ['192.0.2.2'],
          ttl: 30,
          fromTtl: 60,
          reason: 'SourceChanged',
          owner: 'prod',
          risk: 'medium',
        },
      ],
      refused: [{ name: 'api.a.test.', code: 'UnownedRecordExists' }],
    })
    expect(printPlanText(plans)).toContain('~ www.a.test. A  192.0.2.1 → 192.0.2.2  ttl 60 → 30')
    expect(printPlanText(plans)).toContain('! api.a.test. A  update held: UnownedRecordExists')
    expect(printPlanMarkdown(plans)).toContain('| update | www.a.test. | A |')
  })

  it('in Markdown, keeps untrusted text inside its table cell', () => {
    const text = printPlanMarkdown([
      plan({ desired: [want({ name: `t.${ZONE}`, type: 'TXT', ttl: 5, values: ['"a|b <img> `x`"'] })] }),
    ])
    expect(text).toContain('"a\\|b &lt;img> \'x\'"')
  })

  it('from a file is printed without the control characters in its names and values', () => {
    const escape = '\u001b]0;owned\u0007'
    const text = printPlanJson([plan({ desired: [want(record('www', 'A', ['192.0.2.1']))] })])
    const file = JSON.parse(text) as { base: object[]; changes: object[] }
    const base = file.base.map((each) => ({ ...each, owner: escape }))
    const changes = file.changes.map((each) => ({ ...each, name: escape, type: escape, to: [escape], message: escape }))
    expect(changes).toHaveLength(1)
    const printed = printPlanText(parsePlanFile(JSON.stringify({ ...file, base, changes })))
    expect(printed).toContain('\\u{1b}]0;owned\\u{7}')
    expect(printed.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u)
  })

  it('with an invalid field is refused, and the field is named', () => {
    expect(() => parsePlanFile('{')).toThrow(/not a plan file/)
    expect(() => parsePlanFile('{"apiVersion":"seamark.io/v1alpha1","kind":"Plan"}')).toThrow(/base/)
    expect(() => parsePlanFile('{"apiVersion":"v1","kind":"Plan","base":[],"changes":[]}')).toThrow(/apiVersion/)
  })

  it('adopts only what an annotation names, by writing only a marker', () => {
    const set = record('www', 'A', ['192.0.2.1'])
    const item = want(record('www', 'A', ['192.0.2.2']), source('uid'), { adopt: '192.0.2.1' })
    const first = plan({ observed: [set], desired: [item] })
    expect(first.changes).toMatchObject([
      { op: 'create', name: '_seamark-a.www.a.test.', type: 'TXT', reason: 'Adopted' },
    ])
    const after = applied([set], first.changes)
    expect(after).toContainEqual(set)
    expect(plan({ observed: after, desired: [item], number: NOW + 1 }).changes).toMatchObject([
      { op: 'update', to: item.set },
    ])
    const wrong = want(item.set, item.source, { adopt: '192.0.2.7' })
    expect(plan({ observed: [set], desired: [wrong] })).toMatchObject({
      changes: [],
      refused: [{ code: 'AdoptionMismatch' }],
    })
  })

  it('adopts from ExternalDNS only when its owner is named', () => {
    const set = record('www', 'A', ['192.0.2.1'])
    const observed = [set, registryEntry(set, 'prod-a')]
    const adopt = (text: string) => plan({ observed, desired: [want(set, source('uid'), { adopt: text })] })
    expect(adopt('external-dns/prod-a').changes[0]?.to?.values[0]).toContain('from=external-dns/prod-a')
    expect(adopt('external-dns/other').refused[0]?.code).toBe('AdoptionMismatch')
    expect(adopt('192.0.2.1').refused[0]?.code).toBe('AdoptionMismatch')
  })

  it('shares a name: adds its values, keeps those of others, and removes only its own', () => {
    const set = record('www', 'A', ['192.0.2.1'])
    const alien = { owner: 'east', cluster: 'c-9', source: 's-9', plan: 4, part: ['192.0.2.1'] }
    const observed = [set, markerFor(set, alien)]
    const item = want(record('www', 'A', ['192.0.2.2']), source('uid'), { isShared: true })
    const joined = applied(observed, plan({ observed, desired: [item] }).changes)
    expect(joined.find(({ type }) => type === 'A')?.values).toEqual(['192.0.2.1', '192.0.2.2'])
    expect(joined.find(({ type }) => type === 'TXT')?.values).toHaveLength(2)
    expect(plan({ observed: joined, desired: [item], number: NOW + 1 }).changes).toEqual([])
    const left = plan({
      observed: joined,
      desired: [],
      sources: { present: new Set(), gone: new Set(['uid']) },
      number: NOW + 2,
    })
    expect(print(applied(joined, left.changes))).toEqual(print(observed))
  })
})
