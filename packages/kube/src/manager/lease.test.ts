import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Lease } from '../object/kinds.ts'
import { createElection, type Election } from './lease.ts'
import { LeadershipLost } from '../apply/write-fence.ts'
import { fakeClock, type FakeClock } from '../testing/clock.ts'
import { memoryCluster, type MemoryCluster } from '../testing/memory/memory-cluster.ts'

interface Candidate {
  election: Election
  clock: FakeClock
  /** Settles as `hold` does. */
  outcome: Promise<unknown>
  stop(): void
}

/** A separate process: its own clock, a shared server. */
function start(cluster: MemoryCluster, identity: string, clock = fakeClock()): Candidate {
  const controller = new AbortController()
  const deps = { client: cluster.client, log: cluster.log, identity, clock, random: () => 0 }
  const election = createElection({ lease: 'edge', namespace: 'sys' }, deps)
  const outcome = (async () => {
    await election.acquire(controller.signal)
    if (election.isLeading) await election.hold(controller.signal)
    return 'stopped'
  })().catch((error: unknown) => error)
  return { election, clock, outcome, stop: () => controller.abort() }
}

const canWrite = ({ election }: Candidate) => {
  try {
    election.fence.check()
    return true
  } catch (error) {
    expect(error).toBeInstanceOf(LeadershipLost)
    return false
  }
}
const holderOf = (cluster: MemoryCluster) => cluster.informers.get(Lease, 'sys/edge')?.spec?.holderIdentity

