import type { Ingress, Service } from '@seamark/kube'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { DNSLoadBalancerEndpoint } from '../../api/dns-load-balancer-endpoint.ts'
import {
  CLUSTER_ANNOTATION,
  decideSource,
  ENDPOINT_FINALIZER,
  endpointName,
  isEndpointOf,
  ORPHANED_ANNOTATION,
  SOURCE_ANNOTATION,
  type SourceDecision,
  type SourceFacts,
  TARGET_HOLD_MS,
} from './decide-source.ts'
import { LOAD_BALANCER_ANNOTATION } from '../../hosts/load-balancer.ts'
import type { Source } from './source.ts'

const NOW_MS = Date.UTC(2030, 0, 1)
const DNS_NAME = 'api.example.com'

type Addresses = { ip?: string; hostname?: string }[]

function service(
  ingress: Addresses,
  annotation: string | undefined = 'lb',
  more: Partial<Service['metadata']> = {},
): Extract<Source, { kind: 'Service' }> {
  const object: Service = {
    metadata: {
      namespace: 'ns',
      name: 'test',
      uid: 'u1',
      ...(annotation !== undefined && { annotations: { [LOAD_BALANCER_ANNOTATION]: annotation } }),
      ...more,
    },
    spec: { type: 'LoadBalancer' },
    status: { loadBalancer: { ingress } },
  }
  return { kind: 'Service', object }
}

function ingress(hosts: string[], addresses: Addresses = []): Source {
  const object: Ingress = {
    metadata: { namespace: 'ns', name: 'test', annotations: { [LOAD_BALANCER_ANNOTATION]: 'lb' } },
    spec: { rules: hosts.map((host) => ({ host })) },
    status: { loadBalancer: { ingress: addresses } },
  }
  return { kind: 'Ingress', object }
}

function gateway(hostnames: (string | undefined)[], addresses: { type?: string; value: string }[]): Source {
  return {
    kind: 'Gateway',
    object: {
      metadata: { namespace: 'ns', name: 'test', annotations: { [LOAD_BALANCER_ANNOTATION]: 'lb' } },
      spec: {
        listeners: hostnames.map((hostname, index) => ({
          name: `l${index}`,
          port: 443,
          protocol: 'HTTPS',
          ...(hostname !== undefined && { hostname }),
        })),
      },
      status: { addresses },
    },
  }
}

function facts(source: Source, more: Partial<SourceFacts> = {}): SourceFacts {
  return {
    nowMs: NOW_MS,
    cluster: '',
    source,
    loadBalancer: { dnsName: DNS_NAME, endpointValidityMs: 0 },
    existing: [],
    ...more,
  }
}

const one = service([{ ip: '192.0.2.1' }])
const names = ({ wanted }: SourceDecision) => wanted.map(({ metadata }) => metadata.name)
const targets = ({ wanted }: SourceDecision) => wanted.map(({ spec }) => spec.cname ?? spec.ipaddress)
const texts = ({ events }: SourceDecision) => events.map(({ type, message }) => `${type} ${message}`)

/** What exists after the decision was carried out. */
function carriedOut(decision: SourceDecision, before: readonly DNSLoadBalancerEndpoint[] = []) {
  return decision.wanted.map((endpoint): DNSLoadBalancerEndpoint => {
    const existing = before.find(({ metadata }) => metadata.name === endpoint.metadata.name)
    return {
      ...endpoint,
      metadata: { ...endpoint.metadata, uid: 'e' },
      status: { ...existing?.status, ...endpoint.status },
    }
  })
}

