import { createAuthority } from '@seamark/kube/certificates'
import type { Obj } from '@seamark/kube/object'
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { httpProxy, object, objectsOf, rootProxy, service } from '../../testing/index.ts'
import { build } from '../build/build.ts'
import { BUILD_DEFAULTS } from '../draft/input.ts'
import type { Ir } from '../ir/model.ts'
import { printResources } from './print.ts'
import { decode, encode, toJson } from './protobuf.ts'
import { MESSAGE_OF, RESOURCE_TYPES } from './resource.ts'
import { ownersOf, translate, TranslationMemo } from './resources.ts'

const ADDRESSES = { http: { host: '127.0.0.1', port: 8080 }, https: { host: '::', port: 8443 } }
const irOf = (...all: Obj[]): Ir => build(objectsOf(all), BUILD_DEFAULTS).ir
const to = (name: string, extra: object = {}) => ({ services: [{ name, port: 80 }], ...extra })

let secret: Obj
beforeAll(async () => {
  const authority = await createAuthority({ commonName: 'test' })
  const { certPem, keyPem } = await authority.issue({ commonName: 'x.test', dnsNames: ['x.test'], usages: 'server' })
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  secret = object('Secret', 'a/tls', {
    type: 'kubernetes.io/tls',
    data: { 'tls.crt': base64(certPem), 'tls.key': base64(keyPem) },
  })
})

/** Routes of a host over HTTP in the JSON form. */
function routesOf(ir: Ir, host = 'x.test'): unknown[] {
  const { routes = [] } = printResources(ir, { http: ADDRESSES.http }) as {
    routes?: { virtual_hosts?: { name: string; routes?: unknown[] }[] }[]
  }
  return routes[0]?.virtual_hosts?.find(({ name }) => name === host)?.routes ?? []
}

/** A forward route as Envoy has it, without the defaults that every one has. */
function routeOf(routes: object[], ...others: Obj[]): Record<string, unknown>[] {
  const ir = irOf(service('a/web'), service('a/two'), rootProxy('a/root', 'x.test', { routes }), ...others)
  return routesOf(ir) as Record<string, unknown>[]
}

