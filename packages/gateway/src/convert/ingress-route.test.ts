import type { HTTPProxy, IngressRoute } from '@seamark/kube/contour'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { objectsOf, service } from '../../testing/index.ts'
import { build } from '../build/build.ts'
import { BUILD_DEFAULTS } from '../draft/input.ts'
import { toHttpProxies, toIngressRoutes } from './ingress-route.ts'

const metadataOf = (key: string) => {
  const [namespace = '', name = ''] = key.split('/')
  return { namespace, name }
}
const route = (key: string, spec: NonNullable<IngressRoute['spec']>): IngressRoute => ({
  apiVersion: 'contour.heptio.com/v1beta1',
  kind: 'IngressRoute',
  metadata: metadataOf(key),
  spec,
})
const proxy = (key: string, spec: NonNullable<HTTPProxy['spec']>): HTTPProxy => ({
  apiVersion: 'projectcontour.io/v1',
  kind: 'HTTPProxy',
  metadata: metadataOf(key),
  spec,
})
const messagesOf = ({ notes }: { notes: readonly { at: string; message: string }[] }) =>
  notes.map(({ at, message }) => `${at}: ${message}`)

describe('IngressRoute → HTTPProxy', () => {
  it('takes the delegated prefix off the paths of a delegate', () => {
    const { objects, notes } = toHttpProxies([
      route('a/root', {
        virtualhost: { fqdn: 'x.test' },
        routes: [
          { match: '/', services: [{ name: 'web', port: 80, strategy: 'Random' }] },
          { match: '/api', delegate: { name: 'api', namespace: 'b' } },
        ],
      }),
      route('b/api', {
        routes: [
          { match: '/api', services: [{ name: 'api', port: 80 }] },
          {
            match: '/api/v2',
            services: [{ name: 'api', port: 81 }],
            prefixRewrite: '/',
            timeoutPolicy: { request: '3s' },
          },
        ],
      }),
    ])
    expect(notes).toEqual([])
    expect(objects.map(({ spec }) => spec)).toEqual([
      {
        virtualhost: { fqdn: 'x.test' },
        includes: [{ name: 'api', namespace: 'b', conditions: [{ prefix: '/api' }] }],
        routes: [
          {
            conditions: [{ prefix: '/' }],
            services: [{ name: 'web', port: 80 }],
            loadBalancerPolicy: { strategy: 'Random' },
          },
        ],
      },
      {
        routes: [
          // A condition `/` would make it `/api/`, which does not match `/api`.
          { services: [{ name: 'api', port: 80 }] },
          {
            conditions: [{ prefix: '/v2' }],
            services: [{ name: 'api', port: 81 }],
            pathRewritePolicy: { replacePrefix: [{ replacement: '/' }] },
            timeoutPolicy: { response: '3s' },
          },
        ],
      },
    ])
  })

  it('reports a delegate whose root is not given, and paths outside of its prefix', () => {
    const child = route('a/child', { routes: [{ match: '/x', services: [{ name: 'web', port: 80 }] }] })
    expect(messagesOf(toHttpProxies([child]))).toEqual([
      'spec.routes: the paths are converted as they are; none of the given objects delegates to it: give them together, or remove the delegated prefix from its matches by hand',
    ])
    const root = (match: string) =>
      route('a/root', { virtualhost: { fqdn: 'x.test' }, routes: [{ match, delegate: { name: 'child' } }] })
    expect(messagesOf(toHttpProxies([root('/y'), child]))).toEqual([
      'spec.routes[0].match: /x is not below the delegated prefix /y: an IngressRoute never served it',
    ])
    expect(messagesOf(toHttpProxies([root('/x/'), child]))).toEqual([
      'spec.routes[0].match: /x becomes /x/: the prefix of an include is added to every path below it',
    ])
  })

  it('leaves out what an API server sets, so that the result can be applied', () => {
    const read: IngressRoute = {
      ...route('a/root', { virtualhost: { fqdn: 'x.test' } }),
      metadata: {
        ...metadataOf('a/root'),
        uid: '1',
        resourceVersion: '2',
        generation: 3,
        creationTimestamp: '2026-01-01T00:00:00Z',
        labels: { app: 'shop' },
        annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{}', own: 'kept' },
      },
    }
    expect(toHttpProxies([read]).objects[0]?.metadata).toEqual({
      namespace: 'a',
      name: 'root',
      labels: { app: 'shop' },
      annotations: { own: 'kept' },
    })
  })

  it('reports what one HTTPProxy has for all services, and what TCP never had', () => {
    const check = { path: '/healthz' }
    const converted = toHttpProxies([
      route('a/root', {
        virtualhost: { fqdn: 'x.test', tls: { secretName: 's', minimumProtocolVersion: '1.1' } },
        routes: [
          {
            match: '/',
            services: [
              { name: 'a', port: 1, strategy: 'Random', healthCheck: check },
              { name: 'b', port: 1 },
            ],
          },
        ],
        tcpproxy: { services: [{ name: 'a', port: 1, strategy: 'Cookie', healthCheck: check }] },
      }),
    ])
    expect(messagesOf(converted).map((text) => text.split(';', 1)[0])).toEqual([
      'spec.routes[0].services: health checks differ',
      'spec.routes[0].services: strategies differ',
      'spec.virtualhost.tls.minimumProtocolVersion: TLS 1.1 is not supported by an HTTPProxy',
      'spec.tcpproxy.services[0].healthCheck: had no effect on TCP and is left out',
    ])
    expect(converted.objects[0]?.spec?.tcpproxy).toEqual({
      services: [{ name: 'a', port: 1 }],
      loadBalancerPolicy: { strategy: 'Cookie' },
    })
  })
})

