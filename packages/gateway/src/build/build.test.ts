import { keyOf, type Obj } from '@seamark/kube/object'
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { issueKeyPairs, type KeyPair, routesOf, run, runAfter, secret, web } from '../../testing/build-fixture.ts'
import { httpProxy, object, rootProxy, service } from '../../testing/index.ts'
import { BUILD_DEFAULTS } from '../draft/input.ts'
import { createRouteTable } from '../proxy/request/route-table.ts'

let good: KeyPair
let other: KeyPair
beforeAll(async () => {
  ;[good, other] = await issueKeyPairs()
})

describe('properties', () => {
  const name = fc.constantFrom('a', 'b', 'c', 'd')
  const prefix = fc.constantFrom('/', '/x', '/x/y', '/z', 'bad')
  const key = fc.tuple(fc.constantFrom('n1', 'n2'), name).map(([namespace, each]) => `${namespace}/${each}`)
  const condition = fc.oneof(
    fc.record({ prefix }),
    fc.record({ regex: fc.constantFrom('/a.*', '/(', '/b+') }),
    fc.record({ header: fc.record({ name, exact: fc.constantFrom('1', '2') }) }),
    fc.record({ queryParameter: fc.record({ name, present: fc.boolean() }) }),
  )
  const routes = fc.array(
    fc.record({
      conditions: fc.array(condition, { maxLength: 2 }),
      services: fc.array(fc.record({ name, port: fc.constantFrom(80, 81) }), { maxLength: 2 }),
    }),
    { maxLength: 3 },
  )
  const stamp = fc.record({ creationTimestamp: fc.constantFrom('2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z') })
  const proxies = fc
    .tuple(
      key,
      fc.option(fc.constantFrom('x.test', 'y.test', '*.z.test')),
      routes,
      fc.array(fc.record({ name, conditions: fc.array(fc.record({ prefix }), { maxLength: 1 }) }), { maxLength: 2 }),
      stamp,
    )
    .map(([at, fqdn, list, includes, meta]) =>
      httpProxy(at, { ...(fqdn !== null && { virtualhost: { fqdn } }), routes: list, includes }, meta),
    )
  const ingresses = fc
    .tuple(key, fc.constantFrom('x.test', 'y.test', undefined), prefix, name, stamp)
    .map(([at, host, path, target, meta]) =>
      object(
        'Ingress',
        at,
        {
          spec: {
            rules: [
              {
                ...(host !== undefined && { host }),
                http: {
                  paths: [{ path, pathType: 'Prefix', backend: { service: { name: target, port: { number: 80 } } } }],
                },
              },
            ],
          },
        },
        meta,
      ),
    )
  const services = key.map((at) => service(at))
  const httpRoutes = fc
    .tuple(key, fc.array(fc.constantFrom('x.test', '*.y.test'), { maxLength: 2 }), prefix, name, stamp)
    .map(([at, hostnames, value, target, meta]) =>
      object(
        'HTTPRoute',
        at,
        {
          spec: {
            parentRefs: [{ name: 'gw', namespace: 'n1' }],
            hostnames,
            rules: [{ matches: [{ path: { value } }], backendRefs: [{ name: target, port: 80 }] }],
          },
        },
        meta,
      ),
    )
  const fixed = [
    object('GatewayClass', 'ours', { spec: { controllerName: BUILD_DEFAULTS.controllerName } }),
    object('Gateway', 'n1/gw', {
      spec: {
        gatewayClassName: 'ours',
        listeners: [{ name: 'http', port: 80, protocol: 'HTTP', allowedRoutes: { namespaces: { from: 'All' } } }],
      },
    }),
  ]
  const fixtures = fc
    .uniqueArray(fc.oneof(proxies, ingresses, services, httpRoutes), {
      selector: ({ kind, metadata }) => `${kind} ${metadata.namespace}/${metadata.name}`,
      maxLength: 12,
    })
    .map((each) => [...fixed, ...each])
  const bytes = (all: Obj[]): string => {
    const { ir, statuses, findings } = run(...all)
    return JSON.stringify({ ir, statuses, findings })
  }

  /** Each build follows the others; its result is that of new objects, which no build has seen. */
  const checkSequence = (sequence: readonly (readonly Obj[])[], constant: readonly Obj[]): void => {
    const parts = ({ ir, statuses, findings, refs }: ReturnType<typeof run>) =>
      JSON.stringify({ ir, statuses, findings, refs: [...refs].toSorted() })
    let before = run()
    for (const some of sequence) {
      // The last version of an object counts; versions of earlier builds come back.
      const fixture = [...constant, ...new Map(some.map((each) => [`${each.kind} ${keyOf(each)}`, each])).values()]
      const next = runAfter(before, fixture)
      expect(parts(next)).toBe(parts(runAfter(before, structuredClone(fixture))))
      before = next
    }
  }

  it('a build after others is that of new objects, byte by byte', () => {
    const policies = key.map((at) =>
      object('BackendTLSPolicy', at, {
        spec: {
          targetRefs: [{ group: '', kind: 'Service', name: at.split('/')[1] }],
          validation: { hostname: 'b.test', wellKnownCACertificates: 'System' },
        },
      }),
    )
    const pool = fc.array(fc.oneof(proxies, ingresses, services, httpRoutes, policies), { minLength: 5, maxLength: 25 })
    const sequences = pool.chain((all) => fc.array(fc.shuffledSubarray(all), { minLength: 3, maxLength: 7 }))
    fc.assert(fc.property(sequences, (sequence) => checkSequence(sequence, fixed)))
  })

  it('a build after others has their certificates only where the Secrets, hosts and delegations of now allow it', () => {
    const secured = (at: string, fqdn: string, secretName: string) =>
      rootProxy(at, fqdn, { virtualhost: { fqdn, tls: { secretName } } })
    const ingress = (at: string, host: string, annotations: object) =>
      object(
        'Ingress',
        at,
        { spec: { tls: [{ secretName: 's', hosts: ['t.test'] }], rules: [{ host }] } },
        { annotations },
      )
    const pool = [
      secret('n1/s', good.certPem, good.keyPem),
      secret('n1/s', other.certPem, other.keyPem),
      secret('n1/s', good.certPem, other.keyPem),
      secret('n2/s', other.certPem, other.keyPem),
      secured('n1/p', 't.test', 's'),
      secured('n2/p', 't.test', 'n1/s'),
      secured('n2/q', 'u.test', 'n1/s'),
      ingress('n1/i', 't.test', {}),
      ingress('n2/i', 'v.test', { 'projectcontour.io/tls-minimum-protocol-version': '1.3' }),
      object('TLSCertificateDelegation', 'n1/d', {
        spec: { delegations: [{ secretName: 's', targetNamespaces: ['n2'] }] },
      }),
    ]
    const sequences = fc.array(fc.shuffledSubarray(pool), { minLength: 4, maxLength: 12 })
    const constant = [service('n1/web'), service('n2/web')]
    fc.assert(
      fc.property(sequences, (sequence) => checkSequence(sequence, constant)),
      { numRuns: 200 },
    )
  })

  it('a host whose objects did not change is the same object, and so is its status', () => {
    const kept = [web, rootProxy('a/kept', 'kept.test')]
    // Recorded by the second build that sees them.
    run(...kept)
    const before = run(...kept, rootProxy('a/changed', 'changed.test'))
    const after = run(...kept, rootProxy('a/changed', 'changed.test', { includes: [] }))
    const hostsOf = ({ ir }: typeof before) => ir.listeners[0]?.hosts.map(({ host }) => host)
    expect(hostsOf(after)).toEqual(['changed.test', 'kept.test'])
    expect(after.ir.listeners[0]?.hosts[1]).toBe(before.ir.listeners[0]?.hosts[1])
    expect(after.ir.listeners[0]?.hosts[0]).not.toBe(before.ir.listeners[0]?.hosts[0])
    expect(after.statuses.find(({ key: at }) => at === 'a/kept')).toBe(
      before.statuses.find(({ key: at }) => at === 'a/kept'),
    )
  })

  it('the order of the objects changes no byte', () => {
    const shuffled = fixtures.chain((all) =>
      fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length })),
    )
    fc.assert(
      fc.property(shuffled, ([all, other]) => {
        expect(bytes(other)).toBe(bytes(all))
      }),
    )
  })

  it('an object that nothing refers to changes no byte', () => {
    const strangers = [
      service('far/away'),
      object('Secret', 'far/away', { data: {} }),
      object('Ingress', 'far/away', { spec: { ingressClassName: 'other', rules: [] } }),
      object('Gateway', 'far/away', { spec: { gatewayClassName: 'other', listeners: [] } }),
    ]
    fc.assert(
      fc.property(fixtures, (all) => {
        expect(bytes([...all, ...strangers])).toBe(bytes(all))
      }),
    )
  })

  it('every object that was found or missed by name is in the references', () => {
    const { refs } = run(rootProxy('a/root', 'x.test'))
    expect([...refs]).toEqual(['Service a/web'])
  })

  it('no object, however wrong, stops the others from being served', () => {
    const anything = fc.oneof(fc.anything({ maxDepth: 3 }), fc.constant(null), fc.constant({ fqdn: 7 }))
    const kinds = fc.constantFrom(
      'Ingress',
      'HTTPProxy',
      'HTTPRoute',
      'GRPCRoute',
      'TLSRoute',
      'BackendTLSPolicy',
      'ConfigMap',
      'Gateway',
      'GatewayClass',
      'Service',
      'Secret',
      'ReferenceGrant',
      'TLSCertificateDelegation',
    )
    const spec = fc.oneof(
      anything,
      fc.record({ virtualhost: anything, routes: anything, includes: anything }),
      fc.record({ rules: anything, tls: anything, parentRefs: fc.constant([{ name: 'gw', namespace: 'n1' }]) }),
      fc.record({
        virtualhost: fc.constant({ fqdn: 'bad.test' }),
        routes: fc.array(fc.record({ services: anything, conditions: anything })),
      }),
    )
    const check = (list: readonly (readonly [string, unknown])[]) => {
      const bad = list.map(([kind, value], index) => object(kind, `zz/broken-${index}`, { spec: value, data: value }))
      const result = run(...fixed, web, rootProxy('a/root', 'good.test'), ...bad)
      expect(routesOf(result.ir)).toContain('good.test prefix / → a/web/80')
      // What was built can be served: every pattern compiles.
      const { http, https } = createRouteTable(result.ir)
      for (const listener of [http, https]) expect(listener.isEmpty).toBeTypeOf('boolean')
    }
    const entry = fc.tuple(kinds, spec)
    fc.assert(fc.property(fc.array(entry, { minLength: 1, maxLength: 5 }), check), { numRuns: 200 })
    check(fc.sample(entry, 10_000))
  })
})
