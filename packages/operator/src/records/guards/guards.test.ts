/** One test per guard; each fails when the guard is removed from its list. */
import { describe, expect, it } from 'vitest'
import { heldMessage } from '../plan/held-set.ts'
import { approveHeld } from '../../safety/approval.ts'
import { EMPTY_STATE, type GuardState } from '../state/guard-state.ts'
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
  type PlanFixture,
  ZONE,
} from '../../../testing/plan-fixture.ts'
import { ADOPTED } from '../../rrset/marker.ts'
import type { RRset } from '../../rrset/rrset.ts'

const MINUTE = 60_000
const names = (count: number) => Array.from({ length: count }, (_, index) => `n${String(index).padStart(3, '0')}`)
const zoneOf = (count: number, more = {}): RRset[] =>
  names(count).flatMap((name) => owned(record(name, 'A', ['192.0.2.1']), more))
const uid = (name: string) => `s-${name}.${ZONE}`
/** The first `lost` of `count` owned names have a source that is confirmed gone; the others are desired. */
function losing(count: number, lost: number, more: PlanFixture = {}): PlanFixture {
  const kept = names(count).slice(lost)
  return {
    observed: zoneOf(count),
    desired: kept.map((name) => want(record(name, 'A', ['192.0.2.1']))),
    sources: { present: new Set(kept.map(uid)), gone: new Set(names(count).slice(0, lost).map(uid)) },
    ...more,
  }
}
const codes = (fixture: PlanFixture) => [...new Set(plan(fixture).refused.map(({ code }) => code))]

describe('ownership', () => {
  const set = record('www', 'A', ['192.0.2.1'])
  const item = want(record('www', 'A', ['192.0.2.2']))
  const other = { owner: 'other', cluster: 'c-2', source: 'x', plan: 9 }
  it.each<[string, RRset[], string]>([
    ['an unmarked record', [set], 'UnownedRecordExists'],
    ["another owner's", [set, markerFor(set, other)], 'ForeignOwner'],
    ["another owner's marker without its record", [markerFor(set, other)], 'ForeignOwner'],
    ["ExternalDNS'", [set, registryEntry(set)], 'ForeignOwner'],
    ["an entry of ExternalDNS' without its record", [registryEntry(set)], 'ForeignOwner'],
    ['two markers', [set, markerFor(set, {}, other)], 'OwnershipConflict'],
    ["ours and ExternalDNS'", [...owned(set), registryEntry(set)], 'OwnershipConflict'],
    ['an unreadable marker', [set, { ...markerFor(set), values: ['"x"'] }], 'MarkerUnreadable'],
    ['an unknown registry', [set, { ...registryEntry(set), values: ['"heritage=foo"'] }], 'UnknownRegistry'],
    ['a routing policy', [{ ...set, opaque: 'weighted' } as RRset], 'UnownedRecordExists'],
  ])('refuses %s', (_title, observed, code) => {
    expect(plan({ observed, desired: [item] })).toMatchObject({ changes: [], refused: [{ code, name: 'www.a.test.' }] })
    // The same holds when no source requests it: the record is not ours, so it is not deleted.
    expect(plan({ observed, sources: { present: new Set(), gone: new Set([uid('www')]) } }).changes).toEqual([])
  })

  it('refuses a marker that is not signed with our key', () => {
    const owner = { ...OWNER, key: Buffer.from('k') }
    expect(plan({ observed: owned(set), desired: [item], owner })).toMatchObject({
      changes: [],
      refused: [{ code: 'MarkerForged' }],
    })
  })

  it('writes nothing at all when another cluster uses the same owner id', () => {
    const observed = [...owned(set, { cluster: 'cluster-2' })]
    const fixture = { observed, desired: [item, want(record('new', 'A', ['192.0.2.1']))] }
    expect(plan(fixture).changes).toEqual([])
    expect(codes(fixture)).toEqual(['OwnerInOtherCluster'])
  })
})

