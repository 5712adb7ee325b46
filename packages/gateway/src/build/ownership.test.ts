/** Who decides what of a host that objects of several owners declare. */
import { createAuthority } from '@seamark/kube/certificates'
import type { Obj } from '@seamark/kube/object'
import { beforeAll, describe, expect, it } from 'vitest'
import { object, objectsOf, rootProxy, service } from '../../testing/index.ts'
import { BUILD_DEFAULTS, type BuildSettings } from '../draft/input.ts'
import { build } from './build.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64')
const data = { victim: {}, tenant: {} }
let ca = ''

beforeAll(async () => {
  const authority = await createAuthority({ commonName: 'test' })
  ca = authority.certPem
  for (const owner of ['victim', 'tenant'] as const) {
    const { certPem, keyPem } = await authority.issue({ commonName: owner, dnsNames: ['*.test'], usages: 'server' })
    data[owner] = { 'tls.crt': base64(certPem), 'tls.key': base64(keyPem), 'ca.crt': base64(ca) }
  }
})

const secret = (owner: 'victim' | 'tenant') =>
  object('Secret', `${owner}/cert`, { type: 'kubernetes.io/tls', data: data[owner] })

const OLD = '2025-01-01T00:00:00Z'

function ingress(key: string, host: string | undefined, path: string, spec: object = {}, meta: object = {}): Obj {
  const backend = { service: { name: 'web', port: { number: 80 } } }
  const rule = { ...(host !== undefined && { host }), http: { paths: [{ path, pathType: 'Prefix', backend }] } }
  return object('Ingress', key, { spec: { rules: [rule], ...spec } }, meta)
}

const gatewayClass = object('GatewayClass', 'ours', { spec: { controllerName: 'seamark.io/gateway-controller' } })

function gateway(key: string, listener: object, meta: object = {}): Obj {
  const listeners = [{ name: 'web', port: 80, protocol: 'HTTP', ...listener }]
  return object('Gateway', key, { spec: { gatewayClassName: 'ours', listeners } }, meta)
}

function httpRoute(key: string, gatewayKey: string, hostnames: string[], path: string): Obj {
  const [namespace, name] = gatewayKey.split('/')
  const rules = [{ matches: [{ path: { type: 'PathPrefix', value: path } }], backendRefs: [{ name: 'web', port: 80 }] }]
  return object('HTTPRoute', key, { spec: { parentRefs: [{ namespace, name }], hostnames, rules } })
}

function run(objects: Obj[], settings: Partial<BuildSettings> = {}) {
  const services = ['victim/web', 'tenant/web'].map((key) => service(key))
  const all = [...services, secret('victim'), secret('tenant'), ...objects]
  const result = build(objectsOf(all), { ...BUILD_DEFAULTS, ...settings })
  const hostsOf = (protocol: string) => result.ir.listeners.find((each) => each.protocol === protocol)?.hosts ?? []
  /** `namespace path` of each route. */
  const routesOf = (protocol: string, host: string) =>
    (hostsOf(protocol).find((each) => each.host === host)?.routes ?? []).map(
      ({ origin, match }) => `${origin.namespace} ${match.path.value}`,
    )
  return {
    ...result,
    result,
    hostsOf,
    routesOf,
    https: (host: string) => hostsOf('https').find((each) => each.host === host),
  }
}

