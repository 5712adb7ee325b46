/**
 * How long a new HTTPProxy waits for its DNSEndpoint, at 50 a second on top of everything that is there. Run as a child process
 * with `KUBECONFIG FIRST`, FIRST being the number of the first source to make; prints the milliseconds from a create's start to
 * the DNSEndpoint in a watch, p50.
 */
import { readFileSync } from 'node:fs'
import { configFromText, connect } from '@seamark/kube'
import { DNSEndpoint, HTTPProxy } from '@seamark/operator'
import { median } from '../figure.ts'
import { proxyBody } from './objects.ts'

/** Sources that it makes. */
const SAMPLES = 250
const PERIOD_MS = 20
const PATIENCE_MS = 10_000

const [, , kubeconfigPath = '', first = '0'] = process.argv
const connection = connect(configFromText(readFileSync(kubeconfigPath, 'utf8')))
const stop = new AbortController()
const seenAt = new Map<string, number>()
const informer = connection.informers.informer(DNSEndpoint)
informer.subscribe((change) => {
  if (change.type === 'added' && !change.initial) seenAt.set(change.object.metadata.name ?? '', performance.now())
})
const running = connection.informers.start(stop.signal)
await informer.synced(stop.signal)
const startedAt = new Map<string, number>()
const pending: Promise<void>[] = []
for (let index = 0; index < SAMPLES; index++) {
  const object = JSON.parse(proxyBody(Number(first) + index)) as HTTPProxy
  startedAt.set(object.metadata.name ?? '', performance.now())
  pending.push(connection.client.create(HTTPProxy, object).then(() => undefined))
  await new Promise((resolve) => setTimeout(resolve, PERIOD_MS))
}
await Promise.all(pending)
const deadline = Date.now() + PATIENCE_MS
while (seenAt.size < SAMPLES && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, PERIOD_MS))
stop.abort()
await running
await connection.close()
if (seenAt.size < SAMPLES) throw new Error(`${SAMPLES - seenAt.size} of ${SAMPLES} sources have no DNSEndpoint`)
const seen = [...startedAt].map(([name, started]) => (seenAt.get(name) ?? Number.NaN) - started)
process.stdout.write(`${median(seen)}\n`)
