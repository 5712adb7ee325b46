/** How long a new HTTPProxy waits for its DNSEndpoint, at 50 a second on top of everything that is there. */
import { configFromText, connect } from '@seamark/kube'
import { DNSEndpoint, HTTPProxy } from '@seamark/operator'
import { median } from '../figure.ts'
import type { BenchCluster } from './cluster.ts'
import { proxyBody } from './objects.ts'

const SAMPLES = 250
const PERIOD_MS = 20
const PATIENCE_MS = 10_000

/** From the create's start to the DNSEndpoint in a watch, p50, less the p50 of the create; ms. */
export async function measureLatency(cluster: BenchCluster, firstIndex: number): Promise<number> {
  const connection = connect(configFromText(cluster.kubeconfig))
  const stop = new AbortController()
  const seenAt = new Map<string, number>()
  const informer = connection.informers.informer(DNSEndpoint)
  informer.subscribe((change) => {
    if (change.type === 'added' && !change.initial) seenAt.set(change.object.metadata.name ?? '', performance.now())
  })
  const running = connection.informers.start(stop.signal)
  await informer.synced(stop.signal)
  const creates: number[] = []
  const startedAt = new Map<string, number>()
  const pending: Promise<void>[] = []
  for (let index = 0; index < SAMPLES; index++) {
    const object = JSON.parse(proxyBody(firstIndex + index)) as HTTPProxy
    const started = performance.now()
    startedAt.set(object.metadata.name ?? '', started)
    pending.push(connection.client.create(HTTPProxy, object).then(() => void creates.push(performance.now() - started)))
    await new Promise((resolve) => setTimeout(resolve, PERIOD_MS))
  }
  await Promise.all(pending)
  const deadline = Date.now() + PATIENCE_MS
  while (seenAt.size < SAMPLES && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, PERIOD_MS))
  stop.abort()
  await running
  await connection.close()
  const seen = [...startedAt].map(([name, started]) => (seenAt.get(name) ?? Number.POSITIVE_INFINITY) - started)
  return median(seen) - median(creates)
}
