/** The reason code of each decision about a load balancer, as its condition shows it. */
import { describe, expect, it } from 'vitest'
import type { DNSLoadBalancerEndpoint } from '../../api/dns-load-balancer-endpoint.ts'
import { DNSLoadBalancer } from '../../api/dns-load-balancer.ts'
import type { Verdict } from '../../health/verdict.ts'
import type { Reason } from '../../reasons.ts'
import type { RRset } from '../../rrset/rrset.ts'
import { type BalanceFacts, decide } from './decide.ts'
import { decideSource } from '../source/decide-source.ts'
import type { HostHolding } from '../../hosts/host-sources.ts'
import { BALANCE_DEFAULTS } from '../load-balancer.ts'
import { LOAD_BALANCER_ANNOTATION } from '../../hosts/load-balancer.ts'

const NOW_MS = Date.UTC(2030, 0, 1)
const published = (value: string): RRset[] => [{ name: 'shop.example.com.', type: 'A', ttl: 30, values: [value] }]

function loadBalancer(spec: Partial<DNSLoadBalancer['spec']> = {}): DNSLoadBalancer {
  return { metadata: { namespace: 'web', name: 'shop' }, spec: { DNSName: 'shop.example.com', ...spec } }
}

function endpoint(name: string, spec: Partial<DNSLoadBalancerEndpoint['spec']> = {}): DNSLoadBalancerEndpoint {
  return {
    metadata: { namespace: 'web', name },
    spec: { loadbalancer: 'shop', ipaddress: '192.0.2.1', ...spec },
  }
}

function facts(verdict: Verdict, more: Partial<BalanceFacts> = {}): BalanceFacts {
  return {
    nowMs: NOW_MS,
    startedMs: NOW_MS - 3_600_000,
    defaults: BALANCE_DEFAULTS,
    loadBalancer: loadBalancer(),
    holder: 'web/shop',
    endpoints: [endpoint('a')],
    verdictOf: () => verdict,
    nameVerdict: 'healthy',
    published: [],
    provider: { state: 'ready' },
    lookup: () => undefined,
    changesMs: [],
    ...more,
  }
}

const HELD: HostHolding = {
  source: { kind: 'Ingress', namespace: 'other', name: 'older', createdAt: '2026-01-01T00:00:00Z' },
  isInPlace: false,
}
const exclusive = loadBalancer({ type: 'Exclusive' })
const backup = endpoint('b', { ipaddress: '192.0.2.2', priority: 1 })

describe('the condition of a load balancer', () => {
  it.each<[reason: Reason, situation: string, facts: BalanceFacts]>([
    ['HealthyEndpoints', 'an endpoint is healthy', facts('healthy')],
    ['PreferredEndpoint', 'it is exclusive', facts('healthy', { loadBalancer: exclusive })],
    [
      'StickyEndpoint',
      'it is exclusive and the published endpoint is healthy',
      facts('healthy', {
        loadBalancer: exclusive,
        endpoints: [endpoint('a'), backup],
        published: published('192.0.2.2'),
      }),
    ],
    ['AllUnhealthy', 'no endpoint is healthy', facts('unhealthy', { published: published('192.0.2.1') })],
    ['HealthUnknown', 'no endpoint was probed', facts('unknown')],
    ['NoEndpoints', 'it has no endpoint', facts('healthy', { endpoints: [] })],
    ['NameClaimed', 'another one has the DNS name', facts('healthy', { holder: 'other/older' })],
    ['NameNotGranted', 'its namespace may not use the DNS name', facts('healthy', { nameFault: 'no grant' })],
    ['ClaimHeldByOther', 'an older source of publish has the DNS name', facts('healthy', { holding: HELD })],
    ['ClaimPending', 'that source is gone a moment ago', facts('healthy', { holding: { ...HELD, forMs: 9_000 } })],
    [
      'ProviderOutOfScope',
      'its namespace may not use the provider',
      facts('healthy', { provider: { state: 'outOfScope', provider: 'internal' } }),
    ],
    [
      'TargetUnresolved',
      'the host name of its endpoints has no known address',
      facts('healthy', {
        endpoints: ['a', 'b'].map((name) => endpoint(name, { cname: `${name}.example.net` })),
      }),
    ],
    ['HealthCheckRefused', 'its namespace may not probe so', facts('healthy', { probeFault: 'the port 22' })],
    ['LoadBalancerInvalid', 'its type is unknown', facts('healthy', { loadBalancer: loadBalancer({ type: 'Other' }) })],
  ])('is %s when %s', (reason, _situation, given) => {
    const [condition] = decide(given).whenApplied.status.conditions ?? []
    expect(condition).toMatchObject({ type: 'Ready', reason })
  })
})

it('a name without a grant is published by nobody: its records stay, whoever has or holds the name', () => {
  const given = { nameFault: 'add a grant', published: published('192.0.2.9') }
  for (const more of [{}, { holder: 'other/older' }, { holding: HELD }]) {
    const { records, whenApplied } = decide(facts('healthy', { ...given, ...more }))
    expect(records).toEqual({ kind: 'hold' })
    expect(whenApplied.events).toEqual([{ type: 'Warning', reason: 'NameNotGranted', message: 'add a grant' }])
  }
})

