/**
 * examples/records on top of examples/deploy: the manager runs with exactly the rights of the example, reads its TSIG key from
 * the Secret of the example, and a DNSEndpoint and an HTTPProxy become answers of a DNS server that demands the key.
 */
import { createDnsClient, createDnsServer, createZone, fqdn, groupRecords, createRRset, TsigKey } from '@seamark/dns'
import { configFromText, connect, Secret } from '@seamark/kube'
import { HTTPProxy, loadConfig, publishOptions, runApp, unified } from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { eventually, setAddresses, worldKinds } from '../publish/world.ts'
import { applyExample, readExample } from './manifests.ts'

const ORIGIN = fqdn('example.com.')
const ACCOUNT = 'system:serviceaccount:seamark:seamark'
const GROUPS = ['system:serviceaccounts', 'system:serviceaccounts:seamark', 'system:authenticated']

function configText(file: string): string {
  const map = readExample(file).find(({ kind }) => kind === 'ConfigMap') as
    | { data?: Record<string, string> }
    | undefined
  return map?.data?.['config.yaml'] ?? ''
}

describe.each(worldKinds)('examples/records on $name', ({ isMissing, start }) => {
  it.skipIf(isMissing)('serves what it declares, with the rights that examples/deploy grants', async () => {
    await using world = await start()
    const { client } = world
    await applyExample(client, 'deploy/seamark.yaml')
    await applyExample(client, 'records/seamark.yaml')
    await applyExample(client, 'contour/load-balancer.yaml')
    await setAddresses(client, 'projectcontour/envoy', [{ ip: '192.0.2.10' }])
    const stored = (await client.get(Secret, 'seamark/tsig')).data?.['secret'] ?? ''
    const key = new TsigKey('seamark', 'hmac-sha256', Buffer.from(stored, 'base64').toString())
    const dns = await createDnsServer({
      zones: [
        createZone(ORIGIN, [
          createRRset(ORIGIN, 'SOA', 60, [`ns.${ORIGIN} admin.${ORIGIN} 1 3600 600 86400 30`]),
          createRRset(ORIGIN, 'NS', 60, [`ns.${ORIGIN}`]),
        ]),
      ],
      listen: [{ address: '127.0.0.1', port: 0 }],
      keys: [key],
      defaultPolicy: { updateKeys: [key.name], transferKeys: [key.name] },
    })
    const server = { address: '127.0.0.1', port: dns.addresses[0]?.port ?? 0 }
    const text = configText('records/seamark.yaml').replace('192.0.2.53:53', `${server.address}:${server.port}`)
    // Every kind of source, so that the rights of each are needed.
    const loaded = loadConfig({ file: text, flags: { 'publish-sources': unified.sources.join(',') } })
    if (!loaded.ok) throw new Error(loaded.faults.join('; '))
    const { publish, records, leaderElection, mode } = loaded.config
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
        publish: publishOptions(publish),
        records: { config: records, env: {} },
        leader: { lease: leaderElection.lease, namespace: 'seamark' },
      },
      stop.signal,
    )
    const resolver = createDnsClient()
    const answer = async (name: string): Promise<readonly string[] | undefined> => {
      const reply = await resolver.query({ server, name, type: 'A' })
      return groupRecords(reply.message.answers)[0]?.values
    }
    try {
      expect(await eventually('the DNSEndpoint of the example', async () => answer('status.example.com'))).toEqual([
        '192.0.2.80',
      ])
      await client.create(HTTPProxy, {
        metadata: { namespace: 'seamark', name: 'shop' },
        spec: { virtualhost: { fqdn: 'shop.example.com' } },
      })
      expect(await eventually('the HTTPProxy', async () => answer('shop.example.com'))).toEqual(['192.0.2.10'])
    } finally {
      stop.abort()
      await done
      await resolver.close()
      await cluster.close()
      await dns.close()
    }
    expect(refused).toEqual([])
  })
})
