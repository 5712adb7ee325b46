import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { DNSLoadBalancerEndpoint } from '../../api/dns-load-balancer-endpoint.ts'
import type { DNSLoadBalancer } from '../../api/dns-load-balancer.ts'
import type { Verdict } from '../../health/verdict.ts'
import { policySettings } from '../../rrset/answer-policy.ts'
import type { RRset } from '../../rrset/rrset.ts'
import type { BalancedSet } from './answer-shares.ts'
import { type BalanceFacts, decide } from './decide.ts'
import { MAX_CHANGES_PER_MINUTE } from './finding.ts'
import { BALANCE_DEFAULTS } from '../load-balancer.ts'

const NOW_MS = Date.UTC(2030, 0, 1)

interface Fixture {
  readonly loadBalancer: DNSLoadBalancer
  readonly endpoints: readonly DNSLoadBalancerEndpoint[]
  readonly verdicts: Readonly<Record<string, Verdict>>
  readonly published: readonly BalancedSet[] | undefined
}

const ADDRESSES: Record<string, string[]> = {
  'one.example.net.': ['192.0.2.101'],
  'two.example.net.': ['192.0.2.102', '2001:db8::102'],
}

function factsOf(fixture: Fixture, more: Partial<BalanceFacts> = {}): BalanceFacts {
  return {
    nowMs: NOW_MS,
    startedMs: NOW_MS - 3_600_000,
    defaults: BALANCE_DEFAULTS,
    loadBalancer: fixture.loadBalancer,
    holder: 'web/shop',
    endpoints: fixture.endpoints,
    verdictOf: (key) => fixture.verdicts[key.replace('web/', '')] ?? 'unknown',
    nameVerdict: 'healthy',
    published: fixture.published,
    provider: { state: 'ready' },
    lookup: (name) => ADDRESSES[name],
    changesMs: [],
    ...more,
  }
}

function shop(spec: Partial<DNSLoadBalancer['spec']> = {}): DNSLoadBalancer {
  return {
    metadata: { namespace: 'web', name: 'shop', generation: 3 },
    spec: { DNSName: 'shop.example.com', healthPath: '/healthz', ...spec },
  }
}

function endpoint(name: string, spec: Partial<DNSLoadBalancerEndpoint['spec']> = {}): DNSLoadBalancerEndpoint {
  return { metadata: { namespace: 'web', name }, spec: { loadbalancer: 'shop', ...spec } }
}

const a = endpoint('a', { ipaddress: '192.0.2.1' })
const b = endpoint('b', { ipaddress: '192.0.2.2' })
const records = (...values: string[]): RRset[] => [{ name: 'shop.example.com.', type: 'A', ttl: 30, values }]

/** The state after the decision was carried out. */
function apply(fixture: Fixture, more: Partial<BalanceFacts> = {}): Fixture {
  const decision = decide(factsOf(fixture, more))
  const published =
    decision.records.kind === 'publish'
      ? decision.records.sets
      : decision.records.kind === 'remove'
        ? []
        : fixture.published
  return {
    ...fixture,
    published,
    loadBalancer: { ...fixture.loadBalancer, status: decision.whenApplied.status },
    endpoints: fixture.endpoints
      .filter(({ metadata }) => !decision.deletions.some(({ key }) => key === `web/${metadata.name}`))
      .map((each) => {
        const status = decision.whenApplied.endpointStatuses.get(`web/${each.metadata.name}`)
        return status === undefined ? each : { ...each, status: { ...each.status, ...status } }
      }),
  }
}

const anyEndpoint = fc.record({
  target: fc.constantFrom<Partial<DNSLoadBalancerEndpoint['spec']>>(
    { ipaddress: '192.0.2.1' },
    { ipaddress: '192.0.2.2' },
    { ipaddress: '2001:db8::3' },
    { cname: 'one.example.net' },
    { cname: 'two.example.net' },
    { cname: 'unresolved.example.net' },
    { ipaddress: 'not-an-address' },
    {},
  ),
  weight: fc.constantFrom(undefined, 0, 5),
  priority: fc.constantFrom(undefined, 0, 1),
  geo: fc.constantFrom(undefined, 'eu', 'us'),
  drain: fc.constantFrom(undefined, true),
  verdict: fc.constantFrom<Verdict>('healthy', 'unhealthy', 'unknown'),
  validForMs: fc.constantFrom(undefined, -1_000, 60_000),
})

