/** The API server of the hub stops answering for several times the duration of the Lease; nothing that is served notices. */
import { describe, expect, it } from 'vitest'
import { findBackendAddress, type OutageKind, runOutage } from './outage-bench.ts'

const LEASE = [
  ['--leader-election-lease-duration', '2s'],
  ['--leader-election-renew-deadline', '1500ms'],
  ['--leader-election-retry-period', '500ms'],
].flat()
const OUTAGE_MS = 10_000

// Side by side: they mostly wait.
describe.skipIf(findBackendAddress() === undefined).concurrent('an outage of the API server of the hub', () => {
  it.each([
    { what: 'stalls', kind: 'stall', replicas: 1 },
    { what: 'stalls', kind: 'stall', replicas: 2 },
    { what: 'is killed and returns', kind: 'down', replicas: 1 },
    { what: 'is killed and returns', kind: 'down', replicas: 2 },
  ] satisfies { what: string; kind: OutageKind; replicas: number }[])(
    'that $what costs no answer and no response with $replicas replicas, and control continues afterwards',
    async ({ kind, replicas }) => {
      const result = await runOutage({ kind, replicas, outageMs: OUTAGE_MS, leaseFlags: LEASE, perSecond: 20 })
      expect(result.counts.map(({ failures }) => failures)).toEqual(Array.from({ length: replicas }, () => []))
      for (const { answers, responses, reports } of result.counts) {
        expect(Math.min(answers, responses)).toBeGreaterThan(50)
        expect(reports).toBeGreaterThan(2)
      }
      expect(result.hasEnded).toEqual(Array.from({ length: replicas }, () => false))
      expect(result.logs.join()).not.toContain('"level":"fatal"')
      expect(result.logs.join()).toContain('control has ended; what this process serves is not affected')
    },
    180_000,
  )
})
