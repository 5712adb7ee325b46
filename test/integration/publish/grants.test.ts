/**
 * Names without a grant where no admission webhook refused them: a source and a DNSEndpoint written by hand get the code in
 * condition and Event, nothing is published for them, and other objects go on.
 */
import { type Client, Event } from '@seamark/kube'
import {
  DNSEndpoint,
  HTTPProxy,
  memoryProvider,
  publishOptions,
  PublishConfig,
  RecordsConfig,
  runApp,
} from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { Bench, endpointsOf } from './bench.ts'
import { crdsInUse, environmentKinds } from './test-environment.ts'

const ZONE = 'example.test.'
const grants = [
  { namespace: 'ns', domains: ['ns.example.test'] },
  { namespace: 'ns2', domains: ['ns2.example.test'] },
]
const WHY = 'namespace ns may use names in ns.example.test; www.ns2.example.test is not granted to it'

const proxy = (namespace: string, name: string, fqdn: string): HTTPProxy => ({
  metadata: { namespace, name },
  spec: { virtualhost: { fqdn } },
})
const endpoint = (name: string, dnsName: string): DNSEndpoint => ({
  metadata: { namespace: 'ns', name },
  spec: { endpoints: [{ dnsName, recordType: 'A', recordTTL: 60, targets: ['192.0.2.1'] }] },
})

describe.each(environmentKinds)(`names without a grant on $name, ${crdsInUse}`, ({ isMissing, start }) => {
  it.skipIf(isMissing)('are not published, with a code that says why; others are', async () => {
    await using environment = await start()
    const bench = await Bench.prepare(environment)
    const { client } = bench
    const memory = memoryProvider({ zones: [ZONE] })
    const config = PublishConfig.parse({ services: [{ service: 'test-ns/test-svc' }], sources: ['HTTPProxy'] })
    const records = RecordsConfig.parse({ enabled: true, owner: 'grants', dnsEndpoints: { enabled: true } })
    await using _app = environment.launch('contour-plus', async (cluster, { clock }, signal) =>
      runApp(
        {
          cluster,
          clock,
          namespace: 'manager',
          mode: 'enforce',
          publish: publishOptions(config),
          grants,
          records: { config: records, env: {}, providers: [memory] },
        },
        signal,
      ),
    )
    await client.create(HTTPProxy, proxy('ns', 'denied', 'www.ns2.example.test'))
    await client.create(DNSEndpoint, endpoint('by-hand', 'www.ns2.example.test'))
    await client.create(HTTPProxy, proxy('ns', 'granted', 'www.ns.example.test'))
    await client.create(HTTPProxy, proxy('ns2', 'granted', 'www.ns2.example.test'))
    await client.create(DNSEndpoint, endpoint('good', 'hand.ns.example.test'))

    expect(endpointsOf(await bench.dns('ns2/granted'))).toEqual(['www.ns2.example.test 3600 A 10.0.0.0'])
    expect(endpointsOf(await bench.dns('ns/granted'))).toEqual(['www.ns.example.test 3600 A 10.0.0.0'])
    expect((await eventOn(bench, client, 'HTTPProxy', 'denied')).note).toContain(WHY)
    expect((await eventOn(bench, client, 'DNSEndpoint', 'by-hand')).note).toContain(WHY)
    const condition = await bench.eventually('the condition', async () => {
      const { status } = await client.get(HTTPProxy, 'ns/denied')
      const { conditions = [] } = (status ?? {}) as { conditions?: { type: string; status: string; reason: string }[] }
      return conditions.find(({ type }) => type === 'seamark.io/Published')
    })
    expect(condition).toMatchObject({ status: 'False', reason: 'NameNotGranted' })
    expect(await client.find(DNSEndpoint, 'ns/denied')).toBeUndefined()
    const written = () =>
      memory.dump(ZONE).flatMap(({ name, type, values }) => (type === 'A' ? [`${name} ${values.join()}`] : []))
    const wanted = [
      `hand.ns.${ZONE} 192.0.2.1`,
      `www.ns.${ZONE} 10.0.0.0`,
      // Of ns2, and not the address that ns wrote by hand.
      `www.ns2.${ZONE} 10.0.0.0`,
    ]
    await expect.poll(written, { timeout: 30_000 }).toEqual(wanted)
  })
})

async function eventOn(bench: Bench, client: Client, kind: string, name: string): Promise<Event> {
  return await bench.eventually(`an Event on ${kind} ${name}`, async () => {
    const { items } = await client.list(Event, { namespace: 'ns' })
    return items.find(
      ({ reason, regarding }) => reason === 'NameNotGranted' && regarding?.kind === kind && regarding.name === name,
    )
  })
}