describe('never empty', () => {
  it('keeps a record whose source exists and has no target', () => {
    const fixture = { observed: zoneOf(1), desired: [want(record('n000', 'A', []))] }
    expect(plan(fixture).changes).toEqual([])
    expect(codes(fixture)).toEqual(['TargetsMissing'])
  })

  it('deletes it when the policy allows it', () => {
    const item = want(record('n000', 'A', []), undefined, { removeWhenEmpty: true })
    expect(plan({ observed: zoneOf(1), desired: [item] }).changes).toMatchObject([{ op: 'delete' }])
  })

  it('does not publish a name without a target', () => {
    expect(plan({ desired: [want(record('n000', 'A', []))] })).toMatchObject({
      changes: [],
      refused: [{ code: 'TargetsMissing' }],
    })
  })
})

describe('the last value', () => {
  it('of a shared name stays when the other owners have none', () => {
    const set = record('www', 'A', ['192.0.2.1'])
    const other = { owner: 'east', cluster: 'c-9', source: 's-9', plan: 4, part: [] }
    const observed = [set, markerFor(set, { part: ['192.0.2.1'] }, other)]
    const fixture = { observed, sources: { present: new Set<string>(), gone: new Set([uid('www')]) } }
    expect(plan(fixture)).toMatchObject({ changes: [], refused: [{ code: 'LastTarget' }] })
  })
})

describe('a source that is not in the cache', () => {
  it('and not confirmed gone keeps its records: a version that reads no sources deletes nothing', () => {
    for (const count of [1, 5, 100]) {
      const fixture = {
        observed: zoneOf(count),
        desired: [],
        sources: { present: new Set<string>(), gone: new Set<string>() },
      }
      expect(plan(fixture).changes).toEqual([])
      expect(codes(fixture)).toEqual(['SourceUnconfirmed'])
    }
  })

  it('and confirmed gone: its records are deleted at once when the budget allows', () => {
    expect(plan(losing(20, 3)).changes.map(({ op, reason }) => `${op} ${reason}`)).toEqual([
      'delete SourceGone',
      'delete SourceGone',
      'delete SourceGone',
    ])
  })

  it('keeps its name until it is confirmed gone and a grace period has passed', () => {
    const next = want(record('n000', 'A', ['192.0.2.9']), source('next'))
    const fixture = { observed: zoneOf(1), desired: [next] }
    expect(codes(fixture)).toEqual(['ClaimHeldByOther'])
    const gone = { ...fixture, sources: { present: new Set(['next']), gone: new Set([uid('n000')]) } }
    const first = plan(gone)
    expect(first.refused).toMatchObject([{ code: 'ClaimPending', until: NOW + MINUTE }])
    expect(plan({ ...gone, state: first.state, now: NOW + MINUTE }).changes).toMatchObject([{ to: next.set }])
  })
})

it('a name that moves to a load balancer of its namespace waits for no grace period, only for the confirmation', () => {
  const next = want(record('n000', 'A', ['192.0.2.9']), source('next', { namespace: 'web' }), {
    isOfLoadBalancer: true,
  })
  const present = new Set(['next'])
  const of = (namespace: string, gone: readonly string[]) => ({
    observed: zoneOf(1),
    desired: [next],
    sources: { present, gone: new Set(gone), namespaces: new Map([[uid('n000'), namespace]]) },
  })
  expect(codes(of('web', []))).toEqual(['ClaimHeldByOther'])
  expect(plan(of('web', [uid('n000')])).changes).toMatchObject([{ op: 'update', to: next.set }])
  expect(codes(of('other', [uid('n000')]))).toEqual(['ClaimPending'])
})

describe('of two sources that request one name', () => {
  const old = want(record('www', 'A', ['192.0.2.9']), source('b', { second: 1 }))
  const young = want(record('www', 'A', ['192.0.2.1']), source('a', { second: 2 }))
  it('the older one owns it in both orders, and the other gets a reason', () => {
    for (const desired of [
      [old, young],
      [young, old],
    ]) {
      const result = plan({ desired })
      expect(result.changes).toMatchObject([{ to: old.set }])
      expect(result.refused).toMatchObject([{ code: 'ClaimHeldByOther', source: 'a' }])
    }
  })
  it('of equal age the one with the smaller name owns it', () => {
    const twin = want(young.set, source('a', { second: 1 }))
    expect(plan({ desired: [old, twin] }).changes).toMatchObject([{ to: twin.set }])
  })
  it('a wildcard and an exact name do not conflict', () => {
    const any = want(record('*', 'A', ['192.0.2.3']), source('c'), { isApproved: true })
    expect(plan({ desired: [old, any] }).changes).toHaveLength(2)
  })
})