describe('the endpoints of a source', () => {
  it('are named by cluster, namespace, name and kind', () => {
    expect(endpointName(one, 'a', 'ns')).toBe('a-test-service')
    expect(endpointName(one, '', 'ns')).toBe('test-service')
    expect(endpointName(one, 'a', 'other')).toBe('a-ns-test-service')
    const long = service([], 'lb', { name: 'x'.repeat(250) })
    expect(endpointName(long, 'cluster', 'ns')).toHaveLength(253)
    expect(endpointName(long, 'cluster', 'ns')).not.toBe(endpointName(long, 'cluster2', 'ns'))
  })

  it('carry the load balancer, the target and the mark of the source', () => {
    const { wanted, reason } = decideSource(facts(one, { cluster: 'a' }))
    expect(reason).toBe('SourceWants')
    expect(wanted).toEqual([
      {
        metadata: {
          namespace: 'ns',
          name: 'a-test-service',
          annotations: { [SOURCE_ANNOTATION]: 'Service:ns/test', [CLUSTER_ANNOTATION]: 'a' },
        },
        spec: { loadbalancer: 'lb', ipaddress: '192.0.2.1' },
      },
    ])
  })

  it('are owned by the source only in one cluster and one namespace, with the right API version', () => {
    const owners = (decision: SourceDecision) => decision.wanted[0]?.metadata.ownerReferences
    expect(owners(decideSource(facts(one)))).toEqual([
      { apiVersion: 'v1', kind: 'Service', name: 'test', uid: 'u1', controller: true },
    ])
    expect(owners(decideSource(facts(one, { cluster: 'a' })))).toBeUndefined()
    expect(owners(decideSource(facts(service([{ ip: '192.0.2.1' }], 'other/lb'))))).toBeUndefined()
  })

  it('live in the namespace that the annotation names', () => {
    const { wanted } = decideSource(facts(service([{ ip: '192.0.2.1' }], 'other/lb')))
    expect(wanted[0]?.metadata).toMatchObject({ namespace: 'other', name: 'ns-test-service' })
  })

  it('cover all addresses, and the name without suffix stays with its address', () => {
    const before = carriedOut(decideSource(facts(service([{ ip: '192.0.2.5' }]))))
    const decision = decideSource(
      facts(service([{ ip: '192.0.2.5' }, { ip: '192.0.2.1' }, { ip: '2001:DB8::1' }, { ip: '192.0.2.1' }]), {
        existing: before,
      }),
    )
    const byTarget = Object.fromEntries(decision.wanted.map(({ metadata, spec }) => [spec.ipaddress, metadata.name]))
    expect(byTarget['192.0.2.5']).toBe('test-service')
    expect(byTarget['192.0.2.1']).toMatch(/^test-service-[0-9a-f]{8}$/)
    expect(byTarget['2001:db8::1']).toMatch(/^test-service-[0-9a-f]{8}$/)
    expect(decision.wanted).toHaveLength(3)
  })

  it('need a second look at nothing: deciding again changes nothing', () => {
    const address = fc.constantFrom(
      { ip: '192.0.2.1' },
      { ip: '192.0.2.2' },
      { hostname: 'lb.example.net' },
      { ip: 'x' },
      {},
    )
    const validity = fc.constantFrom(0, 60_000, 300_000)
    fc.assert(
      fc.property(fc.array(address), fc.array(address), validity, (first, second, endpointValidityMs) => {
        const loadBalancer = { dnsName: DNS_NAME, endpointValidityMs }
        const before = carriedOut(decideSource(facts(service(first), { loadBalancer })))
        const changed = decideSource(facts(service(second), { loadBalancer, existing: before }))
        const after = carriedOut(changed, before)
        const again = decideSource(facts(service(second), { loadBalancer, existing: after }))
        expect(again.wanted).toEqual(changed.wanted)
        expect(again.deletions).toEqual([])
        expect(again.events.filter(({ type }) => type === 'Normal')).toEqual([])
      }),
    )
  })
})

describe('the targets of', () => {
  it.each<[what: string, source: Source, expected: (string | undefined)[]]>([
    ['a Service: its address', one, ['192.0.2.1']],
    ['a Service with a host name', service([{ hostname: 'LB.example.net' }]), ['lb.example.net']],
    ['an Ingress: the status', ingress([DNS_NAME], [{ ip: '192.0.2.1' }]), ['192.0.2.1']],
    ['an Ingress without status: another host', ingress([DNS_NAME, 'other.example.com']), ['other.example.com']],
    [
      'a Gateway: addresses of its status',
      gateway([DNS_NAME], [{ value: '192.0.2.1' }, { type: 'Hostname', value: 'x.example.net' }]),
      ['192.0.2.1', 'x.example.net'],
    ],
    ['a Gateway with a wildcard listener', gateway(['*.example.com'], [{ value: '192.0.2.1' }]), ['192.0.2.1']],
    ['a Gateway whose listener has no host name', gateway([undefined], [{ value: '192.0.2.1' }]), ['192.0.2.1']],
  ])('%s', (_, source, expected) => {
    expect(targets(decideSource(facts(source))).sort((a = '', b = '') => (a < b ? -1 : 1))).toEqual(expected)
  })
})

