import { memoryCluster } from '@seamark/kube/testing'
import { expect, it } from 'vitest'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import { dnsEndpointProvider } from './dnsendpoint.ts'

it.each([
  '[{}]',
  '{}',
  'null',
  '[null]',
  'no JSON',
  '[{"name":"www.example.test.","type":"A","ttl":1,"values":["192.0.2.9"]}]',
])('markers that another client changed to %s do not affect the read of other names', async (markers) => {
  const cluster = memoryCluster()
  const provider = dnsEndpointProvider({
    name: 'edns',
    client: cluster.client,
    namespace: 'dns',
    zones: ['example.test.'],
  })
  const zone = { id: 'example.test.', name: 'example.test.' }
  const { signal } = new AbortController()
  const setOf = (label: string) => ({ name: `${label}.example.test.`, type: 'A', ttl: 60, values: ['192.0.2.1'] })
  for (const label of ['shop', 'www']) await provider.apply(zone, [{ from: undefined, to: setOf(label) }], signal)
  const www = cluster.informers.list(DNSEndpoint).find(({ metadata }) => metadata.name.includes('www'))
  if (www === undefined) throw new Error('www has no object')
  const annotations = { ...www.metadata.annotations, 'seamark.io/markers': markers }
  cluster.put(DNSEndpoint, { ...www, metadata: { ...www.metadata, annotations } } as never)
  expect(await provider.read(zone, 'all', signal)).toEqual([setOf('shop'), setOf('www')])
  expect(await provider.read(zone, new Set(['www.example.test.']), signal)).toEqual([setOf('www')])
})
