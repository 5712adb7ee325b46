/**
 * The table of answers: one set of objects, and for each request what the data plane answers. The same rows hold for the
 * built-in proxy and for Envoy.
 */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { Ingress } from '@seamark/kube'
import { HTTPProxy } from '@seamark/kube/contour'
import { Gateway, GatewayClass, HTTPRoute } from '@seamark/kube/gateway-api'
import type { Answer, Ask, TestEnvironment } from './test-environment.ts'

interface Row {
  readonly name: string
  readonly ask: Ask
  readonly status: number
  /** Name of the backend that answered. */
  readonly from?: string
  /** Path that the backend saw. */
  readonly path?: string
  readonly location?: string
  readonly body?: string
  /** Header fields that the backend saw; null: absent. */
  readonly request?: Readonly<Record<string, string | null>>
  /** Header fields of the answer; null: absent. */
  readonly response?: Readonly<Record<string, string | null>>
}

const PROXY = 'proxy.answers.test'
const INGRESS = 'ingress.answers.test'
const ROUTE = 'route.answers.test'
const TLS = 'tls.answers.test'

const to = (name: string, extra: object = {}) => ({ services: [{ name, port: 80 }], ...extra })
const at = (prefix: string, ...more: object[]) => ({ conditions: [{ prefix }, ...more] })

/** HTTPProxy: path, header and query conditions and the policies of a route. */
const PROXY_ROUTES = [
  to('one'),
  to('two', { conditions: [{ exact: '/exact' }] }),
  to('two', { conditions: [{ regex: '/re/[0-9]+' }] }),
  to('three', at('/re/1')),
  to('two', at('/pre')),
  to('three', at('/pre/longer')),
  to('two', at('/header', { header: { name: 'X-A', exact: 'yes' } })),
  to('two', at('/shown', { header: { name: 'X-A', present: true } })),
  to('two', at('/absent', { header: { name: 'X-A', notpresent: true } })),
  to('two', at('/contains', { header: { name: 'X-A', contains: 'b' } })),
  to('two', at('/notexact', { header: { name: 'X-A', notexact: 'no' } })),
  to('two', at('/missing', { header: { name: 'X-A', notexact: 'no', treatMissingAsEmpty: true } })),
  to('two', at('/headerregex', { header: { name: 'X-A', regex: 'a+' } })),
  to('two', at('/nocase', { header: { name: 'X-A', exact: 'yes', ignoreCase: true } })),
  to('two', at('/query', { queryParameter: { name: 'q', exact: 'v' } })),
  to('two', at('/queryprefix', { queryParameter: { name: 'q', prefix: 'v' } })),
  to('two', at('/querypresent', { queryParameter: { name: 'q', present: true } })),
  to('two', { ...at('/rewrite'), pathRewritePolicy: { replacePrefix: [{ replacement: '/new' }] } }),
  {
    ...at('/redirect'),
    requestRedirectPolicy: { scheme: 'https', hostname: 'other.test', port: 8443, path: '/there', statusCode: 301 },
  },
  { ...at('/moved'), requestRedirectPolicy: { path: '/there', statusCode: 302 } },
  { ...at('/found'), requestRedirectPolicy: { prefix: '/elsewhere', statusCode: 302 } },
  { ...at('/host-only'), requestRedirectPolicy: { hostname: 'other.test', statusCode: 302 } },
  { ...at('/direct'), directResponsePolicy: { statusCode: 418, body: 'short and stout' } },
  { ...at('/silent'), directResponsePolicy: { statusCode: 204 } },
  to('two', {
    ...at('/policy'),
    requestHeadersPolicy: {
      set: [
        { name: 'X-Set', value: 'route' },
        { name: 'X-Host', value: '%REQ(x-from)%' },
        { name: 'X-Percent', value: '100%' },
      ],
      remove: ['X-Secret'],
    },
    responseHeadersPolicy: { set: [{ name: 'X-Answer', value: 'yes' }], remove: ['X-Backend'] },
  }),
  {
    ...at('/services'),
    services: [
      {
        name: 'two',
        port: 80,
        requestHeadersPolicy: {
          set: [
            { name: 'X-Set', value: 'service' },
            { name: 'X-Service', value: 'service' },
          ],
        },
      },
    ],
    requestHeadersPolicy: { set: [{ name: 'X-Set', value: 'route' }] },
  },
  to('two', { ...at('/host'), requestHeadersPolicy: { set: [{ name: 'Host', value: 'inner.test' }] } }),
  to('slow', { ...at('/timeout'), timeoutPolicy: { response: '200ms' } }),
  to('flaky', { ...at('/retry'), retryPolicy: { count: 3, retryOn: ['5xx'] } }),
  to('failing', { ...at('/noretry') }),
  to('empty', at('/noendpoints')),
  to('nowhere', at('/noservice')),
  {
    ...at('/mirror'),
    services: [
      { name: 'two', port: 80 },
      { name: 'three', port: 80, mirror: true },
    ],
  },
] as NonNullable<NonNullable<HTTPProxy['spec']>['routes']>

