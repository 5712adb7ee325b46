import { ConfigMap, Lease } from '@seamark/kube'
import { type FakeClock, fakeClock, memoryCluster } from '@seamark/kube/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LEADER_ANNOTATION } from './config-map-lease.ts'
import { createLeases, type Leases } from './leases.ts'

const KEY = 'garden/dnslb-controller-manager-lease'

interface Process {
  readonly leases: Leases
  readonly waits: readonly string[]
  readonly isChanged: readonly boolean[]
  /** Ends it without a release. */
  kill(): void
}

function world(random: () => number = () => 0) {
  const cluster = memoryCluster()
  const clock = fakeClock()
  const start = (identity: string): Process => {
    const waits: string[] = []
    const isChanged: boolean[] = []
    const stop = new AbortController()
    const child = () => ({ ...cluster.log, child, info: (_: unknown, text: string) => void waits.push(text) })
    const log = child() as unknown as typeof cluster.log
    const leases = createLeases(cluster.client, {
      clock,
      random,
      log,
      identity,
      onChange: (isLeading) => isChanged.push(isLeading),
    })
    void leases.acquire(stop.signal).catch(() => undefined)
    return {
      leases,
      get waits() {
        return waits.filter((text) => text.startsWith('waiting'))
      },
      isChanged,
      kill: () => stop.abort(),
    }
  }
  return { cluster, clock, start }
}

/** Seconds until it leads, in steps of a tenth. */
async function secondsUntilLeading(clock: FakeClock, { leases }: Process): Promise<number> {
  for (let tenths = 0; tenths < 1_000; tenths++) {
    if (leases.isLeading) return tenths / 10
    await clock.advance(100)
  }
  throw new Error('it never leads')
}

describe('the leases of one connection', () => {
  it('are both held by one process; another one waits, and says once who holds them', async () => {
    const { cluster, clock, start } = world()
    const first = start('host/1')
    await clock.advance(100)
    expect(first.leases.isLeading).toBe(true)
    const second = start('host/2')
    await clock.advance(60_000)
    expect([first.leases.isLeading, second.leases.isLeading]).toEqual([true, false])
    expect([first.waits, second.waits]).toEqual([
      [],
      ['waiting for a lease that host/1 holds; its controllers start when the lease is free'],
    ])
    expect((await cluster.client.get(Lease, KEY)).spec?.holderIdentity).toBe('host/1')
    await first.leases.release()
    expect(await secondsUntilLeading(clock, second)).toBeLessThanOrEqual(2)
    expect([first.isChanged, second.isChanged]).toEqual([[true, false], [true]])
  })

  it('pass to a standby within their duration and 3 s, whenever their holder was killed', async () => {
    const fraction = () => fc.double({ min: 0, max: 0.999, noNaN: true })
    await fc.assert(
      fc.asyncProperty(
        fc.array(fraction(), { minLength: 1, maxLength: 20 }),
        fc.integer({ min: 0, max: 60 }),
        fc.integer({ min: 0, max: 60 }),
        async (numbers, startTenths, killTenths) => {
          let at = 0
          const { clock, start } = world(() => numbers[at++ % numbers.length] ?? 0)
          const first = start('host/1')
          await clock.advance(10_000 + startTenths * 100)
          expect(first.leases.isLeading).toBe(true)
          const second = start('host/2')
          await clock.advance(20_000 + killTenths * 100)
          first.kill()
          // Its fence is open until its last renewal is too old; both lead at no time.
          expect(await secondsUntilLeading(clock, second)).toBeLessThanOrEqual(18)
          expect(first.leases.isLeading).toBe(false)
        },
      ),
      { numRuns: 30 },
    )
  })

  it('are acquired in one order: a process never holds the Lease while another has the ConfigMap lease', async () => {
    const { cluster, clock, start } = world()
    const held = { holderIdentity: 'original', leaseDurationSeconds: 15, acquireTime: null, renewTime: null }
    cluster.put(ConfigMap, {
      metadata: {
        namespace: 'garden',
        name: 'dnslb-controller-manager-lease',
        annotations: { [LEADER_ANNOTATION]: JSON.stringify(held) },
      },
    })
    const standbys = [start('host/1'), start('host/2'), start('host/3')]
    await clock.advance(10_000)
    expect(await cluster.client.find(Lease, KEY)).toBeUndefined()
    expect(standbys[0]?.waits.join()).toContain('original')
    await clock.advance(30_000)
    expect(standbys.filter(({ leases }) => leases.isLeading)).toHaveLength(1)
  })
})
