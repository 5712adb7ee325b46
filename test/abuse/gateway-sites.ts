/** Sites behind an attacked gateway in a network namespace: Services with a backend of the test, and HTTPProxies. */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { EndpointSlice, Service } from '@seamark/kube'
import { HTTPProxy } from '@seamark/kube/contour'
import type { AttackedGateway } from './gateway-victim.ts'

/** A Service of a namespace with one backend. */
export async function serve(
  { client }: AttackedGateway,
  [namespace, name]: readonly [string, string],
  address: string | undefined,
  listener: RequestListener,
): Promise<void> {
  const server = createServer({ maxHeaderSize: 65_536 }, listener)
  await new Promise<void>((resolve) => server.listen(0, address, resolve))
  server.unref()
  const { port } = server.address() as AddressInfo
  await client.create(Service, {
    metadata: { namespace, name },
    spec: { ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
  })
  await client.create(EndpointSlice, {
    metadata: { namespace, name, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    endpoints: [{ addresses: [address ?? ''], conditions: { ready: true } }],
    ports: [{ name: 'http', port, protocol: 'TCP' }],
  })
}

export async function addSite({ client }: AttackedGateway, namespace: string, ...more: object[]): Promise<void> {
  const routes = (more.length === 0 ? [{}] : more).map((each) => ({ services: [{ name: 'web', port: 80 }], ...each }))
  const spec = { virtualhost: { fqdn: `${namespace}.test` }, routes }
  await client.create(HTTPProxy, { metadata: { namespace, name: 'site' }, spec })
}