const backend = (name: string) => ({ service: { name, port: { number: 80 } } })

async function applyObjects(environment: TestEnvironment): Promise<string> {
  const namespace = await environment.namespace()
  await environment.threeServices(namespace)
  for (const name of ['slow', 'flaky', 'failing']) await environment.service(namespace, name)
  await environment.service(namespace, 'empty', [])
  await environment.certificate(namespace, 'tls', [TLS])
  await environment.client.apply(HTTPProxy, {
    metadata: { namespace, name: 'answers' },
    spec: { virtualhost: { fqdn: PROXY }, routes: PROXY_ROUTES },
  })
  await environment.client.apply(HTTPProxy, {
    metadata: { namespace, name: 'cors' },
    spec: {
      virtualhost: {
        fqdn: 'cors.answers.test',
        corsPolicy: { allowOrigin: ['https://good.test'], allowMethods: ['GET'], allowHeaders: ['x-a'], maxAge: '10m' },
      },
      routes: [to('one')],
    },
  })
  await environment.client.apply(HTTPProxy, {
    metadata: { namespace, name: 'limited' },
    spec: {
      virtualhost: { fqdn: 'limited.answers.test' },
      routes: [
        to('one'),
        to('one', {
          ...at('/limited'),
          rateLimitPolicy: { local: { requests: 1, unit: 'hour', responseStatusCode: 429 } },
        }),
      ],
    },
  })
  await environment.client.apply(HTTPProxy, {
    metadata: { namespace, name: 'tls' },
    spec: {
      virtualhost: { fqdn: TLS, tls: { secretName: 'tls' } },
      routes: [to('one'), to('two', { ...at('/plain'), permitInsecure: true })],
    },
  })
  await environment.client.apply(Ingress, {
    metadata: { namespace, name: 'answers' },
    spec: {
      rules: [
        {
          host: INGRESS,
          http: {
            paths: [
              { path: '/seg', pathType: 'Prefix', backend: backend('one') },
              { path: '/seg/deep', pathType: 'Exact', backend: backend('two') },
              { path: '/impl', pathType: 'ImplementationSpecific', backend: backend('two') },
              { path: '/im[0-9]', pathType: 'ImplementationSpecific', backend: backend('three') },
            ],
          },
        },
        { host: '*.wild.answers.test', http: { paths: [{ path: '/', pathType: 'Prefix', backend: backend('two') }] } },
      ],
    },
  })
  await environment.client.apply(GatewayClass, {
    metadata: { name: 'seamark' },
    spec: { controllerName: 'seamark.io/gateway-controller' },
  })
  await environment.client.apply(Gateway, {
    metadata: { namespace, name: 'answers' },
    spec: { gatewayClassName: 'seamark', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
  })
  const refs = (name: string) => ({ backendRefs: [{ name, port: 80 }] })
  const path = (value: string, type = 'PathPrefix') => ({ path: { type, value } })
  await environment.client.apply(HTTPRoute, {
    metadata: { namespace, name: 'answers' },
    spec: {
      parentRefs: [{ name: 'answers' }],
      hostnames: [ROUTE],
      rules: [
        { matches: [path('/')], ...refs('one') },
        { matches: [path('/method')], ...refs('one') },
        { matches: [{ ...path('/method'), method: 'POST' }], ...refs('two') },
        { matches: [{ ...path('/h'), headers: [{ name: 'x-a', value: '1' }] }], ...refs('two') },
        { matches: [{ ...path('/q'), queryParams: [{ name: 'q', value: '1' }] }], ...refs('three') },
        {
          matches: [path('/strip')],
          filters: [
            { type: 'URLRewrite', urlRewrite: { path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/' } } },
          ],
          ...refs('two'),
        },
        {
          matches: [path('/full')],
          filters: [
            {
              type: 'URLRewrite',
              urlRewrite: { hostname: 'inner.test', path: { type: 'ReplaceFullPath', replaceFullPath: '/whole' } },
            },
          ],
          ...refs('two'),
        },
        {
          matches: [path('/go')],
          filters: [
            {
              type: 'RequestRedirect',
              requestRedirect: { path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/gone' }, statusCode: 302 },
            },
          ],
        },
        {
          matches: [path('/away')],
          filters: [{ type: 'RequestRedirect', requestRedirect: { hostname: 'other.test', statusCode: 302 } }],
        },
        {
          matches: [path('/modify')],
          filters: [
            {
              type: 'RequestHeaderModifier',
              requestHeaderModifier: {
                set: [{ name: 'X-Set', value: '100%' }],
                add: [{ name: 'X-Add', value: 'second' }],
                remove: ['X-Gone'],
              },
            },
            { type: 'ResponseHeaderModifier', responseHeaderModifier: { add: [{ name: 'X-Added', value: 'yes' }] } },
          ],
          ...refs('two'),
        },
        { matches: [path('/nothing')], ...refs('nowhere') },
      ],
    } as NonNullable<HTTPRoute['spec']>,
  })
  return namespace
}

const get = (host: string, path: string, headers: Record<string, string> = {}): Ask => ({ host, path, headers })

const ROWS: readonly Row[] = [
  { name: 'unknown host', ask: get('unknown.answers.test', '/'), status: 404 },
  { name: 'host with a port', ask: get(`${PROXY}:8080`, '/'), status: 200, from: 'pod-1' },
  { name: 'host in upper case', ask: get(PROXY.toUpperCase(), '/'), status: 200, from: 'pod-1' },
  { name: 'host with a trailing dot', ask: get(`${PROXY}.`, '/'), status: 200, from: 'pod-1' },
  { name: 'catch-all prefix', ask: get(PROXY, '/else'), status: 200, from: 'pod-1', path: '/else' },
  { name: 'exact', ask: get(PROXY, '/exact'), status: 200, from: 'pod-2' },
  { name: 'exact with a query', ask: get(PROXY, '/exact?x=1'), status: 200, from: 'pod-2', path: '/exact?x=1' },
  { name: 'longer than exact', ask: get(PROXY, '/exact/x'), status: 200, from: 'pod-1' },
  { name: 'exact in other spelling', ask: get(PROXY, '/%65xact'), status: 200, from: 'pod-2' },
  { name: 'dot segments', ask: get(PROXY, '/a/../exact'), status: 200, from: 'pod-2' },
  { name: 'double slashes', ask: get(PROXY, '//exact'), status: 200, from: 'pod-2' },
  { name: 'an encoded slash is no slash', ask: get(PROXY, '/pre%2Flonger'), status: 200, from: 'pod-2' },
  { name: 'regex beats a prefix', ask: get(PROXY, '/re/1'), status: 200, from: 'pod-2' },
  { name: 'regex matches the whole path', ask: get(PROXY, '/re/1x'), status: 200, from: 'pod-3' },
  { name: 'prefix is a string prefix', ask: get(PROXY, '/prefixed'), status: 200, from: 'pod-2' },
  { name: 'longer prefix first', ask: get(PROXY, '/pre/longer/x'), status: 200, from: 'pod-3' },
  { name: 'header exact', ask: get(PROXY, '/header', { 'x-a': 'yes' }), status: 200, from: 'pod-2' },
  { name: 'header differs', ask: get(PROXY, '/header', { 'x-a': 'Yes' }), status: 200, from: 'pod-1' },
  { name: 'header present', ask: get(PROXY, '/shown', { 'x-a': 'any' }), status: 200, from: 'pod-2' },
  { name: 'header not present', ask: get(PROXY, '/shown'), status: 200, from: 'pod-1' },
  { name: 'header absent', ask: get(PROXY, '/absent'), status: 200, from: 'pod-2' },
  { name: 'header not absent', ask: get(PROXY, '/absent', { 'x-a': 'any' }), status: 200, from: 'pod-1' },
  { name: 'header contains', ask: get(PROXY, '/contains', { 'x-a': 'abc' }), status: 200, from: 'pod-2' },
  { name: 'header other than', ask: get(PROXY, '/notexact', { 'x-a': 'yes' }), status: 200, from: 'pod-2' },
  {
    name: 'header equal to what it must not be',
    ask: get(PROXY, '/notexact', { 'x-a': 'no' }),
    status: 200,
    from: 'pod-1',
  },
  { name: 'a missing header is not other than', ask: get(PROXY, '/notexact'), status: 200, from: 'pod-1' },
  { name: 'unless missing is empty', ask: get(PROXY, '/missing'), status: 200, from: 'pod-2' },
  { name: 'header regex', ask: get(PROXY, '/headerregex', { 'x-a': 'aaa' }), status: 200, from: 'pod-2' },
  { name: 'header regex matches whole', ask: get(PROXY, '/headerregex', { 'x-a': 'aab' }), status: 200, from: 'pod-1' },
  { name: 'header without case', ask: get(PROXY, '/nocase', { 'x-a': 'YES' }), status: 200, from: 'pod-2' },
  { name: 'query exact', ask: get(PROXY, '/query?q=v'), status: 200, from: 'pod-2' },
  { name: 'query differs', ask: get(PROXY, '/query?q=w'), status: 200, from: 'pod-1' },
  { name: 'only the first of a repeated name counts', ask: get(PROXY, '/query?q=w&q=v'), status: 200, from: 'pod-1' },
  { name: 'query prefix', ask: get(PROXY, '/queryprefix?a=1&q=value'), status: 200, from: 'pod-2' },
  { name: 'query present', ask: get(PROXY, '/querypresent?q='), status: 200, from: 'pod-2' },
  { name: 'query absent', ask: get(PROXY, '/querypresent?qq=1'), status: 200, from: 'pod-1' },
  { name: 'prefix rewrite', ask: get(PROXY, '/rewrite/x?y=1'), status: 200, from: 'pod-2', path: '/new/x?y=1' },
  {
    name: 'redirect elsewhere',
    ask: get(PROXY, '/redirect/x'),
    status: 301,
    location: 'https://other.test:8443/there',
  },
  { name: 'redirect of the path', ask: get(PROXY, '/moved/x?y=1'), status: 302, location: `http://${PROXY}/there?y=1` },
  {
    name: 'redirect keeps the port of the host',
    ask: get(`${PROXY}:8080`, '/moved'),
    status: 302,
    location: `http://${PROXY}:8080/there`,
  },
  {
    name: 'redirect to another host leaves the port of the request out',
    ask: get(`${PROXY}:8080`, '/host-only/x'),
    status: 302,
    location: 'http://other.test/host-only/x',
  },
  {
    name: 'redirect of the path keeps also the default port of the host',
    ask: get(`${PROXY}:80`, '/moved'),
    status: 302,
    location: `http://${PROXY}:80/there`,
  },
  { name: 'redirect of a prefix', ask: get(PROXY, '/found/x'), status: 302, location: `http://${PROXY}/elsewhere/x` },
  { name: 'direct response', ask: get(PROXY, '/direct'), status: 418, body: 'short and stout' },
  { name: 'direct response without a body', ask: get(PROXY, '/silent'), status: 204, body: '' },
  {
    name: 'header policy of a request',
    ask: get(PROXY, '/policy', { 'x-from': 'client', 'x-secret': 'x', 'x-set': 'client' }),
    status: 200,
    request: { 'x-set': 'route', 'x-host': 'client', 'x-percent': '100%', 'x-secret': null },
  },
  { name: 'an empty variable adds no header', ask: get(PROXY, '/policy'), status: 200, request: { 'x-host': null } },
  {
    name: 'header policy of a response',
    ask: get(PROXY, '/policy'),
    status: 200,
    response: { 'x-answer': 'yes', 'x-backend': null },
  },
  {
    name: 'the policy of a route beats that of a service',
    ask: get(PROXY, '/services'),
    status: 200,
    request: { 'x-set': 'route', 'x-service': 'service' },
  },
  { name: 'host rewrite', ask: get(PROXY, '/host'), status: 200, request: { host: 'inner.test' } },
  { name: 'host is kept', ask: get(`${PROXY}:81`, '/'), status: 200, request: { host: `${PROXY}:81` } },
  { name: 'forwarded protocol', ask: get(PROXY, '/'), status: 200, request: { 'x-forwarded-proto': 'http' } },
  {
    name: 'what only proxies set is not believed of a client, by the rules of the edge',
    ask: get(PROXY, '/', {
      'x-forwarded-client-cert': 'Hash=0',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'kept.test',
      'x-envoy-internal': 'true',
      'x-envoy-retry-on': '5xx',
      'x-envoy-max-retries': '9',
      'x-envoy-upstream-rq-timeout-ms': '1',
      'x-envoy-upstream-alt-stat-name': 'other',
      'x-envoy-force-trace': 'true',
      'x-envoy-decorator-operation': 'other',
      'x-envoy-original-path': '/admin',
      'x-envoy-ip-tags': 'office',
      x_forwarded_client_cert: 'Hash=0',
      'x-forwarded_client-cert': 'Hash=0',
      x_forwarded_proto: 'https',
      x_forwarded_for: '192.0.2.1',
      x_envoy_internal: 'true',
      x_envoy_original_path: '/admin',
      x_other: 'kept',
    }),
    status: 200,
    request: {
      'x-forwarded-client-cert': null,
      'x-forwarded-proto': 'http',
      'x-forwarded-host': 'kept.test',
      'x-envoy-internal': null,
      'x-envoy-retry-on': null,
      'x-envoy-max-retries': null,
      'x-envoy-upstream-rq-timeout-ms': null,
      'x-envoy-upstream-alt-stat-name': null,
      'x-envoy-force-trace': null,
      'x-envoy-decorator-operation': null,
      'x-envoy-original-path': null,
      'x-envoy-ip-tags': null,
      x_forwarded_client_cert: null,
      'x-forwarded_client-cert': null,
      x_forwarded_proto: null,
      x_forwarded_for: null,
      x_envoy_internal: null,
      x_envoy_original_path: null,
      x_other: 'kept',
    },
  },
  { name: 'timeout', ask: get(PROXY, '/timeout'), status: 504 },
  { name: 'retries until it succeeds', ask: get(PROXY, '/retry'), status: 200, from: 'pod-1' },
  { name: 'without retries the first answer counts', ask: get(PROXY, '/noretry'), status: 503 },
  { name: 'no endpoints', ask: get(PROXY, '/noendpoints'), status: 503 },
  { name: 'no Service', ask: get(PROXY, '/noservice'), status: 503 },
  { name: 'a body reaches the backend', ask: { host: PROXY, method: 'POST', path: '/', body: 'hello' }, status: 200 },
  {
    name: 'preflight of an allowed origin',
    ask: {
      host: 'cors.answers.test',
      method: 'OPTIONS',
      headers: { origin: 'https://good.test', 'access-control-request-method': 'GET' },
    },
    status: 200,
    response: {
      'access-control-allow-origin': 'https://good.test',
      'access-control-allow-methods': 'GET',
      'access-control-allow-headers': 'x-a',
      'access-control-max-age': '600',
    },
  },
  {
    name: 'request of an allowed origin',
    ask: get('cors.answers.test', '/', { origin: 'https://good.test' }),
    status: 200,
    response: { 'access-control-allow-origin': 'https://good.test' },
  },
  {
    name: 'request of another origin',
    ask: get('cors.answers.test', '/', { origin: 'https://bad.test' }),
    status: 200,
    response: { 'access-control-allow-origin': null },
  },
  { name: 'TLS host over HTTP', ask: get(TLS, '/x?y=1'), status: 301, location: `https://${TLS}/x?y=1` },
  { name: 'insecure route', ask: get(TLS, '/plain'), status: 200, from: 'pod-2' },
  {
    name: 'TLS',
    ask: { host: TLS, isTls: true },
    status: 200,
    from: 'pod-1',
    request: { 'x-forwarded-proto': 'https' },
  },
  { name: 'another host on the connection', ask: { host: PROXY, isTls: true, serverName: TLS }, status: 421 },
  { name: 'trailing dot over TLS', ask: { host: `${TLS}.`, isTls: true, serverName: TLS }, status: 421 },
  { name: 'Ingress prefix', ask: get(INGRESS, '/seg'), status: 200, from: 'pod-1' },
  { name: 'Ingress prefix with a slash', ask: get(INGRESS, '/seg/'), status: 200, from: 'pod-1' },
  { name: 'Ingress prefix is by segment', ask: get(INGRESS, '/segment'), status: 404 },
  { name: 'Ingress exact', ask: get(INGRESS, '/seg/deep'), status: 200, from: 'pod-2' },
  { name: 'Ingress exact is not a prefix', ask: get(INGRESS, '/seg/deep/x'), status: 200, from: 'pod-1' },
  { name: 'implementation specific is a prefix', ask: get(INGRESS, '/implicit'), status: 200, from: 'pod-2' },
  { name: 'or a regex', ask: get(INGRESS, '/im5'), status: 200, from: 'pod-3' },
  { name: 'wildcard host', ask: get('a.wild.answers.test', '/'), status: 200, from: 'pod-2' },
  { name: 'a wildcard matches one label', ask: get('a.b.wild.answers.test', '/'), status: 404 },
  { name: 'HTTPRoute', ask: get(ROUTE, '/'), status: 200, from: 'pod-1' },
  { name: 'method', ask: { host: ROUTE, path: '/method', method: 'POST' }, status: 200, from: 'pod-2' },
  { name: 'another method', ask: { host: ROUTE, path: '/method', method: 'PUT' }, status: 200, from: 'pod-1' },
  { name: 'HTTPRoute header', ask: get(ROUTE, '/h', { 'X-A': '1' }), status: 200, from: 'pod-2' },
  { name: 'HTTPRoute query', ask: get(ROUTE, '/q?q=1'), status: 200, from: 'pod-3' },
  { name: 'strip a prefix', ask: get(ROUTE, '/strip/x'), status: 200, path: '/x' },
  { name: 'strip the whole path', ask: get(ROUTE, '/strip'), status: 200, path: '/' },
  { name: 'strip is by segment', ask: get(ROUTE, '/stripped'), status: 200, from: 'pod-1', path: '/stripped' },
  {
    name: 'replace path and host',
    ask: get(ROUTE, '/full/x?y=1'),
    status: 200,
    path: '/whole?y=1',
    request: { host: 'inner.test' },
  },
  {
    name: 'redirect to another host goes to the port of the listener',
    ask: get(`${ROUTE}:8080`, '/away'),
    status: 302,
    location: 'http://other.test/away',
  },
  { name: 'redirect of a segment', ask: get(ROUTE, '/go/x'), status: 302, location: `http://${ROUTE}/gone/x` },
  {
    name: 'header modifiers',
    ask: get(ROUTE, '/modify', { 'x-add': 'first', 'x-gone': 'x', 'x-set': 'x' }),
    status: 200,
    request: { 'x-set': '100%', 'x-gone': null },
    response: { 'x-added': 'yes' },
  },
  { name: 'no backend', ask: get(ROUTE, '/nothing'), status: 500 },
]

/** Applies the objects and asks every row; all differences at once. */
export async function checkAnswers(environment: TestEnvironment): Promise<void> {
  const namespace = await applyObjects(environment)
  const [first] = environment.backends
  let attempts = 0
  first.behave = (request, respond) => {
    const url = request.url ?? ''
    if (url.startsWith('/timeout')) return
    if (url.startsWith('/retry')) respond(++attempts % 3 === 0 ? 200 : 503)
    else respond(url.startsWith('/noretry') ? 503 : 200)
  }
  try {
    await environment.expectStatus(get(ROUTE, '/'), 200)
    await environment.expectStatus(get(INGRESS, '/seg'), 200)
    await environment.eventually(async () => {
      equal((await environment.ask({ host: TLS, isTls: true })).status, 200)
    })
    const differences: string[] = []
    for (const row of ROWS) {
      const found = compare(row, await environment.ask(row.ask))
      if (found.length > 0) differences.push(`${row.name} (${row.ask.host}${row.ask.path ?? '/'}): ${found.join('; ')}`)
    }
    deepEqual(differences, [])
    await checkShares(environment, namespace)
  } finally {
    first.behave = undefined
  }
}

function compare(row: Row, answer: Answer): string[] {
  const differences: string[] = []
  const check = (what: string, actual: unknown, expected: unknown) => {
    if (expected !== undefined && actual !== expected)
      differences.push(`${what} is ${String(actual)}, not ${String(expected)}`)
  }
  check('status', answer.status, row.status)
  check('backend', answer.seen?.backend, row.from)
  check('path', answer.seen?.path, row.path)
  check('location', answer.headers.location, row.location)
  check('body', answer.body, row.body)
  for (const [name, value] of Object.entries(row.request ?? {}))
    check(`request header ${name}`, answer.seen?.headers[name] ?? 'absent', value ?? 'absent')
  for (const [name, value] of Object.entries(row.response ?? {}))
    check(`response header ${name}`, answer.headers[name] ?? 'absent', value ?? 'absent')
  return differences
}

/** What takes more than one request: weights, mirrors, rate limits and session affinity. */
async function checkShares(environment: TestEnvironment, namespace: string): Promise<void> {
  const [, , third] = environment.backends
  const mirrored = async () => third.requests.filter(({ path }) => path === '/mirror/x').length
  equal((await environment.ask(get(PROXY, '/mirror/x'))).seen?.backend, 'pod-2')
  await environment.eventually(async () => equal(await mirrored(), 1))
  const copy = third.requests.find(({ path }) => path === '/mirror/x')
  equal(copy?.headers.host, `${PROXY}-shadow`)

  const limited = await Promise.all([1, 2, 3].map(async () => environment.ask(get('limited.answers.test', '/limited'))))
  deepEqual(limited.map(({ status }) => String(status)).toSorted(), ['200', '429', '429'])
  equal((await environment.ask(get('limited.answers.test', '/'))).status, 200)

  await environment.client.apply(HTTPProxy, {
    metadata: { namespace, name: 'shares' },
    spec: {
      virtualhost: { fqdn: 'shares.answers.test' },
      routes: [
        {
          services: [
            { name: 'one', port: 80, weight: 90 },
            { name: 'two', port: 80, weight: 10 },
          ],
        },
      ],
    },
  })
  await environment.expectStatus(get('shares.answers.test', '/'), 200)
  const counts: Record<string, number> = {}
  for (let round = 0; round < 20; round++) {
    const answers = await Promise.all(
      Array.from({ length: 50 }, async () => environment.ask(get('shares.answers.test', '/'))),
    )
    for (const { seen } of answers) counts[seen?.backend ?? ''] = (counts[seen?.backend ?? ''] ?? 0) + 1
  }
  deepEqual(Object.keys(counts).toSorted(), ['pod-1', 'pod-2'])
  // Binomial with n = 1 000 and p = 0.1: more than 6 standard deviations.
  ok(Math.abs((counts['pod-2'] ?? 0) - 100) < 60, JSON.stringify(counts))
}
