import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Ingress, type Kind, Service } from '@seamark/kube'
import { DNSLoadBalancer, DNSLoadBalancerEndpoint, Gateway } from '@seamark/operator'
import { ingressSpec, isGone, type Life, type LifeWorld, published, put, putStatus } from './life.ts'

const annotations = { 'loadbalancer.gardener.cloud/dnsloadbalancer': 'shop' }

async function balancer(world: LifeWorld, name: string, host: string, port: number): Promise<void> {
  await put(world, DNSLoadBalancer, {
    metadata: { namespace: world.space, name },
    spec: { DNSName: host, healthPath: '/healthz', healthCheck: { scheme: 'http', port, profile: 'fast' } },
  })
  await put(world, DNSLoadBalancerEndpoint, {
    metadata: { namespace: world.space, name: `${name}-east` },
    spec: { loadbalancer: name, ipaddress: '127.0.0.1' },
  })
}

const sources: readonly Kind[] = [Ingress, Service, Gateway]

export function balance(): Life {
  const backend = createServer((_request, response) => void response.end('ok'))
  const port = (): number => (backend.address() as AddressInfo).port
  const stop = async (): Promise<void> => {
    backend.closeAllConnections()
    await new Promise((resolve) => backend.close(resolve))
  }
  return {
    parts: ['balance'],
    values: () => ({ config: { balance: { enabled: true, onAllUnhealthy: 'Remove' } } }),
    async prepare() {
      await new Promise<void>((resolve) => void backend.listen(0, '127.0.0.1', resolve))
    },
    async start(world) {
      const { space } = world
      await balancer(world, 'shop', 'shop.balance.test', port())
      await put(world, Service, {
        metadata: { namespace: space, name: 'web', annotations },
        spec: { type: 'LoadBalancer', ports: [{ port: 80 }] },
      })
      await put(world, Ingress, {
        metadata: { namespace: space, name: 'web', annotations },
        spec: ingressSpec('shop.balance.test'),
      })
      await put(world, Gateway, {
        metadata: { namespace: space, name: 'web', annotations },
        spec: {
          gatewayClassName: 'some',
          listeners: [{ name: 'http', port: 80, protocol: 'HTTP', hostname: 'shop.balance.test' }],
        },
      })
      const ingress = [{ ip: '127.0.0.2' }]
      await putStatus(world, Service, `${space}/web`, { loadBalancer: { ingress } })
      await putStatus(world, Ingress, `${space}/web`, { loadBalancer: { ingress } })
      await putStatus(world, Gateway, `${space}/web`, { addresses: [{ type: 'IPAddress', value: '127.0.0.3' }] })
      await published(world, space, 'shop.balance.test')
    },
    async change(world) {
      await balancer(world, 'shop', 'changed.balance.test', port())
      await published(world, world.space, 'changed.balance.test')
    },
    async takeOver(world) {
      await balancer(world, 'late', 'late.balance.test', port())
      await published(world, world.space, 'late.balance.test')
    },
    async remove(world) {
      const { client, space } = world
      // A backend that dies, with the setting that takes the last address away.
      await stop()
      await published(world, space, 'late.balance.test', false)
      await client.delete(DNSLoadBalancer, `${space}/shop`)
      for (const token of sources) await client.delete(token, `${space}/web`)
      for (const token of sources) await isGone(world, token, `${space}/web`)
    },
    end: stop,
  }
}
