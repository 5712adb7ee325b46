/** The conformance kit on etcd in the layout of CoreDNS' etcd plug-in, and what the plug-in would find there. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram, needs } from '@seamark/kit'
import { corednsProvider } from '@seamark/operator'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../dns/peers.ts'
import { eventually } from '../publish/test-environment.ts'
import { describeProvider } from './describe-provider.ts'

const ZONE = 'example.test.'
const zone = { id: ZONE, name: ZONE }

async function startEtcd(): Promise<{ url: string; close(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'seamark-etcd-'))
  const [client, peer] = [await freePort(), await freePort()]
  const url = `http://127.0.0.1:${client}`
  const peerUrl = `http://127.0.0.1:${peer}`
  const child = spawn(
    findProgram('etcd') ?? 'etcd',
    [
      '--data-dir',
      folder,
      '--listen-client-urls',
      url,
      '--advertise-client-urls',
      url,
      '--listen-peer-urls',
      peerUrl,
      '--initial-advertise-peer-urls',
      peerUrl,
      '--initial-cluster',
      `default=${peerUrl}`,
      '--unsafe-no-fsync',
    ],
    { stdio: 'ignore' },
  )
  const ended = once(child, 'exit')
  const isReady = async () => (await fetch(`${url}/health`)).ok
  await eventually(
    'etcd answers',
    async () => isReady().catch(() => undefined),
    (isUp) => isUp,
  )
  return {
    url,
    async close() {
      child.kill('SIGTERM')
      await ended
      await rm(folder, { recursive: true, force: true })
    },
  }
}

describeProvider('CoreDNS by etcd', needs('etcd'), async () => {
  const etcd = await startEtcd()
  const provider = corednsProvider({ name: 'coredns', url: etcd.url, zones: [ZONE] })
  return { provider, zone, close: async () => etcd.close() }
})

describe.skipIf(!needs('etcd'))('the layout in etcd', () => {
  let etcd: Awaited<ReturnType<typeof startEtcd>>
  beforeAll(async () => {
    etcd = await startEtcd()
  }, 60_000)
  afterAll(async () => etcd.close())

  const { signal } = new AbortController()
  const call = async (path: string, body: object) => {
    const response = await fetch(`${etcd.url}/v3/kv/${path}`, { method: 'POST', body: JSON.stringify(body) })
    return (await response.json()) as { kvs?: { key: string; value: string }[] }
  }
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  const text = (encoded: string) => Buffer.from(encoded, 'base64').toString()

  it('has one key for each value, as SkyDNS has it', async () => {
    const provider = corednsProvider({ name: 'coredns', url: etcd.url, zones: [ZONE] })
    const to = { name: 'www.example.test.', type: 'A', ttl: 60, values: ['192.0.2.1', '192.0.2.2'] }
    await provider.apply(zone, [{ from: undefined, to }], signal)
    const { kvs = [] } = await call('range', {
      key: base64('/skydns/test/example/www/'),
      range_end: base64('/skydns/test/example/www0'),
    })
    const found = kvs.map(({ key, value }) => [
      text(key).replace(/[0-9a-f]{16}$/, 'HASH'),
      JSON.parse(text(value)) as object,
    ])
    expect(found.map(([key]) => key)).toEqual(Array(2).fill('/skydns/test/example/www/_sm-a-HASH'))
    expect(found.map(([, value]) => value)).toEqual(
      expect.arrayContaining([
        { host: '192.0.2.1', ttl: 60 },
        { host: '192.0.2.2', ttl: 60 },
      ]),
    )
    await provider.apply(zone, [{ from: to, to: undefined }], signal)
  })

  it('shows a key of another writer as a record that is never changed', async () => {
    const provider = corednsProvider({ name: 'coredns', url: etcd.url, zones: [ZONE] })
    await call('put', { key: base64('/skydns/test/example/old'), value: base64('{"host":"192.0.2.9","ttl":30}') })
    expect(await provider.read(zone, new Set(['old.example.test.']), signal)).toEqual([
      { name: 'old.example.test.', type: 'A', ttl: 30, values: ['192.0.2.9'], opaque: 'a key of another writer' },
    ])
  })
})