describe('lease', () => {
  it('is acquired by the first candidate, renewed, and not taken by the second', async () => {
    const cluster = memoryCluster()
    const [a, b] = [start(cluster, 'a'), start(cluster, 'b')]
    for (let second = 0; second < 60; second++) {
      await Promise.all([a.clock.advance(1_000), b.clock.advance(1_000)])
      expect([canWrite(a), canWrite(b)]).toEqual([true, false])
    }
    expect(b.election.holder).toBe('a')
    expect(new Set(cluster.requests.map(({ verb, lane }) => `${verb} ${lane}`))).toEqual(
      new Set(['get lease', 'create lease', 'update lease']),
    )
    const spec = cluster.informers.get(Lease, 'sys/edge')?.spec
    expect(spec).toMatchObject({ holderIdentity: 'a', leaseDurationSeconds: 15, leaseTransitions: 0 })
    expect(spec?.renewTime).toMatch(/^2030-01-01T00:\d\d:\d\d\.\d{6}Z$/)
    a.stop()
    b.stop()
    expect(await Promise.all([a.outcome, b.outcome])).toEqual(['stopped', 'stopped'])
  })

  it('is taken over once it has not changed for its duration on the clock of the candidate', async () => {
    const cluster = memoryCluster()
    const a = start(cluster, 'a')
    await a.clock.advance(0)
    const b = start(cluster, 'b')
    // The holder disappears. Its timestamps are in the far future; only time elapsed on the local clock counts.
    a.stop()
    const lease = cluster.informers.get(Lease, 'sys/edge') as Lease
    cluster.put(Lease, { ...lease, spec: { ...lease.spec, renewTime: '2099-01-01T00:00:00.000000Z' } })
    await b.clock.advance(14_000)
    expect(canWrite(b)).toBe(false)
    await b.clock.advance(4_000)
    expect([canWrite(b), holderOf(cluster)]).toEqual([true, 'b'])
    expect(cluster.informers.get(Lease, 'sys/edge')?.spec?.leaseTransitions).toBe(1)
    b.stop()
  })

  it('closes the fence for a process whose event loop was stalled, before any of its timers ran', async () => {
    const cluster = memoryCluster()
    const a = start(cluster, 'a')
    await a.clock.advance(4_000)
    expect(canWrite(a)).toBe(true)
    a.clock.stall(9_999)
    expect(canWrite(a)).toBe(true)
    a.clock.stall(1)
    expect(canWrite(a)).toBe(false)
    const requests = cluster.requests.length
    await a.clock.advance(2_000)
    expect(await a.outcome).toBeInstanceOf(LeadershipLost)
    expect(cluster.requests).toHaveLength(requests)
    expect(canWrite(a)).toBe(false)
  })

  it('counts a renewal from before it was sent, not from its response', async () => {
    const cluster = memoryCluster()
    const a = start(cluster, 'a')
    await a.clock.advance(0)
    let answer: () => void = () => undefined
    cluster.intercept = async () => new Promise((resolve) => (answer = resolve))
    await a.clock.advance(2_000)
    a.clock.stall(4_000)
    answer()
    cluster.intercept = () => Promise.reject(new Error('down'))
    await a.clock.advance(0)
    a.clock.stall(5_999)
    expect(canWrite(a)).toBe(true)
    a.clock.stall(1)
    expect(canWrite(a)).toBe(false)
    a.stop()
  })

  it('is lost when no renewal succeeds for the deadline, also when requests hang', async () => {
    for (const fault of [async () => new Promise<void>(() => undefined), () => Promise.reject(new Error('down'))]) {
      const cluster = memoryCluster()
      const a = start(cluster, 'a')
      await a.clock.advance(0)
      cluster.intercept = fault
      await a.clock.advance(9_999)
      expect(canWrite(a)).toBe(true)
      await a.clock.advance(1)
      expect(canWrite(a)).toBe(false)
      await a.clock.advance(10_000)
      expect(await a.outcome).toBeInstanceOf(LeadershipLost)
      cluster.intercept = undefined
      await a.clock.advance(30_000)
      expect(canWrite(a)).toBe(false)
    }
  })

  it('is kept when an outage ends before the deadline', async () => {
    const cluster = memoryCluster()
    const a = start(cluster, 'a')
    await a.clock.advance(0)
    cluster.intercept = () => Promise.reject(new Error('down'))
    await a.clock.advance(6_000)
    cluster.intercept = undefined
    await a.clock.advance(60_000)
    expect(canWrite(a)).toBe(true)
    a.stop()
  })

  it('is lost at once when another identity holds it', async () => {
    const cluster = memoryCluster()
    const a = start(cluster, 'a')
    await a.clock.advance(0)
    const lease = cluster.informers.get(Lease, 'sys/edge') as Lease
    cluster.put(Lease, { ...lease, spec: { ...lease.spec, holderIdentity: 'other' } })
    await a.clock.advance(4_000)
    expect(String(await a.outcome)).toContain('another process has taken it')
    expect([canWrite(a), holderOf(cluster)]).toEqual([false, 'other'])
  })

  it('is cleared on release, and acquired by another candidate without waiting', async () => {
    const cluster = memoryCluster()
    const a = start(cluster, 'a')
    await a.clock.advance(0)
    const b = start(cluster, 'b')
    await b.clock.advance(0)
    a.stop()
    await a.outcome
    expect(canWrite(a)).toBe(true)
    await a.election.release()
    expect([canWrite(a), holderOf(cluster)]).toEqual([false, ''])
    expect(cluster.informers.get(Lease, 'sys/edge')?.spec?.leaseDurationSeconds).toBe(1)
    await b.clock.advance(2_000)
    expect(canWrite(b)).toBe(true)
    b.stop()
  })

  it('does not release a lease held by another, and does not fail when the release fails', async () => {
    const cluster = memoryCluster()
    const a = start(cluster, 'a')
    await a.clock.advance(0)
    cluster.intercept = () => Promise.reject(new Error('down'))
    a.stop()
    await a.outcome
    await a.election.release()
    expect(cluster.lines.join()).toContain('lease not released')
    const requests = cluster.requests.length
    await a.election.release()
    expect(cluster.requests).toHaveLength(requests)
  })

  it('rejects durations that would allow two leaders', () => {
    const { client, log } = memoryCluster()
    const make = (durationMs: number, renewDeadlineMs: number, retryPeriodMs: number) => () =>
      createElection(
        { lease: 'x', namespace: 'y', durationMs, renewDeadlineMs, retryPeriodMs },
        { client, log, identity: 'a' },
      )
    expect(make(10_000, 10_000, 2_000)).toThrow('duration > renew deadline')
    expect(make(15_000, 2_000, 2_000)).toThrow('retry period')
    expect(make(15_000, 10_000, 0)).toThrow('retry period')
    expect(make(15_000, 10_000, 2_000)).not.toThrow()
  })

  it('never lets two processes write at once, with any stalls and outages', async () => {
    const event = fc.record({
      who: fc.nat(2),
      what: fc.constantFrom('run', 'run', 'stall', 'cut', 'heal'),
      ms: fc.nat(20_000),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 25 }), async (events) => {
        const cluster = memoryCluster()
        const cut = new Set<number>()
        const clocks = [fakeClock(), fakeClock(), fakeClock()]
        const candidates = clocks.map((clock, index) => {
          const own: MemoryCluster = { ...cluster, client: { ...cluster.client } }
          for (const verb of ['find', 'create', 'update'] as const) {
            const call = cluster.client[verb] as (...rest: unknown[]) => Promise<never>
            own.client[verb] = async (...rest: unknown[]) => {
              if (cut.has(index)) throw new Error('cut off')
              return call(...rest)
            }
          }
          return start(own, `p${index}`, clock)
        })
        const check = () => expect(candidates.filter(canWrite).length).toBeLessThanOrEqual(1)
        // Time advances equally for all; a stalled process observes it later, in one step.
        let elapsed = 0
        for (const { who, what, ms } of events) {
          if (what === 'cut') cut.add(who)
          if (what === 'heal') cut.delete(who)
          if (what !== 'run' && what !== 'stall') continue
          for (const target = elapsed + ms; elapsed < target;) {
            const slice = Math.min(500, target - elapsed)
            elapsed += slice
            for (const [index, clock] of clocks.entries()) {
              if (what === 'stall' && index === who) clock.stall(slice)
              else await clock.advance(slice)
            }
            check()
          }
        }
        for (const candidate of candidates) candidate.stop()
      }),
      { numRuns: 15 },
    )
  })
})
