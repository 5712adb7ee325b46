import { type FakeClock, fakeClock } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import { detectionBoundMs, PROFILES, probeTarget } from './policy.ts'
import type { ProbeCode } from './probe-failure.ts'
import { createProber, type HealthReport, type TargetUpdate } from './prober.ts'
import { SLOT_MS } from './wheel.ts'

/** Targets with the given answers, after the given time. */
function fixture(clock: FakeClock, maxInFlight?: number, random = () => 0.5) {
  const answers = new Map<string, { code: ProbeCode; afterMs: number }>()
  const reports: HealthReport[] = []
  const probed: string[] = []
  let inFlight = 0
  let most = 0
  const prober = createProber({
    clock,
    random,
    ...(maxInFlight !== undefined && { maxInFlight }),
    onReport: (report) => reports.push(report),
    client: {
      close: () => undefined,
      async probe({ host }) {
        probed.push(host)
        most = Math.max(most, ++inFlight)
        const { code, afterMs } = answers.get(host) ?? { code: 'Passed', afterMs: 5 }
        await new Promise<void>((resolve) => void clock.after(afterMs, resolve))
        inFlight--
        return { code, detail: code, elapsedMs: afterMs }
      },
    },
  })
  return {
    prober,
    reports,
    probed,
    most: () => most,
    refuse: (...hosts: string[]) => hosts.forEach((host) => answers.set(host, { code: 'Refused', afterMs: 5 })),
    blackHole: (...hosts: string[]) => hosts.forEach((host) => answers.set(host, { code: 'TimedOut', afterMs: 2_000 })),
    answer: (...hosts: string[]) => hosts.forEach((host) => answers.delete(host)),
    verdictOf: (key: string) => reports.findLast((report) => report.key === key)?.verdict,
  }
}

const update = (host: string, site = host): TargetUpdate => ({
  key: host,
  target: probeTarget({ host }, PROFILES.default, site),
})