describe('the delete budget', () => {
  it('is five names in a small zone, and ten percent in a large one', () => {
    expect(plan(losing(30, 9)).changes).toHaveLength(5)
    expect(plan(losing(100, 20)).changes).toHaveLength(10)
  })

  it('holds the rest in quarantine for 30 minutes, and then deletes it', () => {
    const fixture = losing(30, 7)
    const first = plan(fixture)
    expect(first.refused).toMatchObject([
      { code: 'Quarantined', name: 'n005.a.test.', until: NOW + 30 * MINUTE },
      { code: 'Quarantined', name: 'n006.a.test.' },
    ])
    const observed = applied(fixture.observed ?? [], first.changes)
    const at = (minutes: number, state: GuardState) =>
      plan({ ...fixture, observed, state, now: NOW + minutes * MINUTE, number: NOW + minutes * MINUTE })
    const later = at(15, first.state)
    expect(later.changes).toEqual([])
    expect(later.refused).toMatchObject([{ code: 'Quarantined', until: NOW + 30 * MINUTE }, { code: 'Quarantined' }])
    expect(at(30, later.state).changes).toHaveLength(2)
  })

  it('is spent for ten minutes in all processes; an interrupted plan can be completed', () => {
    const { state, changes } = plan(losing(30, 5))
    const more = losing(30, 8)
    const at = { state, now: NOW + 9 * MINUTE }
    // Nothing was written yet: the five are reserved, and nothing beyond them.
    expect(plan({ ...more, ...at }).changes.map(({ name }) => name)).toEqual(names(5).map((name) => `${name}.${ZONE}`))
    // All five were written: the budget is spent.
    const after = { ...more, observed: applied(more.observed ?? [], changes), ...at }
    expect(plan(after).changes).toEqual([])
    expect(plan({ ...after, now: NOW + 10 * MINUTE }).changes).toHaveLength(3)
  })

  it('is a share of the names that were owned when the window began', () => {
    const first = plan(losing(100, 9))
    expect(first.changes).toHaveLength(9)
    const next = losing(100, 11)
    const second = plan({ ...next, observed: applied(next.observed ?? [], first.changes), state: first.state })
    expect(second.changes).toHaveLength(1)
  })

  it('does not count what was approved', () => {
    const approved = new Set(plan(losing(30, 9)).refused.map(({ set }) => set ?? ''))
    expect(approved.size).toBe(1)
    expect(plan({ ...losing(30, 9), approved }).changes).toHaveLength(9)
  })

  it('does not count a change of type', () => {
    const desired = names(9).map((name) =>
      want(record(name, 'CNAME', ['lb.b.test.']), source(uid(name), { revision: '2' })),
    )
    expect(plan({ observed: zoneOf(9, { revision: '1' }), desired }).changes).toHaveLength(18)
  })
})

describe('the shrink breaker', () => {
  it('opens above 30 percent and above five sources, and holds every deletion', () => {
    expect(codes(losing(20, 7))).toEqual(['ShrinkBreakerOpen'])
    expect(plan(losing(20, 7)).changes).toEqual([])
    expect(codes(losing(8, 5))).toEqual([])
    expect(codes(losing(100, 30))).toEqual(['Quarantined'])
  })

  it('counts deletions within the window, across restarts', () => {
    const first = plan(losing(20, 4))
    const second = plan({
      ...losing(20, 7),
      observed: applied(losing(20, 7).observed ?? [], first.changes),
      state: first.state,
      now: NOW + MINUTE,
    })
    expect([...new Set(second.refused.map(({ code }) => code))]).toEqual(['ShrinkBreakerOpen'])
  })

  it('counts each adopted name as a source of its own', () => {
    const adopted = Array.from({ length: 14 }, (_, index) => record(`adopted${index}`, 'A', ['192.0.2.1']))
    const observed = [...zoneOf(6), ...adopted.flatMap((set) => owned(set, { source: ADOPTED }))]
    const kept = adopted.map((set) => want(set))
    const gone = new Set(names(6).map(uid))
    const sources = { present: new Set(kept.map(({ source: { uid: id } }) => id)), gone }
    // Six of twenty are not too many; the budget deletes five of them.
    expect(codes({ observed, desired: kept, sources })).toEqual(['Quarantined'])
  })

  it('uses the persisted size of a zone that was read only in part', () => {
    const scope = new Set(names(7).map((name) => `${name}.${ZONE}`))
    const fixture = { ...losing(7, 7), scope }
    expect(codes(fixture)).toEqual(['ShrinkBreakerOpen'])
    expect(codes({ ...fixture, state: { ...EMPTY_STATE, ownedNames: 100, ownedSources: 100 } })).toEqual([])
  })
})

