/**
 * examples/dns-load-balancer on top of examples/deploy: the manager has exactly the rights of the two examples, creates the
 * CRDs, and the load balancer of the example becomes an answer of a DNS server that demands the key of the example.
 */
import { CustomResourceDefinition } from '@seamark/kube'
import { DNSLoadBalancer, DNSLoadBalancerEndpoint } from '@seamark/operator'
import { proberInThisThread } from '@seamark/operator/testing'
import { describe, expect, it } from 'vitest'
import { ask, POLL_OPTIONS, startBackends } from '../balance/backends.ts'
import { environmentKinds } from '../publish/test-environment.ts'
import { startExampleManager } from './example-manager.ts'
import { applyExample, type Manifest, readExample } from './manifests.ts'

describe.each(environmentKinds)('examples/dns-load-balancer on $name', ({ isMissing, start }) => {
  it.skipIf(isMissing)('answers with the healthy endpoint, with the rights that the examples grant', async () => {
    await using environment = await start()
    const { client } = environment
    await applyExample(client, 'deploy/seamark.yaml')
    await applyExample(client, 'dns-load-balancer/seamark.yaml')
    const backends = await startBackends('127.0.0.1')
    await using manager = await startExampleManager(
      environment,
      'dns-load-balancer/seamark.yaml',
      ({ balance }, { address, port }) => ({
        allowLoopback: true,
        balance: { config: { ...balance, resolver: `${address}:${port}` }, startThread: proberInThisThread(20) },
      }),
    )
    const { server, refused } = manager
    try {
      for (const manifest of readExample('dns-load-balancer/load-balancer.yaml')) {
        const create = async () => createOnLoopback(manifest, backends.port)
        await expect.poll(async () => create().then(() => 'created', String), POLL_OPTIONS).toBe('created')
      }
      await expect.poll(async () => ask(server, 'shop.example.com'), POLL_OPTIONS).toBe('127.0.0.1')
      const west = async () => (await client.get(DNSLoadBalancerEndpoint, 'seamark/west')).status
      await expect.poll(west, POLL_OPTIONS).toMatchObject({ active: false, healthy: false })
      const names = (await client.list(CustomResourceDefinition)).items.map(({ metadata }) => metadata.name)
      expect(names).toContain('dnsproviders.loadbalancer.gardener.cloud')
      expect(refused).toEqual([])
    } finally {
      await backends.close()
    }

    /** The addresses of the example are on no machine. */
    async function createOnLoopback(manifest: Manifest, port: number): Promise<void> {
      if (manifest.kind === 'DNSLoadBalancer') {
        const object = manifest as unknown as DNSLoadBalancer
        const healthCheck = { ...object.spec.healthCheck, port }
        await client.create(DNSLoadBalancer, { ...object, spec: { ...object.spec, healthCheck } })
        return
      }
      const object = manifest as unknown as DNSLoadBalancerEndpoint
      const ipaddress = object.spec.ipaddress?.replace('192.0.2.1', '127.0.0.') ?? ''
      await client.create(DNSLoadBalancerEndpoint, { ...object, spec: { ...object.spec, ipaddress } })
    }
  })
})
