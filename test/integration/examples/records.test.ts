/**
 * examples/records on top of examples/deploy: the manager runs with exactly the rights of the example, reads its TSIG key from
 * the Secret of the example, and a DNSEndpoint and an HTTPProxy become answers of a DNS server that demands the key.
 */
import { createDnsClient, groupRecords } from '@seamark/dns'
import { HTTPProxy, publishOptions, unified } from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { eventually, setAddresses, environmentKinds } from '../publish/test-environment.ts'
import { startExampleManager } from './example-manager.ts'
import { applyExample } from './manifests.ts'

describe.each(environmentKinds)('examples/records on $name', ({ isMissing, start }) => {
  it.skipIf(isMissing)('serves what it declares, with the rights that examples/deploy grants', async () => {
    await using environment = await start()
    const { client } = environment
    await applyExample(client, 'deploy/seamark.yaml')
    await applyExample(client, 'records/seamark.yaml')
    await applyExample(client, 'contour/load-balancer.yaml')
    await setAddresses(client, 'projectcontour/envoy', [{ ip: '192.0.2.10' }])
    // Every kind of source, so that the rights of each are needed.
    await using manager = await startExampleManager(
      environment,
      'records/seamark.yaml',
      ({ publish }) => ({ publish: publishOptions(publish) }),
      { 'publish-sources': unified.sources.join(',') },
    )
    const { server, refused } = manager
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
      await resolver.close()
    }
    expect(refused).toEqual([])
  })
})
