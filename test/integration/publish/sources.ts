/**
 * Sources beyond Contour's through the same decision, one scenario each: child names, addresses, certificates, and what
 * stays when a status is partly invalid or an address is removed. Run like scenarios.ts.
 */
import { Ingress, Service } from '@seamark/kube'
import type { Obj } from '@seamark/kube/object'
import { Gateway, HTTPProxy, HTTPRoute, IngressRoute, ReferenceGrant, Route } from '@seamark/operator'
import { expect } from 'vitest'
import { endpointsOf } from './bench.ts'
import type { Scenario } from './scenarios.ts'

const acme = { 'kubernetes.io/tls-acme': 'true' }

const ingress = (name: string, hosts: string[], tls: { hosts: string[]; secretName: string }[] = []) => ({
  metadata: { namespace: 'ns', name, annotations: acme },
  spec: {
    rules: hosts.map((host) => ({
      host,
      http: {
        paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }],
      },
    })),
    tls,
  },
})

const listener = (name: string, hostname: string, more: object = {}) => ({
  name,
  hostname,
  port: 80,
  protocol: 'HTTP',
  allowedRoutes: { namespaces: { from: 'All' } },
  ...more,
})

const route = (hostnames: string[], parent: object = {}) => ({
  metadata: { namespace: 'ns', name: 'api' },
  spec: { hostnames, parentRefs: [{ name: 'edge', namespace: 'ns2', ...parent }] },
})

const address = (value: string) => ({ addresses: [{ type: 'IPAddress', value }] })

