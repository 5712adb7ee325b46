/** `seamark gateway --envoy external`: Envoys that others run, here clients of the test, with statuses of what they reject. */
import { AdsClient } from '@seamark/gateway/testing'
import { EndpointSlice, Service } from '@seamark/kube'
import { HTTPProxy } from '@seamark/kube/contour'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type StartedVerb, startVerb } from './started-verb.ts'
import { startTestCluster, type TestCluster } from './test-cluster.ts'

let cluster: TestCluster
let gateway: StartedVerb
let address = ''

beforeAll(async () => {
  cluster = await startTestCluster()
  const flags = [
    `--kubeconfig=${cluster.kubeconfig}`,
    '--namespace=default',
    '--envoy=external',
    '--xds-port=0',
    '--insecure',
  ]
  gateway = await startVerb('gateway', flags, process.env)
  address = await gateway.line('xds')
})

afterAll(async () => {
  await gateway.stop()
  await cluster.stop()
})

async function host(name: string): Promise<void> {
  const metadata = { namespace: 'default', name }
  await cluster.client.apply(Service, { metadata, spec: { ports: [{ name: 'http', port: 80, protocol: 'TCP' }] } })
  await cluster.client.apply(HTTPProxy, {
    metadata,
    spec: { virtualhost: { fqdn: `${name}.test` }, routes: [{ services: [{ name, port: 80 }] }] },
  })
}

const hostsOf = (client: AdsClient): string[] =>
  (client.get('route', 'ingress_http')?.virtual_hosts ?? []).map(({ name = '' }) => name)

async function programmedOf(name: string): Promise<string | undefined> {
  const { status } = await cluster.client.get(HTTPProxy, `default/${name}`)
  const found = status?.conditions?.find(({ type }) => type === 'Programmed')
  return found === undefined ? undefined : `${found.status} ${found.reason} ${found.message}`
}

it('a client follows objects and endpoints', async () => {
  await host('followed')
  const client = new AdsClient(address)
  client.start()
  await client.until(() => hostsOf(client).includes('followed.test'))
  const name = client.names('endpoints').find((each) => each.startsWith('default/followed/')) ?? ''
  expect(client.get('endpoints', name)?.endpoints).toEqual([])
  await cluster.client.apply(EndpointSlice, {
    metadata: { namespace: 'default', name: 'followed', labels: { 'kubernetes.io/service-name': 'followed' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.1.2.3'] }],
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
  })
  await client.until(() => client.get('endpoints', name)?.endpoints.length === 1)
  expect(client.get('endpoints', name)?.endpoints[0]?.lb_endpoints?.[0]?.endpoint?.address).toMatchObject({
    socket_address: { address: '10.1.2.3', port_value: 8080 },
  })
  client.close()
})

it('what a client rejects is a condition of the object that caused it, and of no other, until it is accepted', async () => {
  await host('blameless')
  let isRejecting = true
  const client = new AdsClient(address, {
    reject: ({ type }) => (isRejecting && type === 'route' && isHostile() ? 'route: bad regex' : undefined),
  })
  let isPublished = false
  const isHostile = (): boolean => isPublished
  client.start()
  await client.until(() => hostsOf(client).includes('blameless.test'))
  isPublished = true
  await host('rejected')
  await expect
    .poll(async () => programmedOf('rejected'), { timeout: 20_000 })
    .toBe('False Invalid Envoy rejected route ingress_http and keeps its last configuration: route: bad regex')
  expect(await programmedOf('blameless')).toBeUndefined()
  isRejecting = false
  await host('another')
  await client.until(() => hostsOf(client).includes('another.test'))
  await expect.poll(async () => programmedOf('rejected'), { timeout: 20_000 }).toBeUndefined()
  client.close()
})
