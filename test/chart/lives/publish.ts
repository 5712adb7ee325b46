import { CustomResourceDefinition, Ingress, Service } from '@seamark/kube'
import { Certificate, DNSEndpoint, Gateway, HTTPProxy, HTTPRoute, Route } from '@seamark/operator'
import { kind } from '@seamark/kube/object'
import { crdNamed } from './crds.ts'
import {
  eventually,
  exists,
  ingressSpec,
  isGone,
  type Life,
  type LifeWorld,
  LIMIT_MS,
  published,
  put,
  putStatus,
} from './life.ts'

const IngressRoute = kind({
  group: 'contour.heptio.com',
  version: 'v1beta1',
  kind: 'IngressRoute',
  plural: 'ingressroutes',
  namespaced: true,
})

/** The kind is installed after the manager has started. */
export const INGRESS_ROUTES = 'ingressroutes.contour.heptio.com'
const ADDRESS = '203.0.113.10'

const annotations = (other: string) => ({
  'kubernetes.io/tls-acme': 'true',
  'contour-plus.cybozu.com/dns-namespace': other,
  'contour-plus.cybozu.com/issuer-namespace': other,
})

async function proxy(world: LifeWorld, name: string, host: string, elsewhere = false): Promise<void> {
  await put(world, HTTPProxy, {
    metadata: {
      namespace: world.space,
      name,
      annotations: elsewhere ? annotations(world.other) : { 'kubernetes.io/tls-acme': 'true' },
    },
    spec: {
      virtualhost: { fqdn: host, tls: { secretName: `${name}-tls` } },
      routes: [{ services: [{ name: 'web', port: 80 }] }],
    },
  })
}

/** One of each other kind, of which the objects stay in the namespace of their source. */
async function others(world: LifeWorld, elsewhere: boolean): Promise<void> {
  const { space, other } = world
  const suffix = elsewhere ? '-far' : ''
  const meta = (name: string, more: object = {}) => ({
    metadata: {
      namespace: space,
      name: `${name}${suffix}`,
      annotations: { ...(elsewhere ? annotations(other) : { 'kubernetes.io/tls-acme': 'true' }), ...more },
    },
  })
  const host = (name: string): string => `${name}${suffix}.publish.test`
  await put(world, Ingress, {
    ...meta('ingress'),
    spec: ingressSpec(host('ingress'), { tls: [{ hosts: [host('ingress')], secretName: `ingress${suffix}-tls` }] }),
  })
  await putStatus(world, Ingress, `${space}/ingress${suffix}`, { loadBalancer: { ingress: [{ ip: ADDRESS }] } })
  await put(world, IngressRoute, {
    ...meta('ingressroute'),
    spec: {
      virtualhost: { fqdn: host('ingressroute'), tls: { secretName: `ingressroute${suffix}-tls` } },
      routes: [{ match: '/', services: [{ name: 'web', port: 80 }] }],
    },
  })
  await put(world, Gateway, {
    ...meta('gateway'),
    spec: {
      gatewayClassName: 'some',
      listeners: [
        {
          name: 'https',
          port: 443,
          protocol: 'HTTPS',
          hostname: host('gateway'),
          tls: { mode: 'Terminate', certificateRefs: [{ name: `gateway${suffix}-tls` }] },
        },
        { name: 'http', port: 80, protocol: 'HTTP' },
      ],
    },
  })
  await putStatus(world, Gateway, `${space}/gateway${suffix}`, { addresses: [{ type: 'IPAddress', value: ADDRESS }] })
  await put(world, HTTPRoute, {
    ...meta('httproute'),
    spec: {
      parentRefs: [{ name: `gateway${suffix}` }],
      hostnames: [host('httproute')],
      rules: [{ backendRefs: [{ name: 'web', port: 80 }] }],
    },
  })
  await put(world, Route, {
    ...meta('route'),
    spec: { host: host('route'), to: { kind: 'Service', name: 'web' }, tls: { termination: 'edge' } },
  })
  await put(world, Service, {
    ...meta('service', { 'external-dns.alpha.kubernetes.io/hostname': host('service') }),
    spec: { type: 'LoadBalancer', ports: [{ port: 80 }] },
  })
  await putStatus(world, Service, `${space}/service${suffix}`, { loadBalancer: { ingress: [{ ip: ADDRESS }] } })
}

const SOURCES = [
  [HTTPProxy, 'httpproxy'],
  [Ingress, 'ingress'],
  [IngressRoute, 'ingressroute'],
  [HTTPRoute, 'httproute'],
  [Gateway, 'gateway'],
  [Route, 'route'],
  [Service, 'service'],
] as const

export const publish: Life = {
  parts: ['publish'],
  values: ({ space, other }) => ({
    config: {
      publish: {
        enabled: true,
        services: [{ service: `${space}/lb` }],
        defaultIssuerName: 'letsencrypt',
        allowedDnsNamespaces: [other],
        allowedIssuerNamespaces: [other],
      },
    },
  }),
  async prepare(world) {
    const { space } = world
    await put(world, Service, {
      metadata: { namespace: space, name: 'lb' },
      spec: { type: 'LoadBalancer', ports: [{ port: 443 }] },
    })
    await putStatus(world, Service, `${space}/lb`, { loadBalancer: { ingress: [{ ip: ADDRESS }] } })
  },
  async start(world) {
    const { client, space, other } = world
    await client.create(CustomResourceDefinition, crdNamed(INGRESS_ROUTES) as CustomResourceDefinition)
    await eventually(
      'the kind IngressRoute',
      async () =>
        client.list(IngressRoute).then(
          () => true,
          () => false,
        ),
      (isServed) => isServed,
      LIMIT_MS,
    )
    await proxy(world, 'httpproxy', 'httpproxy.publish.test')
    await proxy(world, 'httpproxy-far', 'httpproxy-far.publish.test', true)
    await others(world, false)
    await others(world, true)
    await exists(world, DNSEndpoint, `${space}/httpproxy`)
    await exists(world, Certificate, `${space}/httpproxy`)
    for (const [namespace, part] of [
      [space, 'ingress.'],
      [space, 'ingressroute.'],
      [space, 'httproute.'],
      [space, 'service.'],
      [other, 'ingress-far.'],
      [other, 'httproute-far.'],
      [other, 'httpproxy-far.'],
    ] as const)
      await published(world, namespace, `${part}publish.test`)
  },
  async change(world) {
    await proxy(world, 'httpproxy', 'changed.publish.test')
    await published(world, world.space, 'changed.publish.test')
  },
  async takeOver(world) {
    await proxy(world, 'late', 'late.publish.test')
    await published(world, world.space, 'late.publish.test')
  },
  async remove(world) {
    const { client, space } = world
    for (const [token, name] of SOURCES)
      for (const key of [`${space}/${name}`, `${space}/${name}-far`]) await client.delete(token, key)
    for (const [token, name] of SOURCES) await isGone(world, token, `${space}/${name}-far`)
  },
}