export const sourceScenarios: readonly Scenario[] = [
  {
    title:
      'Ingress: hosts at the addresses of its status, a certificate per TLS entry, kept when the status is blanked',
    async run(bench) {
      await using _app = bench.runUnified({ namePrefix: 'p-' })
      const tls = [
        { hosts: ['a.example.com'], secretName: 'one' },
        { hosts: ['b.example.com'], secretName: 'two' },
      ]
      await bench.client.create(Ingress, ingress('web', ['a.example.com', 'b.example.com'], tls) as Ingress)
      await bench.setStatus(Ingress, 'ns/web', { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } })
      const lines = ['a.example.com 3600 A 192.0.2.1', 'b.example.com 3600 A 192.0.2.1']
      expect(endpointsOf(await bench.dns('ns/p-web-ingress'))).toEqual(lines)
      expect((await bench.certificate('ns/p-web-ingress')).spec).toMatchObject({
        dnsNames: ['a.example.com'],
        secretName: 'one',
      })
      expect((await bench.certificate('ns/p-web-ingress-two')).spec.dnsNames).toEqual(['b.example.com'])
      await bench.setStatus(Ingress, 'ns/web', { loadBalancer: { ingress: [] } })
      await bench.settled()
      expect(endpointsOf(await bench.dns('ns/p-web-ingress'))).toEqual(lines)
      await bench.client.patch(Ingress, 'ns/web', 'merge', { spec: { tls: [] } })
      await bench.eventually(
        'the certificates to go',
        async () => bench.children(),
        (children) => children.join() === 'DNSEndpoint ns/p-web-ingress',
      )
    },
  },
  {
    title: 'HTTPRoute: its host names × the listeners it attaches to, at the addresses of the Gateway',
    async run(bench) {
      await using _app = bench.runUnified()
      await bench.client.create(Gateway, {
        metadata: { namespace: 'ns2', name: 'edge' },
        spec: {
          gatewayClassName: 'x',
          listeners: [
            listener('wild', '*.example.com'),
            listener('exact', 'www.example.org'),
            listener('home', 'home.example.net', { allowedRoutes: { namespaces: { from: 'Same' } } }),
          ],
        },
      })
      await bench.setStatus(Gateway, 'ns2/edge', address('192.0.2.7'))
      await bench.client.create(
        HTTPRoute,
        route(['a.example.com', 'www.example.org', 'other.example.org', 'home.example.net']),
      )
      const both = ['a.example.com 3600 A 192.0.2.7', 'www.example.org 3600 A 192.0.2.7']
      expect(endpointsOf(await bench.dns('ns/api-httproute'))).toEqual(both)
      // Partly invalid is not gone: neither a rejection in the status nor a Gateway without an address takes a name away.
      await bench.setStatus(HTTPRoute, 'ns/api', {
        parents: [
          {
            controllerName: 'example.com/x',
            parentRef: { name: 'edge', namespace: 'ns2' },
            conditions: [
              {
                type: 'Accepted',
                status: 'False',
                reason: 'NoMatchingParent',
                message: '',
                lastTransitionTime: '2026-01-01T00:00:00Z',
              },
            ],
          },
        ],
      })
      await bench.setStatus(Gateway, 'ns2/edge', { addresses: [] })
      await bench.settled()
      expect(endpointsOf(await bench.dns('ns/api-httproute'))).toEqual(both)
      await bench.client.delete(Gateway, 'ns2/edge')
      await bench.settled()
      expect(endpointsOf(await bench.dns('ns/api-httproute'))).toEqual(both)
      expect(await bench.children()).toEqual(['DNSEndpoint ns/api-httproute'])
    },
  },
  {
    title: 'HTTPRoute: a section name chooses the listener, a namespace selector admits the route when it matches',
    async run(bench) {
      await using _app = bench.runUnified()
      const selector = { matchLabels: { tier: 'front' } }
      await bench.client.create(Gateway, {
        metadata: { namespace: 'ns2', name: 'edge' },
        spec: {
          gatewayClassName: 'x',
          listeners: [
            listener('one', '*.example.com', { allowedRoutes: { namespaces: { from: 'Selector', selector } } }),
            listener('two', '*.example.com', { port: 81 }),
          ],
        },
      })
      await bench.setStatus(Gateway, 'ns2/edge', address('192.0.2.7'))
      await bench.client.create(HTTPRoute, route(['a.example.com'], { sectionName: 'one' }))
      await bench.settled()
      expect(await bench.children()).toEqual([])
      await bench.labelNamespace('ns', { tier: 'front' })
      expect(endpointsOf(await bench.dns('ns/api-httproute'))).toEqual(['a.example.com 3600 A 192.0.2.7'])
      await bench.labelNamespace('ns', { tier: null })
      await bench.untilChildren(0)
    },
  },
  {
    title: 'Gateway: certificates of its listeners; a Secret elsewhere needs a ReferenceGrant, which may come later',
    async run(bench) {
      await using _app = bench.runUnified({ allowedIssuerNamespaces: ['certs'] })
      const tls = (name: string, namespace: string) => ({
        port: 443,
        protocol: 'HTTPS',
        tls: { mode: 'Terminate', certificateRefs: [{ name, namespace }] },
      })
      await bench.client.create(Gateway, {
        metadata: { namespace: 'ns', name: 'edge', annotations: acme },
        spec: {
          gatewayClassName: 'x',
          listeners: [
            listener('home', 'home.example.com', tls('home-tls', 'ns')),
            listener('far', 'far.example.com', tls('far-tls', 'certs')),
          ],
        },
      })
      expect((await bench.certificate('ns/edge-gateway')).spec.dnsNames).toEqual(['home.example.com'])
      await bench.settled()
      expect(await bench.children()).toEqual(['Certificate ns/edge-gateway'])
      await bench.client.create(ReferenceGrant, {
        metadata: { namespace: 'certs', name: 'edge' },
        spec: {
          from: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', namespace: 'ns' }],
          to: [{ group: '', kind: 'Secret', name: 'far-tls' }],
        },
      })
      expect((await bench.certificate('certs/edge-gateway-far-tls')).spec).toMatchObject({
        dnsNames: ['far.example.com'],
        secretName: 'far-tls',
      })
      expect(await bench.children()).toEqual(['Certificate certs/edge-gateway-far-tls', 'Certificate ns/edge-gateway'])
      await bench.client.delete(Gateway, 'ns/edge')
      await bench.eventually(
        'the certificate elsewhere to go',
        async () => (await bench.children()).filter((child) => child.includes('certs/')).length,
        (count) => count === 0,
      )
    },
  },
  {
    title: 'OpenShift Route: its host as CNAME of the router, kept when the router rejects it',
    async run(bench) {
      await using _app = bench.runUnified()
      await bench.client.create(Route, {
        metadata: { namespace: 'ns', name: 'shop' },
        spec: { host: 'shop.example.com', to: { kind: 'Service', name: 'web', weight: 100 } },
      } as Route)
      const router = (status: string) => ({
        ingress: [
          {
            host: 'shop.example.com',
            routerName: 'default',
            routerCanonicalHostname: 'router.apps.example.net',
            conditions: [{ type: 'Admitted', status }],
          },
        ],
      })
      await bench.setStatus(Route, 'ns/shop', router('True'))
      const lines = ['shop.example.com 3600 CNAME router.apps.example.net']
      expect(endpointsOf(await bench.dns('ns/shop-route'))).toEqual(lines)
      await bench.setStatus(Route, 'ns/shop', router('False'))
      await bench.settled()
      expect(endpointsOf(await bench.dns('ns/shop-route'))).toEqual(lines)
    },
  },
  {
    title: 'Service: the hosts of its annotation at its own addresses, gone when it stops being a load balancer',
    async run(bench) {
      await using _app = bench.runUnified()
      await bench.client.create(Service, {
        metadata: {
          namespace: 'ns',
          name: 'lb',
          annotations: { 'external-dns.alpha.kubernetes.io/hostname': 'lb.example.com, Other.example.com.' },
        },
        spec: { type: 'LoadBalancer', ports: [{ port: 80 }] },
      })
      await bench.setStatus(Service, 'ns/lb', {
        loadBalancer: { ingress: [{ ip: '192.0.2.9' }, { ip: '2001:db8::9' }] },
      })
      expect(endpointsOf(await bench.dns('ns/lb-service', (object) => object.spec.endpoints.length === 4))).toEqual([
        'lb.example.com 3600 A 192.0.2.9',
        'lb.example.com 3600 AAAA 2001:db8::9',
        'other.example.com 3600 A 192.0.2.9',
        'other.example.com 3600 AAAA 2001:db8::9',
      ])
      await bench.client.patch(Service, 'ns/lb', 'merge', { metadata: { annotations: null } })
      await bench.untilChildren(0)
    },
  },
  {
    title: 'IngressRoute: as an HTTPProxy, under its own name',
    async run(bench) {
      await using _app = bench.runUnified()
      await bench.client.create(IngressRoute, {
        metadata: { namespace: 'ns', name: 'old', annotations: acme },
        spec: { virtualhost: { fqdn: 'old.example.com', tls: { secretName: 'old-tls' } } },
      })
      expect(endpointsOf(await bench.dns('ns/old-ingressroute'))).toEqual(['old.example.com 3600 A 10.0.0.0'])
      expect((await bench.certificate('ns/old-ingressroute')).spec.secretName).toBe('old-tls')
    },
  },
  {
    title: 'T16: of two sources of one host the older has it, whatever its kind; it is handed over when the older goes',
    async run(bench) {
      await using _app = bench.runUnified()
      await bench.proxy({ metadata: { name: 'first' }, annotations: { 'kubernetes.io/tls-acme': 'false' } })
      await bench.dns('ns/first')
      await bench.nextSecond()
      await bench.client.create(Ingress, ingress('second', ['test.example.com']) as Ingress)
      await bench.setStatus(Ingress, 'ns/second', { loadBalancer: { ingress: [{ ip: '192.0.2.66' }] } })
      await bench.client.create<Obj>(HTTPProxy, {
        metadata: { namespace: 'ns2', name: 'third' },
        spec: { routes: [], virtualhost: { fqdn: 'TEST.example.com'.toLowerCase() } },
      } as Obj)
      await bench.settled()
      expect(await bench.children()).toEqual(['DNSEndpoint ns/first'])
      const loser = await bench.eventually(
        'the report to the loser',
        async () => bench.client.find(HTTPProxy, 'ns2/third'),
        (proxy) => (proxy.status?.conditions ?? []).length > 0,
      )
      expect(loser.status?.conditions).toMatchObject([{ status: 'False', reason: 'ClaimHeldByOther' }])
      await bench.client.delete(HTTPProxy, 'ns/first')
      expect(endpointsOf(await bench.dns('ns/second-ingress'))).toEqual(['test.example.com 3600 A 192.0.2.66'])
      await bench.settled()
      expect((await bench.children()).filter((child) => child !== 'DNSEndpoint ns/first')).toEqual([
        'DNSEndpoint ns/second-ingress',
      ])
    },
  },
]
