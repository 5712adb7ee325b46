import { createAuthority } from '@seamark/kube/certificates'
import type { HTTPProxy } from '@seamark/kube/contour'
import type { Gateway, HTTPRoute } from '@seamark/kube/gateway-api'
import { keyOf, type Obj } from '@seamark/kube/object'
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { httpProxy, object, objectsOf, rootProxy, service } from '../../testing/index.ts'
import type { Ir, Route } from '../ir/model.ts'
import { createRouteTable } from '../proxy/route-table.ts'
import { build } from './build.ts'
import { BUILD_DEFAULTS } from './input.ts'
import { certificatesBySecret } from './secrets.ts'

const run = (...all: Obj[]) => build(objectsOf(all), BUILD_DEFAULTS)

/** `host path → action` of every route, in order. */
function routesOf(ir: Ir, protocol: 'http' | 'https' = 'http'): string[] {
  const listener = ir.listeners.find((each) => each.protocol === protocol)
  return (listener?.hosts ?? []).flatMap(({ host, routes }) => routes.map((route) => `${host} ${describeRoute(route)}`))
}

function describeRoute({ match: { path, method, headers, query }, action }: Route): string {
  const rest = [method, ...headers.map(({ name }) => name), ...query.map(({ name }) => `?${name}`)].filter(Boolean)
  const what =
    action.kind === 'forward'
      ? action.backends.map(({ cluster }) => cluster.split('/').slice(0, 3).join('/')).join('+')
      : action.status
  return `${path.kind} ${path.value}${rest.length === 0 ? '' : ` [${rest.join(' ')}]`} → ${what}`
}

type Status = NonNullable<HTTPProxy['status']>

function statusOf(result: ReturnType<typeof run>, key: string): Status {
  return result.statuses.find((each) => each.kind === 'HTTPProxy' && each.key === key)?.status as Status
}

/** `currentStatus type/reason: message` of the errors. */
function verdict(result: ReturnType<typeof run>, key: string): string[] {
  const status = statusOf(result, key)
  const [condition] = status.conditions ?? []
  return [
    status.currentStatus ?? '',
    ...(condition?.errors ?? []).map(({ type, reason, message }) => `${type}/${reason}: ${message}`),
  ]
}

const web = service('a/web')
const to = (name: string, extra: object = {}) => ({ services: [{ name, port: 80 }], ...extra })

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

let good: { certPem: string; keyPem: string }
let other: { certPem: string; keyPem: string }
beforeAll(async () => {
  const authority = await createAuthority({ commonName: 'ca' })
  good = await authority.issue({ commonName: 'x.test', dnsNames: ['x.test'], usages: 'server' })
  other = await authority.issue({ commonName: 'x.test', dnsNames: ['x.test'], usages: 'server' })
})

function secret(key: string, cert: string, privateKey: string): Obj {
  return object('Secret', key, {
    type: 'kubernetes.io/tls',
    data: {
      'tls.crt': Buffer.from(cert).toString('base64'),
      'tls.key': Buffer.from(privateKey).toString('base64'),
    },
  })
}

/** A build while the configuration of another one is served. */
function runAfter({ ir }: ReturnType<typeof run>, all: readonly Obj[]): ReturnType<typeof run> {
  const served = certificatesBySecret(ir.certificates)
  return build({ ...objectsOf(all), served: (key) => served.get(key) }, BUILD_DEFAULTS)
}

