import { describe, expect, it } from 'vitest'
import {
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
import { ADOPTED } from '../../rrset/marker.ts'
import { planAdoption } from './hand-over.ts'
import { printPlanMarkdown, printPlanText } from './plan-text.ts'
import { createZoneView } from './zone-view.ts'

const a = (name: string) => record(name, 'A', ['192.0.2.1'], 3600)

describe('the text of a plan', () => {
  it('counts changes of the marker alone apart: after an adoption clients notice nothing', () => {
    const names = ['api', 'shop', 'www']
    const made = plan({
      observed: names.flatMap((name) => owned(a(name), { source: ADOPTED })),
      desired: [...names.map((name) => want(a(name))), want(a('new'))],
    })
    expect(made.changes).toHaveLength(4)
    expect(made.changes.filter(({ ttlEffect }) => ttlEffect > 0)).toEqual([])
    expect(printPlanText([made])).toBe(`zone a.test. (memory), owner prod
  + new.a.test. A  192.0.2.1
      SourceWants: Test s-new.a.test. requests it; risk low
  = api.a.test. A  SourceReplaced: Test s-api.a.test. requests it now
  = shop.a.test. A  SourceReplaced: Test s-shop.a.test. requests it now
  = www.a.test. A  SourceReplaced: Test s-www.a.test. requests it now
  3 changes of the marker alone; clients notice nothing
1 changes, 0 held; 3 changes of the marker alone; clients notice nothing
`)
    expect(printPlanMarkdown([made])).toContain('| update | www.a.test. | A | marker alone; clients notice nothing |')
  })

  it('of an adoption says the same', () => {
    const adoption = planAdoption(
      {
        provider: 'memory',
        zone: ZONE,
        view: createZoneView([a('www'), registryEntry(a('www'))], { origin: ZONE, registry: {} }),
        owner: OWNER,
        number: NOW,
        types: ['A'],
      },
      'external-dns/xd',
    )
    expect(printPlanText([adoption]).split('\n').slice(1)).toEqual([
      '  = _seamark-a.www.a.test. TXT  Adopted: www.a.test. A is taken over from external-dns/xd; its values stay',
      '  1 change of the marker alone; clients notice nothing',
      '0 changes, 0 held; 1 change of the marker alone; clients notice nothing',
      '',
    ])
  })

  it('sums up what is held for one reason, and names one command for all', () => {
    const names = ['api', 'shop', 'www']
    const made = plan({
      observed: [...names.map(a), a('other'), registryEntry(a('other'), 'prod-b')],
      desired: [...names, 'other'].map((name) => want(a(name))),
    })
    expect(printPlanText([made]).split('\n').slice(1)).toEqual([
      '  ! 3 RRsets  update held: UnownedRecordExists: the record has no ownership marker; to adopt it: seamark adopt --from unmarked api.a.test shop.a.test www.a.test',
      '      api.a.test. A, shop.a.test. A, www.a.test. A',
      '  ! other.a.test. A  update held: ForeignOwner: it belongs to external-dns/prod-b; to take it over: seamark adopt --from external-dns/prod-b other.a.test',
      '0 changes, 4 held',
      '',
    ])
  })

  it('cuts neither values nor the next step', () => {
    const value = `"${'v'.repeat(200)}"`
    const label = 'a-rather-long-name-of-a-host.in-a-rather-long-subdomain.of-a-team'
    const made = plan({
      observed: [a(label)],
      desired: [want(a(label)), want({ name: `txt.${ZONE}`, type: 'TXT', ttl: 60, values: [value] })],
      types: ['A', 'TXT'],
    })
    for (const text of [printPlanText([made]), printPlanMarkdown([made])]) {
      expect(text).toContain(`seamark adopt --from unmarked ${label}.a.test`)
      expect(text).toContain(value)
      expect(text).not.toContain('…')
    }
  })

  it('of many RRsets lists the first, and a breaker its set', () => {
    const names = Array.from({ length: 24 }, (_, index) => `n${String(index).padStart(2, '0')}`)
    const made = plan({
      observed: names.flatMap((name) => [a(name), markerFor(a(name))]),
      desired: [],
      sources: { present: new Set(), gone: new Set(names.map((name) => source(`s-${name}.${ZONE}`).uid)) },
    })
    const lines = printPlanText([made]).split('\n')
    expect(lines[1]).toBe(
      '  ! 24 RRsets  delete held: ShrinkBreakerOpen: 24 of 24 sources with records in zone a.test. disappeared within 10 min',
    )
    expect(lines[2]).toMatch(/^ {6}n00\.a\.test\. A, .*n09\.a\.test\. A and 14 more; -o wide lists them$/)
    expect(lines[3]).toMatch(/^ {2}24 held together; to let them pass: seamark approve [0-9a-f]{12}$/)
    expect(lines[4]).toBe('0 changes, 24 held')
  })
})