describe('the retarget breaker', () => {
  const moved = (count: number, revision: string, policy = {}): PlanFixture => ({
    observed: zoneOf(20, { revision: '1' }),
    desired: names(20).map((name, index) =>
      want(record(name, 'A', [index < count ? '192.0.2.9' : '192.0.2.1']), source(uid(name), { revision }), policy),
    ),
  })
  it('opens when many names change target although their sources did not change', () => {
    expect(codes(moved(7, '1'))).toEqual(['RetargetBreakerOpen'])
    expect(plan(moved(7, '1')).changes).toEqual([])
    expect(plan(moved(6, '1')).changes).toHaveLength(6)
  })
  it('stays closed when the sources changed, or when health checks change the targets', () => {
    expect(plan(moved(20, '2')).changes).toHaveLength(20)
    expect(plan(moved(20, '1', { isHealthDriven: true })).changes).toHaveLength(20)
  })
  it('is not bypassed by a marker without a revision, nor by a source that returned to an older one', () => {
    const unnamed = { ...moved(7, '2'), observed: zoneOf(20) }
    expect(codes(unnamed)).toEqual(['RetargetBreakerOpen'])
    const newer = { ...moved(7, '9'), observed: zoneOf(20, { revision: '10' }) }
    expect(codes(newer)).toEqual(['RetargetBreakerOpen'])
    expect(plan({ ...moved(7, '10'), observed: zoneOf(20, { revision: '9' }) }).changes).toHaveLength(7)
  })
  it('is not bypassed by an unsigned marker whose revision was lowered: the status of the source has the revision in place', () => {
    const lowered = (placedRevision: string): PlanFixture => ({
      ...moved(7, '5'),
      observed: zoneOf(20, { revision: '1' }),
      desired: moved(7, '5').desired?.map((item) => ({ ...item, source: { ...item.source, placedRevision } })) ?? [],
    })
    expect(codes(lowered('5'))).toEqual(['RetargetBreakerOpen'])
    expect(plan(lowered('4')).changes).toHaveLength(7)
  })
  it('is not bypassed by changing the type together with the target', () => {
    const fixture = moved(7, '1')
    const desired = fixture.desired?.map((item, index) =>
      index < 7 ? { ...item, set: { ...item.set, type: 'CNAME', values: ['lb.b.test.'] } } : item,
    )
    const held = plan({ ...fixture, desired: desired ?? [] })
    expect(held.changes).toEqual([])
    // Both halves are refused: the new set and the one it would replace.
    expect(held.refused.map(({ code }) => code)).toEqual(Array.from({ length: 14 }, () => 'RetargetBreakerOpen'))
  })
  it('is not bypassed by forged or removed markers: without a valid one nothing is written', () => {
    const key = Buffer.from('a key of this installation')
    const forged = { ...moved(20, '2'), owner: { ...OWNER, key } }
    expect(codes(forged)).toEqual(['MarkerForged'])
    expect(plan(forged).changes).toEqual([])
    const bare = moved(20, '2')
    const unmarked = { ...bare, observed: (bare.observed ?? []).filter(({ type }) => type !== 'TXT') }
    expect(codes(unmarked)).toEqual(['UnownedRecordExists'])
    expect(plan(unmarked).changes).toEqual([])
  })
  it('names the approve command on every change it holds, and lets the approved set pass', () => {
    const { refused } = plan(moved(7, '1'))
    expect(refused).toHaveLength(7)
    const [id = ''] = refused.map(({ set }) => set)
    for (const refusal of refused) {
      expect(heldMessage(refusal)).toBe(
        `7 of 20 names in zone a.test. would change target, and their sources did not change; to let it pass: seamark approve ${id}`,
      )
    }
    expect(plan({ ...moved(7, '1'), approved: new Set([id]) }).changes).toHaveLength(7)
    // Another set needs another approval.
    expect(plan({ ...moved(8, '1'), approved: new Set([id]) }).changes).toEqual([])
  })
  it('counts changes held outside the names of a plan: many small passes count as one large one', () => {
    const fixture = moved(7, '1')
    const { state } = plan(fixture)
    for (const { set } of fixture.desired ?? []) {
      const part = plan({
        ...fixture,
        state,
        scope: new Set([set.name]),
        desired: (fixture.desired ?? []).filter((item) => item.set.name === set.name),
      })
      expect(part.changes).toEqual([])
    }
  })
  it('adds up over several plans', () => {
    const { state, changes } = plan(moved(6, '1'))
    expect(changes).toHaveLength(6)
    // Only one is left to change, and the six before it count.
    const seventh = { ...moved(7, '1'), observed: applied(moved(7, '1').observed ?? [], changes), state }
    expect(plan({ ...seventh, now: NOW + 9 * MINUTE }).refused).toMatchObject([{ code: 'RetargetBreakerOpen' }])
    expect(plan({ ...seventh, now: NOW + 10 * MINUTE }).changes).toHaveLength(1)
  })
  it('does not count what is held outside of a plan and approved', () => {
    const { state, refused } = plan(moved(7, '1'))
    const [id = ''] = refused.map(({ set }) => set)
    const desired = (moved(8, '1').desired ?? []).slice(7, 8)
    const part = { ...moved(8, '1'), desired, scope: new Set(desired.map(({ set }) => set.name)) }
    expect(plan({ ...part, state }).changes).toEqual([])
    const approved = approveHeld(state, id, NOW, { mayRepeat: true }).state
    expect(plan({ ...part, state: approved }).changes).toHaveLength(1)
  })
})

