/** A cluster whose API server is a scripted peer, for tests of watches and caches. */
import { staticCredentials } from '../config/credentials.ts'
import { connect, type Cluster, type ConnectOptions } from '../cache/cluster.ts'
import type { ConfigMap } from '../object/kinds.ts'
import type { Obj } from '../object/object.ts'
import { startPeer, type Peer, type PeerExchange, type PeerOptions } from './peer.ts'

const cleanups: (() => Promise<void>)[] = []

/** After each test. */
export async function closeClusters(): Promise<void> {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
}

export const configMap = (name: string, version: number, data: Record<string, string> = {}): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'ns', uid: `uid-${name}`, resourceVersion: String(version) },
  data,
})
const endMark = (version: number) => ({
  metadata: { resourceVersion: String(version), annotations: { 'k8s.io/initial-events-end': 'true' } },
})
export const refusal = (code: number, reason: string) => ({
  kind: 'Status',
  apiVersion: 'v1',
  status: 'Failure',
  code,
  reason,
  message: reason,
})

export async function clusterOn(
  script: PeerOptions['script'],
  options: ConnectOptions = {},
): Promise<{ peer: Peer; cluster: Cluster; start: () => void }> {
  const peer = await startPeer({ script })
  const config = {
    name: 'test',
    server: peer.url,
    namespace: 'default',
    credentials: staticCredentials({}, { ca: peer.caPem }),
  }
  const cluster = connect(config, { random: () => 0, ...options })
  const stop = new AbortController()
  let running: Promise<void> | undefined
  cleanups.push(peer.close, async () => {
    stop.abort()
    await running
    await cluster.close()
  })
  const start = () => {
    running = cluster.informers.start(stop.signal)
  }
  return { peer, cluster, start }
}

export async function until(isTrue: () => boolean): Promise<void> {
  const deadline = performance.now() + 20_000
  while (!isTrue()) {
    if (performance.now() > deadline) throw new Error(`not within 20 s: ${String(isTrue)}`)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** Responds to WatchList and list requests with these objects, and collects the open streams for further events. */
export function serving(objects: Obj[], version: number, streams: PeerExchange[] = []): PeerOptions['script'] {
  return (exchange) => {
    if (exchange.url.searchParams.get('watch') !== 'true') {
      return exchange.reply(200, { metadata: { resourceVersion: String(version) }, items: objects })
    }
    streams.push(exchange)
    exchange.start()
    if (exchange.url.searchParams.get('sendInitialEvents') !== 'true') return undefined
    for (const object of objects) exchange.frame('ADDED', object)
    return exchange.frame('BOOKMARK', endMark(version))
  }
}
