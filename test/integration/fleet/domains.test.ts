/** A namespace proves that it may use a domain by a TXT record, which is asked of the servers of the zone. */
import { createDnsServer, createRRset, createZone, fqdn } from '@seamark/dns'
import { Ingress } from '@seamark/kube'
import { DomainVerification, GlobalIngressPolicy } from '@seamark/operator'
import { expect, it } from 'vitest'
import { FleetEnvironment, POLL_OPTIONS, root } from './test-environment.ts'

const origin = fqdn('example.com.')

function zoneWith(...records: Parameters<typeof createRRset>[]) {
  return createZone(origin, [
    createRRset(origin, 'SOA', 60, [`ns.${origin} hostmaster.${origin} 1 3600 600 86400 1`]),
    createRRset(origin, 'NS', 60, [`ns.${origin}`]),
    ...records.map((record) => createRRset(...record)),
  ])
}

it('a host of an unverified domain has no leaf until the TXT record has the token', async () => {
  const dns = await createDnsServer({ zones: [zoneWith()], listen: [{ address: '127.0.0.1', port: 0 }] })
  try {
    await using environment = await FleetEnvironment.start(['eu1'])
    const { client } = environment.hub
    await environment.register('eu1')
    await environment.deploy('eu1')
    await client.create(GlobalIngressPolicy, {
      metadata: { namespace: 'shop', name: 'shop' },
      spec: { selector: { matchLabels: {} }, hosts: { customDomains: 'VerifiedOnly' } },
    } as GlobalIngressPolicy)
    await client.create(DomainVerification, {
      metadata: { namespace: 'shop', name: 'example' },
      spec: { domain: 'example.com' },
    })
    await client.create(Ingress, root())
    const app = environment.run({ dnsServers: [`127.0.0.1:${dns.addresses[0]?.port}`] })
    const condition = async (type: string) => {
      const found = (await environment.global())?.status?.conditions?.find((each) => each.type === type)
      return `${found?.status} ${found?.reason}`
    }
    await expect.poll(async () => condition('HostsOwned'), POLL_OPTIONS).toBe('False DomainUnverified')
    const proof = async () => (await client.get(DomainVerification, 'shop/example')).status
    await expect.poll(async () => (await proof())?.token, POLL_OPTIONS).toMatch(/^[0-9a-f]{32}$/)
    expect(await environment.exists('eu1', Ingress, 'shop/shop')).toBe(false)
    const { token = '', conditions = [] } = (await proof()) ?? {}
    expect(conditions[0]?.message).toBe(`publish _seamark-challenge.example.com TXT "${token}"`)
    await app.stop()

    // A restart checks at once, and keeps the token.
    dns.swap(zoneWith([`_seamark-challenge.${origin}`, 'TXT', 60, [`"${token}"`]]))
    environment.run({ dnsServers: [`127.0.0.1:${dns.addresses[0]?.port}`] })
    await expect.poll(async () => (await proof())?.verified, POLL_OPTIONS).toBe(true)
    expect((await proof())?.token).toBe(token)
    await expect.poll(async () => environment.exists('eu1', Ingress, 'shop/shop'), POLL_OPTIONS).toBe(true)
    await expect.poll(async () => condition('HostsOwned'), POLL_OPTIONS).toBe('True HostsOwned')
  } finally {
    await dns.close()
  }
})
