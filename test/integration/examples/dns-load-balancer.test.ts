/**
 * examples/dns-load-balancer on top of examples/deploy: the manager has exactly the rights of the two examples, creates the
 * CRDs, and the load balancer of the example becomes an answer of a DNS server that demands the key of the example.
 */
import { createDnsServer, createRRset, createZone, fqdn, TsigKey } from '@seamark/dns'
import { configFromText, connect, CustomResourceDefinition, Secret } from '@seamark/kube'
import { DNSLoadBalancer, DNSLoadBalancerEndpoint, loadConfig, runApp } from '@seamark/operator'
import { proberInThisThread } from '@seamark/operator/testing'
import { describe, expect, it } from 'vitest'
import { ask, patience, startBackends } from '../balance/backends.ts'
import { worldKinds } from '../publish/world.ts'
import { applyExample, type Manifest, readExample } from './manifests.ts'

const ORIGIN = fqdn('example.com.')
const ACCOUNT = 'system:serviceaccount:seamark:seamark'
const GROUPS = ['system:serviceaccounts', 'system:serviceaccounts:seamark', 'system:authenticated']

describe.each(worldKinds)('examples/dns-load-balancer on $name', ({ isMissing, start }) => {
  it.skipIf(isMissing)('answers with the healthy endpoint, with the rights that the examples grant', async () => {
    await using world = await start()
    const { client } = world
    await applyExample(client, 'deploy/seamark.yaml')
    await applyExample(client, 'dns-load-balancer/seamark.yaml')
    const stored = (await client.get(Secret, 'seamark/tsig')).data?.['secret'] ?? ''
    const key = new TsigKey('seamark', 'hmac-sha256', Buffer.from(stored, 'base64').toString())
    const zone = createZone(ORIGIN, [
      createRRset(ORIGIN, 'SOA', 60, [`ns.${ORIGIN} admin.${ORIGIN} 1 3600 600 86400 30`]),
      createRRset(ORIGIN, 'NS', 60, [`ns.${ORIGIN}`]),
    ])
    const dns = await createDnsServer({
      zones: [zone],
      listen: [{ address: '127.0.0.1', port: 0 }],
      keys: [key],
      defaultPolicy: { updateKeys: [key.name], transferKeys: [key.name] },
    })
    const backends = await startBackends('127.0.0.1')
    const server = { address: '127.0.0.1', port: dns.addresses[0]?.port ?? 0 }
    const map = readExample('dns-load-balancer/seamark.yaml').find(({ kind }) => kind === 'ConfigMap') as
      | { data?: Record<string, string> }
      | undefined
    const text = (map?.data?.['config.yaml'] ?? '').replace('192.0.2.53:53', `${server.address}:${server.port}`)
    const loaded = loadConfig({ file: text })
    if (!loaded.ok) throw new Error(loaded.faults.join('; '))
    const { records, balance, mode, leaderElection } = loaded.config
    const refused: string[] = []
    const cluster = connect(configFromText(await world.userKubeconfig(ACCOUNT, GROUPS)), {
      fieldManager: 'contour-plus',
      observer: {
        request({ method, code }) {
          if (code === '403') refused.push(method)
        },
      },
    })
    const stop = new AbortController()
    const done = runApp(
      {
        cluster,
        mode,
        namespace: 'seamark',
        allowLoopback: true,
        balance: {
          config: { ...balance, resolver: `${server.address}:${server.port}` },
          startThread: proberInThisThread(20),
        },
        records: { config: records, env: {} },
        leader: { lease: leaderElection.lease, namespace: 'seamark' },
      },
      stop.signal,
    )
    try {
      for (const manifest of readExample('dns-load-balancer/load-balancer.yaml')) {
        const create = async () => createOnLoopback(manifest, backends.port)
        await expect.poll(async () => create().then(() => 'created', String), patience).toBe('created')
      }
      await expect.poll(async () => ask(server, 'shop.example.com'), patience).toBe('127.0.0.1')
      const west = async () => (await client.get(DNSLoadBalancerEndpoint, 'seamark/west')).status
      await expect.poll(west, patience).toMatchObject({ active: false, healthy: false })
      const names = (await client.list(CustomResourceDefinition)).items.map(({ metadata }) => metadata.name)
      expect(names).toContain('dnsproviders.loadbalancer.gardener.cloud')
      expect(refused).toEqual([])
    } finally {
      stop.abort()
      await done
      await cluster.close()
      await backends.close()
      await dns.close()
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
