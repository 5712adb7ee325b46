import type { Obj } from '@seamark/kube/object'
import { describe, expect, it } from 'vitest'
import { httpProxy, object, objectsOf, rootProxy, service } from '../../testing/index.ts'
import { build } from '../build/build.ts'
import { BUILD_DEFAULTS } from '../draft/input.ts'
import { traceRequest, type RequestQuestion } from './request-trace.ts'

function trace(all: readonly Obj[], question: Partial<RequestQuestion> = {}) {
  const objects = objectsOf(all)
  return traceRequest(build(objects, BUILD_DEFAULTS), objects, {
    protocol: 'http',
    authority: 'x.test',
    target: '/',
    method: 'GET',
    headers: {},
    ...question,
  })
}

const to = (name: string, ...conditions: object[]) => ({ services: [{ name, port: 80 }], conditions })
const shop = [
  service('a/web'),
  service('a/api'),
  rootProxy('a/shop', 'x.test', {
    routes: [
      to('web'),
      to('api', { prefix: '/api' }),
      to('api', { prefix: '/api' }, { header: { name: 'x-beta', exact: 'yes' } }),
      to('api', { exact: '/api/v1' }),
    ],
  }),
]

describe('traceRequest', () => {
  it('names the rule that takes a request and why the more specific ones do not', () => {
    const answer = trace(shop, { target: '/api/users?x=1', headers: { 'X-Beta': 'no' } })
    expect(answer.taken).toEqual({ origin: 'HTTPProxy a/shop spec.routes[1]', match: 'prefix /api' })
    expect(answer.text).toMatch(/^forwarded to a\/api\/80\/\w+ \(100 %\)$/)
    expect(answer.passed.map(({ because }) => because)).toEqual([
      'path /api/users does not match exact /api/v1',
      'header x-beta is "no", wanted exact "yes"',
    ])
    expect(answer.shadowed.map(({ origin }) => origin)).toEqual(['HTTPProxy a/shop spec.routes[0]'])
  })

  it('uses the same normalisation as the proxy', () => {
    expect(trace(shop, { target: '/%61pi/./v1' }).taken?.match).toBe('exact /api/v1')
  })

  it('says what is wrong with the objects of a host that is not served', () => {
    const duplicate = rootProxy('b/shop', 'x.test')
    const answer = trace([...shop, duplicate])
    expect(answer).toMatchObject({ outcome: 'none', text: '404: host x.test is not served, no object declares it' })
    expect(answer.problems).toEqual([
      expect.stringContaining('HTTPProxy a/shop: DuplicateVhost'),
      expect.stringContaining('HTTPProxy b/shop: DuplicateVhost'),
    ])
  })

  it('says that a host has no certificate, and that plain requests are redirected', () => {
    expect(trace(shop, { protocol: 'https' }).text).toBe(
      'the connection is closed: host x.test is not served over HTTPS, it has no usable certificate',
    )
    const forced = object(
      'Ingress',
      'a/web',
      {
        spec: {
          rules: [
            {
              host: 'x.test',
              http: {
                paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }],
              },
            },
          ],
        },
      },
      { annotations: { 'projectcontour.io/force-ssl-redirect': 'true' } },
    )
    expect(trace([service('a/web'), forced])).toMatchObject({ outcome: 'redirect', text: '301: redirected to HTTPS' })
  })

  it('shows the share of requests that a missing backend fails', () => {
    const broken = httpProxy('a/r', {
      virtualhost: { fqdn: 'x.test' },
      routes: [{ services: [{ name: 'absent', port: 80 }] }],
    })
    const answer = trace([broken])
    expect(answer.text).toBe('503: answered by the gateway itself')
    expect(answer.problems[0]).toContain('ServiceUnresolvedReference')
  })
})

it('asks the listener of the port that the URL names, if a Gateway has one', () => {
  const route = (name: string, sectionName: string, path: string) =>
    object('HTTPRoute', `a/${name}`, {
      spec: {
        parentRefs: [{ name: 'gw', sectionName }],
        hostnames: ['x.test'],
        rules: [{ matches: [{ path: { type: 'PathPrefix', value: path } }], backendRefs: [{ name: 'web', port: 80 }] }],
      },
    })
  const all = [
    service('a/web'),
    object('GatewayClass', 'ours', { spec: { controllerName: BUILD_DEFAULTS.controllerName } }),
    object('Gateway', 'a/gw', {
      spec: {
        gatewayClassName: 'ours',
        listeners: [80, 8_081].map((port) => ({ name: `p${port}`, port, protocol: 'HTTP' })),
      },
    }),
    route('main', 'p80', '/main'),
    route('other', 'p8081', '/other'),
  ]
  expect(trace(all, { target: '/other' }).outcome).toBe('none')
  expect(trace(all, { target: '/other', authority: 'x.test:8081', port: 8_081 }).taken?.match).toBe('segment /other')
  // A port that no Gateway has is mapped to the main listener.
  expect(trace(all, { target: '/main', authority: 'x.test:9', port: 9 }).taken?.match).toBe('segment /main')
})

it('says that a backend has no ready endpoint', () => {
  const objects = objectsOf(shop)
  const question = { protocol: 'http', authority: 'x.test', target: '/', method: 'GET', headers: {} } as const
  const built = build(objects, BUILD_DEFAULTS)
  const slice = (ready: boolean) => ({
    metadata: { namespace: 'a', name: 'web', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4' as const,
    endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready } }],
    ports: [{ name: 'p80', port: 80, protocol: 'TCP' as const }],
  })
  expect(traceRequest(built, objects, question, [slice(false)])).toMatchObject({
    isServed: false,
    text: expect.stringMatching(/^503: forwarded to .*; no backend has a ready endpoint$/),
    problems: ['Service a/web has no ready endpoint for port p80: requests get 503'],
  })
  expect(traceRequest(built, objects, question, [slice(true)])).toMatchObject({ isServed: true, problems: [] })
})
