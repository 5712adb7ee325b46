/**
 * client-go's metrics of every request: opt-in, as in controller-runtime, because they add many series per host.
 *
 * Place in the flow: created by metrics.ts if `clientHistograms` is set; updated by the REST layer's observer.
 */
import { Counter, Histogram, type Registry } from 'prom-client'
import type { ObservedRequest } from './client.ts'

/** Seconds. */
const DURATION_BUCKETS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60]
const BYTE_BUCKETS = [64, 256, 512, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216]

export function createRequestMetrics(registry: Registry): (request: ObservedRequest) => void {
  const histogram = (name: string, help: string, buckets: number[]) =>
    new Histogram({ name, help, labelNames: ['verb', 'host'], buckets, registers: [registry] })
  const duration = histogram('rest_client_request_duration_seconds', 'Time of a request', DURATION_BUCKETS)
  const sent = histogram('rest_client_request_size_bytes', 'Bytes of request bodies', BYTE_BUCKETS)
  const received = histogram('rest_client_response_size_bytes', 'Bytes of response bodies, streams aside', BYTE_BUCKETS)
  const retries = new Counter({
    name: 'rest_client_request_retries_total',
    help: 'Requests sent again',
    labelNames: ['code', 'verb', 'host'],
    registers: [registry],
  })

  return ({ code, method: verb, host, durationMs, sentBody, receivedBytes, retry }) => {
    duration.observe({ verb, host }, durationMs / 1000)
    sent.observe({ verb, host }, sentBody === undefined ? 0 : Buffer.byteLength(sentBody))
    received.observe({ verb, host }, receivedBytes)
    if (retry > 0) retries.inc({ code, verb, host })
  }
}