const anyFixture: fc.Arbitrary<Fixture> = fc
  .record({
    endpoints: fc.array(anyEndpoint, { maxLength: 5 }),
    type: fc.constantFrom(undefined, 'Balanced', 'Exclusive'),
    failBack: fc.constantFrom(undefined, 'Never' as const, 'Always' as const),
    onAllUnhealthy: fc.constantFrom(undefined, 'ServeLast' as const, 'ServeAll' as const, 'Remove' as const),
    published: fc.constantFrom<RRset[]>(
      [],
      records('192.0.2.1'),
      records('192.0.2.1', '192.0.2.2'),
      records('198.51.100.1'),
      [{ name: 'shop.example.com.', type: 'CNAME', ttl: 60, values: ['one.example.net.'] }],
    ),
  })
  .map(({ endpoints, type, failBack, onAllUnhealthy, published }) => ({
    loadBalancer: shop({
      ...(type !== undefined && { type }),
      ...(failBack !== undefined && { failBack }),
      ...(onAllUnhealthy !== undefined && { onAllUnhealthy }),
    }),
    endpoints: endpoints.map(({ target, weight, priority, geo, drain, validForMs }, index) => ({
      ...endpoint(`e${index}`, {
        ...target,
        ...(weight !== undefined && { weight }),
        ...(priority !== undefined && { priority }),
        ...(geo !== undefined && { geo }),
        ...(drain !== undefined && { drain }),
      }),
      ...(validForMs !== undefined && { status: { validUntil: new Date(NOW_MS + validForMs).toISOString() } }),
    })),
    verdicts: Object.fromEntries(endpoints.map(({ verdict }, index) => [`e${index}`, verdict])),
    published,
  }))

describe('a decision', () => {
  it('does not depend on the order of the endpoints', () => {
    fc.assert(
      fc.property(anyFixture, fc.infiniteStream(fc.nat()), (fixture, numbers) => {
        const shuffled = fixture.endpoints
          .map((each) => ({ each, order: numbers.next().value ?? 0 }))
          .sort((x, y) => x.order - y.order)
          .map(({ each }) => each)
        const { whenRejected: _, ...one } = decide(factsOf(fixture))
        const { whenRejected: __, ...other } = decide(factsOf({ ...fixture, endpoints: shuffled }))
        expect(other).toEqual(one)
      }),
    )
  })

  it('changes nothing the second time', () => {
    fc.assert(
      fc.property(anyFixture, fc.boolean(), (fixture, answersByPolicy) => {
        const settled = apply(fixture, { answersByPolicy })
        const again = decide(factsOf(settled, { answersByPolicy }))
        if (again.records.kind !== 'hold') expect(again.records.isChange).toBe(false)
        expect(again.whenApplied.status).toEqual(settled.loadBalancer.status)
        expect([...again.whenApplied.endpointStatuses]).toEqual([])
        // Nor does a restart, which has forgotten what it sent.
        expect(again.whenApplied.events.filter(({ type }) => type === 'Normal')).toEqual([])
        expect(again.deletions).toEqual([])
      }),
    )
  })

  it('never empties a published name, unless configured to remove it and every verdict is bad', () => {
    fc.assert(
      fc.property(anyFixture, (fixture) => {
        fc.pre((fixture.published ?? []).length > 0)
        const { records } = decide(factsOf(fixture))
        if (records.kind === 'publish') expect(records.sets.flatMap(({ values }) => values).length).toBeGreaterThan(0)
        if (records.kind === 'remove') {
          expect(fixture.loadBalancer.spec.onAllUnhealthy).toBe('Remove')
          expect(
            decide(
              factsOf({
                ...fixture,
                loadBalancer: shop({ ...fixture.loadBalancer.spec, onAllUnhealthy: 'ServeLast' }),
              }),
            ).records.kind,
          ).toBe('hold')
        }
      }),
    )
  })

  it('never publishes a CNAME beside another record, nor more than one endpoint when exclusive', () => {
    fc.assert(
      fc.property(anyFixture, (fixture) => {
        const { records, whenApplied } = decide(factsOf(fixture))
        fc.pre(records.kind === 'publish')
        if (records.sets.some(({ type }) => type === 'CNAME')) expect(records.sets).toHaveLength(1)
        if (fixture.loadBalancer.spec.type === 'Exclusive') expect(whenApplied.status.active).toHaveLength(1)
      }),
    )
  })

  it('never publishes an endpoint that has not passed on a name that has no records', () => {
    fc.assert(
      fc.property(anyFixture, (fixture) => {
        const { whenApplied } = decide(factsOf({ ...fixture, published: [] }))
        for (const { name } of whenApplied.status.active ?? []) expect(fixture.verdicts[name]).toBe('healthy')
      }),
    )
  })

  it('keeps the records while the provider is missing, out of scope or unreadable', () => {
    fc.assert(
      fc.property(
        anyFixture,
        fc.constantFrom(
          { state: 'missing' as const },
          { state: 'outOfScope' as const, provider: 'dns/aws' },
          { state: 'unreadable' as const, error: 'timeout' },
        ),
        (fixture, provider) => {
          expect(decide(factsOf(fixture, { provider })).records.kind).toBe('hold')
        },
      ),
    )
  })
})

