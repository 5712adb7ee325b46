import { createDnsServer, createRRset, createZone, DnsError, fqdn, type Zone } from '@seamark/dns'
import { describe, expect, it } from 'vitest'
import { CONFORMANCE } from './conformance.ts'
import { embeddedProvider } from './embedded.ts'

function emptyZone(): Zone {
  const origin = fqdn('example.com.')
  return createZone(origin, [
    createRRset(origin, 'SOA', 60, [`ns.${origin} admin.${origin} 1 3600 600 86400 30`]),
    createRRset(origin, 'NS', 60, [`ns.${origin}`]),
  ])
}

describe('our own server as a provider', () => {
  it.each(CONFORMANCE.map((item) => [item.title, item] as const))('%s', async (_title, item) => {
    const zone = { id: 'example.com.', name: 'example.com.' }
    const server = await createDnsServer({ zones: [emptyZone()], listen: [] })
    const { signal } = new AbortController()
    await expect(item.run({ provider: embeddedProvider({ server }), zone, signal })).resolves.toBeUndefined()
    await server.close()
  })
})

it('a zone that cannot be stored is reported with the cause of the store, and the change is retried later', async () => {
  const zone = emptyZone()
  const { origin } = zone
  const provider = embeddedProvider({
    server: {
      *zones() {
        yield zone
      },
      findZone: () => zone,
      commit: async () => {
        throw new DnsError('STORE_WRITE', 'zone example.com. is not written: no space left on device')
      },
    },
  })
  const to = { name: 'www.example.com.', type: 'A', ttl: 60, values: ['192.0.2.1'] }
  await expect(
    provider.apply({ id: origin, name: origin }, [{ from: undefined, to }], AbortSignal.abort()),
  ).rejects.toMatchObject({
    code: 'ZoneNotStored',
    message: expect.stringContaining('no space left on device'),
  })
})
