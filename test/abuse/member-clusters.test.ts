/**
 * Hostile member clusters, all at once, of a manager with little memory: each is cut off with a code or read as far as it
 * makes sense, and the manager goes on with the others and keeps its lease.
 */
import { type Client, type Cluster, configFromText, connect, Event, Lease, Secret } from '@seamark/kube'
import { END, externalAddress, isStream, isWatch, node, streamNodes } from '@seamark/kit/scripted-nodes'
import { type PeerExchange, startPeer } from '@seamark/kube/testing'
import { DNSEndpoint } from '@seamark/operator'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type LimitedProcess, startLimited } from './limited-process.ts'

const HEAP_MIB = 384
const PEAK_MIB = 1_000

let manager: LimitedProcess
let hub: Cluster
const closes: (() => Promise<void>)[] = []

beforeAll(async () => {
  manager = startLimited('member-clusters.ts', [], HEAP_MIB)
  const [text] = await manager.line(/^\{.*\}$/)
  hub = connect(configFromText((JSON.parse(text) as { kubeconfig: string }).kubeconfig), { fieldManager: 'test' })
}, 60_000)
afterAll(async () => {
  await hub?.close()
  await manager?.stop()
  for (const close of closes) await close()
})

type Script = (exchange: PeerExchange) => void

async function register(client: Client, name: string, script: Script): Promise<void> {
  const peer = await startPeer({ script })
  closes.push(peer.close)
  await client.create(Secret, {
    metadata: { namespace: 'manager', name, labels: { 'seamark.io/cluster': name } },
    data: { kubeconfig: Buffer.from(peer.kubeconfig()).toString('base64') },
  })
}

const MANY = Array.from({ length: 70_000 }, (_, index) =>
  externalAddress(`10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`),
)

/** The fleet watches other kinds of the same member. */
const isOfNodes = ({ url }: PeerExchange): boolean => url.pathname.endsWith('/nodes')

/** Answers the first list as a stream of these nodes; what is sent later is up to the test. */
const streaming =
  (nodes: readonly object[], streams: PeerExchange[] = []): Script =>
  (exchange) => {
    if (!isOfNodes(exchange)) return exchange.reply(404, {})
    if (!isWatch(exchange)) return exchange.reply(503, {})
    exchange.start()
    streams.push(exchange)
    if (!isStream(exchange)) return undefined
    for (const object of nodes) exchange.frame('ADDED', object)
    return exchange.frame('BOOKMARK', END)
  }

const HOSTILE: Readonly<Record<string, Script>> = {
  /**
   * A node of 70 000 addresses, which change with every event. Other kinds are not served: with so much to send in several
   * streams, the HTTP/2 session of the peer would refuse the stream of nodes (ENHANCE_YOUR_CALM).
   */
  huge: (exchange) => {
    if (!isOfNodes(exchange)) return exchange.reply(404, {})
    streaming([node('n', MANY)])(exchange)
    for (let version = 10; version < 20; version++)
      exchange.frame('MODIFIED', node('n', MANY.toSpliced(version * 100, 50), version))
    return undefined
  },
  /** Nodes without end. */
  endless: (exchange) => {
    if (!isStream(exchange)) return exchange.reply(503, {})
    return streamNodes(exchange, 60_000)
  },
  /** Pages without end. */
  pages: (exchange) => {
    if (isWatch(exchange)) return exchange.reply(422, { kind: 'Status', reason: 'Invalid', code: 422 })
    const items = Array.from({ length: 500 }, (_, index) =>
      node(`p${exchange.index}-${index}`, [externalAddress('192.0.2.67')]),
    )
    const metadata = { resourceVersion: '5', continue: `page-${exchange.index}` }
    return exchange.reply(200, { kind: 'NodeList', apiVersion: 'v1', metadata, items })
  },
  /** A line of a watch that never ends. */
  line: (exchange) => {
    if (!isStream(exchange)) return exchange.reply(503, {})
    exchange.start()
    exchange.write('{"type":"ADDED","object":{"metadata":{"name":"')
    const chunk = 'x'.repeat(1024 * 1024)
    let sent = 0
    const more = (): void => {
      exchange.write(chunk)
      if (++sent < 64) setImmediate(more)
    }
    return more()
  },
}

const targetsOf = async (name: string): Promise<string> =>
  (await hub.client.find(DNSEndpoint, `manager/${name}-wildcard`))?.spec.endpoints[0]?.targets.join() ?? ''

it('hostile members do not end the manager, and others are followed', { timeout: 120_000 }, async () => {
  const { client } = hub
  for (const [name, script] of Object.entries(HOSTILE)) await register(client, name, script)
  await register(client, 'types', (exchange) =>
    streaming([
      node('bad1', 'text'),
      node('bad2', [null, { type: 'ExternalIP', address: 7 }]),
      { metadata: { name: 'bad3', labels: 5 }, status: { conditions: 5, addresses: {} } },
      node('fine', [externalAddress('198.51.100.7')]),
    ])(exchange),
  )
  const streams: PeerExchange[] = []
  await register(client, 'good', streaming([node('n', [externalAddress('192.0.2.1')])], streams))
  await expect.poll(async () => targetsOf('good'), { timeout: 60_000 }).toBe('192.0.2.1')
  await expect.poll(async () => targetsOf('types'), { timeout: 60_000 }).toBe('198.51.100.7')
  const reasons = async (): Promise<string[]> => {
    const { items } = await client.list(Event, { namespace: 'manager' })
    const over = items.filter(({ reason }) => reason === 'ClusterOverLimit')
    return [...new Set(over.map(({ regarding }) => regarding?.name ?? ''))].toSorted()
  }
  // A line without an end is no object: that member only cannot be read.
  await expect.poll(reasons, { timeout: 60_000 }).toEqual(['endless', 'huge', 'pages'])
  // Meanwhile a change of the good one is followed.
  streams.at(-1)?.frame('MODIFIED', node('n', [externalAddress('192.0.2.1'), externalAddress('192.0.2.2')], 10))
  await expect.poll(async () => targetsOf('good'), { timeout: 60_000 }).toBe('192.0.2.1,192.0.2.2')
  for (const name of Object.keys(HOSTILE)) expect(await targetsOf(name)).toBe('')
  const { spec } = await client.get(Lease, 'manager/seamark')
  expect([manager.isRunning(), spec?.leaseTransitions ?? 0]).toEqual([true, 0])
  const peak = await manager.peakMib()
  if (peak !== undefined) expect(peak).toBeLessThan(PEAK_MIB)
})