describe('names and types', () => {
  it.each([
    ['the apex', { name: ZONE, type: 'A', ttl: 60, values: ['192.0.2.1'] }],
    ['a wildcard', record('*', 'A', ['192.0.2.1'])],
    ['a delegation', record('sub', 'NS', ['ns.b.test.'])],
  ])('%s needs approval', (_title, set) => {
    const types = ['A', 'NS']
    expect(plan({ desired: [want(set)], types })).toMatchObject({ changes: [], refused: [{ code: 'ApprovalMissing' }] })
    expect(plan({ desired: [want(set, undefined, { isApproved: true })], types }).changes).toHaveLength(1)
  })

  it('a type that is not managed is refused', () => {
    expect(codes({ desired: [want(record('a', 'MX', ['10 m.test.']))] })).toEqual(['TypeNotAllowed'])
  })

  it('a CNAME is refused beside a foreign record, and any type beside a foreign CNAME', () => {
    expect(
      codes({ observed: [record('a', 'TXT', ['"x"'])], desired: [want(record('a', 'CNAME', ['b.test.']))] }),
    ).toEqual(['TypeConflict'])
    expect(
      codes({ observed: [record('a', 'CNAME', ['b.test.'])], desired: [want(record('a', 'A', ['192.0.2.1']))] }),
    ).toEqual(['TypeConflict'])
  })

  it('a change of type without transactions is refused, both halves', () => {
    const fixture = { observed: zoneOf(1), desired: [want(record('n000', 'CNAME', ['lb.b.test.']))], isAtomic: false }
    expect(plan(fixture).changes).toEqual([])
    expect(plan(fixture).refused.map(({ code }) => code)).toEqual(['TypeConflict', 'TypeConflict'])
  })

  it('a name outside the zone is refused', () => {
    const set = { name: 'www.b.test.', type: 'A', ttl: 5, values: ['192.0.2.1'] }
    expect(codes({ desired: [want(set)] })).toEqual(['NoMatchingZone'])
  })

  it('an unusable desired RRset keeps what is published under its name', () => {
    const unusable = [
      { name: 'n000.a.test.', type: 'A', source: source(uid('n000')), code: 'RecordInvalid' as const, message: 'bad' },
    ]
    const fixture = {
      observed: zoneOf(1),
      unusable,
      sources: { present: new Set([uid('n000')]), gone: new Set<string>() },
    }
    expect(plan(fixture)).toMatchObject({ changes: [], refused: [{ code: 'RecordInvalid' }] })
  })
})

