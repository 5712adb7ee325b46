import { describe, expect, it } from 'vitest'
import { routesOf, run, statusOf, to, verdict, web } from '../../../testing/build-fixture.ts'
import { httpProxy, objectsOf, rootProxy, service } from '../../../testing/index.ts'
import { build } from '../../build/build.ts'
import { BUILD_DEFAULTS } from '../../draft/input.ts'

describe('HTTPProxy', () => {
  it('serves the routes of a root with the longest prefix first', () => {
    const result = run(
      web,
      rootProxy('a/root', 'x.test', {
        routes: [
          to('web'),
          to('web', { conditions: [{ prefix: '/long' }] }),
          to('web', { conditions: [{ exact: '/long' }] }),
          to('web', { conditions: [{ regex: '/l.*' }] }),
          to('web', { conditions: [{ prefix: '/long' }, { header: { name: 'X-A', present: true } }] }),
        ],
      }),
    )
    expect(routesOf(result.ir)).toEqual([
      'x.test exact /long → a/web/80',
      'x.test regex /l.* → a/web/80',
      'x.test prefix /long [x-a] → a/web/80',
      'x.test prefix /long → a/web/80',
      'x.test prefix / → a/web/80',
    ])
    expect(statusOf(result, 'a/root')).toMatchObject({ currentStatus: 'valid', description: 'Valid HTTPProxy' })
  })

  it('makes every holder of a duplicate host invalid and serves none', () => {
    const result = run(web, service('b/web'), rootProxy('a/one', 'x.test'), rootProxy('b/two', 'X.test'))
    expect(routesOf(result.ir)).toEqual([])
    const message = 'VirtualHostError/DuplicateVhost: fqdn "x.test" is used in multiple HTTPProxies: a/one, b/two'
    expect(verdict(result, 'a/one')).toEqual(['invalid', message])
    expect(verdict(result, 'b/two')).toEqual(['invalid', message])
  })

  it('answers 502 on the conditions of an include that is missing or a root', () => {
    const result = run(
      web,
      rootProxy('a/root', 'x.test', {
        includes: [
          { name: 'gone', conditions: [{ prefix: '/gone' }] },
          { name: 'other', conditions: [{ prefix: '/other' }] },
        ],
      }),
      rootProxy('a/other', 'y.test'),
    )
    expect(routesOf(result.ir)).toEqual([
      'x.test prefix /other → 502',
      'x.test prefix /gone → 502',
      'x.test prefix / → a/web/80',
      'y.test prefix / → a/web/80',
    ])
    expect(verdict(result, 'a/root')).toEqual([
      'invalid',
      'IncludeError/IncludeNotFound: include a/gone not found',
      'IncludeError/RootIncludesRoot: root httpproxy cannot include another root httpproxy (a/other)',
    ])
  })

  it('concatenates path conditions over includes and joins header conditions', () => {
    const result = run(
      service('b/web'),
      httpProxy('a/root', {
        virtualhost: { fqdn: 'x.test' },
        includes: [
          { name: 'mid', namespace: 'b', conditions: [{ prefix: '/api/' }, { header: { name: 'v', exact: '1' } }] },
        ],
      }),
      httpProxy('b/mid', { includes: [{ name: 'leaf', conditions: [{ prefix: '/users' }] }] }),
      httpProxy('b/leaf', {
        routes: [to('web', { conditions: [{ exact: '/me' }, { header: { name: 'w', exact: '2' } }] })],
      }),
    )
    expect(routesOf(result.ir)).toEqual(['x.test exact /api/users/me [v w] → b/web/80'])
    expect(verdict(result, 'b/leaf')).toEqual(['valid'])
  })

  it('drops every route of an object with one bad route, and keeps what it includes', () => {
    const result = run(
      web,
      rootProxy('a/root', 'x.test', {
        includes: [{ name: 'leaf', conditions: [{ prefix: '/leaf' }] }],
        routes: [to('web'), to('web', { conditions: [{ prefix: 'nope' }] })],
      }),
      httpProxy('a/leaf', { routes: [to('web')] }),
    )
    expect(routesOf(result.ir)).toEqual(['x.test prefix /leaf → a/web/80'])
    expect(verdict(result, 'a/root')).toEqual([
      'invalid',
      'RouteError/PathMatchConditionsNotValid: route: prefix conditions must start with /, nope was supplied',
    ])
  })

  it('answers 503 where no Service is left, and skips one that is missing', () => {
    const result = run(
      web,
      rootProxy('a/root', 'x.test', {
        routes: [
          to('gone', { conditions: [{ prefix: '/gone' }] }),
          {
            services: [
              { name: 'web', port: 80 },
              { name: 'gone', port: 80 },
            ],
          },
        ],
      }),
    )
    expect(routesOf(result.ir)).toEqual(['x.test prefix /gone → 503', 'x.test prefix / → a/web/80'])
    expect(verdict(result, 'a/root')).toEqual([
      'invalid',
      'ServiceError/ServiceUnresolvedReference: Spec.Routes unresolved service reference: service "a/gone" not found',
    ])
  })

  it('makes only the object that a cycle returns to invalid', () => {
    const result = run(
      web,
      rootProxy('a/root', 'x.test', { includes: [{ name: 'one' }] }),
      httpProxy('a/one', { includes: [{ name: 'two' }] }),
      httpProxy('a/two', { includes: [{ name: 'one' }], routes: [to('web', { conditions: [{ prefix: '/two' }] })] }),
    )
    expect(verdict(result, 'a/root')).toEqual(['valid'])
    expect(verdict(result, 'a/one')[1]).toMatch(
      /IncludeCreatesCycle: include creates an include cycle: a\/root -> a\/one/,
    )
    expect(routesOf(result.ir)).toEqual(['x.test prefix /two → a/web/80', 'x.test prefix / → a/web/80'])
  })

  it('ends with an error on an include tree that multiplies', () => {
    const levels = Array.from({ length: 40 }, (_, level) =>
      httpProxy(`a/n${level}`, {
        includes: ['/x', '/y'].map((prefix) => ({ name: `n${level + 1}`, conditions: [{ prefix }] })),
      }),
    )
    const result = run(rootProxy('a/root', 'x.test', { includes: [{ name: 'n0' }], routes: [] }), ...levels)
    expect(verdict(result, 'a/root')[1]).toMatch(/TooManyIncludes/)
  })

  it('is orphaned without a root', () => {
    const result = run(web, httpProxy('a/leaf', { routes: [to('web')] }))
    expect(statusOf(result, 'a/leaf')).toMatchObject({
      currentStatus: 'orphaned',
      description: 'this HTTPProxy is not part of a delegation chain from a root HTTPProxy',
    })
  })

  it('does not serve a host without the access control that it asks for', () => {
    const result = run(
      web,
      rootProxy('a/root', 'x.test', { virtualhost: { fqdn: 'x.test', ipAllowPolicy: [{ cidr: '10.0.0.0/8' }] } }),
    )
    expect(routesOf(result.ir)).toEqual([])
    expect(verdict(result, 'a/root')[1]).toMatch(/IPFilterError\/UnsupportedField/)
  })

  it('refuses regular expressions that RE2 cannot compile', () => {
    for (const regex of ['/(?=x)', '/(', String.raw`/(a)\1`]) {
      const result = run(web, rootProxy('a/root', 'x.test', { routes: [to('web', { conditions: [{ regex }] })] }))
      expect(verdict(result, 'a/root')[1]).toMatch(/PathMatchConditionsNotValid: route: supplied regex/)
    }
  })

  it('rewrites a prefix with and without its slash', () => {
    const rewrite = { conditions: [{ prefix: '/api' }], pathRewritePolicy: { replacePrefix: [{ replacement: '/' }] } }
    const { ir } = run(web, rootProxy('a/root', 'x.test', { routes: [to('web', rewrite)] }))
    const rewrites = ir.listeners[0]?.hosts[0]?.routes.map(({ match, action }) => [
      match.path.value,
      action.kind === 'forward' ? action.rewrite?.value : '',
    ])
    expect(rewrites).toEqual([
      ['/api/', '/'],
      ['/api', '/'],
    ])
  })

  it('refuses control characters in what it would send, and says where', () => {
    const cases: [route: object, expected: string][] = [
      [
        to('web', { pathRewritePolicy: { replacePrefix: [{ replacement: '/a\r\nb' }] } }),
        String.raw`PrefixReplaceError/ReplacementNotValid: replacement "/a\r\nb" contains control characters`,
      ],
      [
        { requestRedirectPolicy: { path: '/a\u0000' } },
        String.raw`RouteError/RequestRedirectPolicy: route.requestRedirectPolicy is invalid: path "/a\u0000" contains control characters`,
      ],
      [
        { requestRedirectPolicy: { hostname: 'y.test\n' } },
        String.raw`RouteError/RequestRedirectPolicy: route.requestRedirectPolicy is invalid: hostname "y.test\n" is not a host name`,
      ],
      [
        to('web', { requestHeadersPolicy: { set: [{ name: 'X-A', value: 'a\nb' }] } }),
        'RouteError/RequestHeadersPolicyInvalid: invalid set header "X-A": the value contains control characters on request headers',
      ],
      [
        to('web', { healthCheckPolicy: { path: '/\n' } }),
        String.raw`RouteError/HealthCheckPolicyInvalid: invalid health check path: "/\n" contains control characters`,
      ],
      [
        to('web', {
          rateLimitPolicy: {
            local: { requests: 1, unit: 'second', responseHeadersToAdd: [{ name: 'x', value: 'a\nb' }] },
          },
        }),
        'RouteError/RateLimitPolicyNotValid: route.rateLimitPolicy is invalid: invalid header "x" in local rate limit policy: the value contains control characters',
      ],
    ]
    for (const [route, expected] of cases) {
      const result = run(web, rootProxy('a/root', 'x.test', { routes: [route] }), rootProxy('a/other', 'y.test'))
      expect(verdict(result, 'a/root')).toEqual(['invalid', expected])
      expect(routesOf(result.ir)).toEqual(['y.test prefix / → a/web/80'])
    }
    const cors = { corsPolicy: { allowOrigin: ['*'], allowMethods: ['GET'], exposeHeaders: ['x\ny'] } }
    const result = run(web, rootProxy('a/root', 'x.test', { virtualhost: { fqdn: 'x.test', ...cors } }))
    expect(verdict(result, 'a/root')[1]).toMatch(/^CORSError\/PolicyDidNotParse: .*"x\\ny" is neither a method/)
  })

  it('percent-encodes what a path cannot contain', () => {
    const result = run(
      web,
      rootProxy('a/root', 'x.test', {
        routes: [{ requestRedirectPolicy: { path: '/a b/é%2F' } }],
      }),
    )
    expect(result.ir.listeners[0]?.hosts[0]?.routes[0]?.action).toMatchObject({ path: { value: '/a%20b/%C3%A9%2F' } })
  })

  it('serves ExternalName Services only when allowed, and never local ones', () => {
    const external = (name: string) => service('a/web', [80], { type: 'ExternalName', externalName: name })
    const allowed = { ...BUILD_DEFAULTS, allowsExternalNames: true }
    const clusters = (name: string, settings = allowed) =>
      build(objectsOf([external(name), rootProxy('a/root', 'x.test')]), settings).ir.clusters.map(
        (each) => each.upstream,
      )
    expect(clusters('example.com', BUILD_DEFAULTS)).toEqual([])
    expect(clusters('example.com')).toEqual([{ kind: 'dns', host: 'example.com', port: 80 }])
    for (const name of ['localhost', 'localhost.', 'x.localhost', '127.0.0.1', '169.254.169.254', '0.0.0.0'])
      expect(clusters(name)).toEqual([])
  })
})