describe('HTTPProxy → IngressRoute', () => {
  it('puts the prefixes of all includes in front of the paths', () => {
    const { objects, notes } = toIngressRoutes([
      proxy('a/root', {
        virtualhost: { fqdn: 'x.test' },
        includes: [{ name: 'api', conditions: [{ prefix: '/api' }] }],
      }),
      proxy('a/api', {
        includes: [{ name: 'v2', namespace: 'b', conditions: [{ prefix: '/v2' }] }],
        routes: [{ services: [{ name: 'api', port: 80 }] }],
      }),
      proxy('b/v2', { routes: [{ conditions: [{ prefix: '/users' }], services: [{ name: 'users', port: 80 }] }] }),
    ])
    expect(notes).toEqual([])
    expect(objects.map(({ spec }) => spec?.routes?.map(({ match }) => match))).toEqual([
      ['/api'],
      ['/api/v2', '/api'],
      ['/api/v2/users'],
    ])
  })

  it('reports an include under several prefixes, a missing parent, and each field that is lost', () => {
    const child = proxy('a/child', {
      ingressClassName: 'contour',
      routes: [
        {
          conditions: [{ exact: '/c' }],
          services: [{ name: 'a', port: 1, mirror: true }],
          healthCheckPolicy: { path: '/', expectedStatuses: [{ start: 200, end: 300 }] },
          requestHeadersPolicy: { remove: ['x'] },
        },
      ],
    })
    const root = proxy('a/root', {
      virtualhost: { fqdn: 'x.test', tls: { secretName: 's', maximumProtocolVersion: '1.2' } },
      includes: ['/b', '/a'].map((prefix) => ({ name: 'child', conditions: [{ prefix }] })),
    })
    expect(messagesOf(toIngressRoutes([root, child]))).toEqual([
      'spec.virtualhost.tls.maximumProtocolVersion: an IngressRoute cannot express it',
      'spec.routes: the paths are converted as they are; it is delegated to under /a and /b: make one object for each, and put the prefix in front of its matches by hand',
      'spec.routes[0].requestHeadersPolicy: an IngressRoute cannot express it',
      'spec.routes[0].healthCheckPolicy.expectedStatuses: an IngressRoute expects 200',
      'spec.routes[0].conditions: an IngressRoute matches by one prefix only: the route would take more requests',
      'spec.routes[0].services[0].mirror: an IngressRoute cannot express it',
      'spec.ingressClassName: use the annotation kubernetes.io/ingress.class',
    ])
  })
})

