import type { Obj } from '@seamark/kube/object'
import { describe, expect, it } from 'vitest'
import { object, objectsOf, service } from '../../../testing/index.ts'
import { build } from '../../build/build.ts'
import { BUILD_DEFAULTS } from '../../draft/input.ts'
import type { ListenAddresses } from '../../ir/listen-addresses.ts'

const MAIN = { http: { host: '127.0.0.1', port: 8_080 }, https: { host: '127.0.0.1', port: 8_443 } }
const gatewayClass = object('GatewayClass', 'ours', { spec: { controllerName: BUILD_DEFAULTS.controllerName } })

function run(listen: ListenAddresses, ...all: Obj[]) {
  return build(objectsOf([gatewayClass, service('a/web'), ...all]), { ...BUILD_DEFAULTS, listen })
}

const listener = (name: string, port: number, protocol = 'HTTP', extra: object = {}) => ({
  name,
  port,
  protocol,
  ...extra,
})
const gateway = (key: string, listeners: object[], meta: object = {}) =>
  object('Gateway', key, { spec: { gatewayClassName: 'ours', listeners } }, meta)
const route = (name: string, parent: object, rules: object[] = [{ backendRefs: [{ name: 'web', port: 80 }] }]) =>
  object('HTTPRoute', `a/${name}`, { spec: { parentRefs: [{ name: 'gw', ...parent }], hostnames: ['x.test'], rules } })

/** `http:8081 x.test/` for each route. */
function routesOf({ ir }: ReturnType<typeof build>): string[] {
  return ir.listeners.flatMap(({ protocol, port, hosts }) =>
    hosts.flatMap(({ host, routes }) =>
      routes.map(({ match }) => `${protocol}${port === undefined ? '' : `:${port}`} ${host}${match.path.value}`),
    ),
  )
}

function acceptedOf(result: ReturnType<typeof build>, key = 'a/gw'): string[] {
  const found = result.statuses.find((each) => each.kind === 'Gateway' && each.key === key)
  const { listeners } = (found?.status ?? {}) as {
    listeners: { name: string; conditions: { type: string; reason: string; message: string }[] }[]
  }
  return listeners.map(({ name, conditions }) => {
    const { reason, message } = conditions.find(({ type }) => type === 'Accepted') ?? { reason: '', message: '' }
    return reason === 'Accepted' ? name : `${name} ${reason}: ${message}`
  })
}

