import { createAuthority } from '@seamark/kube/certificates'
import type { Obj } from '@seamark/kube/object'
import { beforeAll, describe, expect, it } from 'vitest'
import { object, objectsOf, service } from '../../../testing/index.ts'
import { build } from '../../build/build.ts'
import { BUILD_DEFAULTS } from '../../draft/input.ts'
import type { VirtualHost } from '../../ir/model.ts'

let ca = ''
let tlsData: Record<string, string> = {}
beforeAll(async () => {
  const authority = await createAuthority({ commonName: 'test' })
  ca = authority.certPem
  const { certPem, keyPem } = await authority.issue({ commonName: 'x.test', dnsNames: ['*.x.test'], usages: 'server' })
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  tlsData = { 'tls.crt': base64(certPem), 'tls.key': base64(keyPem) }
})

const run = (...all: Obj[]) => build(objectsOf(all), BUILD_DEFAULTS)
type Result = ReturnType<typeof run>

const gatewayClass = object('GatewayClass', 'seamark', { spec: { controllerName: BUILD_DEFAULTS.controllerName } })
const gateway = (listeners: object[], spec: object = {}) =>
  object('Gateway', 'a/gw', { spec: { gatewayClassName: 'seamark', listeners, ...spec } })
const passthrough = { name: 'tls', port: 443, protocol: 'TLS', tls: { mode: 'Passthrough' } }
const terminate = {
  name: 'end',
  port: 443,
  protocol: 'TLS',
  hostname: 'end.x.test',
  tls: { mode: 'Terminate', certificateRefs: [{ name: 'tls' }] },
}
const secret = () => object('Secret', 'a/tls', { type: 'kubernetes.io/tls', data: tlsData })
const tlsRoute = (name: string, hostnames: string[], backendRefs: object[], meta: object = {}) =>
  object('TLSRoute', `a/${name}`, { spec: { parentRefs: [{ name: 'gw' }], hostnames, rules: [{ backendRefs }] } }, meta)

function secureHosts(result: Result): readonly VirtualHost[] {
  return result.ir.listeners.find(({ protocol }) => protocol === 'https')?.hosts ?? []
}

/** `Type=status Reason` of the conditions in a list of parents, ancestors or listeners. */
function conditionsOf(
  result: Result,
  kind: string,
  list: 'parents' | 'ancestors' | 'listeners',
  key = 'a/gw',
): string[] {
  const status = result.statuses.find((each) => each.kind === kind && each.key === key)?.status ?? {}
  const entries = status[list] as { conditions: { type: string; status: string; reason: string }[] }[]
  return entries.flatMap(({ conditions }) => conditions.map((each) => `${each.type}=${each.status} ${each.reason}`))
}

describe('TLSRoute', () => {
  it('passes connections of its hosts on unread, by weight', () => {
    const refs = [
      { name: 'one', port: 443, weight: 3 },
      { name: 'two', port: 443 },
    ]
    const objects = [gatewayClass, service('a/one', [443]), service('a/two', [443])]
    const result = run(...objects, gateway([passthrough]), tlsRoute('r', ['abc.x.test'], refs))
    const [host] = secureHosts(result)
    expect(host).toMatchObject({ host: 'abc.x.test', routes: [] })
    expect(host?.tls).toBeUndefined()
    expect(host?.tcp?.backends.map(({ cluster, weight }) => [cluster.split('/')[1], weight])).toEqual([
      ['one', 3],
      ['two', 1],
    ])
    expect(conditionsOf(result, 'TLSRoute', 'parents', 'a/r')).toEqual([
      'Accepted=True Accepted',
      'ResolvedRefs=True ResolvedRefs',
    ])
  })

  it('terminates TLS where the listener does, beside a listener that does not', () => {
    const result = run(
      gatewayClass,
      secret(),
      service('a/one', [443]),
      gateway([terminate, { ...passthrough, hostname: '*.x.test' }]),
      tlsRoute('end', ['end.x.test'], [{ name: 'one', port: 443 }]),
      tlsRoute('on', ['on.x.test'], [{ name: 'one', port: 443 }]),
    )
    expect(secureHosts(result).map(({ host, tls, tcp }) => [host, tls !== undefined, tcp !== undefined])).toEqual([
      ['end.x.test', true, true],
      ['on.x.test', false, true],
    ])
  })

  it('closes the share of a missing backend, serves nothing without any, and says so', () => {
    const some = run(
      gatewayClass,
      service('a/one', [443]),
      gateway([passthrough]),
      tlsRoute(
        'r',
        ['abc.x.test'],
        [
          { name: 'one', port: 443 },
          { name: 'absent', port: 443, weight: 4 },
        ],
      ),
    )
    expect(secureHosts(some)[0]?.tcp?.invalidWeight).toBe(4)
    expect(conditionsOf(some, 'TLSRoute', 'parents', 'a/r')[1]).toBe('ResolvedRefs=False BackendNotFound')
    const none = run(gatewayClass, gateway([passthrough]), tlsRoute('r', ['abc.x.test'], [{ name: 'absent', port: 1 }]))
    expect(secureHosts(none)).toEqual([])
  })

  it('loses its host to an older TLSRoute, with a finding', () => {
    const refs = [{ name: 'one', port: 443 }]
    const result = run(
      gatewayClass,
      service('a/one', [443]),
      gateway([passthrough]),
      tlsRoute('young', ['abc.x.test'], refs, { creationTimestamp: '2026-02-01T00:00:00Z' }),
      tlsRoute('old', ['abc.x.test'], refs),
    )
    expect(result.findings).toMatchObject([{ origin: { kind: 'TLSRoute', name: 'young' }, reason: 'MatchTaken' }])
  })

  it('does not attach to HTTP and HTTPS listeners, nor an HTTPRoute to a TLS listener', () => {
    const httpRoute = object('HTTPRoute', 'a/h', { spec: { parentRefs: [{ name: 'gw', sectionName: 'tls' }] } })
    const result = run(
      gatewayClass,
      gateway([{ name: 'http', port: 80, protocol: 'HTTP' }, passthrough]),
      object('TLSRoute', 'a/t', { spec: { parentRefs: [{ name: 'gw', sectionName: 'http' }], hostnames: ['x.test'] } }),
      httpRoute,
    )
    expect(conditionsOf(result, 'TLSRoute', 'parents', 'a/t')[0]).toBe('Accepted=False NotAllowedByListeners')
    expect(conditionsOf(result, 'HTTPRoute', 'parents', 'a/h')[0]).toBe('Accepted=False NotAllowedByListeners')
  })
})

