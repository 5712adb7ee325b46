import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { OPEN_RULES } from '../../../../testing/sync-fixture.ts'
import { DNSLoadBalancer } from '../../../api/dns-load-balancer.ts'
import { desiredOf } from './dns-endpoint-source.ts'

const metadata = {
  name: 'shop',
  namespace: 'web',
  uid: 'u-1',
  generation: 4,
  creationTimestamp: '2030-01-01T00:00:00Z',
}
const readEndpoint = (endpoint: Record<string, unknown>, annotations: Record<string, string> = {}) =>
  desiredOf([{ metadata: { ...metadata, annotations }, spec: { endpoints: [endpoint] } }], 300, OPEN_RULES)

describe('a DNSEndpoint', () => {
  it('becomes a desired RRset with its source, revision and age', () => {
    expect(
      readEndpoint({ dnsName: 'Shop.A.test', recordType: 'A', targets: ['192.0.2.2', '192.0.2.1'], recordTTL: 60 }),
    ).toEqual({
      unusable: [],
      desired: [
        {
          set: { name: 'shop.a.test.', type: 'A', ttl: 60, values: ['192.0.2.1', '192.0.2.2'] },
          source: {
            uid: 'dnsendpoint/u-1',
            label: 'DNSEndpoint web/shop',
            namespace: 'web',
            revision: '4',
            age: { createdAt: '2030-01-01T00:00:00Z', namespace: 'web', name: 'shop', kind: 'DNSEndpoint' },
          },
        },
      ],
    })
  })

  it('states in its status which revision was in place', () => {
    const endpoint = { dnsName: 'a.test', recordType: 'A', targets: ['192.0.2.1'] }
    const placed = (observedGeneration: unknown) =>
      desiredOf([{ metadata, spec: { endpoints: [endpoint] }, status: { observedGeneration } }], 300, OPEN_RULES)
        .desired[0]?.source
    expect(placed(3)?.placedRevision).toBe('3')
    expect(placed('3')?.placedRevision).toBeUndefined()
  })

  it('gets the default TTL when it has none, and is desired without values when it has no targets', () => {
    const [item] = readEndpoint({ dnsName: 'a.test', recordType: 'A', recordTTL: 0 }).desired
    expect(item?.set).toEqual({ name: 'a.test.', type: 'A', ttl: 300, values: [] })
  })

  it('states what may be adopted, approved and shared', () => {
    const annotations = { 'seamark.io/adopt': '192.0.2.1', 'seamark.io/approve': 'true', 'seamark.io/share': 'true' }
    const [item] = readEndpoint({ dnsName: 'a.test', recordType: 'A', targets: ['192.0.2.1'] }, annotations).desired
    expect(item?.policy).toEqual({ adopt: '192.0.2.1', isApproved: true, isShared: true })
  })

  it.each([
    [{ dnsName: 'a..test', recordType: 'A', targets: ['192.0.2.1'] }],
    [{ dnsName: 'a.test', recordType: 'A', targets: ['nonsense'] }],
    [{ dnsName: 'a.test', recordType: 'A', targets: ['192.0.2.1'], recordTTL: -1 }],
    [{ dnsName: 'a.test', recordType: 'A', targets: ['192.0.2.1'], recordTTL: '60' }],
    [{ dnsName: 'a.test', recordType: 'A', targets: ['192.0.2.1'], recordTTL: 604_801 }],
    [{ dnsName: 'a.test', recordType: 'CNAME', targets: ['A.test.'] }],
    [{ dnsName: 'a.test', recordType: 'A', targets: '192.0.2.1' }],
    [{ dnsName: 'a.test', recordType: 'A', targets: ['192.0.2.1'], setIdentifier: 'x' }],
    [{ dnsName: '_seamark-a.a.test', recordType: 'TXT', targets: ['x'] }],
    [{ dnsName: '_any.a.test', recordType: 'A', targets: ['192.0.2.1'] }],
    [{ dnsName: 7, recordType: null, targets: {} }],
    [{ __proto__: null, dnsName: 'constructor', recordType: '__proto__', targets: [null] }],
    [{}],
  ])('%j is unusable with a reason, and has no other effect', (endpoint) => {
    const { desired, unusable } = readEndpoint(endpoint)
    expect(desired).toEqual([])
    expect(unusable).toMatchObject([{ code: 'RecordInvalid' }])
  })

  it('adopts for a load balancer that exists with its UID and name, whatever the reference says', () => {
    const adopted = (reference: { uid: string; name?: string }, namespace = 'web', dnsName = 'a.test') => {
      const rules = {
        ...OPEN_RULES,
        adoptedByLoadBalancers: 'dnslb/Ring',
        nameOfLoadBalancer: (key: string, uid: string) => (key === 'web/lb' && uid === 'lb-1' ? 'A.test' : undefined),
      }
      const owner = { kind: 'DNSLoadBalancer', name: 'lb', controller: true }
      const endpoint = { dnsName, recordType: 'A', targets: ['192.0.2.1'] }
      const ownerReferences = [{ ...owner, apiVersion: `${DNSLoadBalancer.group}/v1`, ...reference }]
      const object = { metadata: { ...metadata, namespace, ownerReferences }, spec: { endpoints: [endpoint] } }
      return desiredOf([object], 300, rules).desired[0]?.policy?.adopt
    }
    expect(adopted({ uid: 'lb-1' })).toBe('dnslb/Ring')
    expect(adopted({ uid: 'made-up' })).toBeUndefined()
    expect(adopted({ uid: 'lb-1', name: 'other' })).toBeUndefined()
    expect(adopted({ uid: 'lb-1' }, 'elsewhere')).toBeUndefined()
    expect(adopted({ uid: 'lb-1' }, 'web', 'other.test')).toBeUndefined()
  })

  it('of any shape never throws', () => {
    fc.assert(
      fc.property(
        fc.record({
          dnsName: fc.anything(),
          recordType: fc.anything(),
          targets: fc.anything(),
          recordTTL: fc.anything(),
        }),
        (endpoint) => {
          const { desired, unusable } = readEndpoint(endpoint)
          expect(desired.length + unusable.length).toBe(1)
        },
      ),
      { numRuns: 1000 },
    )
  })
})
