/** The version of the API server, and how far its clock is from the one here. */
import { type Client, DecodeError } from '@seamark/kube'
import type { Finding } from './finding.ts'

/** Of the chart: the sleep of preStop hooks, matchConditions of webhooks. */
const OLDEST_MINOR = 30
/** Half of what a TSIG signature allows, and less than any Lease. */
const MAX_SKEW_MS = 5_000

export async function checkApiServer(client: Client, signal: AbortSignal, nowMs = Date.now()): Promise<Finding[]> {
  const { status, headers, body } = await client.request({ method: 'GET', path: '/version', signal })
  if (status !== 200) return [{ topic: 'API server', state: 'fault', message: `GET /version answers ${status}` }]
  const { gitVersion = '', major = '', minor = '' } = readVersion(body)
  const isOld = Number(major) === 1 && Number.parseInt(minor, 10) < OLDEST_MINOR
  return [
    isOld
      ? {
          topic: 'API server',
          state: 'warning',
          message: `Kubernetes ${gitVersion} is older than 1.${OLDEST_MINOR}, which the chart needs; upgrade the cluster, or install without the chart`,
        }
      : { topic: 'API server', state: 'ok', message: `Kubernetes ${gitVersion}` },
    clockFinding(Date.parse(String(headers['date'] ?? '')), nowMs),
  ]
}

function readVersion(body: Buffer): Record<string, string> {
  try {
    return (JSON.parse(body.toString('utf8')) ?? {}) as Record<string, string>
  } catch {
    throw new DecodeError('GET /version: the answer is no object of Kubernetes')
  }
}

function clockFinding(theirsMs: number, oursMs: number): Finding {
  if (Number.isNaN(theirsMs))
    return { topic: 'clock', state: 'note', message: 'the API server sends no Date, so that clocks are not compared' }
  // Their date has whole seconds.
  const skewMs = Math.max(0, Math.abs(oursMs - theirsMs) - 1_000)
  return skewMs > MAX_SKEW_MS
    ? {
        topic: 'clock',
        state: 'fault',
        message: `this clock and that of the API server differ by ${Math.round(skewMs / 1_000)} s; run NTP on both: Leases and signed DNS updates depend on it`,
      }
    : { topic: 'clock', state: 'ok', message: 'agrees with the API server' }
}