describe('the change rate', () => {
  it('holds the seventh change within a minute and asks to decide again when it may go', () => {
    const fixture: Fixture = {
      loadBalancer: shop(),
      endpoints: [a, b],
      verdicts: { a: 'healthy', b: 'healthy' },
      published: records('192.0.2.1'),
    }
    const changesMs = Array.from({ length: MAX_CHANGES_PER_MINUTE }, (_, index) => NOW_MS - 50_000 + index)
    const held = decide(factsOf(fixture, { changesMs }))
    expect(held).toMatchObject({ records: { kind: 'hold' }, reason: 'ChangeRateLimited', againAfterMs: 10_000 })
    expect(held.whenApplied.status.active).toEqual([{ name: 'a', ipaddress: '192.0.2.1' }])
    expect(decide(factsOf(fixture, { changesMs, nowMs: NOW_MS + 10_000 })).records).toMatchObject({
      kind: 'publish',
      isChange: true,
    })
  })
})

describe('endpoints that hold their place', () => {
  it('stay published while their verdict is unknown, and others join them', () => {
    const fixture: Fixture = {
      loadBalancer: shop(),
      endpoints: [a, b],
      verdicts: { a: 'unknown', b: 'healthy' },
      published: records('192.0.2.1'),
    }
    expect(decide(factsOf(fixture)).records).toMatchObject({ sets: records('192.0.2.1', '192.0.2.2') })
    expect(decide(factsOf({ ...fixture, published: [] })).records).toMatchObject({ sets: records('192.0.2.2') })
  })

  it('are taken from the status when the records cannot be read', () => {
    const loadBalancer = { ...shop({ type: 'Exclusive' }), status: { active: [{ name: 'b', ipaddress: '192.0.2.2' }] } }
    const fixture: Fixture = {
      loadBalancer,
      endpoints: [a, b],
      verdicts: { a: 'healthy', b: 'healthy' },
      published: undefined,
    }
    expect(decide(factsOf(fixture)).records).toMatchObject({ sets: records('192.0.2.2') })
  })
})

