import { ConfigMap, EndpointSlice, Ingress, type Kind, Secret, Service } from '@seamark/kube'
import { createAuthority } from '@seamark/kube/certificates'
import { BackendTLSPolicy, Gateway, GatewayClass, GRPCRoute, HTTPProxy, HTTPRoute, TLSRoute } from '@seamark/operator'
import { exists, ingressSpec, type Life, type LifeWorld, put } from './life.ts'

/** The data plane inside the manager: every replica serves, the holder of its Lease writes statuses. */
export const gateway: Life = {
  parts: ['gateway'],
  values: () => ({
    config: { gateway: { enabled: true, statusAddresses: ['127.0.0.1'] } },
    gateway: { dataPlane: 'built-in' },
  }),
  flags: () => ['--gateway-http-listen', '127.0.0.1:0', '--gateway-https-listen', '127.0.0.1:0'],
  async prepare(world) {
    const { space } = world
    const authority = await createAuthority({ commonName: 'life' })
    const { certPem, keyPem } = await authority.issue({
      commonName: 'gateway.test',
      dnsNames: ['gateway.test'],
      ipAddresses: [],
      usages: 'server',
    })
    await put(world, Secret, {
      metadata: { namespace: space, name: 'tls' },
      type: 'kubernetes.io/tls',
      stringData: { 'tls.crt': certPem, 'tls.key': keyPem },
    })
    await put(world, ConfigMap, { metadata: { namespace: space, name: 'ca' }, data: { 'ca.crt': authority.certPem } })
    await put(world, Service, {
      metadata: { namespace: space, name: 'web' },
      spec: { ports: [{ name: 'http', port: 80 }] },
    })
    await put(world, EndpointSlice, {
      metadata: { namespace: space, name: 'web', labels: { 'kubernetes.io/service-name': 'web' } },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['203.0.113.51'], conditions: { ready: true } }],
      ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
    })
    await put(world, GatewayClass, {
      metadata: { name: 'seamark' },
      spec: { controllerName: 'seamark.io/gateway-controller' },
    })
  },
  async start(world) {
    const { space } = world
    await put(world, Gateway, {
      metadata: { namespace: space, name: 'gateway' },
      spec: {
        gatewayClassName: 'seamark',
        listeners: [
          { name: 'http', port: 80, protocol: 'HTTP' },
          { name: 'https', port: 443, protocol: 'HTTPS', tls: { certificateRefs: [{ name: 'tls' }] } },
          { name: 'tls', port: 443, protocol: 'TLS', hostname: 'tls.gateway.test', tls: { mode: 'Passthrough' } },
        ],
      },
    })
    await put(world, HTTPRoute, {
      metadata: { namespace: space, name: 'route' },
      spec: {
        parentRefs: [{ name: 'gateway' }],
        hostnames: ['route.gateway.test'],
        rules: [{ backendRefs: [{ name: 'web', port: 80 }] }],
      },
    })
    await put(world, HTTPProxy, {
      metadata: { namespace: space, name: 'proxy' },
      spec: {
        virtualhost: { fqdn: 'proxy.gateway.test', tls: { secretName: 'tls' } },
        routes: [{ services: [{ name: 'web', port: 80 }] }],
      },
    })
    await ingress(world, 'ingress')
    await put(world, GRPCRoute, {
      metadata: { namespace: space, name: 'grpc' },
      spec: {
        parentRefs: [{ name: 'gateway' }],
        hostnames: ['grpc.gateway.test'],
        rules: [{ backendRefs: [{ name: 'web', port: 80 }] }],
      },
    })
    await put(world, TLSRoute, {
      metadata: { namespace: space, name: 'tls' },
      spec: {
        parentRefs: [{ name: 'gateway', sectionName: 'tls' }],
        hostnames: ['tls.gateway.test'],
        rules: [{ backendRefs: [{ name: 'web', port: 80 }] }],
      },
    })
    await put(world, BackendTLSPolicy, {
      metadata: { namespace: space, name: 'web' },
      spec: {
        targetRefs: [{ group: '', kind: 'Service', name: 'web' }],
        validation: { hostname: 'web.gateway.test', caCertificateRefs: [{ group: '', kind: 'ConfigMap', name: 'ca' }] },
      },
    })
    await exists(world, GRPCRoute, `${space}/grpc`, ({ status }) => (status?.parents?.length ?? 0) > 0)
    await exists(world, TLSRoute, `${space}/tls`, ({ status }) => (status?.parents?.length ?? 0) > 0)
    await exists(world, BackendTLSPolicy, `${space}/web`, ({ status }) => (status?.ancestors?.length ?? 0) > 0)
    await exists(world, HTTPProxy, `${space}/proxy`, ({ status }) => status?.currentStatus === 'valid')
    await exists(world, HTTPRoute, `${space}/route`, ({ status }) => (status?.parents?.length ?? 0) > 0)
    await exists(world, Gateway, `${space}/gateway`, ({ status }) => (status?.addresses?.length ?? 0) > 0)
    await exists(world, GatewayClass, 'seamark', ({ status }) => (status?.conditions?.length ?? 0) > 0)
  },
  async change(world) {
    await put(world, HTTPProxy, {
      metadata: { namespace: world.space, name: 'proxy' },
      spec: {
        virtualhost: { fqdn: 'proxy.gateway.test' },
        routes: [{ services: [{ name: 'absent', port: 80 }] }],
      },
    })
    await exists(world, HTTPProxy, `${world.space}/proxy`, ({ status }) => status?.currentStatus === 'invalid')
  },
  takeOver: async (world) => ingress(world, 'late'),
  async remove({ client, space }) {
    const tokens: readonly Kind[] = [Gateway, HTTPRoute, HTTPProxy, Ingress]
    for (const token of tokens)
      for (const name of ['gateway', 'route', 'proxy', 'ingress'])
        await client.delete(token, `${space}/${name}`).catch(() => undefined)
  },
}

async function ingress(world: LifeWorld, name: string): Promise<void> {
  await put(world, Ingress, {
    metadata: { namespace: world.space, name },
    spec: ingressSpec(`${name}.gateway.test`, { ingressClassName: 'seamark' }),
  })
  await exists(world, Ingress, `${world.space}/${name}`, ({ status }) => status?.loadBalancer?.ingress?.length === 1)
}
