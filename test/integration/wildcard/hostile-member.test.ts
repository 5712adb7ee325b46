/**
 * What a broken or hostile member cluster may send: the manager holds what is published for it, reports why, and continues with
 * the other clusters. The member is a scripted server, the hub an embedded one.
 */
import { Secret } from '@seamark/kube'
import { END, externalAddress, isStream, isWatch, node, streamNodes } from '@seamark/kit/scripted-nodes'
import { type PeerExchange, startPeer } from '@seamark/kube/testing'
import { DNSEndpoint } from '@seamark/operator'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type UserCluster, type TestEnvironment, environmentKinds } from '../publish/test-environment.ts'
import { addNode, WildcardBench } from './bench.ts'

const [embedded] = environmentKinds
let environment: TestEnvironment
let bench: WildcardBench
const peers: (() => Promise<void>)[] = []

beforeAll(async () => {
  if (embedded === undefined) throw new Error('no embedded environment')
  environment = await embedded.start()
  await WildcardBench.prepare(environment)
  bench = new WildcardBench(environment)
})
afterEach(async () => {
  await bench.wipe()
  for (const close of peers.splice(0)) await close()
})
afterAll(async () => environment[Symbol.asyncDispose]())

async function hostile(script: (exchange: PeerExchange) => unknown): Promise<{ kubeconfig: string }> {
  const peer = await startPeer({ script: (exchange) => void script(exchange) })
  peers.push(peer.close)
  return { kubeconfig: peer.kubeconfig() }
}

const GOOD = '*.good.clusters.example.com 60 A 192.0.2.1,192.0.2.2,192.0.2.3'

async function publishGood(): Promise<UserCluster> {
  const cluster = await bench.three('good')
  await bench.register('good', cluster)
  await bench.expectLines('good', GOOD)
  return cluster
}

/** The other cluster is followed. */
async function expectToFollow({ client }: UserCluster): Promise<void> {
  await addNode(client, 'd', { external: ['192.0.2.4'] })
  await bench.expectLines('good', `${GOOD},192.0.2.4`)
}

async function expectOthersToGoOn(): Promise<void> {
  await expectToFollow(await publishGood())
}

describe('a hostile member cluster', () => {
  it('that sends nodes without end is cut off with an Event, and the others go on', async () => {
    const evil = await hostile((exchange) => {
      if (!isStream(exchange)) return exchange.reply(503, {})
      return streamNodes(exchange, 30_000)
    })
    await using _app = bench.run()
    await bench.register('evil', evil)
    await bench.reported('evil', 'ClusterOverLimit')
    await expectOthersToGoOn()
    expect(await bench.read('evil')).toBeUndefined()
  })

  it('that sends a node with 70 000 addresses keeps what is published', async () => {
    const streams: PeerExchange[] = []
    const evil = await hostile((exchange) => {
      if (!isWatch(exchange)) return exchange.reply(503, {})
      exchange.start()
      streams.push(exchange)
      if (!isStream(exchange)) return undefined
      exchange.frame('ADDED', node('n', [externalAddress('198.51.100.1')]))
      return exchange.frame('BOOKMARK', END)
    })
    await using _app = bench.run()
    await bench.register('evil', evil)
    await bench.expectLines('evil', '*.evil.clusters.example.com 60 A 198.51.100.1')
    const addresses = Array.from({ length: 70_000 }, (_, index) =>
      externalAddress(`192.${index >> 16}.${(index >> 8) & 255}.${index & 255}`),
    )
    const text = `${JSON.stringify({ type: 'MODIFIED', object: node('n', addresses.slice(0, 20_000), 10) })}\n`
    streams.at(-1)?.write(text)
    await bench.reported('evil', 'ClusterOverLimit')
    streams.at(-1)?.write(`${JSON.stringify({ type: 'MODIFIED', object: node('n', addresses, 11) })}\n`)
    await expectOthersToGoOn()
    const { spec } = await environment.client.get(DNSEndpoint, 'manager/evil-wildcard')
    expect(spec.endpoints).toMatchObject([{ targets: ['198.51.100.1'] }])
  })

  it('that sends nodes of wrong types is read as far as they make sense', async () => {
    const evil = await hostile((exchange) => {
      if (!isStream(exchange)) return exchange.reply(503, {})
      exchange.start()
      exchange.frame('ADDED', node('bad1', 'text'))
      exchange.frame('ADDED', node('bad2', [null, { type: 'ExternalIP', address: 7 }]))
      exchange.frame('ADDED', { metadata: { name: 'bad3', labels: 5 }, status: { conditions: 5, addresses: {} } })
      exchange.frame('ADDED', node('good', [externalAddress('198.51.100.1')]))
      return exchange.frame('BOOKMARK', END)
    })
    await using _app = bench.run()
    await bench.register('evil', evil)
    const { metadata } = await bench.expectLines('evil', '*.evil.clusters.example.com 60 A 198.51.100.1')
    expect(metadata.generation).toBe(1)
  })

  it('that does not answer a list delays no other cluster', async () => {
    const addresses = Array.from({ length: 10 }, (_, index) => externalAddress(`198.51.100.${index}`))
    const streams: PeerExchange[] = []
    const lists: PeerExchange[] = []
    const evil = await hostile((exchange) => {
      // The list that confirms a large removal is never answered.
      if (!isWatch(exchange)) return lists.push(exchange)
      exchange.start()
      streams.push(exchange)
      if (!isStream(exchange)) return undefined
      exchange.frame('ADDED', node('n', addresses))
      return exchange.frame('BOOKMARK', END)
    })
    await using _app = bench.run()
    const good = await publishGood()
    await bench.register('evil', evil)
    await bench.eventually('the wildcard of evil', async () => bench.read('evil'))
    streams.at(-1)?.frame('MODIFIED', node('n', addresses.slice(0, 1), 10))
    const list = await bench.eventually('the confirming list', async () => lists[0])
    let isGivenUp = false
    void list.closed.then(() => (isGivenUp = true))
    await expectToFollow(good)
    expect(isGivenUp).toBe(false)
    const { spec } = await environment.client.get(DNSEndpoint, 'manager/evil-wildcard')
    expect(spec.endpoints[0]?.targets).toHaveLength(10)
  })

  it('whose Secret has no kubeconfig gets an Event that says so', async () => {
    await using _app = bench.run()
    await environment.client.create(Secret, {
      metadata: { namespace: 'manager', name: 'empty', labels: { 'seamark.io/cluster': 'empty' } },
    })
    expect(await bench.reported('empty', 'KubeconfigRefused')).toMatch(/kubeconfig/)
  })
})