describe('TLS of a host', () => {
  const validating = () =>
    rootProxy('victim/site', 'site.test', {
      virtualhost: { fqdn: 'site.test', tls: { secretName: 'cert', clientValidation: { caSecret: 'cert' } } },
    })
  const tenants = () =>
    ingress(
      'tenant/evil',
      'site.test',
      '/login',
      { tls: [{ hosts: ['site.test'], secretName: 'cert' }] },
      { creationTimestamp: OLD },
    )

  it('is that of the highest-ranking object, with its client validation, whatever an older Ingress says', () => {
    const { https, findings, hostsOf } = run([tenants(), validating()])
    expect(https('site.test')?.tls).toMatchObject({
      certificate: expect.stringMatching('^victim/cert/') as string,
      clientValidation: { isOptional: false },
    })
    expect(findings).toMatchObject([{ origin: { namespace: 'tenant', name: 'evil' }, reason: 'TLSConflict' }])
    // Over plain HTTP nobody shows a certificate.
    const [http] = hostsOf('http')
    expect(http?.routes.map(({ upgradesToHttps }) => upgradesToHttps)).toEqual([true, true])
  })

  it('is served without the client certificates that an object asks for on no port', () => {
    const tls = { certificateRefs: [{ name: 'cert' }] }
    const { result } = run([
      validating(),
      gatewayClass,
      object('Gateway', 'tenant/gw', {
        spec: {
          gatewayClassName: 'ours',
          listeners: [
            { name: 'plain', port: 80, protocol: 'HTTP' },
            { name: 'plain-8082', port: 8082, protocol: 'HTTP' },
            { name: 'tls', port: 443, protocol: 'HTTPS', tls },
            { name: 'tls-9443', port: 9443, protocol: 'HTTPS', tls },
          ],
        },
      }),
      httpRoute('tenant/one', 'tenant/gw', ['site.test', 'tenant.test'], '/login'),
    ])
    const hostOf = (port: number, host: string) =>
      result.ir.listeners.find((each) => each.port === port)?.hosts.find((each) => each.host === host)
    const upgrades = (host: string) => hostOf(8082, host)?.routes.map(({ upgradesToHttps }) => upgradesToHttps)
    expect([upgrades('site.test'), upgrades('tenant.test')]).toEqual([[true], [false]])
    expect(hostOf(9443, 'site.test')?.tls).toMatchObject({
      certificate: expect.stringMatching('^tenant/cert/') as string,
      clientValidation: { isOptional: false, ca: expect.stringContaining('BEGIN') as string },
    })
    expect(hostOf(9443, 'tenant.test')?.tls?.clientValidation).toBeUndefined()
  })

  it('is served by no other Gateway without the client certificates that one asks for', () => {
    const authorities = object('ConfigMap', 'victim/clients', { data: { 'ca.crt': ca } })
    const tls = { certificateRefs: [{ name: 'cert' }] }
    const caCertificateRefs = [{ group: '', kind: 'ConfigMap', name: 'clients' }]
    const victims = {
      gatewayClassName: 'ours',
      tls: { frontend: { perPort: [{ port: 443, tls: { validation: { caCertificateRefs } } }] } },
      listeners: [
        { name: 'tls', port: 443, protocol: 'HTTPS', hostname: 'site.test', tls },
        { name: 'other', port: 80, protocol: 'HTTP', hostname: 'other.test' },
        { name: 'plain', port: 8083, protocol: 'HTTP', hostname: 'site.test' },
      ],
    }
    const listeners = [
      { name: 'plain', port: 80, protocol: 'HTTP' },
      { name: 'tls', port: 443, protocol: 'HTTPS', hostname: 'other.test', tls },
      { name: 'tls-9443', port: 9443, protocol: 'HTTPS', tls },
    ]
    const { result } = run([
      authorities,
      gatewayClass,
      object('Gateway', 'victim/gw', { spec: victims }),
      object('Gateway', 'tenant/gw', { spec: { gatewayClassName: 'ours', listeners } }, { creationTimestamp: OLD }),
      httpRoute('victim/site', 'victim/gw', ['site.test'], '/'),
      httpRoute('tenant/evil', 'tenant/gw', ['site.test', 'tenant.test'], '/login'),
    ])
    const hostOf = (protocol: string, port: number | undefined, host: string) =>
      result.ir.listeners
        .find((each) => each.protocol === protocol && each.port === port)
        ?.hosts.find((each) => each.host === host)
    const upgrades = (port: number | undefined, host: string) =>
      hostOf('http', port, host)?.routes.map(({ upgradesToHttps }) => upgradesToHttps)
    expect(hostOf('https', undefined, 'site.test')?.tls?.clientValidation).toMatchObject({ isOptional: false })
    expect([upgrades(undefined, 'site.test'), upgrades(undefined, 'tenant.test')]).toEqual([[true], [false]])
    expect(hostOf('https', 9443, 'site.test')?.tls?.clientValidation).toMatchObject({ isOptional: false })
    expect(hostOf('https', 9443, 'tenant.test')?.tls?.clientValidation).toBeUndefined()
    // Its own port without them is the Gateway's own decision.
    expect(upgrades(8083, 'site.test')).toEqual([false])
  })

  it('keeps the client validation that a lower-ranking object asks for', () => {
    const listener = {
      name: 'tls',
      port: 443,
      protocol: 'HTTPS',
      hostname: 'site.test',
      tls: { certificateRefs: [{ name: 'cert' }] },
    }
    const { https } = run([
      validating(),
      gatewayClass,
      gateway('tenant/gw', listener),
      httpRoute('tenant/route', 'tenant/gw', ['site.test'], '/login'),
    ])
    expect(https('site.test')?.tls).toMatchObject({
      certificate: expect.stringMatching('^tenant/cert/') as string,
      clientValidation: { isOptional: false, ca: expect.stringContaining('BEGIN') as string },
    })
  })

  it('with the client validation of another object shares no connections with other hosts of its Gateway', () => {
    const listener = {
      name: 'tls',
      port: 443,
      protocol: 'HTTPS',
      hostname: '*.test',
      tls: { certificateRefs: [{ name: 'cert' }] },
    }
    const { https } = run([
      validating(),
      gatewayClass,
      gateway('tenant/gw', listener),
      httpRoute('tenant/route', 'tenant/gw', ['site.test', 'own.test'], '/login'),
    ])
    expect(['site.test', 'own.test', '*.test'].map((host) => https(host)?.group)).toEqual([
      undefined,
      'tenant/gw/tls',
      'tenant/gw/tls',
    ])
  })

  it('is not terminated for a lower-ranking object where connections are passed on unread', () => {
    const passing = rootProxy('victim/site', 'site.test', {
      virtualhost: { fqdn: 'site.test', tls: { passthrough: true } },
      routes: [],
      tcpproxy: { services: [{ name: 'web', port: 80 }] },
    })
    const { https } = run([tenants(), passing])
    expect(https('site.test')?.tcp).toBeDefined()
    expect(https('site.test')?.tls).toBeUndefined()
  })
})