describe('ports of a Gateway', () => {
  it('each have a listener of their own; 80 is the main one at any position', () => {
    const result = run(
      MAIN,
      gateway('a/gw', [listener('alt', 8_081), listener('http', 80), listener('idle', 9_090)]),
      route('everywhere', {}),
      route('one', { sectionName: 'alt' }, [
        { matches: [{ path: { type: 'PathPrefix', value: '/alt' } }], backendRefs: [{ name: 'web', port: 80 }] },
      ]),
      route('by-port', { port: 9_090 }, [
        { matches: [{ path: { type: 'Exact', value: '/idle' } }], backendRefs: [{ name: 'web', port: 80 }] },
      ]),
    )
    expect(acceptedOf(result)).toEqual(['alt', 'http', 'idle'])
    expect(routesOf(result)).toEqual([
      'http x.test/',
      'http:8081 x.test/alt',
      'http:8081 x.test/',
      'http:9090 x.test/idle',
      'http:9090 x.test/',
    ])
    expect(result.ports).toEqual([
      { gateway: 'a/gw', listener: 'alt', id: 'http:8081' },
      { gateway: 'a/gw', listener: 'idle', id: 'http:9090' },
    ])
  })

  it('the first one is the main one if there is no port 80', () => {
    const result = run(MAIN, gateway('a/gw', [listener('first', 8_081), listener('second', 8_082)]), route('r', {}))
    expect(routesOf(result)).toEqual(['http x.test/', 'http:8082 x.test/'])
  })

  it('are open also without routes', () => {
    const { ir } = run(MAIN, gateway('a/gw', [listener('http', 80), listener('idle', 9_090)]))
    expect(ir.listeners.map(({ protocol, port, hosts }) => [protocol, port, hosts.length])).toEqual([
      ['http', undefined, 0],
      ['https', undefined, 0],
      ['http', 9_090, 0],
    ])
  })

  it('keep host names apart: a more specific listener of another port takes nothing', () => {
    const result = run(
      MAIN,
      gateway('a/gw', [listener('http', 80), listener('alt', 8_081, 'HTTP', { hostname: 'x.test' })]),
      route('r', { sectionName: 'http' }),
    )
    expect(routesOf(result)).toEqual(['http x.test/'])
  })

  it('that would have the address of another listener are not available, with what to do', () => {
    const listeners = [
      listener('http', 80),
      listener('same', 8_080),
      listener('alt', 8_081),
      listener('beyond', 60_000),
    ]
    expect(acceptedOf(run(MAIN, gateway('a/gw', listeners)))).toEqual([
      'http',
      'same PortUnavailable: port 8080 cannot be served: 127.0.0.1:8080 is the address of the main HTTP listener; choose another with --listener-address 8080=HOST:PORT',
      'alt',
      'beyond',
    ])
    expect(acceptedOf(run({ ...MAIN, portOffset: 10_000 }, gateway('a/gw', listeners)))).toEqual([
      'http',
      'same',
      'alt',
      'beyond PortUnavailable: port 60000 has no address; choose one with --listener-address 60000=HOST:PORT',
    ])
    const ports = { 8_080: { host: '127.0.0.1', port: 18_080 }, 8_081: { host: '0.0.0.0', port: 18_080 } }
    expect(acceptedOf(run({ ...MAIN, ports }, gateway('a/gw', listeners)))).toEqual([
      'http',
      'same',
      'alt PortUnavailable: port 8081 cannot be served: 0.0.0.0:18080 is the address of port 8080 (HTTP) of Gateway a/gw; choose another with --listener-address 8081=HOST:PORT',
      'beyond',
    ])
  })

  it('belong to the oldest Gateway that uses them; others share them if the protocol is the same', () => {
    const all = [
      gateway('a/gw', [listener('http', 80), listener('tls', 8_081, 'TLS', { tls: { mode: 'Passthrough' } })]),
      gateway('b/young', [listener('http', 80), listener('alt', 8_081)], { creationTimestamp: '2026-02-01T00:00:00Z' }),
      gateway('c/same', [
        listener('main', 443, 'TLS', { tls: { mode: 'Passthrough' } }),
        listener('tls', 8_081, 'TLS', { tls: { mode: 'Passthrough' } }),
      ]),
    ]
    for (const order of [all, all.toReversed()]) {
      const result = run({ ...MAIN, ports: { 8_081: { host: '127.0.0.1', port: 9_000 } } }, ...order)
      // The first TLS port of a/gw is its main one, so that c/same is the oldest with 8081.
      expect(acceptedOf(result)).toEqual(['http', 'tls'])
      expect(acceptedOf(result, 'c/same')).toEqual(['main', 'tls'])
      expect(acceptedOf(result, 'b/young')).toEqual([
        'http',
        'alt PortUnavailable: port 8081 cannot be served: 127.0.0.1:9000 is the address of port 8081 (TLS) of Gateway c/same; choose another with --listener-address 8081=HOST:PORT',
      ])
    }
  })

  it('are shared by Gateways that use them with the same protocol', () => {
    const listeners = [listener('http', 80), listener('alt', 8_081)]
    const result = run(MAIN, gateway('a/gw', listeners), gateway('b/gw', listeners))
    expect([acceptedOf(result, 'a/gw'), acceptedOf(result, 'b/gw')]).toEqual([
      ['http', 'alt'],
      ['http', 'alt'],
    ])
    expect(result.ports.map(({ gateway: key, id }) => `${key} ${id}`)).toEqual(['a/gw http:8081', 'b/gw http:8081'])
  })

  it('are in the Location of redirects that name neither port nor scheme', () => {
    const redirectTo = (requestRedirect: object) => {
      const rules = [{ filters: [{ type: 'RequestRedirect', requestRedirect }] }]
      const { ir } = run(
        MAIN,
        gateway('a/gw', [listener('http', 80), listener('alt', 8_081)]),
        route('r', { sectionName: 'alt' }, rules),
      )
      const action = ir.listeners[2]?.hosts[0]?.routes[0]?.action
      return action?.kind === 'redirect' ? action.port : 'none'
    }
    expect(redirectTo({ hostname: 'y.test' })).toBe(8_081)
    expect(redirectTo({ scheme: 'https' })).toBe(443)
    expect(redirectTo({ port: 7 })).toBe(7)
  })
})
