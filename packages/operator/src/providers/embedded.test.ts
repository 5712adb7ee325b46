import { createRRset, createZone, DnsError, fqdn } from '@seamark/dns'
import { expect, it } from 'vitest'
import { embeddedProvider } from './embedded.ts'

it('a zone that cannot be stored is reported with the cause of the store, and the change is retried later', async () => {
  const origin = fqdn('example.com.')
  const zone = createZone(origin, [
    createRRset(origin, 'SOA', 60, [`ns.${origin} admin.${origin} 1 3600 600 86400 30`]),
    createRRset(origin, 'NS', 60, [`ns.${origin}`]),
  ])
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
