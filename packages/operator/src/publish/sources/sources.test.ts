import { describe, expect, it } from 'vitest'
import type { Gateway, HTTPRoute, Listener, ReferenceGrant } from '@seamark/kube/gateway-api'
import { certificatePlace, dnsPlace } from '../decide/names.ts'
import { options } from '../../../testing/publish-fixture.ts'
import { fromGateway, fromHTTPRoute, type GatewayLookup, intersectHosts } from './gateway.ts'
import { fromIngressRoute } from './http-proxy.ts'
import { fromIngress } from './ingress.ts'
import { fromRoute } from './route.ts'
import { targetOf } from './service-rule.ts'
import { fromService } from './service.ts'

const metadata = { namespace: 'ns', name: 'web', uid: 'u' }
const status = { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } }

describe('Ingress', () => {
  it('names the hosts of its rules and TLS entries once, at its own addresses', () => {
    const source = fromIngress({
      metadata,
      spec: {
        ingressClassName: 'c',
        rules: [{ host: 'A.example' }, { host: 'a.example' }, {}],
        tls: [{ hosts: ['a.example', 'b.example'], secretName: 's' }],
      },
      status,
    })
    expect(source).toMatchObject({
      hosts: ['a.example', 'b.example'],
      className: 'c',
      asks: 'both',
      tls: [{ secretName: 's', hosts: ['a.example', 'b.example'] }],
    })
    expect(source.origin).toMatchObject({ addresses: { v4: ['192.0.2.1'] } })
    expect(dnsPlace(source, options({ namePrefix: 'p-' })).name).toBe('p-web-ingress')
    expect(certificatePlace(source, options()).name).toBe('web-ingress')
  })

  it('without rules and TLS entries names no host', () => {
    expect(fromIngress({ metadata }).hosts).toEqual([])
  })
})

describe('IngressRoute, Service and Route', () => {
  it('IngressRoute is read like an HTTPProxy', () => {
    const source = fromIngressRoute({
      metadata,
      spec: { virtualhost: { fqdn: 'a.example', tls: { secretName: 's' } } },
    })
    expect(source).toMatchObject({
      kind: 'IngressRoute',
      hosts: ['a.example'],
      origin: { type: 'service' },
      tls: [{ secretName: 's' }],
    })
    expect(dnsPlace(source, options()).name).toBe('web-ingressroute')
  })

  it.each(['external-dns.alpha.kubernetes.io/hostname', 'external-dns.kubernetes.io/hostname'])(
    'Service names what %s lists',
    (key) => {
      const annotations = { [key]: 'a.example, B.example.' }
      const service = { metadata: { ...metadata, annotations }, spec: { type: 'LoadBalancer' as const }, status }
      expect(fromService(service)).toMatchObject({ hosts: ['a.example', 'b.example'], asks: 'dns' })
      expect(fromService({ ...service, spec: { type: 'ClusterIP' } }).hosts).toEqual([])
    },
  )

  it('Route points at the canonical names of its routers, also of one that rejects it', () => {
    const source = fromRoute({
      metadata,
      spec: { host: 'a.example', tls: { termination: 'edge', externalCertificate: { name: 's' } } },
      status: {
        ingress: [
          { routerCanonicalHostname: 'router.apps.example', conditions: [{ type: 'Admitted', status: 'False' }] },
        ],
      },
    })
    expect(source).toMatchObject({
      hosts: ['a.example'],
      origin: { addresses: { hostnames: ['router.apps.example'] } },
      tls: [{ secretName: 's' }],
    })
    expect(
      fromRoute({ metadata, spec: { host: 'a.example', tls: { termination: 'passthrough' } } }).isPassthrough,
    ).toBe(true)
  })
})

function listener(changes: Partial<Listener> = {}): Listener {
  return { name: 'https', port: 443, protocol: 'HTTPS', hostname: '*.example', ...changes }
}

function gateway(...listeners: Listener[]): Gateway {
  return {
    metadata: { namespace: 'gw', name: 'main', uid: 'g' },
    spec: { gatewayClassName: 'c', listeners },
    status: { addresses: [{ type: 'IPAddress', value: '192.0.2.7' }] },
  }
}

function lookup(
  found: Gateway | undefined,
  grants: ReferenceGrant[] = [],
  labels: Record<string, string> = {},
): GatewayLookup {
  return { gateway: () => found, namespaceLabels: () => labels, grants: () => grants }
}

