/**
 * The gateway as a process on an embedded API server with the objects of the gateway's figures; Envoy, where it is found,
 * and a bare ADS client follow it. Measures how long changes take, and what a restart sends.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { findProgram } from '@seamark/kit'
import { AdsClient } from '@seamark/gateway/testing'
import { type Client, configFromText, connect, EndpointSlice, Ingress, Namespace, Service } from '@seamark/kube'
import { HTTPProxy } from '@seamark/kube/contour'
import type { Kind, Obj } from '@seamark/kube/object'
import { startCluster } from '../publish/cluster.ts'
import { environmentOf } from './objects.ts'

const IN_FLIGHT = 32
const CHANGES = 100
const ENDPOINT_CHANGES = 200
/** Between two requests to Envoy, which shares the cores with what is measured; part of the result. */
const POLL_MS = 5
const HOST = 'host-0.example.test'
const PROXY = 'team-0/proxy-0'
const ENTRY = join(import.meta.dirname, '../../../packages/cli/src/index.ts')

export interface XdsResult {
  /** p99 from the write of an HTTPProxy to the acknowledgement, or to the first answer of Envoy by the new route. */
  readonly changeMs: number
  /** p99 from the write of an EndpointSlice to the acknowledgement. */
  readonly endpointMs: number
  /** Responses that a client with the whole configuration got from a restarted control plane. */
  readonly pushes: number
}

export const usesEnvoy = (): boolean => findProgram('envoy') !== undefined

interface Gateway {
  readonly child: ChildProcess
  readonly xds: string
  readonly http: { readonly host: string; readonly port: number }
}

export async function measureXds(): Promise<XdsResult> {
  const cluster = await startCluster('embedded')
  const folder = await mkdtemp(join(tmpdir(), 'xds-'))
  const connection = connect(configFromText(cluster.kubeconfig))
  let gateway: Gateway | undefined
  try {
    const { client } = connection
    await createAll(client)
    gateway = await startGateway(cluster.path, folder)
    await untilStatuses(client)
    // A second client would share the cores with Envoy while its changes are measured.
    const measured = usesEnvoy() ? await measureEnvoy(client, gateway) : undefined
    const observer = new AdsClient(gateway.xds)
    observer.start()
    await observer.until(() => observer.names('route').length > 0)
    const changeMs = measured ?? (await measureChanges(client, observer))
    const endpointMs = await measureEndpoints(client, observer)
    const versions = observer.versions()
    observer.close()
    gateway.child.kill('SIGKILL')
    await once(gateway.child, 'exit')
    gateway = await startGateway(cluster.path, folder)
    const again = new AdsClient(gateway.xds, { versions })
    again.start()
    // Whatever a restart sends comes before this change.
    const revision = ENDPOINT_CHANGES + 1
    await writeEndpoints(client, revision)
    await again.until(() => hasEndpoint(again, revision))
    const pushes = again.received.length - 1
    again.close()
    return { changeMs, endpointMs, pushes }
  } finally {
    if (gateway !== undefined) {
      const exited = once(gateway.child, 'exit')
      gateway.child.kill('SIGTERM')
      await exited
    }
    await connection.close()
    await cluster.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

async function createAll(client: Client): Promise<void> {
  const environment = environmentOf()
  const namespaces = Array.from({ length: 200 }, (_, index) => ({ metadata: { name: `team-${index}` } }))
  await inParallel(namespaces, async (each) => client.create(Namespace, each))
  for (const kind of [Service, HTTPProxy, Ingress] as Kind[])
    await inParallel(environment.list(kind), async (each) => client.create(kind, withoutServerFields(each as Obj)))
  await writeEndpoints(client, 0)
}

function withoutServerFields({ metadata: { name, namespace }, ...rest }: Obj): Obj {
  const { kind: _kind, ...fields } = rest
  return { ...fields, metadata: { ...(name !== undefined && { name }), ...(namespace !== undefined && { namespace }) } }
}

async function inParallel<T>(items: readonly T[], run: (item: T) => Promise<unknown>): Promise<void> {
  const queue = items.values()
  await Promise.all(
    Array.from({ length: IN_FLIGHT }, async () => {
      for (const item of queue) await run(item)
    }),
  )
}

async function startGateway(kubeconfig: string, folder: string): Promise<Gateway> {
  const program = findProgram('envoy')
  const flags = [
    `--envoy=${program ?? 'external'}`,
    `--envoy-directory=${join(folder, 'envoy')}`,
    '--xds-port=0',
    '--insecure',
    '--http-listen=127.0.0.1:0',
    '--https-listen=127.0.0.1:0',
    '--ingress-status-address=192.0.2.10',
    '--disable-leader-election',
    '--namespace=default',
    `--kubeconfig=${kubeconfig}`,
  ]
  const args = ['--conditions=source', '--import', 'tsx', ENTRY, 'gateway', ...flags]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] })
  return await new Promise((resolve, reject) => {
    let output = ''
    child.once('exit', (code) => reject(new Error(`the gateway ended with ${code}`)))
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk
      const xds = /^xds (\S+)$/m.exec(output)?.[1]
      const ready = /^ready (\S+):(\d+) /m.exec(output)
      if (xds === undefined || ready === null) return
      resolve({ child, xds, http: { host: ready[1] ?? '', port: Number(ready[2]) } })
    })
  })
}

