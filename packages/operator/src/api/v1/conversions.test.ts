import { convert, defineConversion } from '@seamark/kube'
import { apiVersionOf, type Kind, type Obj } from '@seamark/kube/object'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { addConversions } from './conversions.ts'

const conversions: ReturnType<typeof defineConversion>[] = []
addConversions({ conversion: (hub, spokes) => void conversions.push(defineConversion(hub, spokes)) })

const GROUP = 'loadbalancer.gardener.cloud'
const [V1, V1BETA1] = [`${GROUP}/v1`, `${GROUP}/v1beta1`]
const to = (version: string, object: Obj): Obj => convert(conversions, object, version)

const word = fc.constantFrom('', 'a', 'b.example.com', '192.0.2.1', 'Balanced', 'Exclusive', 'other')
/** v1 requires a text where v1beta1 takes an empty one as absent. */
const given = word.filter((text) => text !== '')
const code = fc.constantFrom(0, 200, 204)
const text = (values: Record<string, fc.Arbitrary<unknown>>) => fc.record(values, { requiredKeys: [] })
const timing = {
  scheme: fc.constantFrom('https', 'http', 'tcp'),
  statusCodes: fc.array(fc.constantFrom(200, 204), { minLength: 1, maxLength: 2 }),
  headers: fc.dictionary(fc.constantFrom('x', 'y'), word),
  rise: fc.nat(3),
}
const preference = { weight: fc.nat(3), priority: fc.nat(3), geo: word, drain: fc.boolean() }
const active = (address: string, hostname: string) =>
  fc.array(text({ name: word, [address]: word, [hostname]: word }), { maxLength: 2 })
const status = (of: fc.Arbitrary<unknown>) =>
  text({ state: word, message: word, active: of, conditions: fc.array(text({ type: word, status: word })) })
const same = {
  ttl: fc.nat(9),
  onAllUnhealthy: word,
  failBack: word,
  endpointValidityInterval: fc.constantFrom('5m', '1h30m'),
}

/** Any object that the schemas admit, and some that they do not: what is stored may be older than the schema. */
const SPECS: Readonly<Record<string, Readonly<Record<string, [fc.Arbitrary<object>, fc.Arbitrary<object>]>>>> = {
  DNSLoadBalancer: {
    v1: [
      text({ dnsName: given, strategy: given, healthCheck: text({ ...timing, path: word }), ...same }),
      status(active('address', 'hostname')),
    ],
    v1beta1: [
      text({
        DNSName: word,
        dnsname: word,
        healthPath: word,
        statusCode: code,
        type: word,
        singleton: fc.boolean(),
        healthCheck: text(timing),
        ...same,
      }),
      status(active('ipaddress', 'cname')),
    ],
  },
  DNSLoadBalancerEndpoint: {
    v1: [text({ loadBalancer: word, address: word, hostname: word, ...preference }), status(fc.boolean())],
    v1beta1: [text({ loadbalancer: word, ipaddress: word, cname: word, ...preference }), status(fc.boolean())],
  },
  DNSProvider: {
    v1: [text({ type: word, scope: text({ type: word, namespaces: fc.array(word) }) }), status(fc.boolean())],
    v1beta1: [text({ type: word, secretRef: text({ name: word, namespace: word }) }), status(fc.boolean())],
  },
}

const anyObject = (kind: string, version: string): fc.Arbitrary<Obj> => {
  const [spec, statuses] = SPECS[kind]?.[version] ?? []
  if (spec === undefined || statuses === undefined) throw new Error(`${kind} ${version} is not described`)
  return fc
    .record(
      { spec, status: statuses, annotations: fc.dictionary(word, word, { maxKeys: 1 }) },
      { requiredKeys: ['spec'] },
    )
    .map(({ annotations, ...body }) => ({
      apiVersion: `${GROUP}/${version}`,
      kind,
      metadata: {
        namespace: 'web',
        name: 'x',
        uid: 'u',
        ...(annotations !== undefined && Object.keys(annotations).length > 0 && { annotations }),
      },
      ...(JSON.parse(JSON.stringify(body)) as object),
    }))
}