describe('modes', () => {
  it('observe and pause hold everything, spend no budget, and still show the plan', () => {
    for (const [more, code] of [
      [{ mode: 'observe' }, 'ObserveMode'],
      [{ isPaused: true }, 'Paused'],
    ] as const) {
      const result = plan({ ...losing(20, 3), ...more })
      expect(result.changes).toEqual([])
      expect(result.refused.map((refusal) => refusal.code)).toEqual([code, code, code])
      expect(result.state).toMatchObject({ fence: 0, deleted: [], gone: [] })
    }
  })
})

describe('what belongs to others', () => {
  const apex = (type: string, values: string[]): RRset => ({ name: ZONE, type, ttl: 60, values })
  const infrastructure = [
    apex('SOA', ['ns1.a.test. host.a.test. 1 3600 600 86400 30']),
    apex('NS', ['ns1.a.test.', 'ns2.a.test.']),
    apex('MX', ['10 mail.a.test.', '20 relay.a.test.']),
    record('ns1', 'A', ['192.0.2.53']),
    record('mail', 'A', ['192.0.2.25']),
    record('sub', 'NS', ['ns.sub.a.test.']),
    record('ns.sub', 'A', ['192.0.2.54']),
    record('web', 'A', ['192.0.2.80']),
    record('*.apps', 'A', ['192.0.2.82']),
    record('xd', 'A', ['192.0.2.81']),
    registryEntry(record('xd', 'A', [])),
  ]
  const held = (name: string, type: string, more: PlanFixture = {}, values = ['2001:db8::1']) => {
    const desired = [want(record(name, type, values))]
    const types = ['A', 'AAAA', 'CNAME', 'TXT', 'SRV']
    const { changes, refused } = plan({ observed: infrastructure, desired, types, ...more })
    return changes.length > 0
      ? 'written'
      : refused.map(({ code, isApprovable }) => `${code} ${isApprovable === true}`)[0]
  }

  it.each<[string, string, string[]?]>([
    ['ns1', 'AAAA'],
    ['ns2', 'AAAA'],
    ['mail', 'AAAA'],
    ['relay', 'AAAA'],
    ['ns.sub', 'AAAA'],
    ['new.sub', 'AAAA'],
    ['deep.new.sub', 'AAAA'],
    ['sub', 'AAAA'],
    ['web', 'AAAA'],
    ['web', 'TXT', ['"x"']],
    ['xd', 'AAAA'],
    ['_acme-challenge', 'CNAME', ['evil.test.']],
    ['_acme-challenge', 'TXT', ['"x"']],
    ['_sip._tcp', 'SRV', ['0 5 5060 evil.test.']],
    ['_acme-challenge.web', 'CNAME', ['evil.test.']],
    ['_443._tcp.mail', 'TXT', ['"x"']],
    ['s1._domainkey', 'TXT', ['"v=DKIM1"']],
    ['s1._domainkey.web', 'TXT', ['"v=DKIM1"']],
    ['default._bimi', 'TXT', ['"v=BIMI1"']],
    ['a.b._report._dmarc', 'TXT', ['"v=DMARC1"']],
    ['_acme-challenge.apps', 'CNAME', ['evil.test.']],
    ['s1._domainkey.apps', 'TXT', ['"v=DKIM1"']],
  ])('gets no new record at %s %s before an approval', (name, type, values) => {
    expect(held(name, type, {}, values)).toBe('UnownedRecordExists true')
    const fixture: PlanFixture = {
      observed: infrastructure,
      types: [type],
      desired: [want(record(name, type, values ?? ['2001:db8::1']))],
    }
    const { state } = plan(fixture)
    const approved = approveHeld(state, state.held[0]?.set ?? '', NOW, { mayRepeat: true }).state
    expect(plan({ ...fixture, state: approved }).changes).toHaveLength(1)
  })

  it('does not hold what is beside our own records, nor at names without records', () => {
    const own = (name: string) => [...infrastructure, ...owned(record(name, 'A', ['192.0.2.1']))]
    const sources = { present: new Set(['s-shop.a.test.', 's-mx.a.test.']), gone: new Set<string>() }
    expect(held('new', 'AAAA')).toBe('written')
    expect(held('shop', 'AAAA', { observed: own('shop'), sources })).toBe('written')
    expect(held('_acme-challenge.shop', 'TXT', { observed: own('shop'), sources }, ['"x"'])).toBe('written')
    expect(held('_acme-challenge.new', 'TXT', {}, ['"x"'])).toBe('written')
    expect(held('s1._domainkey.shop', 'TXT', { observed: own('shop'), sources }, ['"x"'])).toBe('written')
    expect(held('_acme-challenge.cdn', 'TXT', { observed: own('*.cdn'), sources }, ['"x"'])).toBe('written')
  })

  it('does not hold a name that only a wildcard of others answers, as it is with ExternalDNS', () => {
    expect(held('x.apps', 'AAAA')).toBe('written')
    expect(held('_acme-challenge.x.apps', 'TXT', {}, ['"x"'])).toBe('written')
  })

  it('leaves an RRset with our marker ours: it is changed and restored beside records of others', () => {
    const mine = record('web', 'AAAA', ['2001:db8::9'])
    const changed = plan({
      observed: [...infrastructure, ...owned(mine)],
      desired: [want(record('web', 'AAAA', ['2001:db8::1']))],
    })
    expect(changed.changes.map(({ op, name }) => `${op} ${name}`)).toEqual(['update web.a.test.'])
    const lost = plan({ observed: [...infrastructure, markerFor(mine)], desired: [want(mine)] })
    expect(lost.changes.map(({ op, name }) => `${op} ${name}`)).toEqual(['create web.a.test.'])
    const top = { ...apex('A', ['192.0.2.1']) }
    const moved = plan({
      observed: [...infrastructure, ...owned(top)],
      desired: [want({ ...top, values: ['192.0.2.2'] }, undefined, { isApproved: true })],
    })
    expect(moved.changes.map(({ op, name }) => `${op} ${name}`)).toEqual(['update a.test.'])
  })
})