/** As read from a file: fast-check also makes objects without a prototype. */
const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T

/** Whatever the order of its fields. */
const textOf = (value: object): string =>
  JSON.stringify(value, (_key, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  )

describe('there and back', () => {
  const services = fc.array(
    fc.record(
      {
        name: fc.constantFrom('a', 'b'),
        port: fc.nat(99),
        weight: fc.nat(9),
        mirror: fc.boolean(),
        protocol: fc.constant('h2'),
      },
      { requiredKeys: ['name', 'port'] },
    ),
    { minLength: 1, maxLength: 2 },
  )
  const prefix = fc.constantFrom('/', '/a', '/b', '/a/b', '/a/')
  const condition = fc.oneof(
    fc.record({ prefix }),
    fc.record({ exact: fc.constant('/c') }),
    fc.record({ header: fc.record({ name: fc.constant('h'), present: fc.constant(true) }) }),
  )
  const names = ['root', 'one', 'two'] as const
  const proxyRoutes = fc.array(
    fc.record(
      {
        conditions: fc.array(condition, { maxLength: 2 }),
        services,
        enableWebsockets: fc.boolean(),
        timeoutPolicy: fc.record({ response: fc.constant('1s'), idle: fc.constant('2s') }, { requiredKeys: [] }),
        loadBalancerPolicy: fc.record({ strategy: fc.constant('Cookie') }),
        pathRewritePolicy: fc.record({ replacePrefix: fc.array(fc.record({ replacement: prefix }), { maxLength: 2 }) }),
      },
      { requiredKeys: ['services'] },
    ),
    { minLength: 1, maxLength: 3 },
  )
  const includes = fc.array(
    fc.record(
      { name: fc.constantFrom(...names, 'absent'), conditions: fc.array(condition, { maxLength: 2 }) },
      { requiredKeys: ['name'] },
    ),
    { maxLength: 2 },
  )
  const tcpproxy = fc.record(
    { services, loadBalancerPolicy: fc.record({ strategy: fc.constant('Random') }) },
    { requiredKeys: ['services'] },
  )
  const proxySpec = fc.record({ routes: proxyRoutes, includes, tcpproxy }, { requiredKeys: ['routes'] })

  it('every HTTPProxy is what it was', () => {
    const all = fc
      .tuple(proxySpec, proxySpec, proxySpec)
      .map(([root, one, two]) => [
        proxy('n/root', { virtualhost: { fqdn: 'x.test' }, ...root }),
        proxy('n/one', one),
        proxy('n/two', two),
      ])
    fc.assert(
      fc.property(all.map(plain), (proxies) => {
        expect(toHttpProxies(toIngressRoutes(proxies).objects).objects).toEqual(proxies)
      }),
    )
  })

  const oldServices = fc.array(
    fc.record(
      {
        name: fc.constantFrom('a', 'b'),
        port: fc.nat(99),
        weight: fc.nat(9),
        strategy: fc.constantFrom('Random', 'Cookie'),
        healthCheck: fc.record({ path: fc.constantFrom('/x', '/y') }),
      },
      { requiredKeys: ['name', 'port'] },
    ),
    { maxLength: 2 },
  )
  const oldRoute = fc.oneof(
    fc.record(
      {
        match: prefix,
        services: oldServices,
        prefixRewrite: prefix,
        permitInsecure: fc.boolean(),
        timeoutPolicy: fc.record({ request: fc.constant('1s') }),
        retryPolicy: fc.record({ count: fc.nat(3), perTryTimeout: fc.constant('1s') }, { requiredKeys: [] }),
      },
      { requiredKeys: ['match'] },
    ),
    fc.record({ match: prefix, delegate: fc.record({ name: fc.constantFrom(...names, 'absent') }) }),
  )
  const oldSpec = fc.record(
    {
      routes: fc.array(oldRoute, { maxLength: 3 }),
      tcpproxy: fc.record({ services: oldServices }),
    },
    { requiredKeys: [] },
  )

  it('every IngressRoute is what it was, up to the order of its routes', () => {
    const all = fc
      .tuple(oldSpec, oldSpec, oldSpec)
      .map(([root, one, two]) => [
        route('n/root', { virtualhost: { fqdn: 'x.test' }, ...root }),
        route('n/one', one),
        route('n/two', two),
      ])
    const sorted = (objects: readonly IngressRoute[]) =>
      objects.map(({ spec, ...rest }) => {
        const { routes, ...others } = spec ?? {}
        return { ...rest, ...others, routes: routes?.map(textOf).toSorted() ?? [] }
      })
    fc.assert(
      fc.property(all.map(plain), (routes) => {
        const back = toIngressRoutes(toHttpProxies(routes).objects).objects
        expect(sorted(back)).toEqual(sorted(routes))
      }),
    )
  })

  it('an object that was changed meanwhile is used, not the annotation', () => {
    const given = proxy('n/p', {
      virtualhost: { fqdn: 'x.test' },
      routes: [{ conditions: [{ exact: '/c' }], services: [{ name: 'a', port: 1 }] }],
    })
    const [down] = toIngressRoutes([given]).objects
    const edited = { ...down, spec: { ...down?.spec, virtualhost: { fqdn: 'y.test' } } } as IngressRoute
    expect(toHttpProxies([edited]).objects[0]?.spec?.virtualhost).toEqual({ fqdn: 'y.test' })
  })

  it('a tree that is converted without notes serves the same paths', () => {
    const paths = (proxies: readonly HTTPProxy[]) => {
      const { ir } = build(objectsOf([service('n/a', [1]), ...proxies]), BUILD_DEFAULTS)
      return (
        ir.listeners[0]?.hosts.flatMap(({ routes }) => routes.map(({ match }) => match.path.value)).toSorted() ?? []
      )
    }
    const own = fc.uniqueArray(fc.constantFrom('', '/', '/x', '/x/y'), { minLength: 1, maxLength: 3 })
    const to = (list: readonly string[]) =>
      list.map((each) => ({
        ...(each !== '' && { conditions: [{ prefix: each }] }),
        services: [{ name: 'a', port: 1 }],
      }))
    fc.assert(
      fc.property(own, own, own, prefix, prefix, (root, one, two, first, second) => {
        const proxies = [
          proxy('n/root', {
            virtualhost: { fqdn: 'x.test' },
            routes: to(root),
            includes: [{ name: 'one', conditions: [{ prefix: first }] }],
          }),
          proxy('n/one', { routes: to(one), includes: [{ name: 'two', conditions: [{ prefix: second }] }] }),
          proxy('n/two', { routes: to(two) }),
        ]
        const down = toIngressRoutes(proxies)
        expect(down.notes).toEqual([])
        const matches = down.objects.flatMap(({ spec }) =>
          (spec?.routes ?? []).filter(({ delegate }) => delegate === undefined).map(({ match }) => match),
        )
        expect([...new Set(matches)].toSorted()).toEqual(paths(proxies))
        // Without the annotations too.
        const bare = down.objects.map((each) => ({ ...each, metadata: metadataOf(`n/${each.metadata.name}`) }))
        const back = toHttpProxies(bare)
        if (back.notes.length === 0) expect(paths(back.objects)).toEqual(paths(proxies))
      }),
    )
  })
})