describe('a listener', () => {
  it('of an unknown protocol supports no kinds', () => {
    const result = run(gatewayClass, gateway([{ name: 'odd', port: 1111, protocol: 'ODD' }]))
    expect(conditionsOf(result, 'Gateway', 'listeners')[0]).toBe('Accepted=False UnsupportedProtocol')
    expect(result.statuses.find(({ kind }) => kind === 'Gateway')?.status).toMatchObject({
      listeners: [{ supportedKinds: [] }],
    })
  })

  it('takes the requests of its host from less specific ones, also without a route', () => {
    const listener = (name: string, hostname?: string) => ({ name, port: 80, protocol: 'HTTP', hostname })
    const route = (name: string, sectionName: string, hostnames: string[] = []) =>
      object('HTTPRoute', `a/${name}`, {
        spec: {
          parentRefs: [{ name: 'gw', sectionName }],
          hostnames,
          rules: [{ backendRefs: [{ name: 'web', port: 80 }] }],
        },
      })
    const result = run(
      gatewayClass,
      service('a/web'),
      gateway([listener('any'), listener('wild', '*.x.test'), listener('one', 'one.x.test')]),
      route('any', 'any', ['*.test', 'deep.x.test', 'other.test']),
      route('wild', 'wild'),
    )
    const [http] = result.ir.listeners
    // deep.x.test belongs to the listener *.x.test, and one.x.test to the one without routes.
    expect(http?.hosts.map(({ host, routes }) => `${host} ${routes.length}`)).toEqual([
      '*.test 1',
      '*.x.test 1',
      'one.x.test 0',
      'other.test 1',
    ])
  })

  it('verifies client certificates by the settings of the Gateway, and is not served without a CA', () => {
    const https = { name: 'https', port: 443, protocol: 'HTTPS', tls: { certificateRefs: [{ name: 'tls' }] } }
    const frontend = (name: string, mode?: string) => ({
      tls: { frontend: { default: { validation: { caCertificateRefs: [{ kind: 'ConfigMap', name }], mode } } } },
    })
    const bundle = object('ConfigMap', 'a/ca', { data: { 'ca.crt': ca } })
    const route = object('HTTPRoute', 'a/r', {
      spec: {
        parentRefs: [{ name: 'gw' }],
        hostnames: ['a.x.test'],
        rules: [{ backendRefs: [{ name: 'web', port: 80 }] }],
      },
    })
    const base = [gatewayClass, secret(), service('a/web'), bundle, route]
    const strict = run(...base, gateway([https], frontend('ca')))
    expect(secureHosts(strict)[0]?.tls?.clientValidation).toMatchObject({ isOptional: false })
    const absent = run(...base, gateway([https], frontend('absent')))
    expect(conditionsOf(absent, 'Gateway', 'listeners').slice(0, 2)).toEqual([
      'Accepted=False NoValidCACertificate',
      'ResolvedRefs=False InvalidCACertificateRef',
    ])
    expect(secureHosts(absent)).toEqual([])
    const insecure = run(...base, gateway([https], frontend('ca', 'AllowInsecureFallback')))
    expect(secureHosts(insecure)[0]?.tls?.clientValidation).toEqual({ ca: '', isOptional: true })
    expect(JSON.stringify(insecure.statuses)).toContain('InsecureFrontendValidationMode')
  })
})