describe('the limits of DNS', () => {
  const label = (octets: number) => 'x'.repeat(octets)
  const long = (octets: number) => `${label(63)}.${label(63)}.${label(63)}.${label(octets - 192 - ZONE.length - 1)}`

  it('refuse a name whose marker would be none, and nothing else', () => {
    const most = 253 - '_seamark-a.'.length
    const desired = [most + 1, most, 253].map((octets) => want(record(long(octets + 1), 'A', ['192.0.2.1'])))
    const { changes, refused } = plan({ desired: [...desired, want(record('fine', 'A', ['192.0.2.2']))] })
    expect(changes.map(({ name }) => name.length)).toEqual(expect.arrayContaining(['fine.a.test.'.length, most + 1]))
    expect(refused.map(({ code, why }) => [code, why])).toEqual(
      [most + 1, 253].map((octets) => [
        'RecordInvalid',
        `the record of its owner would have a name of ${octets + 11} characters, and DNS allows 253; use a name of at most ${most} characters`,
      ]),
    )
  })

  it('leave a label of 63 octets: only an entry of another registry could have no name', () => {
    expect(plan({ desired: [want(record(label(63), 'A', ['192.0.2.1']))] }).changes).toHaveLength(1)
  })

  it.each<[string, string, string[]]>([
    [
      'a set',
      'TXT',
      [0, 1].map((each) =>
        Array(150)
          .fill(`"${each}${label(250)}"`)
          .join(' '),
      ),
    ],
    ['very many addresses', 'A', names(5_000).map((_, index) => `10.0.${index >> 8}.${index & 255}`)],
  ])('refuse %s that fits no message', (_title, type, values) => {
    const { changes, refused } = plan({
      desired: [want(record('big', type, values)), want(record('fine', 'A', ['192.0.2.2']))],
    })
    expect(changes.map(({ name }) => name)).toEqual(['fine.a.test.'])
    expect(refused).toMatchObject([{ code: 'RecordInvalid', why: expect.stringContaining('fit into a DNS message') }])
  })
})