it('the load balancer with the name is told once which other one names it', () => {
  const first = decide(facts('healthy', { holder: 'other/older' })).whenApplied
  expect(first.toHolder).toEqual({
    kind: DNSLoadBalancer,
    holder: 'other/older',
    message: 'DNSLoadBalancer web/shop names host shop.example.com, too; it belongs to this object, which is older',
  })
  const told = { ...loadBalancer(), status: first.status }
  expect(decide(facts('healthy', { loadBalancer: told, holder: 'other/older' })).whenApplied.toHolder).toBeUndefined()
  expect(decide(facts('healthy', { loadBalancer: told, holder: 'other/next' })).whenApplied.toHolder?.holder).toBe(
    'other/next',
  )
})

it('a refused health check holds what is published, is an Event, and yields to an older load balancer', () => {
  const decision = decide(facts('unknown', { probeFault: 'why', published: published('192.0.2.1') }))
  expect(decision.records).toEqual({ kind: 'hold' })
  expect(decision.whenApplied).toMatchObject({
    status: { state: 'Error', message: 'why' },
    events: [{ type: 'Warning', message: 'why' }],
  })
  expect(decide(facts('unknown', { probeFault: 'why', holder: 'other/older' })).reason).toBe('NameClaimed')
})

it('records of a name that a source of publish holds follow health until the DNSEndpoint of the source has the name', () => {
  const before = { published: published('192.0.2.1') }
  const moved = { ...before, published: published('192.0.2.9') }
  expect(decide(facts('healthy', { holding: HELD, ...moved })).records).toMatchObject({ kind: 'publish' })
  expect(decide(facts('healthy', { holding: HELD })).records).toEqual({ kind: 'hold' })
  const holding = { ...HELD, isInPlace: true }
  expect(decide(facts('healthy', { holding, ...before })).records).toEqual({ kind: 'remove', isChange: true })
  expect(decide(facts('healthy', { holding })).records).toEqual({ kind: 'remove', isChange: false })
  expect(decide(facts('healthy', { holding: { ...HELD, forMs: 9_000 } })).againAfterMs).toBe(9_000)
})

it('an endpoint that was not renewed is deleted as EndpointExpired', () => {
  const expired = { ...endpoint('a'), status: { validUntil: new Date(NOW_MS - 1_000).toISOString() } }
  const { deletions } = decide(facts('healthy', { endpoints: [expired] }))
  expect(deletions).toEqual([{ key: 'web/a', reason: 'EndpointExpired' }])
})

it.each([
  ['missing', 'LoadBalancerMissing'],
  ['invalid', 'LoadBalancerInvalid'],
] as const)('a source whose load balancer is %s is decided as %s', (state, reason) => {
  const metadata = { namespace: 'web', name: 'svc', annotations: { [LOAD_BALANCER_ANNOTATION]: 'shop' } }
  const object = { metadata, spec: {}, status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } } }
  const source = { kind: 'Service', object } as const
  expect(decideSource({ nowMs: NOW_MS, cluster: '', source, loadBalancer: state, existing: [] }).reason).toBe(reason)
})

describe('the condition of an endpoint says why it is published or not', () => {
  const a = endpoint('a')
  const inactive = (name: string, spec: Partial<DNSLoadBalancerEndpoint['spec']> = {}) =>
    endpoint(name, { ipaddress: '192.0.2.2', ...spec })

  it.each<[status: string, reason: Reason, situation: string, facts: BalanceFacts, name: string]>([
    ['True', 'EndpointSelected', 'it is healthy', facts('healthy'), 'a'],
    ['True', 'EndpointKept', 'no one is healthy', facts('unhealthy', { published: published('192.0.2.1') }), 'a'],
    ['True', 'EndpointKept', 'its health is unknown', facts('unknown', { published: published('192.0.2.1') }), 'a'],
    ['False', 'EndpointUnhealthy', 'it was never published', facts('unhealthy'), 'a'],
    ['False', 'EndpointUnproven', 'it is new', facts('unknown'), 'a'],
    [
      'False',
      'EndpointDraining',
      'it drains',
      facts('healthy', { endpoints: [a, inactive('b', { drain: true })] }),
      'b',
    ],
    [
      'False',
      'EndpointDraining',
      'its weight is 0',
      facts('healthy', { endpoints: [a, inactive('b', { weight: 0 })] }),
      'b',
    ],
    ['False', 'EndpointLessPreferred', 'it is a reserve', facts('healthy', { endpoints: [a, backup] }), 'b'],
    [
      'False',
      'EndpointLessPreferred',
      'another one is the exclusive one',
      facts('healthy', { loadBalancer: exclusive, endpoints: [a, inactive('b')] }),
      'b',
    ],
    [
      'False',
      'EndpointInvalid',
      'it has no target',
      facts('healthy', { endpoints: [a, inactive('b', { ipaddress: '' })] }),
      'b',
    ],
    [
      'False',
      'NoMatchingZone',
      'no provider serves the name',
      facts('healthy', { provider: { state: 'missing' } }),
      'a',
    ],
    ['False', 'NameClaimed', 'another load balancer has the name', facts('healthy', { holder: 'web/older' }), 'a'],
  ])('%s %s: %s', (status, reason, _situation, given, name) => {
    const conditions = decide(given).whenApplied.endpointStatuses.get(`web/${name}`)?.conditions
    expect(conditions?.find(({ type }) => type === 'Active')).toMatchObject({ status, reason })
  })
})