describe('a source that cannot be used', () => {
  const clusterIp: Source = { kind: 'Service', object: { ...one.object, spec: { type: 'ClusterIP' } } }

  it.each<[what: string, facts: SourceFacts, event: string]>([
    ['is not of type LoadBalancer', facts(clusterIp), 'Warning service ns/test is not of type LoadBalancer'],
    ['has no address yet', facts(service([])), "Warning load balancer not yet assigned for 'ns/test'"],
    [
      'has another host',
      facts(ingress(['x.example.com'])),
      `Warning load balancer host '${DNS_NAME}' not configured as host rule for 'ns/test'`,
    ],
    ['has no target', facts(ingress([DNS_NAME])), "Warning no host rule or loadbalancer status defined for 'ns/test'"],
    [
      'names a load balancer that does not exist',
      facts(one, { loadBalancer: 'missing' }),
      "Warning dns loadbalancer 'ns/lb' does not exist",
    ],
    ['names it with two slashes', facts(service([], 'a/b/c')), "Warning invalid dns loadbalancer ref 'a/b/c'"],
  ])('because it %s wants no endpoint and says why', (_, facts, event) => {
    const decision = decideSource(facts)
    expect(decision.wanted).toEqual([])
    expect(decision.finalizer).toBe('keep')
    expect(texts(decision)).toEqual([event])
  })
})

describe('clean-up', () => {
  const existing = carriedOut(decideSource(facts(one)))
  const withFinalizer = { finalizers: [ENDPOINT_FINALIZER] }

  it('deletes the endpoints, then the finalizer, when the annotation is removed or the source is deleted', () => {
    const bare: Source = {
      kind: 'Service',
      object: { ...one.object, metadata: { namespace: 'ns', name: 'test', ...withFinalizer } },
    }
    const removed = decideSource(facts(bare, { existing }))
    expect(removed).toMatchObject({
      wanted: [],
      deletions: [{ key: 'ns/test-service', uid: 'e' }],
      finalizer: 'remove',
    })
    expect(texts(removed)).toEqual([
      'Normal dns load balancer annotation removed',
      'Normal dns load balancer endpoint ns/test-service deleted',
    ])
    const deleting = service([{ ip: '192.0.2.1' }], 'lb', {
      ...withFinalizer,
      deletionTimestamp: '2030-01-01T00:00:00Z',
    })
    expect(decideSource(facts(deleting, { existing }))).toMatchObject({
      wanted: [],
      finalizer: 'remove',
      reason: 'SourceGone',
    })
  })

  it('sets the finalizer before the first endpoint and leaves it while there is one', () => {
    expect(decideSource(facts(one)).finalizer).toBe('add')
    expect(decideSource(facts(service([{ ip: '192.0.2.1' }], 'lb', withFinalizer), { existing })).finalizer).toBe(
      'keep',
    )
  })

  it('never touches an endpoint of another source, although the names are equal', () => {
    const other: DNSLoadBalancerEndpoint = {
      metadata: { namespace: 'ns', name: 'test-service', annotations: { [SOURCE_ANNOTATION]: 'Service:a/b' } },
      spec: { loadbalancer: 'lb', ipaddress: '192.0.2.9' },
    }
    const decision = decideSource(facts(one, { existing: [other] }))
    expect(decision).toMatchObject({ wanted: [], deletions: [], reason: 'ForeignObject' })
    expect(texts(decision)).toEqual(["Warning endpoint 'ns/test-service' belongs to Service:a/b"])
    const gone = service([], 'lb', { deletionTimestamp: '2030-01-01T00:00:00Z' })
    expect(decideSource(facts(gone, { existing: [other] })).deletions).toEqual([])
  })

  it('adopts an endpoint that the original made under the same name', () => {
    const original: DNSLoadBalancerEndpoint = {
      metadata: { namespace: 'ns', name: 'test-service' },
      spec: { loadbalancer: 'lb', ipaddress: '192.0.2.1' },
    }
    expect(isEndpointOf(original, one, '')).toBe(true)
    expect(names(decideSource(facts(one, { existing: [original] })))).toEqual(['test-service'])
  })

  it('deletes the old endpoint when the annotation moves to another namespace', () => {
    const moved = decideSource(facts(service([{ ip: '192.0.2.1' }], 'other/lb'), { existing }))
    expect(names(moved)).toEqual(['ns-test-service'])
    expect(moved.deletions.map(({ key }) => key)).toEqual(['ns/test-service'])
  })

  it('changes nothing while the target cluster cannot be read or the load balancer is invalid', () => {
    for (const loadBalancer of [undefined, 'invalid' as const]) {
      const decision = decideSource(facts(one, { existing, loadBalancer }))
      expect(decision.deletions).toEqual([])
      expect(targets(decision)).toEqual(['192.0.2.1'])
    }
  })
})