describe('priority, weight, drain and fail-back', () => {
  const first = endpoint('first', { ipaddress: '192.0.2.1' })
  const second = endpoint('second', { ipaddress: '192.0.2.2', priority: 1 })
  const healthy = { first: 'healthy', second: 'healthy' } as const

  it.each<
    [
      name: string,
      spec: Partial<DNSLoadBalancer['spec']>,
      endpoints: DNSLoadBalancerEndpoint[],
      verdicts: Record<string, Verdict>,
      published: RRset[],
      expected: string[],
    ]
  >([
    ['serves the best priority only', {}, [first, second], healthy, [], ['192.0.2.1']],
    [
      'serves the next priority when the best is unhealthy',
      {},
      [first, second],
      { ...healthy, first: 'unhealthy' },
      [],
      ['192.0.2.2'],
    ],
    [
      'leaves a draining endpoint when another can serve',
      {},
      [endpoint('first', { ipaddress: '192.0.2.1', drain: true }), second],
      healthy,
      [],
      ['192.0.2.2'],
    ],
    [
      'keeps a draining endpoint that is the last',
      {},
      [endpoint('first', { ipaddress: '192.0.2.1', drain: true }), second],
      { ...healthy, second: 'unhealthy' },
      [],
      ['192.0.2.1'],
    ],
    [
      'leaves weight 0 when another can serve',
      {},
      [endpoint('first', { ipaddress: '192.0.2.1', weight: 0 }), second],
      healthy,
      [],
      ['192.0.2.2'],
    ],
    [
      'prefers the greater weight when exclusive',
      { type: 'Exclusive' },
      [a, endpoint('b', { ipaddress: '192.0.2.2', weight: 9 })],
      { a: 'healthy', b: 'healthy' },
      [],
      ['192.0.2.2'],
    ],
    [
      'does not fail back by default',
      { type: 'Exclusive' },
      [first, second],
      healthy,
      records('192.0.2.2'),
      ['192.0.2.2'],
    ],
    [
      'fails back when configured to',
      { type: 'Exclusive', failBack: 'Always' },
      [first, second],
      healthy,
      records('192.0.2.2'),
      ['192.0.2.1'],
    ],
    [
      'does not move between equals when configured to fail back',
      { type: 'Exclusive', failBack: 'Always' },
      [a, b],
      { a: 'healthy', b: 'healthy' },
      records('192.0.2.2'),
      ['192.0.2.2'],
    ],
  ])('%s', (_, spec, endpoints, verdicts, published, expected) => {
    const { records: decided } = decide(factsOf({ loadBalancer: shop(spec), endpoints, verdicts, published }))
    expect(decided).toMatchObject({ kind: 'publish', sets: [{ type: 'A', values: expected }] })
  })
})

describe('weights and regions in a zone of our own DNS server', () => {
  const eu = endpoint('eu', { ipaddress: '192.0.2.1', geo: 'eu', weight: 3 })
  const us = endpoint('us', { ipaddress: '192.0.2.2', geo: 'us', priority: 1 })
  const reserve = endpoint('reserve', { ipaddress: '192.0.2.3', geo: 'us', priority: 2 })
  const elsewhere = endpoint('elsewhere', { ipaddress: '192.0.2.4' })
  const fixture: Fixture = {
    loadBalancer: shop(),
    endpoints: [eu, us, reserve, elsewhere],
    verdicts: { eu: 'healthy', us: 'healthy', reserve: 'healthy', elsewhere: 'healthy' },
    published: [],
  }
  const settingsOf = (facts: BalanceFacts) => {
    const { records: decided } = decide(facts)
    const [set] = decided.kind === 'publish' ? decided.sets : []
    return {
      values: set?.values,
      settings: Object.fromEntries(policySettings(set?.policy ?? '').map(({ name, value }) => [name, value])),
    }
  }

  it('become a policy with the best endpoints of each region', () => {
    expect(settingsOf(factsOf(fixture, { answersByPolicy: true }))).toEqual({
      values: ['192.0.2.1', '192.0.2.2', '192.0.2.4'],
      settings: {
        'seamark.io/answer': 'weighted',
        'seamark.io/weights': '192.0.2.1=3',
        'seamark.io/priorities': '192.0.2.2=1',
        'seamark.io/regions': '192.0.2.1=eu,192.0.2.2=us',
      },
    })
  })

  it('give a region its next priority when the best one fails, and the endpoints for everyone when none is left', () => {
    const failing = (...names: string[]) =>
      settingsOf(
        factsOf(
          {
            ...fixture,
            verdicts: { ...fixture.verdicts, ...Object.fromEntries(names.map((name) => [name, 'unhealthy'])) },
          },
          { answersByPolicy: true },
        ),
      ).values
    expect(failing('us')).toEqual(['192.0.2.1', '192.0.2.3', '192.0.2.4'])
    expect(failing('us', 'reserve')).toEqual(['192.0.2.1', '192.0.2.4'])
  })

  it('are a plain set of the best priority elsewhere', () => {
    expect(decide(factsOf(fixture)).records).toMatchObject({ sets: records('192.0.2.1', '192.0.2.4') })
    expect(settingsOf(factsOf(fixture)).settings).toEqual({})
  })

  it('are published again when only a weight changes, and replaced by a plain policy when all are equal', () => {
    const settled = apply(fixture, { answersByPolicy: true })
    const heavier = { ...settled, endpoints: [{ ...eu, spec: { ...eu.spec, weight: 9 } }, us, reserve, elsewhere] }
    expect(decide(factsOf(heavier, { answersByPolicy: true })).records).toMatchObject({ isChange: true })
    const equal = { ...settled, endpoints: [endpoint('eu', { ipaddress: '192.0.2.1' }), elsewhere] }
    const facts = factsOf(equal, { answersByPolicy: true })
    expect(settingsOf(facts)).toEqual({
      values: ['192.0.2.1', '192.0.2.4'],
      settings: { 'seamark.io/answer': 'shuffle' },
    })
    expect(decide(factsOf(apply(equal, { answersByPolicy: true }), { answersByPolicy: true })).records).toMatchObject({
      isChange: false,
    })
  })
})

