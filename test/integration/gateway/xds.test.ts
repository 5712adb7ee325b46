/** `seamark gateway --envoy external`: Envoys that others run, here clients of the test, with statuses of what they reject. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findVerb, VERBS } from '@seamark/cli/testing'
import { AdsClient } from '@seamark/gateway/testing'
import { configFromText, connect, CustomResourceDefinition, EndpointSlice, Service, type Cluster } from '@seamark/kube'
import { HTTPProxy } from '@seamark/kube/contour'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { startEmbeddedServer } from '../apiserver/embedded-server.ts'
import { crds } from '../publish/test-environment.ts'
import { gatewayClassCrd } from './crds.ts'

let cluster: Cluster
let address = ''
const folder = mkdtempSync(join(tmpdir(), 'xds-'))
const ends: (() => void | Promise<void>)[] = []

async function run(
  ...args: string[]
): Promise<{ stop: () => Promise<void>; line: (start: string) => Promise<string> }> {
  const verb = await findVerb(VERBS, ['gateway'])?.verb.load()
  if (verb === undefined) throw new Error('no verb gateway')
  const stopping = new AbortController()
  let output = ''
  const write = (text: string) => {
    output += text
    return true
  }
  const io = {
    stdout: { write } as never,
    stderr: process.stderr,
    env: process.env,
    signal: stopping.signal,
    exit: () => undefined,
  }
  const running = verb.build(io).parseAsync(args, { from: 'user' })
  return {
    async line(start) {
      const found = () => output.split('\n').find((line) => line.startsWith(`${start} `))
      await vi.waitUntil(found, { timeout: 20_000 })
      return found()?.slice(start.length + 1) ?? ''
    },
    async stop() {
      stopping.abort()
      await running
    },
  }
}

beforeAll(async () => {
  const server = await startEmbeddedServer()
  ends.push(
    async () => server.stop(),
    () => rmSync(folder, { recursive: true }),
  )
  const file = join(folder, 'kubeconfig')
  writeFileSync(file, server.kubeconfig, { mode: 0o600 })
  cluster = connect(configFromText(server.kubeconfig), { fieldManager: 'user' })
  ends.push(async () => cluster.close())
  for (const definition of [...crds(), ...gatewayClassCrd()])
    await cluster.client.create(CustomResourceDefinition, definition as never)
  const gateway = await run(
    '--kubeconfig',
    file,
    '--namespace=default',
    '--envoy=external',
    '--xds-port=0',
    '--insecure',
  )
  ends.push(gateway.stop)
  address = await gateway.line('xds')
})

afterAll(async () => {
  for (const end of ends.toReversed()) await end()
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