describe('Secrets', () => {
  const root = (secretName: string) =>
    rootProxy('a/root', 'x.test', { virtualhost: { fqdn: 'x.test', tls: { secretName } } })

  it('are verified: a key of another certificate takes the host down and is not quoted', () => {
    const result = run(web, root('tls'), secret('a/tls', good.certPem, other.keyPem))
    expect(routesOf(result.ir)).toEqual([])
    expect(verdict(result, 'a/root')[1]).toBe(
      'TLSError/SecretNotValid: Spec.VirtualHost.TLS Secret "tls" is invalid: invalid TLS private key: it does not belong to the certificate',
    )
  })

  it('that break keep the certificate that is served, and the status says what is wrong', () => {
    const before = run(web, root('tls'), secret('a/tls', good.certPem, good.keyPem))
    const broken = [secret('a/tls', 'no certificate', good.keyPem), secret('a/tls', good.certPem, other.keyPem)]
    for (const each of broken) {
      const result = runAfter(before, [web, root('tls'), each])
      expect(result.ir).toEqual(before.ir)
      expect(verdict(result, 'a/root')).toEqual([
        'invalid',
        expect.stringMatching(
          /^TLSError\/SecretNotValid: Spec.VirtualHost.TLS Secret "tls" is invalid: .*; the last valid certificate is still served$/,
        ),
      ])
      expect(runAfter(result, [web, root('tls'), each]).ir).toEqual(before.ir)
    }
    const mended = runAfter(before, [web, root('tls'), secret('a/tls', other.certPem, other.keyPem)])
    expect(mended.ir.certificates[0]?.chain).toBe(other.certPem)
    expect(verdict(mended, 'a/root')).toEqual(['valid'])
  })

  it('that are deleted, or no longer delegated, take the host down', () => {
    const shared = secret('certs/tls', good.certPem, good.keyPem)
    const delegation = object('TLSCertificateDelegation', 'certs/d', {
      spec: { delegations: [{ secretName: 'tls', targetNamespaces: ['a'] }] },
    })
    const before = run(web, root('certs/tls'), shared, delegation)
    expect(routesOf(before.ir, 'https')).toHaveLength(1)
    expect(routesOf(runAfter(before, [web, root('certs/tls'), delegation]).ir)).toEqual([])
    expect(routesOf(runAfter(before, [web, root('certs/tls'), secret('certs/tls', 'x', 'y')]).ir)).toEqual([])
  })

  it('that break keep the certificates of Ingresses and listeners too', () => {
    const ingress = object('Ingress', 'a/web', {
      spec: {
        tls: [{ secretName: 'tls', hosts: ['i.test'] }],
        rules: [
          {
            host: 'i.test',
            http: {
              paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }],
            },
          },
        ],
      },
    })
    const listener = { name: 'tls', port: 443, protocol: 'HTTPS', tls: { certificateRefs: [{ name: 'tls' }] } }
    const objects = [
      web,
      ingress,
      object('GatewayClass', 'ours', { spec: { controllerName: BUILD_DEFAULTS.controllerName } }),
      object('Gateway', 'a/gw', { spec: { gatewayClassName: 'ours', listeners: [listener] } }),
      object('HTTPRoute', 'a/web', {
        spec: {
          parentRefs: [{ name: 'gw' }],
          hostnames: ['g.test'],
          rules: [{ backendRefs: [{ name: 'web', port: 80 }] }],
        },
      }),
    ]
    const before = run(...objects, secret('a/tls', good.certPem, good.keyPem))
    const hosts = ['*', 'g.test', 'i.test']
    expect(before.ir.listeners[1]?.hosts.map(({ host }) => host)).toEqual(hosts)
    const result = runAfter(before, [...objects, secret('a/tls', good.certPem, other.keyPem)])
    expect(result.ir).toEqual(before.ir)
    expect(result.findings).toEqual([
      expect.objectContaining({
        reason: 'SecretNotValid',
        message: expect.stringMatching(
          /^spec.tls\[0\]: Secret tls cannot be used: .*; the last valid certificate is still served$/,
        ),
      }),
    ])
    const status = result.statuses.find(({ kind }) => kind === 'Gateway')?.status as Gateway['status']
    expect(
      status?.listeners?.[0]?.conditions?.map(({ type, status: is, reason }) => `${type}=${is} ${reason}`),
    ).toEqual([
      'Accepted=True Accepted',
      'ResolvedRefs=False InvalidCertificateRef',
      'Conflicted=False NoConflicts',
      'Programmed=True Programmed',
    ])
  })

  it('of another namespace need a delegation', () => {
    const shared = secret('certs/tls', good.certPem, good.keyPem)
    const refused = run(web, root('certs/tls'), shared)
    expect(verdict(refused, 'a/root')[1]).toMatch(/TLSError\/DelegationNotPermitted/)
    const delegation = object('TLSCertificateDelegation', 'certs/d', {
      spec: { delegations: [{ secretName: 'tls', targetNamespaces: ['a'] }] },
    })
    const result = run(web, root('certs/tls'), shared, delegation)
    expect(routesOf(result.ir, 'https')).toEqual(['x.test prefix / → a/web/80'])
    expect(result.ir.certificates.map(({ name }) => name)).toEqual([
      expect.stringMatching(/^certs\/tls\/[0-9a-f]{10}$/),
    ])
  })

  it('get a new name when their content changes', () => {
    const names = [good, other].map(({ certPem, keyPem }) =>
      run(web, root('tls'), secret('a/tls', certPem, keyPem)).ir.certificates.map(({ name }) => name),
    )
    expect(names[0]).not.toEqual(names[1])
  })
})