describe('the prober', () => {
  it('reports a new target once, and nothing more while nothing changes', async () => {
    const clock = fakeClock()
    const { prober, reports, probed } = fixture(clock)
    prober.update([update('a')], [])
    await clock.advance(60_000)
    expect(reports).toEqual([expect.objectContaining({ key: 'a', verdict: 'healthy', code: 'Passed' })])
    expect(probed.length).toBeGreaterThanOrEqual(12)
  })

  it.each([
    ['refuse', 7_000],
    ['blackHole', detectionBoundMs(PROFILES.default)],
  ] as const)('detects that a target started to %s within the bound', async (how, boundMs) => {
    const clock = fakeClock()
    const the = fixture(clock)
    the.prober.update([update('a'), update('b'), update('c')], [])
    await clock.advance(11_111)
    the[how]('a')
    // The wheel may start each of the three probes one slot late.
    await clock.advance(boundMs + 3 * SLOT_MS + 15)
    expect(the.verdictOf('a')).toBe('unhealthy')
    expect([the.verdictOf('b'), the.verdictOf('c')]).toEqual(['healthy', 'healthy'])
  })

  it('reports all as unknown when no site answers any more, and as healthy when they do again', async () => {
    const clock = fakeClock()
    const the = fixture(clock)
    const hosts = ['a', 'b', 'c', 'd']
    the.prober.update(
      hosts.map((host) => update(host)),
      [],
    )
    await clock.advance(20_000)
    the.blackHole(...hosts)
    await clock.advance(600_000)
    expect(hosts.map(the.verdictOf)).toEqual(hosts.map(() => 'unknown'))
    expect(the.reports.map(({ verdict }) => verdict)).not.toContain('unhealthy')
    expect(the.reports.at(-1)).toMatchObject({ held: 'partitioned' })
    the.answer(...hosts)
    await clock.advance(10_000)
    expect(hosts.map(the.verdictOf)).toEqual(hosts.map(() => 'healthy'))
  })

  it('asks other sites as soon as a target fails, also those whose next probe is far away', async () => {
    const clock = fakeClock()
    const the = fixture(clock)
    const rare = probeTarget({ host: 'rare' }, { ...PROFILES.default, intervalMs: 600_000 }, 'rare')
    the.prober.update([update('a'), { key: 'rare', target: rare }], [])
    await clock.advance(20_000)
    the.refuse('a', 'rare')
    await clock.advance(10_000)
    expect(the.verdictOf('a')).toBe('unknown')
    expect(the.reports.map(({ verdict }) => verdict)).not.toContain('unhealthy')
  })

  it('holds the verdicts when most sites fail at once, and believes them after the hold', async () => {
    const clock = fakeClock()
    const the = fixture(clock)
    const hosts = ['a', 'b', 'c', 'd', 'e']
    the.prober.update(
      hosts.map((host) => update(host)),
      [],
    )
    await clock.advance(20_000)
    the.blackHole('a', 'b', 'c')
    await clock.advance(60_000)
    expect(hosts.map(the.verdictOf)).toEqual(hosts.map(() => 'healthy'))
    expect(the.reports.at(-1)).toMatchObject({ held: 'panic' })
    await clock.advance(330_000)
    expect(hosts.map(the.verdictOf)).toEqual(['unhealthy', 'unhealthy', 'unhealthy', 'healthy', 'healthy'])
  })

  it.each([
    ['refuse', 7_000],
    ['blackHole', detectionBoundMs(PROFILES.default)],
  ] as const)(
    'holds no fall when many sites %s one after another, and reports each within the bound',
    async (how, boundMs) => {
      const clock = fakeClock()
      let seed = 7
      const the = fixture(clock, undefined, () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647)
      const hosts = Array.from({ length: 400 }, (_, index) => `h${index}`)
      // Together, as after a start of the process.
      the.prober.update(
        hosts.map((host) => update(host)),
        [],
      )
      await clock.advance(15_000)
      const dying = hosts.slice(0, 200)
      for (const host of dying) {
        the[how](host)
        await clock.advance(100)
      }
      await clock.advance(boundMs + 3 * SLOT_MS + 15)
      expect(dying.filter((host) => the.verdictOf(host) !== 'unhealthy')).toEqual([])
      expect(the.reports.filter(({ held }) => held !== undefined)).toEqual([])
      expect(hosts.slice(200).filter((host) => the.verdictOf(host) !== 'healthy')).toEqual([])
    },
  )

  it('spreads targets that arrive together over their interval', async () => {
    const clock = fakeClock()
    let seed = 7
    const the = fixture(clock, undefined, () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647)
    const hosts = Array.from({ length: 500 }, (_, index) => `h${index}`)
    the.prober.update(
      hosts.map((host) => update(host)),
      [],
    )
    await clock.advance(10_000)
    for (let second = 0; second < 5; second++) {
      const before = the.probed.length
      await clock.advance(1_000)
      const count = the.probed.length - before
      expect(count).toBeGreaterThan(50)
      expect(count).toBeLessThan(200)
    }
  })

  it('lets all targets of one site fall when another site answers', async () => {
    const clock = fakeClock()
    const the = fixture(clock)
    the.prober.update([update('a1', 'a'), update('a2', 'a'), update('a3', 'a'), update('b1', 'b')], [])
    await clock.advance(20_000)
    the.refuse('a1', 'a2', 'a3')
    await clock.advance(10_000)
    expect(['a1', 'a2', 'a3', 'b1'].map(the.verdictOf)).toEqual(['unhealthy', 'unhealthy', 'unhealthy', 'healthy'])
  })

  it('starts from the verdict of before and does not report a change that is none', async () => {
    const clock = fakeClock()
    const the = fixture(clock)
    the.refuse('a')
    the.prober.update([{ ...update('a'), seed: 'unhealthy' }], [])
    await clock.advance(20_000)
    expect(the.reports.map(({ verdict }) => verdict)).toEqual(['unhealthy'])
  })

  it('probes no more targets at once than allowed, and all of them in the end', async () => {
    const clock = fakeClock()
    const the = fixture(clock, 3)
    const hosts = Array.from({ length: 10 }, (_, index) => `h${index}`)
    the.prober.update(
      hosts.map((host) => update(host)),
      [],
    )
    await clock.advance(1_000)
    expect(the.most()).toBe(3)
    expect(new Set(the.probed)).toEqual(new Set(hosts))
  })

  it('drops the result of a target that was removed meanwhile, and stops with nothing pending', async () => {
    const clock = fakeClock()
    const the = fixture(clock)
    the.blackHole('a')
    the.prober.update([update('a'), update('b')], [])
    await clock.advance(500)
    the.prober.update([], ['a'])
    await clock.advance(5_000)
    expect(the.reports.map(({ key }) => key)).toEqual(['b'])
    the.prober.stop()
    const { length } = the.probed
    await clock.advance(60_000)
    expect(the.probed).toHaveLength(length)
  })
})