describe('a source that lost its addresses', () => {
  const existing = carriedOut(decideSource(facts(one)))
  const healthy = (value: boolean) =>
    existing.map((endpoint) => ({ ...endpoint, status: { ...endpoint.status, healthy: value } }))

  it('keeps its endpoints for the hold, and longer while they are healthy', () => {
    const start = decideSource(facts(service([]), { existing: healthy(false) }))
    expect(start).toMatchObject({ reason: 'TargetsMissing', deletions: [], againAfterMs: TARGET_HOLD_MS })
    expect(start.wanted[0]?.metadata.annotations?.[ORPHANED_ANNOTATION]).toBe('2030-01-01T00:00:00Z')
    const heldUp = (value: boolean) =>
      decideSource(facts(service([]), { existing: carriedOut(start, healthy(value)), nowMs: NOW_MS + TARGET_HOLD_MS }))
    expect(heldUp(true).deletions).toEqual([])
    expect(heldUp(false)).toMatchObject({ wanted: [], deletions: [{ key: 'ns/test-service' }] })
  })

  it('forgets the hold when the addresses are back', () => {
    const start = decideSource(facts(service([]), { existing }))
    const back = decideSource(facts(one, { existing: carriedOut(start) }))
    expect(back.wanted[0]?.metadata.annotations).toEqual({ [SOURCE_ANNOTATION]: 'Service:ns/test' })
  })
})

describe('validity', () => {
  const loadBalancer = { dnsName: DNS_NAME, endpointValidityMs: 300_000 }
  const at = (validUntil: string | undefined, endpointValidityMs = 300_000) => {
    const [endpoint] = carriedOut(decideSource(facts(one)))
    const existing = [{ ...endpoint!, status: { ...(validUntil !== undefined && { validUntil }) } }]
    return decideSource(facts(one, { loadBalancer: { ...loadBalancer, endpointValidityMs }, existing }))
  }
  const until = (decision: SourceDecision) => decision.wanted[0]?.status?.validUntil

  it('is set on creation, and absent when endpoints do not expire', () => {
    const created = decideSource(facts(one, { loadBalancer }))
    expect(until(created)).toBe('2030-01-01T00:05:00Z')
    expect(created.againAfterMs).toBe(180_000)
    expect(until(at('2030-01-01T00:05:00Z', 0))).toBeUndefined()
  })

  it('is kept while more than 120 s remain, and renewed after', () => {
    expect(until(at('2030-01-01T00:02:01Z'))).toBe('2030-01-01T00:02:01Z')
    expect(until(at('2030-01-01T00:02:00Z'))).toBe('2030-01-01T00:05:00Z')
    expect(until(at('2029-12-31T23:00:00Z'))).toBe('2030-01-01T00:05:00Z')
  })

  it('fixed: a short interval is not renewed at every look, and a shortened one counts at once', () => {
    expect(until(at('2030-01-01T00:00:50Z', 60_000))).toBe('2030-01-01T00:00:50Z')
    expect(until(at('2030-01-01T00:00:30Z', 60_000))).toBe('2030-01-01T00:01:00Z')
    expect(until(at('2030-01-01T01:00:00Z'))).toBe('2030-01-01T00:05:00Z')
  })
})