describe('Ingress', () => {
  const ingress = (key: string, spec: object, meta: object = {}) => object('Ingress', key, { spec }, meta)
  const path = (path: string, pathType: string) => ({
    path,
    pathType,
    backend: { service: { name: 'web', port: { number: 80 } } },
  })

  it('compares Prefix by segment, and takes ImplementationSpecific as string prefix or regex', () => {
    const paths = [
      path('/a/', 'Prefix'),
      path('/b', 'ImplementationSpecific'),
      path('/c[0-9]+', 'ImplementationSpecific'),
    ]
    const { ir } = run(web, ingress('a/web', { rules: [{ host: 'X.test', http: { paths } }] }))
    expect(routesOf(ir)).toEqual([
      'x.test regex /c[0-9]+ → a/web/80',
      'x.test prefix /b → a/web/80',
      'x.test segment /a → a/web/80',
    ])
  })

  it('limits a wildcard host to one label', () => {
    const { ir } = run(web, ingress('a/web', { rules: [{ host: '*.x.test', http: { paths: [path('/', 'Prefix')] } }] }))
    expect(routesOf(ir)).toEqual(['*.x.test prefix / [:authority] → a/web/80'])
  })

  it('of another class is not served', () => {
    const spec = { ingressClassName: 'nginx', rules: [{ host: 'x.test', http: { paths: [path('/', 'Prefix')] } }] }
    expect(routesOf(run(web, ingress('a/web', spec)).ir)).toEqual([])
  })

  it('loses a match to an older Ingress and to an HTTPProxy, with a finding', () => {
    const spec = { rules: [{ host: 'x.test', http: { paths: [path('/', 'Prefix')] } }] }
    const result = run(
      web,
      service('b/web'),
      ingress('a/old', spec, { creationTimestamp: '2025-01-01T00:00:00Z' }),
      ingress('b/new', spec),
      rootProxy('a/root', 'x.test'),
    )
    expect(result.ir.listeners[0]?.hosts[0]?.routes.map(({ origin }) => origin.kind)).toEqual(['HTTPProxy'])
    expect(result.findings.map(({ origin, message }) => `${origin.name}: ${message}`)).toEqual([
      'old: spec.rules[0].http.paths[0]: x.test/ is served by HTTPProxy a/root, which has the same match',
      'new: spec.rules[0].http.paths[0]: x.test/ is served by Ingress a/old, which has the same match',
    ])
  })
})