function route(hostnames: string[], ref: object = {}): HTTPRoute {
  return { metadata, spec: { hostnames, parentRefs: [{ namespace: 'gw', name: 'main', ...ref }] } }
}

const open = { allowedRoutes: { namespaces: { from: 'All' } } }

describe('HTTPRoute', () => {
  it('names the intersection of its hosts and those of the attached listeners, at the addresses of the Gateway', () => {
    const source = fromHTTPRoute(route(['a.example', 'b.other']), lookup(gateway(listener(open))))
    expect(source).toMatchObject({
      hosts: ['a.example'],
      asks: 'dns',
      origin: { type: 'addresses', addresses: { v4: ['192.0.2.7'] } },
    })
    expect(dnsPlace(source, options()).name).toBe('web-httproute')
  })

  it.each<[string, Listener, object, string[]]>([
    ['a route without a host uses that of the listener', listener(open), {}, ['*.example']],
    ['another namespace is not admitted by default', listener(), {}, []],
    [
      'a selector that matches',
      listener({ allowedRoutes: { namespaces: { from: 'Selector', selector: { matchLabels: { team: 'a' } } } } }),
      {},
      ['*.example'],
    ],
    [
      'a selector that does not',
      listener({ allowedRoutes: { namespaces: { from: 'Selector', selector: { matchLabels: { team: 'b' } } } } }),
      {},
      [],
    ],
    ['another section', listener(open), { sectionName: 'http' }, []],
    ['another port', listener(open), { port: 80 }, []],
    [
      'a listener for other routes',
      listener({ allowedRoutes: { namespaces: { from: 'All' }, kinds: [{ kind: 'GRPCRoute' }] } }),
      {},
      [],
    ],
    ['a listener of TLS passthrough', listener({ ...open, protocol: 'TLS' }), {}, []],
  ])('%s', (_, item, ref, expected) => {
    expect(fromHTTPRoute(route([], ref), lookup(gateway(item), [], { team: 'a' })).hosts).toEqual(expected)
  })

  it('a Gateway that cannot be found makes the target unknown, never empty', () => {
    const source = fromHTTPRoute(route(['a.example']), lookup(undefined))
    expect(source).toMatchObject({ hosts: ['a.example'], origin: { type: 'unknown' } })
    expect(targetOf(source, options(), () => undefined)).toMatchObject({
      state: 'unknown',
      finding: { reason: 'ParentNotFound' },
    })
  })

  it.each([
    ['a.example', '', 'a.example'],
    ['a.example', 'a.example', 'a.example'],
    ['a.example', '*.example', 'a.example'],
    ['*.example', 'a.example', 'a.example'],
    ['*.a.example', '*.example', '*.a.example'],
    ['example', '*.example', undefined],
    ['a.other', '*.example', undefined],
  ])('the intersection of %s and %j is %s', (a, b, expected) => {
    expect(intersectHosts(a, b)).toBe(expected)
  })
})

describe('Gateway', () => {
  const tls = { certificateRefs: [{ name: 's' }] }

  it('requests one certificate per Secret with the hosts of its listeners', () => {
    const source = fromGateway(
      gateway(
        listener({ name: 'a', hostname: 'a.example', tls }),
        listener({ name: 'b', hostname: 'b.example', tls }),
        listener({ name: 'c', tls: { mode: 'Passthrough' } }),
      ),
      lookup(undefined),
    )
    expect(source).toMatchObject({
      asks: 'tls',
      hosts: ['a.example', 'b.example'],
      tls: [{ secretName: 's', namespace: 'gw', hosts: ['a.example', 'b.example'] }],
    })
  })

  it('a Secret of another namespace needs a ReferenceGrant', () => {
    const far = gateway(
      listener({ hostname: 'a.example', tls: { certificateRefs: [{ name: 's', namespace: 'certs' }] } }),
    )
    expect(fromGateway(far, lookup(undefined))).toMatchObject({
      tls: [],
      findings: [{ reason: 'NamespaceNotAllowed' }],
    })
    const grant: ReferenceGrant = {
      metadata: {},
      spec: {
        from: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', namespace: 'gw' }],
        to: [{ group: '', kind: 'Secret' }],
      },
    }
    expect(fromGateway(far, lookup(undefined, [grant])).tls).toEqual([
      { secretName: 's', namespace: 'certs', hosts: ['a.example'] },
    ])
  })
})