/** The first statuses of all objects are not part of what is measured. */
async function untilStatuses(client: Client): Promise<void> {
  for (;;) {
    const { items } = await client.list(HTTPProxy)
    if (items.every(({ status }) => status?.currentStatus === 'valid')) return
    await setTimeout(200)
  }
}

async function measureEnvoy(client: Client, { http }: Gateway): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  try {
    return await timeChanges(client, async (body) => {
      while ((await get(http, agent)) !== body) await setTimeout(POLL_MS)
    })
  } finally {
    agent.destroy()
  }
}

async function measureChanges(client: Client, observer: AdsClient): Promise<number> {
  return await timeChanges(client, async (body) => observer.until(() => answerOf(observer) === body))
}

/** @param seen resolves when the data plane has the route that answers with this body */
async function timeChanges(client: Client, seen: (body: string) => Promise<void>): Promise<number> {
  const times: number[] = []
  for (let revision = 1; revision <= CHANGES; revision++) {
    const body = `revision ${revision}`
    const started = performance.now()
    await client.patch(HTTPProxy, PROXY, 'merge', {
      spec: { routes: [{ conditions: [{ prefix: '/' }], directResponsePolicy: { statusCode: 200, body } }] },
    })
    await seen(body)
    times.push(performance.now() - started)
  }
  return p99(times)
}

async function get(address: { host: string; port: number }, agent: Agent): Promise<string> {
  return await new Promise((resolve, reject) => {
    const call = request({ ...address, agent, headers: { host: HOST } }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.on('end', () => resolve(text))
    })
    call.on('error', reject)
    call.end()
  })
}

function answerOf(observer: AdsClient): string | undefined {
  const host = observer.get('route', 'ingress_http')?.virtual_hosts.find(({ name }) => name === HOST)
  return host?.routes?.[0]?.direct_response?.body?.inline_string
}

async function measureEndpoints(client: Client, observer: AdsClient): Promise<number> {
  const times: number[] = []
  for (let revision = 1; revision <= ENDPOINT_CHANGES; revision++) {
    const started = performance.now()
    await writeEndpoints(client, revision)
    await observer.until(() => hasEndpoint(observer, revision))
    times.push(performance.now() - started)
  }
  return p99(times)
}

async function writeEndpoints(client: Client, revision: number): Promise<void> {
  await client.apply(EndpointSlice, {
    metadata: { namespace: 'team-1', name: 'svc-1', labels: { 'kubernetes.io/service-name': 'svc-1' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.0.0.1'] }],
    ports: [{ name: 'p80', port: 10_000 + revision, protocol: 'TCP' }],
  })
}

function hasEndpoint(observer: AdsClient, revision: number): boolean {
  const name = observer.names('endpoints').find((each) => each.startsWith('team-1/svc-1/')) ?? ''
  const [locality] = observer.get('endpoints', name)?.endpoints ?? []
  return locality?.lb_endpoints?.[0]?.endpoint?.address?.socket_address?.port_value === 10_000 + revision
}

function p99(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.ceil(sorted.length * 0.99) - 1] ?? Number.NaN
}
