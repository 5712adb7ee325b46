import { createDnsServer, createRRset, createZone, type DnsServer, fqdn, TsigKey } from '@seamark/dns'
import { Secret } from '@seamark/kube'
import { DNSEndpoint } from '@seamark/operator'
import { answers } from './answers.ts'
import { type Life, type LifeWorld, put } from './life.ts'

const ORIGIN = fqdn('records.test.')
export const KEY = 'c2VhbWFyay1leGFtcGxlLWtleS1vZi0zMi1vY3RldHM='

/** A provider whose key is in a Secret. */
export function records(): Life {
  let server: DnsServer | undefined
  const port = (): number => server?.addresses[0]?.port ?? 0
  return {
    parts: ['records'],
    values: ({ home }) => ({
      config: {
        records: {
          enabled: true,
          dnsEndpoints: { enabled: true },
          providers: [
            {
              name: 'primary',
              type: 'rfc2136',
              server: `127.0.0.1:${port()}`,
              zones: ['records.test'],
              key: { name: 'life', algorithm: 'hmac-sha256', secretFrom: { secret: `${home}/tsig`, key: 'secret' } },
            },
          ],
        },
      },
    }),
    async prepare(world) {
      await put(world, Secret, { metadata: { namespace: world.home, name: 'tsig' }, stringData: { secret: KEY } })
      const key = new TsigKey('life', 'hmac-sha256', KEY)
      const zone = createZone(ORIGIN, [
        createRRset(ORIGIN, 'SOA', 60, [`ns.${ORIGIN} admin.${ORIGIN} 1 3600 600 86400 30`]),
        createRRset(ORIGIN, 'NS', 60, [`ns.${ORIGIN}`]),
      ])
      server = await createDnsServer({
        zones: [zone],
        listen: [{ address: '127.0.0.1', port: 0 }],
        keys: [key],
        defaultPolicy: { updateKeys: [key.name], transferKeys: [key.name] },
      })
    },
    async start(world) {
      await endpoint(world, 'one', '203.0.113.1')
      await answers(port(), `one.${ORIGIN}`, '203.0.113.1')
    },
    async change(world) {
      await endpoint(world, 'one', '203.0.113.2')
      await answers(port(), `one.${ORIGIN}`, '203.0.113.2')
    },
    async takeOver(world) {
      await endpoint(world, 'two', '203.0.113.3')
      await answers(port(), `two.${ORIGIN}`, '203.0.113.3')
    },
    async remove(world) {
      await world.client.delete(DNSEndpoint, `${world.space}/one`)
      await answers(port(), `one.${ORIGIN}`)
    },
    end: async () => server?.close(),
  }
}

export async function endpoint(world: LifeWorld, name: string, target: string, zone = 'records.test'): Promise<void> {
  await put(world, DNSEndpoint, {
    metadata: { namespace: world.space, name },
    spec: { endpoints: [{ dnsName: `${name}.${zone}`, recordType: 'A', recordTTL: 60, targets: [target] }] },
  })
}
