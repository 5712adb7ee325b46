import { describe, expect, it } from 'vitest'
import type { DNSLoadBalancerEndpoint } from '../api/dns-load-balancer-endpoint.ts'
import { STARTUP_GRACE_MS } from './decide/endpoints.ts'
import { decideOrphans } from './orphaned-endpoints.ts'

const NOW_MS = Date.UTC(2030, 0, 1)
const LONG_AGO_MS = NOW_MS - 2 * STARTUP_GRACE_MS

function endpoint(name: string, validUntilMs?: number): DNSLoadBalancerEndpoint {
  return {
    metadata: { namespace: 'ns', name },
    spec: { loadbalancer: 'lb', ipaddress: '192.0.2.1' },
    ...(validUntilMs !== undefined && { status: { validUntil: new Date(validUntilMs).toISOString() } }),
  }
}

const decided = (endpoints: DNSLoadBalancerEndpoint[], startedMs: number) => {
  const { deletions, againAfterMs } = decideOrphans(endpoints, startedMs, NOW_MS)
  return [deletions.map(({ endpoint: { metadata }, reason }) => `${metadata.name} ${reason}`), againAfterMs]
}

describe('endpoints without a load balancer', () => {
  it.each<[what: string, endpoints: DNSLoadBalancerEndpoint[], startedMs: number, expected: unknown[]]>([
    ['wait for the end of the start-up grace', [endpoint('a')], NOW_MS - 60_000, [[], STARTUP_GRACE_MS - 60_000]],
    ['are deleted after it', [endpoint('a')], LONG_AGO_MS, [['a LoadBalancerMissing'], undefined]],
    ['that a source renews wait until they expire', [endpoint('a', NOW_MS + 90_000)], LONG_AGO_MS, [[], 90_000]],
    ['that expired are deleted', [endpoint('a', NOW_MS - 1)], LONG_AGO_MS, [['a EndpointExpired'], undefined]],
    [
      'that expire during the grace wait for its end',
      [endpoint('a', NOW_MS + 1_000)],
      NOW_MS - 60_000,
      [[], STARTUP_GRACE_MS - 60_000],
    ],
    [
      'are looked at again when the first of the others expires',
      [endpoint('a', NOW_MS - 1), endpoint('b', NOW_MS + 90_000), endpoint('c', NOW_MS + 30_000)],
      LONG_AGO_MS,
      [['a EndpointExpired'], 30_000],
    ],
    ['that are being deleted need nothing', [deleted('a')], LONG_AGO_MS, [[], undefined]],
  ])('%s', (_what, endpoints, startedMs, expected) => {
    expect(decided(endpoints, startedMs)).toEqual(expected)
  })
})

function deleted(name: string): DNSLoadBalancerEndpoint {
  const object = endpoint(name)
  return { ...object, metadata: { ...object.metadata, deletionTimestamp: new Date(NOW_MS).toISOString() } }
}