describe('BackendTLSPolicy', () => {
  const policy = (name: string, validation: object, target: object = {}, meta: object = {}) =>
    object(
      'BackendTLSPolicy',
      `a/${name}`,
      { spec: { targetRefs: [{ kind: 'Service', name: 'web', ...target }], validation } },
      meta,
    )
  const route = object('HTTPRoute', 'a/r', {
    spec: {
      parentRefs: [{ name: 'gw' }],
      hostnames: ['x.test'],
      rules: [{ backendRefs: [{ name: 'web', port: 80 }] }],
    },
  })
  const base = () => [
    gatewayClass,
    service('a/web'),
    gateway([{ name: 'http', port: 80, protocol: 'HTTP' }]),
    route,
    object('ConfigMap', 'a/ca', { data: { 'ca.crt': ca } }),
    object('ConfigMap', 'a/broken', { data: { 'ca.crt': 'no certificate' } }),
  ]
  const refs = (name: string) => ({ caCertificateRefs: [{ group: '', kind: 'ConfigMap', name }] })

  it('makes the gateway verify the backend, and reports to the Gateway', () => {
    const result = run(...base(), policy('p', { ...refs('ca'), hostname: 'backend.test' }))
    expect(result.ir.clusters).toMatchObject([
      { protocol: 'tls', tls: { sni: 'backend.test', validation: { subjectNames: ['backend.test'] } } },
    ])
    expect(result.statuses.find(({ kind }) => kind === 'BackendTLSPolicy')?.status).toMatchObject({
      ancestors: [{ ancestorRef: { kind: 'Gateway', namespace: 'a', name: 'gw' } }],
    })
    expect(conditionsOf(result, 'BackendTLSPolicy', 'ancestors', 'a/p')).toEqual([
      'Accepted=True Accepted',
      'ResolvedRefs=True ResolvedRefs',
    ])
  })

  it('verifies subject names instead of the host name where it has them', () => {
    const subjectAltNames = [
      { type: 'Hostname', hostname: 'other.test' },
      { type: 'URI', uri: 'spiffe://x.test/web' },
    ]
    const result = run(...base(), policy('p', { ...refs('ca'), hostname: 'backend.test', subjectAltNames }))
    expect(result.ir.clusters[0]?.tls).toMatchObject({
      sni: 'backend.test',
      validation: { subjectNames: ['other.test', 'spiffe://x.test/web'] },
    })
  })

  it.each([
    ['a bundle that is absent', refs('absent'), 'InvalidCACertificateRef'],
    ['a bundle that is broken', refs('broken'), 'InvalidCACertificateRef'],
    ['a reference to another kind', { caCertificateRefs: [{ group: 'x', kind: 'Odd', name: 'ca' }] }, 'InvalidKind'],
  ])('with %s gives the backend no request', (_what, validation, reason) => {
    const result = run(...base(), policy('p', { ...validation, hostname: 'backend.test' }))
    expect(result.ir.listeners[0]?.hosts[0]?.routes[0]?.action).toEqual({ kind: 'direct', status: 500, body: '' })
    expect(conditionsOf(result, 'BackendTLSPolicy', 'ancestors', 'a/p')).toEqual([
      'Accepted=False NoValidCACertificate',
      `ResolvedRefs=False ${reason}`,
    ])
  })

  it('for a port wins over one for the Service; of two for the same target the older is used', () => {
    const young = { creationTimestamp: '2026-02-01T00:00:00Z' }
    const result = run(
      ...base(),
      policy('whole', { ...refs('ca'), hostname: 'whole.test' }),
      policy('port', { ...refs('ca'), hostname: 'port.test' }, { sectionName: 'p80' }),
      policy('late', { ...refs('ca'), hostname: 'late.test' }, { sectionName: 'p80' }, young),
    )
    expect(result.ir.clusters[0]?.tls?.sni).toBe('port.test')
    expect(conditionsOf(result, 'BackendTLSPolicy', 'ancestors', 'a/late')[0]).toBe('Accepted=False Conflicted')
    expect(conditionsOf(result, 'BackendTLSPolicy', 'ancestors', 'a/whole')[0]).toBe('Accepted=True Accepted')
  })
})