const kinds = Object.keys(SPECS)

describe('conversion of the load balancing kinds', () => {
  it('is declared for every kind, with v1 as hub', () => {
    expect(conversions.map(({ hub }: { hub: Kind }) => [hub.kind, apiVersionOf(hub)])).toEqual(
      kinds.map((kind) => [kind, V1]),
    )
  })

  it.each(kinds)('%s: v1 → v1beta1 → v1 is the identity', (kind) => {
    fc.assert(
      fc.property(anyObject(kind, 'v1'), (object) => {
        expect(to(V1, to(V1BETA1, object))).toEqual(object)
      }),
      { numRuns: 200 },
    )
  })

  it.each(kinds)('%s: v1beta1 → v1 → v1beta1 is the identity', (kind) => {
    fc.assert(
      fc.property(anyObject(kind, 'v1beta1'), (object) => {
        expect(to(V1BETA1, to(V1, object))).toEqual(object)
      }),
      { numRuns: 200 },
    )
  })

  it.each(kinds)('%s: a change in the other version is kept, whatever the object had', (kind) => {
    fc.assert(
      fc.property(
        anyObject(kind, 'v1beta1'),
        anyObject(kind, 'v1'),
        anyObject(kind, 'v1beta1'),
        (old, { metadata: _1, ...v1Body }, { metadata: _2, ...v1beta1Body }) => {
          const edited = { ...to(V1, old), ...v1Body }
          expect(bodyOf(to(V1, to(V1BETA1, edited)))).toEqual(bodyOf(edited))
          const again = { ...to(V1BETA1, edited), ...v1beta1Body }
          expect(bodyOf(to(V1BETA1, to(V1, again)))).toEqual(bodyOf(again))
        },
      ),
      { numRuns: 200 },
    )
  })

  it('has one spelling for each setting of a load balancer in v1', () => {
    const old = {
      apiVersion: V1BETA1,
      kind: 'DNSLoadBalancer',
      metadata: { name: 'shop' },
      spec: { dnsname: 'shop.example.com', singleton: true, healthPath: '/ok', statusCode: 204, ttl: 60 },
      status: { state: 'healthy', active: [{ name: 'east', ipaddress: '192.0.2.1' }] },
    } as Obj
    const stored = to(V1, old)
    expect(stored).toMatchObject({
      spec: {
        dnsName: 'shop.example.com',
        strategy: 'Exclusive',
        healthCheck: { path: '/ok', statusCodes: [204] },
        ttl: 60,
      },
      status: { state: 'healthy', active: [{ name: 'east', address: '192.0.2.1' }] },
    })
    const balanced = { ...stored, spec: { ...(stored as never as { spec: object }).spec, strategy: 'Balanced' } } as Obj
    // The old `singleton` would contradict the new strategy.
    expect(to(V1BETA1, balanced)).toMatchObject({ spec: { DNSName: 'shop.example.com', type: 'Balanced' } })
    expect((to(V1BETA1, balanced) as never as { spec: object }).spec).not.toHaveProperty('singleton')
  })

  it('needs no annotation for an object of the published contract', () => {
    const objects: [kind: string, spec: object][] = [
      ['DNSLoadBalancer', { DNSName: 'a.example.com', healthPath: '/ok', statusCode: 200, type: 'Balanced' }],
      ['DNSLoadBalancerEndpoint', { loadbalancer: 'shop', ipaddress: '192.0.2.1', weight: 2, priority: 1, geo: 'eu' }],
      ['DNSProvider', { type: 'aws', scope: { type: 'Selected', namespaces: ['web'] }, secretRef: { name: 'aws' } }],
    ]
    for (const [kind, spec] of objects) {
      const object = { apiVersion: V1BETA1, kind, metadata: { name: 'x' }, spec } as Obj
      expect(to(V1, object).metadata).toEqual({ name: 'x' })
    }
  })
})

function bodyOf({ metadata: _metadata, ...body }: Obj): object {
  return body
}