describe('a namespace that may not have a name contributes nothing', () => {
  const grants = [
    { namespace: 'victim', domains: ['site.test', '*.site.test'] },
    { namespace: 'tenant', domains: ['tenant.test'] },
  ]
  const victims = () => rootProxy('victim/site', 'site.test')

  it('as an Ingress: no route, no wildcard, no default backend, no TLS', () => {
    const tls = [{ hosts: ['site.test'], secretName: 'cert' }]
    const backend = { service: { name: 'web', port: { number: 80 } } }
    const { ir, routesOf, findings } = run(
      [
        victims(),
        ingress('tenant/path', 'site.test', '/login', { tls }),
        ingress('tenant/wild', '*.site.test', '/'),
        ingress('tenant/any', undefined, '/', { defaultBackend: backend }),
        ingress('tenant/own', 'tenant.test', '/'),
      ],
      { grants },
    )
    expect(ir.listeners.flatMap(({ hosts }) => hosts.map(({ host }) => host))).toEqual(['site.test', 'tenant.test'])
    expect(routesOf('http', 'site.test')).toEqual(['victim /'])
    expect(ir.certificates).toEqual([])
    expect(new Set(findings.map(({ origin, reason }) => `${origin.name} ${reason}`))).toEqual(
      new Set(['path NameNotGranted', 'wild NameNotGranted', 'any NameNotGranted']),
    )
  })

  it.each([
    ['grants', { grants }, 'NameNotGranted'],
    ['root namespaces', { rootNamespaces: ['victim'] }, 'RootProxyNotAllowedInNamespace'],
  ])('as an HTTPProxy: no duplicate (%s)', (_title, settings, reason) => {
    const { routesOf, statuses } = run([victims(), rootProxy('tenant/site', 'site.test')], settings)
    expect(routesOf('http', 'site.test')).toEqual(['victim /'])
    expect(statuses.find(({ key }) => key === 'tenant/site')?.status).toMatchObject({
      conditions: [{ status: 'False', errors: [{ reason }] }],
    })
    expect(statuses.find(({ key }) => key === 'victim/site')?.status).toMatchObject({ currentStatus: 'valid' })
  })

  it('as an HTTPRoute', () => {
    const { routesOf, statuses } = run(
      [
        gatewayClass,
        gateway('tenant/gw', {}),
        httpRoute('tenant/evil', 'tenant/gw', ['site.test'], '/login'),
        httpRoute('tenant/own', 'tenant/gw', ['tenant.test'], '/'),
        victims(),
      ],
      { grants },
    )
    expect([routesOf('http', 'site.test'), routesOf('http', 'tenant.test')]).toEqual([['victim /'], ['tenant /']])
    const conditions = [{ type: 'Accepted', status: 'False', reason: 'NameNotGranted' }, { type: 'ResolvedRefs' }]
    expect(statuses.find(({ key }) => key === 'tenant/evil')?.status).toMatchObject({ parents: [{ conditions }] })
  })
})

describe('over all Gateways of a port', () => {
  const victimRoute = httpRoute('victim/site', 'victim/gw', ['site.test'], '/')
  const tenantRoute = httpRoute('tenant/evil', 'tenant/gw', ['site.test'], '/login')
  const acceptedOf = (statuses: ReturnType<typeof build>['statuses'], key: string) => {
    const parents = statuses.find((each) => each.kind === 'HTTPRoute' && each.key === key)?.status['parents']
    const [{ conditions }] = parents as [{ conditions: [{ status: string; reason: string }] }]
    return `${conditions[0].status} ${conditions[0].reason}`
  }

  it('the more specific listener owns a host', () => {
    const { routesOf, statuses } = run([
      gatewayClass,
      gateway('tenant/gw', {}, { creationTimestamp: OLD }),
      gateway('victim/gw', { hostname: 'site.test' }),
      victimRoute,
      tenantRoute,
    ])
    expect(routesOf('http', 'site.test')).toEqual(['victim /'])
    expect([acceptedOf(statuses, 'victim/site'), acceptedOf(statuses, 'tenant/evil')]).toEqual([
      'True Accepted',
      'False HostOwnedByOther',
    ])
  })

  it('of equal ones the older owns the hosts for which it has routes, and the younger serves its own', () => {
    const { routesOf, statuses } = run([
      gatewayClass,
      gateway('victim/gw', {}, { creationTimestamp: OLD }),
      gateway('tenant/gw', {}),
      victimRoute,
      tenantRoute,
      httpRoute('tenant/own', 'tenant/gw', ['tenant.test'], '/'),
    ])
    expect(routesOf('http', 'site.test')).toEqual(['victim /'])
    expect(routesOf('http', 'tenant.test')).toEqual(['tenant /'])
    expect(acceptedOf(statuses, 'tenant/own')).toBe('True Accepted')
  })
})
