import type { HTTPRoute } from '@seamark/kube/gateway-api'
import { describe, expect, it } from 'vitest'
import { routesOf, run, web } from '../../../testing/build-fixture.ts'
import { object, service } from '../../../testing/index.ts'
import { BUILD_DEFAULTS } from '../../draft/input.ts'

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

  it('counts routes for the listeners and hosts that they attach to only', () => {
    const listeners = Array.from({ length: 64 }, (_, index) => ({
      ...http,
      name: `l${index}`,
      hostname: `*.l${index}.test`,
    }))
    const matches = Array.from({ length: 16 }, (_, index) => ({ path: { type: 'PathPrefix', value: `/p${index}` } }))
    const routes = Array.from({ length: 100 }, (_, index) => {
      const section = index % 64
      const parentRefs = [{ name: 'gw', namespace: 'infra', ...(index % 2 === 0 && { sectionName: `l${section}` }) }]
      return httpRoute(`a/r${index}`, {
        parentRefs,
        hostnames: [`h${index}.l${section}.test`],
        rules: [{ ...backend, matches }],
      })
    })
    const result = run(web, gatewayClass, gateway(listeners), ...routes)
    const reasons = routes.map(({ metadata }) => conditions(result, `a/${metadata.name}`)[0])
    expect(new Set(reasons)).toEqual(new Set(['Accepted=True Accepted']))
    // Without a section and hostname it is on all of them.
    const many = Array.from({ length: 320 }, (_, index) => ({ path: { type: 'PathPrefix', value: `/p${index}` } }))
    const all = httpRoute('a/all', { rules: [{ ...backend, matches: many }] })
    expect(conditions(run(web, gatewayClass, gateway(listeners), all), 'a/all')[0]).toBe('Accepted=False TooManyRoutes')
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

  it('serves the older one of two routes with the same match', () => {
    const result = run(
      web,
      gatewayClass,
      gateway([http]),
      httpRoute('a/young', { rules: [backend] }),
      httpRoute('a/zold', { rules: [backend] }, { creationTimestamp: '2020-01-01T00:00:00Z' }),
    )
    expect(result.ir.listeners[0]?.hosts[0]?.routes.map(({ origin }) => origin.name)).toEqual(['zold'])
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
