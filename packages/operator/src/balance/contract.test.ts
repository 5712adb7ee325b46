/**
 * The contract of dnslb-controller-manager as a table: the behaviour that must be kept, and the fixed form of its defects.
 * Rows cover what the pure functions decide; what needs controllers, providers or the command line has its own tests.
 */
import { describe, expect, it } from 'vitest'
import type { DNSLoadBalancerEndpoint } from '../api/dns-load-balancer-endpoint.ts'
import type { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import type { Verdict } from '../health/verdict.ts'
import type { RRset } from '../rrset/rrset.ts'
import { claimNames } from './decide/claims.ts'
import { type BalanceFacts, decide } from './decide/decide.ts'
import { judgeEndpoint, STARTUP_GRACE_MS } from './decide/endpoints.ts'
import { BALANCE_DEFAULTS, probeOf, readLoadBalancer } from './load-balancer.ts'

const NOW_MS = Date.UTC(2030, 0, 1)
const DNS_NAME = 'api.example.com'

function balancer(spec: Partial<DNSLoadBalancer['spec']> = {}, more: Partial<DNSLoadBalancer> = {}): DNSLoadBalancer {
  return { metadata: { namespace: 'ns', name: 'lb' }, spec: { DNSName: DNS_NAME, healthPath: '/ok', ...spec }, ...more }
}

function endpoint(
  name: string,
  spec: Partial<DNSLoadBalancerEndpoint['spec']>,
  status?: DNSLoadBalancerEndpoint['status'],
): DNSLoadBalancerEndpoint {
  return {
    metadata: { namespace: 'ns', name },
    spec: { loadbalancer: 'lb', ...spec },
    ...(status !== undefined && { status }),
  }
}

const a = endpoint('a', { ipaddress: '192.0.2.1' })
const b = endpoint('b', { ipaddress: '192.0.2.2' })
const one = endpoint('one', { cname: 'one.example.net' })
const six = endpoint('six', { ipaddress: '2001:DB8::6' })
const set = (type: string, ...values: string[]): RRset => ({ name: `${DNS_NAME}.`, type, ttl: 30, values })

function facts(more: Partial<BalanceFacts> & { verdicts?: Record<string, Verdict> } = {}): BalanceFacts {
  const { verdicts = {}, ...rest } = more
  return {
    nowMs: NOW_MS,
    startedMs: NOW_MS - 2 * STARTUP_GRACE_MS,
    defaults: BALANCE_DEFAULTS,
    loadBalancer: balancer(),
    holder: 'ns/lb',
    endpoints: [a, b],
    verdictOf: (key) => verdicts[key.slice('ns/'.length)] ?? 'healthy',
    nameVerdict: 'healthy',
    published: [],
    provider: { state: 'ready' },
    lookup: (name) => (name === 'one.example.net.' ? ['192.0.2.11', '2001:db8::11', '192.0.2.11'] : undefined),
    changesMs: [],
    ...rest,
  }
}

interface Row {
  readonly situation: string
  readonly facts: BalanceFacts
  readonly state: string
  readonly message: string | undefined
  /** Names in status.active. */
  readonly active: string[]
  readonly events: string[]
  readonly records: 'publish' | 'hold' | 'remove'
}

const stale = { active: [{ name: 'a', ipaddress: '192.0.2.1' }] }

const rows: Row[] = [
  {
    situation: 'singleton and type are both set',
    facts: facts({ loadBalancer: balancer({ singleton: true, type: 'Exclusive' }, { status: stale }) }),
    state: 'Error',
    message: 'invalid load balancer type: singleton and type specicied',
    active: ['a'],
    events: [],
    records: 'hold',
  },
  {
    situation: 'the type is unknown',
    facts: facts({ loadBalancer: balancer({ type: 'RoundRobin' }, { status: stale }) }),
    state: 'Error',
    message: 'invalid load balancer type',
    active: ['a'],
    events: [],
    records: 'hold',
  },
  {
    situation: 'the DNS name is empty',
    facts: facts({ loadBalancer: balancer({ DNSName: '' }) }),
    state: 'Error',
    message: 'no dns name specified',
    active: [],
    events: [],
    records: 'hold',
  },
  {
    situation: 'there are no valid endpoints; active is cleared',
    facts: facts({ endpoints: [], loadBalancer: balancer({}, { status: stale }), published: [set('A', '192.0.2.1')] }),
    state: 'unreachable',
    message: 'no endpoints configured',
    active: [],
    events: ['Warning no endpoints configured'],
    records: 'hold',
  },
  {
    situation: 'no endpoint is healthy; fixed: the records stay and the statuses are updated',
    facts: facts({
      verdicts: { a: 'unhealthy', b: 'unhealthy' },
      published: [set('A', '192.0.2.1')],
      nameVerdict: 'unhealthy',
    }),
    state: 'unreachable',
    message: 'no healthy targets found',
    active: ['a'],
    events: ['Warning no healthy targets found'],
    records: 'hold',
  },
  {
    situation: 'no endpoint is healthy and onAllUnhealthy is Remove: as the original',
    facts: facts({
      loadBalancer: balancer({ onAllUnhealthy: 'Remove' }),
      verdicts: { a: 'unhealthy', b: 'unhealthy' },
      published: [set('A', '192.0.2.1')],
      nameVerdict: 'unhealthy',
    }),
    state: 'unreachable',
    message: 'no healthy targets found',
    active: [],
    events: ['Warning no healthy targets found'],
    records: 'remove',
  },
  {
    situation: 'no endpoint is healthy and onAllUnhealthy is ServeAll',
    facts: facts({
      loadBalancer: balancer({ onAllUnhealthy: 'ServeAll' }),
      verdicts: { a: 'unhealthy', b: 'unhealthy' },
      published: [set('A', '192.0.2.1')],
    }),
    state: 'healthy',
    message: 'no healthy targets found',
    active: ['a', 'b'],
    events: ['Warning no healthy targets found'],
    records: 'publish',
  },
  {
    situation: 'no provider serves the name',
    facts: facts({ provider: { state: 'missing' } }),
    state: 'healthy',
    message: `no provider found for '${DNS_NAME}'`,
    active: [],
    events: [`Warning no provider found for '${DNS_NAME}'`],
    records: 'hold',
  },
  {
    situation: 'the provider is out of scope',
    facts: facts({ provider: { state: 'outOfScope', provider: 'dns/aws' } }),
    state: 'healthy',
    message: "provider 'dns/aws' not valid for namespace 'ns'",
    active: [],
    events: ["Warning provider 'dns/aws' not valid for namespace 'ns'"],
    records: 'hold',
  },
  {
    situation: 'the provider cannot be listed; fixed: not written as success',
    facts: facts({ provider: { state: 'unreadable', error: 'throttled' }, published: undefined }),
    state: 'healthy',
    message: `Cannot get DNS records for '${DNS_NAME}': throttled`,
    active: [],
    events: [`Warning error handling ${DNS_NAME}: Cannot get DNS records for '${DNS_NAME}': throttled`],
    records: 'hold',
  },
  {
    situation: 'the records change',
    facts: facts(),
    state: 'healthy',
    message: undefined,
    active: ['a', 'b'],
    events: [`Normal replacing ${DNS_NAME} with  192.0.2.1 192.0.2.2`, 'Normal healthy again'],
    records: 'publish',
  },
  {
    situation: 'the records change in Exclusive mode; fixed: the Event names the host',
    facts: facts({ loadBalancer: balancer({ type: 'Exclusive' }), nameVerdict: 'unhealthy' }),
    state: 'unreachable',
    message: undefined,
    active: ['a'],
    events: [`Normal replacing ${DNS_NAME} with  192.0.2.1`],
    records: 'publish',
  },
  {
    situation: 'nothing is to change',
    facts: facts({ published: [set('A', '192.0.2.1', '192.0.2.2')] }),
    state: 'healthy',
    message: undefined,
    active: ['a', 'b'],
    events: ['Normal healthy again'],
    records: 'publish',
  },
  {
    situation: 'an expired endpoint is removed',
    facts: facts({
      endpoints: [a, endpoint('b', { ipaddress: '192.0.2.2' }, { validUntil: '2029-12-31T23:59:59Z' })],
      published: [set('A', '192.0.2.1')],
    }),
    state: 'healthy',
    message: undefined,
    active: ['a'],
    events: ['Normal healthy again', 'Normal dns load balancer endpoint ns/b deleted'],
    records: 'publish',
  },
  {
    situation: 'another load balancer has the name; fixed: the oldest wins',
    facts: facts({ holder: 'ns/older' }),
    state: 'Error',
    message: `DNS name '${DNS_NAME}' is already used by load balancer 'ns/older'`,
    active: [],
    events: [`Warning DNS name '${DNS_NAME}' is already used by load balancer 'ns/older'`],
    records: 'hold',
  },
]

describe('state, message, active endpoints and Events when', () => {
  it.each(rows)('$situation', ({ facts, state, message, active, events, records }) => {
    const decision = decide(facts)
    const { status } = decision.whenApplied
    expect(status.state).toBe(state)
    expect(status.message).toBe(message)
    expect((status.active ?? []).map(({ name }) => name)).toEqual(active)
    expect(decision.whenApplied.events.map((event) => `${event.type} ${event.message}`)).toEqual(events)
    expect(decision.records.kind).toBe(records)
  })

  it('the provider rejects the change: message with the error, active as it was', () => {
    const rejected = decide(facts({ loadBalancer: balancer({}, { status: stale }) })).whenRejected('quota')
    const message = `replacing ${DNS_NAME} with  192.0.2.1 192.0.2.2: quota`
    expect(rejected).toMatchObject({
      status: { message, active: stale.active },
      events: [{ type: 'Warning', message }],
    })
  })
})

describe('the record sets of', () => {
  it.each<[what: string, endpoints: DNSLoadBalancerEndpoint[], sets: RRset[]]>([
    ['one address: A', [a], [set('A', '192.0.2.1')]],
    ['one IPv6 address: AAAA, in canonical form', [six], [set('AAAA', '2001:db8::6')]],
    ['one host name: CNAME', [one], [set('CNAME', 'one.example.net.')]],
    [
      'one host name in two endpoints: CNAME',
      [one, endpoint('x', { cname: 'One.example.net.' })],
      [set('CNAME', 'one.example.net.')],
    ],
    [
      'both spec fields set: the host name wins',
      [endpoint('x', { ipaddress: '192.0.2.9', cname: 'one.example.net' })],
      [set('CNAME', 'one.example.net.')],
    ],
    [
      'an address and a host name: resolved, by family, without duplicates',
      [a, one],
      [set('A', '192.0.2.1', '192.0.2.11'), set('AAAA', '2001:db8::11')],
    ],
    [
      'a host name that does not resolve: left out',
      [a, endpoint('x', { cname: 'gone.example.net' })],
      [set('A', '192.0.2.1')],
    ],
    ['an endpoint without a target: ignored', [a, endpoint('x', {})], [set('A', '192.0.2.1')]],
  ])('%s', (_, endpoints, sets) => {
    expect(decide(facts({ endpoints })).records).toMatchObject({ kind: 'publish', sets })
  })

  it('resolved host names are listed for the cnames attribute, and no longer when there are none', () => {
    expect(decide(facts({ endpoints: [a, one] })).records).toMatchObject({ cnames: ['one.example.net.'] })
    expect(decide(facts({ endpoints: [a, b] })).records).toMatchObject({ cnames: [] })
  })
})

describe('an Exclusive load balancer', () => {
  const exclusive = (published: RRset[], verdicts: Record<string, Verdict> = {}) =>
    decide(facts({ loadBalancer: balancer({ type: 'Exclusive' }), published, verdicts }))

  it('keeps the published endpoint while it is healthy, without fail-back', () => {
    expect(exclusive([set('A', '192.0.2.2')]).records).toMatchObject({ sets: [set('A', '192.0.2.2')], isChange: false })
  })

  it('takes the first healthy one when the published is unhealthy or unknown to it, or nothing is published', () => {
    expect(exclusive([set('A', '192.0.2.2')], { b: 'unhealthy' }).records).toMatchObject({
      sets: [set('A', '192.0.2.1')],
    })
    expect(exclusive([set('A', '198.51.100.7')]).records).toMatchObject({ sets: [set('A', '192.0.2.1')] })
    expect(exclusive([]).records).toMatchObject({ sets: [set('A', '192.0.2.1')] })
  })

  it('checks all endpoints and marks one active', () => {
    const { endpointStatuses } = exclusive([]).whenApplied
    expect(Object.fromEntries(endpointStatuses)).toMatchObject({
      'ns/a': { active: true, healthy: true },
      'ns/b': { active: false, healthy: true },
    })
  })
})

describe('endpoint statuses', () => {
  it('fixed: are updated when no endpoint is healthy', () => {
    const was = { active: true, healthy: true }
    const endpoints = [endpoint('a', { ipaddress: '192.0.2.1' }, was), endpoint('b', { ipaddress: '192.0.2.2' }, was)]
    const { endpointStatuses } = decide(
      facts({ endpoints, verdicts: { a: 'unhealthy', b: 'unhealthy' }, published: [set('A', '192.0.2.1')] }),
    ).whenApplied
    expect(Object.fromEntries(endpointStatuses)).toMatchObject({
      'ns/a': { active: true, healthy: false },
      'ns/b': { active: false, healthy: false },
    })
  })

  it('are written only when they differ', () => {
    const first = decide(facts({ endpoints: [a] })).whenApplied.endpointStatuses.get('ns/a')
    const endpoints = [endpoint('a', { ipaddress: '192.0.2.1' }, { ...first })]
    expect(decide(facts({ endpoints, nowMs: NOW_MS + 1_000 })).whenApplied.endpointStatuses.size).toBe(0)
    const verdicts = { a: 'unknown' as const }
    const published = [set('A', '192.0.2.1')]
    expect(decide(facts({ endpoints, verdicts, published })).whenApplied.endpointStatuses.size).toBe(0)
  })

  it('say when an endpoint has no usable target', () => {
    const { endpointStatuses } = decide(facts({ endpoints: [a, endpoint('x', {})] })).whenApplied
    expect(endpointStatuses.get('ns/x')).toMatchObject({ active: false, healthy: false, message: 'invalid target A()' })
  })
})

describe('expiry of an endpoint', () => {
  const expired = endpoint('a', { ipaddress: '192.0.2.1' }, { validUntil: '2029-12-31T23:00:00Z' })
  const valid = endpoint('a', { ipaddress: '192.0.2.1' }, { validUntil: '2030-01-01T01:00:00Z' })
  const long = NOW_MS - STARTUP_GRACE_MS

  it.each<[what: string, object: DNSLoadBalancerEndpoint, exists: boolean, startedMs: number, fate: string]>([
    ['expired within the start-up grace: still used', expired, true, long + 1, 'grace'],
    ['expired after the grace: deleted', expired, true, long, 'delete'],
    ['valid: used', valid, true, long, 'use'],
    ['without validity: used', a, true, long, 'use'],
    ['without validity and load balancer, after the grace: deleted', a, false, long, 'delete'],
    ['without validity and load balancer, within the grace: ignored', a, false, long + 1, 'ignore'],
    ['valid, without load balancer: ignored until it expires', valid, false, long, 'ignore'],
  ])('%s', (_, object, exists, startedMs, fate) => {
    expect(judgeEndpoint(object, exists, startedMs, NOW_MS).fate).toBe(fate)
  })

  it('fixed: endpoints of a load balancer that is only misconfigured are not deleted', () => {
    expect(decide(facts({ loadBalancer: balancer({ type: 'x' }), endpoints: [expired] })).deletions).toEqual([])
  })
})

describe('the DNS name', () => {
  const older = balancer({}, { metadata: { namespace: 'z', name: 'older', creationTimestamp: '2029-01-01T00:00:00Z' } })
  const newer = balancer(
    { DNSName: 'API.example.com.' },
    { metadata: { namespace: 'a', name: 'newer', creationTimestamp: '2029-01-02T00:00:00Z' } },
  )

  it('belongs to the oldest load balancer, whatever the order, case and trailing dot', () => {
    for (const list of [
      [older, newer],
      [newer, older],
    ]) {
      expect(claimNames(list, BALANCE_DEFAULTS)).toEqual(new Map([[`${DNS_NAME}.`, 'z/older']]))
    }
  })

  it('is free again when its holder is being deleted or invalid', () => {
    const deleting = { ...older, metadata: { ...older.metadata, deletionTimestamp: '2030-01-01T00:00:00Z' } }
    expect(claimNames([deleting, newer], BALANCE_DEFAULTS).get(`${DNS_NAME}.`)).toBe('a/newer')
    const invalid = { ...older, spec: { ...older.spec, type: 'x' } }
    expect(claimNames([invalid, newer], BALANCE_DEFAULTS).get(`${DNS_NAME}.`)).toBe('a/newer')
    const findNameFault = (namespace: string) => (namespace === 'z' ? 'no grant' : undefined)
    expect(claimNames([older, newer], BALANCE_DEFAULTS, { findNameFault }).get(`${DNS_NAME}.`)).toBe('a/newer')
  })
})

describe('the fields of the spec', () => {
  it.each<[what: string, spec: Partial<DNSLoadBalancer['spec']>, type: string]>([
    ['no type: Balanced', {}, 'Balanced'],
    ['singleton true: Exclusive', { singleton: true }, 'Exclusive'],
    ['singleton false: Balanced', { singleton: false }, 'Balanced'],
    ['type Exclusive', { type: 'Exclusive' }, 'Exclusive'],
  ])('%s', (_, spec, type) => {
    expect(readLoadBalancer(balancer(spec), BALANCE_DEFAULTS)).toMatchObject({ settings: { type } })
  })

  it('read the later spelling dnsname, and the validity as a duration', () => {
    const object: DNSLoadBalancer = {
      metadata: { namespace: 'ns', name: 'lb' },
      spec: { dnsname: DNS_NAME, endpointValidityInterval: '1h30m' },
    }
    expect(readLoadBalancer(object, BALANCE_DEFAULTS)).toMatchObject({
      settings: {
        recordName: `${DNS_NAME}.`,
        endpointValidityMs: 5_400_000,
        ttlSeconds: 30,
        onAllUnhealthy: 'ServeLast',
      },
    })
  })

  it('that no schema checked are checked again', () => {
    const object = balancer({ ttl: 'soon' as unknown as number })
    expect(readLoadBalancer(object, BALANCE_DEFAULTS)).toMatchObject({ message: expect.stringContaining('spec.ttl') })
  })
})

describe('the health check', () => {
  it('is GET https on port 443 with Host and server name of the DNS name, status 200, TLS not verified', () => {
    expect(probeOf(balancer(), DNS_NAME, '192.0.2.1', 'a').request).toMatchObject({
      scheme: 'https',
      method: 'GET',
      host: '192.0.2.1',
      port: 443,
      path: '/ok',
      hostHeader: DNS_NAME,
      expectedCodes: [{ from: 200, to: 200 }],
      verifyTls: false,
      maxRedirects: 10,
    })
  })

  it('takes an empty path as /, statusCode 0 as 200, and has a timeout', () => {
    const { request, policy } = probeOf(balancer({ healthPath: '', statusCode: 0 }), DNS_NAME, '192.0.2.1', 'a')
    expect(request).toMatchObject({ path: '/', expectedCodes: [{ from: 200, to: 200 }] })
    expect(policy).toMatchObject({ intervalMs: 5_000, timeoutMs: 2_000, rise: 2, fall: 3 })
  })

  it('expects ranges of statuses, which override statusCodes and statusCode', () => {
    const healthCheck = { expectedStatus: ['200-299', '301'], statusCodes: [500] }
    const { request } = probeOf(balancer({ statusCode: 404, healthCheck }), DNS_NAME, '192.0.2.1', 'a')
    expect(request.expectedCodes).toEqual([
      { from: 200, to: 299 },
      { from: 301, to: 301 },
    ])
  })

  it('has the settings of the load balancer', () => {
    const healthCheck = {
      scheme: 'http' as const,
      port: 8080,
      host: 'x.example.com',
      statusCodes: [204],
      profile: 'fast' as const,
      fall: 5,
      verifyTLS: true,
    }
    const { request, policy } = probeOf(balancer({ healthCheck }), DNS_NAME, '192.0.2.1', 'a')
    expect(request).toMatchObject({
      scheme: 'http',
      port: 8080,
      hostHeader: 'x.example.com',
      expectedCodes: [{ from: 204, to: 204 }],
      verifyTls: true,
    })
    expect(policy).toMatchObject({ intervalMs: 1_000, timeoutMs: 500, fall: 5 })
  })
})