describe('routes', () => {
  it('match paths as their kind says', () => {
    const matches = routeOf([
      to('web', { conditions: [{ exact: '/exact' }] }),
      to('web', { conditions: [{ prefix: '/prefix' }] }),
      to('web', { conditions: [{ regex: '/re.*' }] }),
    ]).map(({ match }) => match)
    expect(matches).toEqual([{ path: '/exact' }, { safe_regex: { regex: '/re.*' } }, { prefix: '/prefix' }])
    const ingress = object('Ingress', 'a/i', {
      spec: {
        rules: [
          {
            host: 'x.test',
            http: {
              paths: ['/', '/segment'].map((path) => ({
                path,
                pathType: 'Prefix',
                backend: { service: { name: 'web', port: { number: 80 } } },
              })),
            },
          },
        ],
      },
    })
    const segments = routesOf(irOf(service('a/web'), ingress)) as { match: unknown }[]
    expect(segments.map(({ match }) => match)).toEqual([{ path_separated_prefix: '/segment' }, { prefix: '/' }])
  })

  it('match headers, inverted ones also when the header is absent only if asked', () => {
    const [route] = routeOf([
      to('web', {
        conditions: [
          { prefix: '/' },
          { header: { name: 'X-A', notexact: 'no', treatMissingAsEmpty: true } },
          { header: { name: 'X-B', notcontains: 'no' } },
          { header: { name: 'X-C', present: true } },
          { queryParameter: { name: 'q', prefix: 'v', ignoreCase: true } },
        ],
      }),
    ])
    expect(route?.['match']).toEqual({
      prefix: '/',
      headers: [
        { name: 'x-a', string_match: { exact: 'no' }, invert_match: true, treat_missing_header_as_empty: true },
        { name: 'x-b', string_match: { contains: 'no' }, invert_match: true, treat_missing_header_as_empty: false },
        { name: 'x-c', present_match: true, invert_match: false },
      ],
      query_parameters: [{ name: 'q', string_match: { prefix: 'v', ignore_case: true } }],
    })
  })

  it('forward by weight, with timeouts, retries, rewrites and mirrors', () => {
    const [route] = routeOf([
      {
        conditions: [{ prefix: '/api' }],
        services: [
          { name: 'web', port: 80, weight: 90 },
          { name: 'two', port: 80, weight: 10, requestHeadersPolicy: { set: [{ name: 'X-Two', value: '2' }] } },
          { name: 'web', port: 80, mirror: true },
        ],
        timeoutPolicy: { response: '3s', idle: '1m' },
        retryPolicy: { count: 2, perTryTimeout: '500ms', retryOn: ['5xx'] },
        pathRewritePolicy: { replacePrefix: [{ replacement: '/v1' }] },
        enableWebsockets: true,
      },
    ])
    const {
      weighted_clusters: weighted,
      request_mirror_policies: mirrors,
      ...action
    } = (route?.['route'] ?? {}) as {
      weighted_clusters: { clusters: { name: string; weight: number }[] }
      request_mirror_policies: { cluster: string }[]
    }
    expect(weighted.clusters.map(({ name, weight }) => `${name.split('/')[1]} ${weight}`)).toEqual(['web 90', 'two 10'])
    expect(weighted.clusters[1]).toMatchObject({
      request_headers_to_add: [{ header: { key: 'x-two', value: '2' }, append_action: 'OVERWRITE_IF_EXISTS_OR_ADD' }],
    })
    expect(mirrors[0]?.cluster).toMatch(/^a\/web\/80\//)
    expect(action).toEqual({
      prefix_rewrite: '/v1/',
      timeout: '3s',
      idle_timeout: '60s',
      retry_policy: { retry_on: '5xx', num_retries: 2, per_try_timeout: '0.5s' },
      upgrade_configs: [{ upgrade_type: 'websocket', enabled: true }],
    })
  })

  it('leave the timeouts out that Envoy has by itself', () => {
    const [plain, other] = routeOf([
      { conditions: [{ prefix: '/plain' }], services: [{ name: 'web', port: 80 }] },
      { services: [{ name: 'web', port: 80 }], timeoutPolicy: { response: 'infinity', idle: '15s' } },
    ])
    expect(Object.keys(plain?.['route'] ?? {})).toEqual(['cluster'])
    expect(other?.['route']).toMatchObject({ timeout: '0s', idle_timeout: '15s' })
  })

  it('redirect, and leave the default port out of the location', () => {
    const redirects = routeOf([
      { conditions: [{ prefix: '/a' }], requestRedirectPolicy: { scheme: 'https', port: 443, statusCode: 301 } },
      { conditions: [{ prefix: '/b' }], requestRedirectPolicy: { hostname: 'y.test', path: '/new', statusCode: 302 } },
    ]).map(({ redirect }) => redirect)
    expect(redirects).toEqual([
      { response_code: 'FOUND', host_redirect: 'y.test', path_redirect: '/new' },
      { response_code: 'MOVED_PERMANENTLY', scheme_redirect: 'https', host_redirect: 'x.test' },
    ])
  })

  it('with a value that Envoy rejects fail alone, and do not take the routes of others with them', () => {
    const replacePrefix = [{ prefix: '/a', replacement: '/x\ny' }]
    const withBreak = to('web', { conditions: [{ prefix: '/a' }], pathRewritePolicy: { replacePrefix } })
    const others = rootProxy('a/other', 'other.test')
    const ir = irOf(service('a/web'), rootProxy('a/root', 'x.test', { routes: [withBreak] }), others)
    expect(routesOf(ir)).toEqual([])
    expect(routesOf(ir, 'other.test')).toHaveLength(1)
    const paths = [{ path: '/a?b', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }]
    const ingress = object('Ingress', 'a/i', { spec: { rules: [{ host: 'x.test', http: { paths } }] } })
    const [route] = routesOf(irOf(service('a/web'), ingress)) as { match: unknown }[]
    expect(route?.match).toEqual({ safe_regex: { regex: String.raw`/a\?b(/.*)?` } })
  })

  it('replace a whole segment by nothing without doubling the slash', () => {
    const gateway = [
      object('GatewayClass', 'seamark', { spec: { controllerName: BUILD_DEFAULTS.controllerName } }),
      object('Gateway', 'a/gw', {
        spec: { gatewayClassName: 'seamark', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
      }),
      object('HTTPRoute', 'a/r', {
        spec: {
          parentRefs: [{ name: 'gw' }],
          hostnames: ['x.test'],
          rules: [
            {
              matches: [{ path: { type: 'PathPrefix', value: '/a.b' } }],
              filters: [
                { type: 'URLRewrite', urlRewrite: { path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/' } } },
              ],
              backendRefs: [
                { name: 'web', port: 80, weight: 3 },
                { name: 'absent', port: 80, weight: 1 },
              ],
            },
          ],
        },
      }),
    ]
    const [failing, route] = routesOf(irOf(service('a/web'), ...gateway)) as Record<string, unknown>[]
    expect(route?.['route']).toMatchObject({
      regex_rewrite: { pattern: { regex: String.raw`^/a\.b/*` }, substitution: '/' },
    })
    // A quarter of the requests has no backend.
    expect(failing).toEqual({
      match: {
        path_separated_prefix: '/a.b',
        runtime_fraction: { default_value: { numerator: 250_000, denominator: 'MILLION' } },
      },
      direct_response: { status: 500 },
    })
  })
})

describe('listeners', () => {
  it('of other ports have names, addresses and route configurations of their own', () => {
    const ir = irOf(
      secret,
      service('a/web'),
      object('GatewayClass', 'seamark', { spec: { controllerName: BUILD_DEFAULTS.controllerName } }),
      object('Gateway', 'a/gw', {
        spec: {
          gatewayClassName: 'seamark',
          listeners: [
            { name: 'http', port: 80, protocol: 'HTTP' },
            { name: 'alt', port: 9_080, protocol: 'HTTP' },
            { name: 'https', port: 443, protocol: 'HTTPS', tls: { certificateRefs: [{ name: 'tls' }] } },
            { name: 'alts', port: 9_443, protocol: 'HTTPS', tls: { certificateRefs: [{ name: 'tls' }] } },
          ],
        },
      }),
      object('HTTPRoute', 'a/r', {
        spec: {
          parentRefs: [{ name: 'gw' }],
          hostnames: ['x.test'],
          rules: [{ backendRefs: [{ name: 'web', port: 80 }] }],
        },
      }),
    )
    const { resources } = translate(ir, { ...ADDRESSES, portOffset: 1 })
    expect([...resources.listener.keys()]).toEqual([
      'ingress_http',
      'ingress_https',
      'ingress_http_9080',
      'ingress_https_9443',
    ])
    expect([...resources.route.keys()]).toEqual([
      'ingress_http',
      'https/*',
      'https/x.test',
      'ingress_http_9080',
      'https_9443/*',
      'https_9443/x.test',
    ])
    const printed = printResources(ir, { ...ADDRESSES, portOffset: 1 })['listeners'] as {
      address: { socket_address: { address: string; port_value: number } }
    }[]
    expect(printed.map(({ address: { socket_address: at } }) => `${at.address} ${at.port_value}`)).toEqual([
      '127.0.0.1 8080',
      ':: 8443',
      '127.0.0.1 9081',
      ':: 9444',
    ])
    // Each filter chain asks for the routes of its own port.
    expect(JSON.stringify(printed[3])).toContain('"route_config_name":"https_9443/x.test"')
    expect(JSON.stringify(printed[3])).not.toContain('"route_config_name":"https/x.test"')
  })

  it('have a filter chain for each TLS host and answer 421 for other hosts', () => {
    const ir = irOf(
      secret,
      service('a/web'),
      rootProxy('a/x', 'x.test', { virtualhost: { fqdn: 'x.test', tls: { secretName: 'tls' } } }),
      rootProxy('a/y', '*.y.test', { virtualhost: { fqdn: '*.y.test', tls: { secretName: 'tls' } } }),
      rootProxy('a/z', 'z.y.test', {
        virtualhost: { fqdn: 'z.y.test', tls: { passthrough: true } },
        tcpproxy: to('web'),
        routes: [],
      }),
    )
    const printed = printResources(ir, ADDRESSES) as {
      listeners: { name: string; filter_chains: { name: string; filter_chain_match?: object }[] }[]
      routes: { name: string; virtual_hosts: { domains: string[] }[] }[]
    }
    const chains = printed.listeners.find(({ name }) => name === 'ingress_https')?.filter_chains ?? []
    expect(chains.map(({ name, filter_chain_match: match }) => [name, match])).toEqual([
      ['*.y.test', { server_names: ['*.y.test'] }],
      ['x.test', { server_names: ['x.test'] }],
      ['z.y.test', { server_names: ['z.y.test'] }],
    ])
    const domains = printed.routes.map(({ name, virtual_hosts: hosts }) => [
      name,
      hosts.map((host) => host.domains.join()),
    ])
    expect(domains).toContainEqual(['https/*.y.test', ['*.y.test', 'z.y.test,*']])
    expect(domains).toContainEqual(['https/x.test', ['x.test', '*']])
    expect(domains.map(([name]) => name)).not.toContain('https/z.y.test')
  })

  it('are there without any host, and close every connection on the TLS port', () => {
    const printed = printResources(irOf(), ADDRESSES) as {
      listeners: { name: string; filter_chains: { filter_chain_match?: object }[] }[]
    }
    expect(printed.listeners.map(({ name, filter_chains: [chain] }) => [name, chain?.filter_chain_match])).toEqual([
      ['ingress_http', undefined],
      ['ingress_https', { server_names: ['seamark.invalid'] }],
    ])
  })

  it('do not change when a certificate is rotated: the secret does', () => {
    const ir = irOf(
      secret,
      service('a/web'),
      rootProxy('a/x', 'x.test', { virtualhost: { fqdn: 'x.test', tls: { secretName: 'tls' } } }),
    )
    const rotated: Ir = JSON.parse(
      JSON.stringify(ir).replaceAll(ir.certificates[0]?.name ?? '', 'a/tls/0000000000'),
    ) as Ir
    const [before, after] = [
      ir,
      { ...rotated, certificates: rotated.certificates.map((each) => ({ ...each, key: 'new' })) },
    ].map((each) => translate(each, ADDRESSES).resources)
    expect(after?.listener).toEqual(before?.listener)
    expect([...(after?.secret.keys() ?? [])]).toEqual(['a/tls'])
    expect(after?.secret).not.toEqual(before?.secret)
  })

  it('print no private key', () => {
    const ir = irOf(
      secret,
      service('a/web'),
      rootProxy('a/x', 'x.test', { virtualhost: { fqdn: 'x.test', tls: { secretName: 'tls' } } }),
    )
    expect(JSON.stringify(printResources(ir, ADDRESSES))).not.toContain('PRIVATE KEY')
  })
})

describe('all resources', () => {
  const sources = (): Obj[] => [
    secret,
    ...['web', 'two', 'three'].map((name) => service(`a/${name}`)),
    rootProxy('a/x', 'x.test', { virtualhost: { fqdn: 'x.test', tls: { secretName: 'tls' } } }),
    rootProxy('a/y', 'y.test', { routes: [to('two'), to('three', { conditions: [{ prefix: '/3' }] })] }),
    httpProxy('a/z', {
      virtualhost: { fqdn: 'z.test' },
      routes: [to('three', { loadBalancerPolicy: { strategy: 'Cookie' } })],
    }),
  ]

  it('are the same bytes whatever the order of the objects', () => {
    const expected = translate(irOf(...sources()), ADDRESSES).resources
    fc.assert(
      fc.property(fc.shuffledSubarray(sources(), { minLength: sources().length }), (shuffled) => {
        expect(translate(irOf(...shuffled), ADDRESSES).resources).toEqual(expected)
      }),
      { numRuns: 20 },
    )
  })

  it('are the same bytes with a memory of other configurations', () => {
    const memo = new TranslationMemo()
    fc.assert(
      fc.property(fc.shuffledSubarray(sources()), (some) => {
        const ir = irOf(...some)
        expect(translate(ir, ADDRESSES, memo).resources).toEqual(translate(ir, ADDRESSES).resources)
      }),
      { numRuns: 50 },
    )
  })

  it('decode to messages that encode to the same bytes, with no field lost', () => {
    const { resources } = translate(irOf(...sources()), ADDRESSES)
    for (const type of RESOURCE_TYPES) {
      if (type === 'endpoints') continue
      for (const { any } of resources[type].values()) {
        const value = any.value ?? new Uint8Array()
        const name = MESSAGE_OF[type]
        const again = encode(name, decode(name, value))
        expect(toJson(name, again)).toEqual(toJson(name, value))
        expect(again.length).toBe(value.length)
      }
    }
  })

  it('change only where an object changed', () => {
    const before = translate(irOf(...sources()), ADDRESSES).resources
    const after = translate(
      irOf(...sources(), service('a/four'), rootProxy('a/q', 'q.test', { routes: [to('four')] })),
      ADDRESSES,
    )
    expect(after.resources.listener).toEqual(before.listener)
    expect(after.resources.secret).toEqual(before.secret)
    expect(
      [...after.resources.route].filter(([name, each]) => before.route.get(name)?.version !== each.version),
    ).toHaveLength(1)
  })

  it('have owners: of a rejected route configuration, those whose host is new', () => {
    const before = translate(irOf(...sources()), ADDRESSES)
    const after = translate(irOf(...sources(), rootProxy('a/q', 'q.test', { routes: [to('web')] })), ADDRESSES)
    const keys = (list: ReturnType<typeof ownersOf>) =>
      list.map(({ kind, namespace, name }) => `${kind} ${namespace}/${name}`)
    expect(keys(ownersOf('route', 'ingress_http', after, before))).toEqual(['HTTPProxy a/q'])
    expect(keys(ownersOf('route', 'ingress_http', before, undefined))).toEqual([
      'HTTPProxy a/x',
      'HTTPProxy a/y',
      'HTTPProxy a/z',
    ])
    expect(keys(ownersOf('secret', 'a/tls', after, before))).toEqual(['HTTPProxy a/x'])
    const [cluster = ''] = [...after.resources.cluster.keys()].filter((name) => name.startsWith('a/two/'))
    expect(keys(ownersOf('cluster', cluster, after, before))).toEqual(['HTTPProxy a/y'])
  })
})

describe('limits and TLS settings', () => {
  /** All values of a field, wherever it is in the JSON form, in order. */
  function valuesOf(value: unknown, field: string): unknown[] {
    if (typeof value !== 'object' || value === null) return []
    return Object.entries(value).flatMap(([key, each]) => (key === field ? [each] : valuesOf(each, field)))
  }

  const terminated = { certificate: 'a/tls/1', minVersion: '1.3', maxVersion: '1.3' } as const
  const hostOf = (host: string, isOptional: boolean) => ({
    host,
    routes: [],
    tls: { ...terminated, clientValidation: { ca: 'CA', isOptional } },
  })
  const ir: Ir = {
    listeners: [
      { protocol: 'http', hosts: [] },
      { protocol: 'https', hosts: [hostOf('a.test', false), hostOf('b.test', true)] },
    ],
    clusters: [
      {
        name: 'one',
        upstream: { kind: 'endpoints', name: 'one' },
        protocol: 'tls',
        tls: { sni: 's.test', validation: { ca: 'CA', subjectNames: ['s.test', 'spiffe://s'] } },
        balancing: 'roundRobin',
        connectTimeoutMs: 2_000,
      },
    ],
    certificates: [{ name: 'a/tls/1', chain: 'CHAIN', key: 'KEY' }],
  }

  it('of clients are the same for every listener', () => {
    const { listeners } = printResources(ir, ADDRESSES)
    // One connection manager for HTTP, and one for each host of HTTPS.
    const always = (value: unknown) => [value, value, value]
    expect(valuesOf(listeners, 'max_request_headers_kb')).toEqual(always(60))
    expect(valuesOf(listeners, 'request_headers_timeout')).toEqual(always('15s'))
    expect(valuesOf(listeners, 'max_headers_count')).toEqual(always(100))
    expect(valuesOf(listeners, 'idle_timeout')).toEqual(always('60s'))
    expect(valuesOf(listeners, 'use_remote_address')).toEqual(always(true))
    expect(valuesOf(listeners, 'normalize_path')).toEqual(always(true))
    expect(valuesOf(listeners, 'merge_slashes')).toEqual(always(true))
  })

  it('of hosts decide about versions and client certificates', () => {
    const { listeners } = printResources(ir, ADDRESSES)
    expect(valuesOf(listeners, 'require_client_certificate')).toEqual([true, false])
    expect(valuesOf(listeners, 'trusted_ca')).toEqual([{ inline_string: 'CA' }, { inline_string: 'CA' }])
    expect(valuesOf(listeners, 'tls_minimum_protocol_version')).toEqual(['TLSv1_3', 'TLSv1_3'])
  })

  it('of backends verify the names that the policy has', () => {
    const { clusters } = printResources(ir, ADDRESSES)
    expect(valuesOf(clusters, 'match_typed_subject_alt_names')).toEqual([
      [
        { san_type: 'DNS', matcher: { exact: 's.test' } },
        { san_type: 'URI', matcher: { exact: 'spiffe://s' } },
      ],
    ])
    expect(valuesOf(clusters, 'ignore_health_on_host_removal')).toEqual([true])
  })
})