describe('the limits of a decision', () => {
  const down = { a: 'unhealthy', b: 'unhealthy' } as const
  const kindOf = (fixture: Fixture, more: Partial<BalanceFacts> = {}) => decide(factsOf(fixture, more)).records.kind

  it.each(['ServeAll', 'Remove'] as const)('a name that was never published is not by %s', (onAllUnhealthy) => {
    const fixture = { loadBalancer: shop({ onAllUnhealthy }), endpoints: [a, b], verdicts: down, published: [] }
    expect(kindOf(fixture)).toBe('hold')
  })

  it('ServeAll leaves out endpoints that drain, unless all do', () => {
    const draining = { ...b, spec: { ...b.spec, drain: true } }
    const fixture = {
      loadBalancer: shop({ onAllUnhealthy: 'ServeAll' }),
      verdicts: down,
      published: records('192.0.2.9'),
    }
    const valuesOf = (...endpoints: DNSLoadBalancerEndpoint[]) => {
      const { records: decided } = decide(factsOf({ ...fixture, endpoints }))
      return decided.kind === 'publish' ? decided.sets.flatMap(({ values }) => values) : decided.kind
    }
    expect(valuesOf(a, draining)).toEqual(['192.0.2.1'])
    expect(valuesOf(draining)).toEqual(['192.0.2.2'])
  })

  it('a removal counts as a change: it waits when there were too many within a minute', () => {
    const fixture = {
      loadBalancer: shop({ onAllUnhealthy: 'Remove' }),
      endpoints: [a],
      verdicts: down,
      published: records('192.0.2.1'),
    }
    expect(kindOf(fixture)).toBe('remove')
    const changesMs = Array.from({ length: MAX_CHANGES_PER_MINUTE }, (_, index) => NOW_MS - 30_000 - index)
    const decision = decide(factsOf(fixture, { changesMs }))
    expect(decision.records.kind).toBe('hold')
    // Until the oldest of the changes is a minute ago.
    expect(decision.againAfterMs).toBe(30_000 - (MAX_CHANGES_PER_MINUTE - 1))
  })

  it('an endpoint that is being deleted is no candidate', () => {
    const deleted = { ...b, metadata: { ...b.metadata, deletionTimestamp: '2030-01-01T00:00:00Z' } }
    const fixture = {
      loadBalancer: shop(),
      endpoints: [a, deleted],
      verdicts: { a: 'healthy', b: 'healthy' } as const,
      published: records('192.0.2.1', '192.0.2.2'),
    }
    expect(decide(factsOf(fixture)).records).toMatchObject({ kind: 'publish', sets: records('192.0.2.1') })
  })

  it('an expired endpoint is used during the start-up grace, and judged again when that ends', () => {
    const expired = { ...a, status: { validUntil: '2029-12-31T23:59:00Z' } }
    const verdicts = { a: 'healthy' } as const
    const fixture = { loadBalancer: shop(), endpoints: [expired], verdicts, published: records('192.0.2.1') }
    const decision = decide(factsOf(fixture, { startedMs: NOW_MS - 60_000 }))
    expect([decision.deletions, decision.againAfterMs]).toEqual([[], 120_000])
    expect(decide(factsOf(fixture)).deletions).toEqual([{ key: 'web/a', reason: 'EndpointExpired' }])
  })
})
