import type { HTTPProxy, IngressRoute } from '@seamark/kube/contour'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toHttpProxies, toIngressRoutes } from './ingress-route.ts'

const route = (key: string, spec: IngressRoute['spec']): IngressRoute => {
  const [namespace = '', name = ''] = key.split('/')
  return {
    apiVersion: 'contour.heptio.com/v1beta1',
    kind: 'IngressRoute',
    metadata: { namespace, name },
    ...(spec !== undefined && { spec }),
  }
}

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
          { conditions: [{ prefix: '/' }], services: [{ name: 'api', port: 80 }] },
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
    expect(toHttpProxies([child]).notes.map(({ message }) => message)).toEqual([
      'none of the given objects delegates to it; the paths are left whole, remove the delegated prefix by hand',
    ])
    const root = route('a/root', {
      virtualhost: { fqdn: 'x.test' },
      routes: [{ match: '/y', delegate: { name: 'child' } }],
    })
    expect(toHttpProxies([root, child]).notes.map(({ message }) => message)).toEqual([
      '/x is not below the delegated prefix /y: an IngressRoute never served it',
    ])
  })
})

describe('HTTPProxy → IngressRoute → HTTPProxy', () => {
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
  const condition = fc.oneof(
    fc.record({ prefix: fc.constantFrom('/a', '/b') }),
    fc.record({ exact: fc.constant('/c') }),
    fc.record({ header: fc.record({ name: fc.constant('h'), present: fc.constant(true) }) }),
  )
  const routes = fc.array(
    fc.record(
      {
        conditions: fc.array(condition, { maxLength: 2 }),
        services,
        enableWebsockets: fc.boolean(),
        timeoutPolicy: fc.record({ response: fc.constant('1s'), idle: fc.constant('2s') }, { requiredKeys: [] }),
        loadBalancerPolicy: fc.record({ strategy: fc.constant('Cookie') }),
      },
      { requiredKeys: ['services'] },
    ),
    { minLength: 1, maxLength: 3 },
  )
  const proxies = fc.record({ virtualhost: fc.constant({ fqdn: 'x.test' }), routes }).map((spec): HTTPProxy => ({
    apiVersion: 'projectcontour.io/v1',
    kind: 'HTTPProxy',
    metadata: { namespace: 'n', name: 'p' },
    spec: spec as NonNullable<HTTPProxy['spec']>,
  }))

  it('loses nothing that is reported', () => {
    fc.assert(
      fc.property(proxies, (proxy) => {
        const down = toIngressRoutes([proxy])
        const back = toHttpProxies(down.objects).objects[0]
        if (down.notes.length > 0) expect(back).toEqual(proxy)
        // Without a note both say the same, possibly in other words: `conditions` may be absent or name `/`.
        else expect(toIngressRoutes([back ?? proxy]).objects[0]?.spec).toEqual(down.objects[0]?.spec)
      }),
    )
  })

  it('uses the IngressRoute when somebody changed it meanwhile', () => {
    const proxy: HTTPProxy = {
      metadata: { namespace: 'n', name: 'p' },
      spec: {
        virtualhost: { fqdn: 'x.test' },
        routes: [{ conditions: [{ exact: '/c' }], services: [{ name: 'a', port: 1 }] }],
      },
    }
    const [down] = toIngressRoutes([proxy]).objects
    const edited = { ...down, spec: { ...down?.spec, virtualhost: { fqdn: 'y.test' } } } as IngressRoute
    expect(toHttpProxies([edited]).objects[0]?.spec?.virtualhost).toEqual({ fqdn: 'y.test' })
  })
})