describe('Gateway API', () => {
  const gatewayClass = object('GatewayClass', 'ours', { spec: { controllerName: BUILD_DEFAULTS.controllerName } })
  const gateway = (listeners: object[]) =>
    object('Gateway', 'infra/gw', { spec: { gatewayClassName: 'ours', listeners } })
  const http = { name: 'http', port: 80, protocol: 'HTTP', allowedRoutes: { namespaces: { from: 'All' } } }
  const httpRoute = (key: string, spec: object, meta: object = {}) =>
    object('HTTPRoute', key, { spec: { parentRefs: [{ name: 'gw', namespace: 'infra' }], ...spec } }, meta)
  const backend = { backendRefs: [{ name: 'web', port: 80 }] }
  const conditions = (result: ReturnType<typeof run>, key: string) => {
    const found = result.statuses.find((each) => each.kind === 'HTTPRoute' && each.key === key)
    const { parents } = (found?.status ?? {}) as {
      parents: { conditions: { type: string; status: string; reason: string }[] }[]
    }
    return parents.flatMap((each) => each.conditions.map(({ type, status, reason }) => `${type}=${status} ${reason}`))
  }

  it('attaches a route to listeners whose hostname and namespace rules allow it', () => {
    const result = run(
      web,
      gatewayClass,
      gateway([
        { ...http, hostname: '*.x.test' },
        { ...http, name: 'same', hostname: 'y.test', allowedRoutes: {} },
      ]),
      httpRoute('a/web', { hostnames: ['a.b.x.test', 'y.test'], rules: [backend] }),
    )
    expect(routesOf(result.ir)).toEqual(['a.b.x.test prefix / → a/web/80'])
    expect(conditions(result, 'a/web')).toEqual(['Accepted=True Accepted', 'ResolvedRefs=True ResolvedRefs'])
  })

  it('says why a route is not accepted', () => {
    const cases: [spec: object, expected: string][] = [
      [{ parentRefs: [{ name: 'gw', namespace: 'infra', sectionName: 'nope' }] }, 'NoMatchingParent'],
      [{ hostnames: ['other.test'] }, 'NoMatchingListenerHostname'],
      [{ rules: [{ ...backend, filters: [{ type: 'ExtensionRef' }] }] }, 'UnsupportedValue'],
      [{ rules: [{ ...backend, matches: [{ path: { type: 'RegularExpression', value: '(' } }] }] }, 'UnsupportedValue'],
    ]
    for (const [spec, reason] of cases) {
      const route = httpRoute('a/web', { rules: [backend], ...spec })
      const result = run(web, gatewayClass, gateway([{ ...http, hostname: '*.x.test' }]), route)
      expect(conditions(result, 'a/web')[0]).toBe(`Accepted=False ${reason}`)
      expect(routesOf(result.ir)).toEqual([])
    }
  })

  it('gives the share of an unresolved backend 500, and needs a grant for other namespaces', () => {
    const rules = [
      {
        backendRefs: [
          { name: 'web', port: 80, weight: 3 },
          { name: 'web', namespace: 'b', port: 80, weight: 1 },
        ],
      },
    ]
    const all = [web, service('b/web'), gatewayClass, gateway([http]), httpRoute('a/web', { rules })]
    const refused = run(...all)
    expect(conditions(refused, 'a/web')[1]).toBe('ResolvedRefs=False RefNotPermitted')
    expect(refused.ir.listeners[0]?.hosts[0]?.routes[0]?.action).toMatchObject({ invalidWeight: 1 })
    const grant = object('ReferenceGrant', 'b/grant', {
      spec: {
        from: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', namespace: 'a' }],
        to: [{ group: '', kind: 'Service' }],
      },
    })
    expect(routesOf(run(...all, grant).ir)).toEqual(['* prefix / → a/web/80+b/web/80'])
  })

  it('redirects to the port of the scheme or else of the listener, and keeps that of the request on the same host', () => {
    const redirect = (requestRedirect: object, port = 80) => {
      const rules = [{ filters: [{ type: 'RequestRedirect', requestRedirect }] }]
      const result = run(gatewayClass, gateway([{ ...http, port }]), httpRoute('a/web', { rules }))
      const action = result.ir.listeners[0]?.hosts[0]?.routes[0]?.action
      return action?.kind === 'redirect' ? action.port : 'none'
    }
    expect(redirect({ scheme: 'https' })).toBe(443)
    expect(redirect({ scheme: 'https', port: 8443 })).toBe(8443)
    expect(redirect({ hostname: 'y.test' })).toBe(80)
    expect(redirect({ hostname: 'y.test' }, 8080)).toBe(8080)
    expect(redirect({}, 8080)).toBe(8080)
    expect(redirect({})).toBeUndefined()
  })

  it('refuses control characters in what it would send, and says where', () => {
    const filters: [filter: object, expected: string][] = [
      [
        { type: 'RequestRedirect', requestRedirect: { path: { type: 'ReplaceFullPath', replaceFullPath: '/a\nb' } } },
        String.raw`spec.rules[0]: path "/a\nb" contains control characters`,
      ],
      [{ type: 'URLRewrite', urlRewrite: { hostname: 'x y' } }, 'spec.rules[0]: hostname "x y" is not a host name'],
      [
        { type: 'RequestHeaderModifier', requestHeaderModifier: { set: [{ name: 'x-a', value: 'a\r\nb: c' }] } },
        'spec.rules[0]: header x-a: the value contains control characters',
      ],
    ]
    for (const [filter, expected] of filters) {
      const result = run(
        web,
        gatewayClass,
        gateway([http]),
        httpRoute('a/web', { rules: [{ ...backend, filters: [filter] }] }),
      )
      expect(routesOf(result.ir)).toEqual([])
      const [parent] =
        (result.statuses.find(({ kind }) => kind === 'HTTPRoute')?.status as HTTPRoute['status'])?.parents ?? []
      expect(parent?.conditions?.[0]).toMatchObject({ status: 'False', reason: 'UnsupportedValue', message: expected })
    }
  })

  it('prefers the older route among equal matches', () => {
    const match = { matches: [{ headers: [{ name: 'a', value: '1' }] }] }
    const later = { matches: [{ headers: [{ name: '0', value: '1' }] }] }
    const result = run(
      web,
      gatewayClass,
      gateway([http]),
      httpRoute('a/young', { rules: [{ ...backend, ...later }] }),
      httpRoute('a/zold', { rules: [{ ...backend, ...match }] }, { creationTimestamp: '2020-01-01T00:00:00Z' }),
    )
    expect(result.ir.listeners[0]?.hosts[0]?.routes.map(({ origin }) => origin.name)).toEqual(['zold', 'young'])
  })

  it('reports listeners that conflict or have another port', () => {
    const result = run(
      gatewayClass,
      gateway([
        http,
        { ...http, name: 'twin' },
        { ...http, name: 'far', port: 8080 },
        { ...http, name: 'tcp', port: 9, protocol: 'TCP' },
      ]),
    )
    const { listeners } = (result.statuses.find(({ kind }) => kind === 'Gateway')?.status ?? {}) as {
      listeners: { name: string; conditions: { type: string; reason: string }[] }[]
    }
    const accepted = listeners.map(
      ({ name, conditions: all }) => `${name} ${all.find(({ type }) => type === 'Accepted')?.reason}`,
    )
    expect(accepted).toEqual([
      'http HostnameConflict',
      'twin HostnameConflict',
      'far PortUnavailable',
      'tcp UnsupportedProtocol',
    ])
  })
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
  const worlds = fc
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
      const world = [...constant, ...new Map(some.map((each) => [`${each.kind} ${keyOf(each)}`, each])).values()]
      const next = runAfter(before, world)
      expect(parts(next)).toBe(parts(runAfter(before, structuredClone(world))))
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
    const shuffled = worlds.chain((all) =>
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
      fc.property(worlds, (all) => {
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
