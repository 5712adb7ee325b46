import { Secret } from '@seamark/kube'
import { DNSEndpoint } from '@seamark/operator'
import { freePort } from '../../integration/dns/peers.ts'
import { answers } from './answers.ts'
import { type Life, put } from './life.ts'
import { endpoint, KEY } from './records.ts'

/** The DNS server of the manager, with its zones in ConfigMaps: every replica answers. */
export function dns(): Life {
  let ports: number[] = []
  const every = async (name: string, ...targets: string[]): Promise<void> => {
    for (const port of ports) await answers(port, name, ...targets)
  }
  return {
    parts: ['dns'],
    async prepare(world) {
      ports = [await freePort(), await freePort()]
      await put(world, Secret, { metadata: { namespace: world.home, name: 'tsig' }, stringData: { secret: KEY } })
    },
    values: ({ home }) => ({
      dns: { enabled: true },
      config: {
        dns: {
          zones: ['dns.test'],
          keys: [{ name: 'life', secretFrom: { secret: `${home}/tsig`, key: 'secret' } }],
        },
      },
    }),
    flags: (replica) => ['--dns-listen', `127.0.0.1:${ports[replica] ?? 0}`],
    async start(world) {
      await endpoint(world, 'one', '203.0.113.1', 'dns.test')
      await every('one.dns.test.', '203.0.113.1')
    },
    async change(world) {
      await endpoint(world, 'one', '203.0.113.2', 'dns.test')
      await every('one.dns.test.', '203.0.113.2')
    },
    async takeOver(world) {
      ports = ports.slice(1)
      await endpoint(world, 'two', '203.0.113.3', 'dns.test')
      await every('two.dns.test.', '203.0.113.3')
    },
    async remove(world) {
      await world.client.delete(DNSEndpoint, `${world.space}/one`)
      await every('one.dns.test.')
    },
  }
}
