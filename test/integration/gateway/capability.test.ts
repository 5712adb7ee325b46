/** The capability `gateway` of `seamark run`: data plane on every replica, statuses by one, also without lease and API server. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findVerb, VERBS } from '@seamark/cli/testing'
import {
  type Client,
  ConfigMap,
  configFromText,
  connect,
  CustomResourceDefinition,
  Lease,
  Namespace,
} from '@seamark/kube'
import { HTTPProxy } from '@seamark/kube/contour'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type EmbeddedServer, startEmbeddedServer } from '../apiserver/embedded-server.ts'
import { crds } from '../publish/test-environment.ts'

const folder = mkdtempSync(join(tmpdir(), 'gateway-capability-'))
let server: EmbeddedServer
let client: Client
let kubeconfig = ''
const cleanups: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  server = await startEmbeddedServer()
  kubeconfig = join(folder, 'kubeconfig')
  writeFileSync(kubeconfig, server.kubeconfig, { mode: 0o600 })
  const cluster = connect(configFromText(server.kubeconfig), { fieldManager: 'user' })
  cleanups.push(async () => cluster.close())
  ;({ client } = cluster)
  for (const definition of crds()) await client.create(CustomResourceDefinition, definition as never)
  await client.create(Namespace, { metadata: { name: 'seamark' } })
})
afterAll(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
  await server.stop()
  rmSync(folder, { recursive: true })
})

interface Replica {
  readonly port: number
  /** How often the manager beside the data plane was started. */
  readonly starts: () => number
  stop(): Promise<void>
}

async function startReplica(...flags: string[]): Promise<Replica> {
  const found = findVerb(VERBS, ['run'])
  if (found === undefined) throw new Error('no verb run')
  const { build } = await found.verb.load()
  const stopping = new AbortController()
  let output = ''
  let announce: (port: number) => void = () => undefined
  const ready = new Promise<number>((resolve) => (announce = resolve))
  const write = (text: string): boolean => {
    output += text
    const port = /^gateway \S+:(\d+) /m.exec(output)?.[1]
    if (port !== undefined) announce(Number(port))
    return true
  }
  const io = {
    stdout: { write } as never,
    stderr: process.stderr,
    env: {},
    signal: stopping.signal,
    exit: () => undefined,
  }
  const running = build(io).parseAsync(
    [
      `--kubeconfig=${kubeconfig}`,
      '--namespace=seamark',
      '--mode=enforce',
      '--log-level=silent',
      '--metrics-address=0',
      '--probes-address=0',
      '--gateway-enabled',
      '--gateway-http-listen=127.0.0.1:0',
      '--gateway-https-listen=127.0.0.1:0',
      ...flags,
    ],
    { from: 'user' },
  )
  const port = await Promise.race([ready, running.then(() => Promise.reject(new Error('the manager ended')))])
  let isStopped = false
  const stop = async () => {
    if (isStopped) return
    isStopped = true
    stopping.abort()
    await running
  }
  cleanups.push(stop)
  return { port, starts: () => output.match(/^ready/gm)?.length ?? 0, stop }
}

async function ask(port: number, host: string): Promise<number> {
  return await new Promise((resolve, reject) => {
    const call = request({ host: '127.0.0.1', port, headers: { host }, agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    call.on('error', reject)
    call.end()
  })
}

async function eventually<T>(read: () => Promise<T>, isRight: (value: T) => boolean): Promise<T> {
  const deadline = Date.now() + 30_000
  for (;;) {
    const value = await read()
    if (isRight(value)) return value
    if (Date.now() > deadline) throw new Error(`still ${JSON.stringify(value)}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

const proxy = (name: string) => ({
  metadata: { namespace: 'default', name },
  spec: { virtualhost: { fqdn: `${name}.test` }, routes: [{ directResponsePolicy: { statusCode: 200 } }] },
})
const statusOf = async (name: string) => (await client.get(HTTPProxy, `default/${name}`)).status?.currentStatus

describe('the capability gateway of seamark run', () => {
  it('serves on every replica, writes statuses once, obeys a pause, and survives the loss of lease and API server', async () => {
    await client.create(HTTPProxy, proxy('one'))
    const [first, second] = await Promise.all([startReplica(), startReplica()])
    expect([await ask(first.port, 'one.test'), await ask(second.port, 'one.test')]).toEqual([200, 200])
    await eventually(
      async () => statusOf('one'),
      (status) => status === 'valid',
    )

    // A pause of the manager stops statuses, not the data plane.
    await client.apply(ConfigMap, {
      metadata: { namespace: 'seamark', name: 'seamark', annotations: { 'seamark.io/pause': 'true' } },
    })
    await client.create(HTTPProxy, proxy('paused'))
    for (const { port } of [first, second])
      await eventually(
        async () => ask(port, 'paused.test'),
        (status) => status === 200,
      )
    expect(await statusOf('paused')).not.toBe('valid')
    await client.delete(ConfigMap, 'seamark/seamark')
    await eventually(
      async () => statusOf('paused'),
      (status) => status === 'valid',
    )

    // Somebody takes the leases of the manager and of the gateway.
    for (const name of ['contour-plus-leader', 'seamark-gateway']) {
      const lease = await client.get(Lease, `seamark/${name}`)
      const renewTime = new Date().toISOString().replace('Z', '000Z')
      await client.update(Lease, {
        ...lease,
        spec: { ...lease.spec, holderIdentity: 'thief', leaseDurationSeconds: 3_600, renewTime },
      })
    }
    await eventually(
      async () => first.starts() + second.starts(),
      (starts) => starts === 3,
    )
    await client.create(HTTPProxy, proxy('later'))
    for (const { port } of [first, second])
      await eventually(
        async () => ask(port, 'later.test'),
        (status) => status === 200,
      )

    // The API server is gone: the last configuration stays.
    await server.stop()
    for (const { port } of [first, second])
      expect([await ask(port, 'one.test'), await ask(port, 'later.test')]).toEqual([200, 200])
    await Promise.all([first.stop(), second.stop()])
  }, 90_000)
})
