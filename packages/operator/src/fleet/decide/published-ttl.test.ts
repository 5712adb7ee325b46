import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { GlobalIngressSpec } from '../../api/global-ingress.ts'
import { highestTtlSeconds, rememberTtl } from './published-ttl.ts'

type Spec = Pick<GlobalIngressSpec, 'ttlSeconds' | 'formerTtls' | 'published'>

const START_MS = Date.parse('2026-01-01T00:00:00Z')
const HOUR_MS = 3_600_000

const at = (minutes: number): number => START_MS + minutes * 60_000

function plan(previous: Spec | undefined, next: Omit<Spec, 'formerTtls'>, nowMs: number): Spec {
  const formerTtls = rememberTtl(previous, next, nowMs)
  return { ...next, ...(formerTtls !== undefined && { formerTtls }) }
}

/** Plans with these TTLs, at these minutes; 0 is not published. */
function planned(...changes: (readonly [minutes: number, ttlSeconds: number])[]): Spec {
  const specs = changes.reduce<Spec | undefined>(
    (previous, [minutes, ttlSeconds]) => plan(previous, { ttlSeconds, published: ttlSeconds > 0 }, at(minutes)),
    undefined,
  )
  return specs ?? { ttlSeconds: 0, published: false }
}

describe('the TTLs with which a host was published', () => {
  it('count for an hour after they were replaced', () => {
    const spec = planned([0, 3600], [10, 30])
    expect(spec.formerTtls).toEqual([{ ttlSeconds: 3600, replacedAt: '2026-01-01T00:10:00Z' }])
    expect(highestTtlSeconds([spec], at(10))).toBe(3600)
    expect(highestTtlSeconds([spec], at(70) - 1)).toBe(3600)
    expect(highestTtlSeconds([spec], at(70))).toBe(30)
  })

  it('change nothing while the TTL stays, also when an entry is no longer needed', () => {
    const spec = planned([0, 3600], [10, 30])
    const { formerTtls } = spec
    for (const minutes of [11, 100, 10_000]) expect(rememberTtl(spec, spec, at(minutes))).toBe(formerTtls)
    expect(rememberTtl(undefined, spec, at(0))).toBeUndefined()
  })

  it('are forgotten with the next change when no leaf can wait for them any more, or the present one is as high', () => {
    const spec = planned([0, 3600], [10, 30])
    // The hour, and twice the TTL.
    expect(planned([0, 3600], [10, 30], [189, 20]).formerTtls).toHaveLength(2)
    expect(planned([0, 3600], [10, 30], [190, 20]).formerTtls).toEqual([
      { ttlSeconds: 30, replacedAt: '2026-01-01T03:10:00Z' },
    ])
    expect(plan(spec, { ttlSeconds: 3600, published: true }, at(11)).formerTtls).toBeUndefined()
  })

  it('count when the host was not published for a while, and not when it was never published', () => {
    expect(planned([0, 3600], [10, 0], [20, 30])).toMatchObject({
      ttlSeconds: 30,
      formerTtls: [{ ttlSeconds: 3600, replacedAt: '2026-01-01T00:10:00Z' }],
    })
    const never = plan({ ttlSeconds: 3600, published: false }, { ttlSeconds: 30, published: true }, at(1))
    expect(never.formerTtls).toBeUndefined()
  })

  it('are at most 16: the oldest are joined to the highest TTL with the latest time', () => {
    const changes = Array.from({ length: 20 }, (_, index) => [index, 3600 - index] as const)
    const { formerTtls = [] } = planned(...changes)
    expect(formerTtls).toHaveLength(16)
    // 19 were replaced: the first four are one entry.
    expect(formerTtls[0]).toEqual({ ttlSeconds: 3600, replacedAt: '2026-01-01T00:04:00Z' })
    expect(formerTtls[1]).toEqual({ ttlSeconds: 3596, replacedAt: '2026-01-01T00:05:00Z' })
  })

  it('count for their whole hour when they were replaced within a second', () => {
    const spec = plan({ ttlSeconds: 3600, published: true }, { ttlSeconds: 30, published: true }, at(0) + 999)
    expect(highestTtlSeconds([spec], at(60) + 998)).toBe(3600)
  })

  it('count when their time cannot be read', () => {
    const spec: Spec = { ttlSeconds: 30, published: true, formerTtls: [{ ttlSeconds: 600, replacedAt: 'yesterday' }] }
    expect(highestTtlSeconds([spec], at(0))).toBe(600)
    expect(plan(spec, { ttlSeconds: 20, published: true }, at(5)).formerTtls).toEqual([
      { ttlSeconds: 600, replacedAt: '2026-01-01T00:05:00Z' },
      { ttlSeconds: 30, replacedAt: '2026-01-01T00:05:00Z' },
    ])
  })

  const changes = fc.array(
    fc.record({
      afterMs: fc.oneof(fc.integer({ min: 1, max: 120_000 }), fc.integer({ min: 1, max: 3 * HOUR_MS })),
      ttlSeconds: fc.integer({ min: 1, max: 86_400 }),
      published: fc.oneof({ weight: 5, arbitrary: fc.constant(true) }, fc.constant(false)),
    }),
    { minLength: 1, maxLength: 60 },
  )

  it('make a wait that is never shorter than twice any of the hour before the withdrawal, whatever changes during it', () => {
    fc.assert(
      fc.property(changes, fc.nat(), fc.nat(2 * HOUR_MS), (list, chosen, delayMs) => {
        const steps: { fromMs: number; spec: Spec }[] = []
        for (const { afterMs, ...next } of list) {
          const before = steps.at(-1)
          const fromMs = (before?.fromMs ?? START_MS) + afterMs
          steps.push({ fromMs, spec: plan(before?.spec, next, fromMs) })
        }
        const withdrawnMs = (steps[chosen % steps.length]?.fromMs ?? 0) + delayMs
        const published = steps.filter(({ fromMs, spec }, index) => {
          const untilMs = steps[index + 1]?.fromMs ?? Number.POSITIVE_INFINITY
          return spec.published && fromMs <= withdrawnMs && untilMs > withdrawnMs - HOUR_MS
        })
        // At the withdrawal, and with every later spec for as long as the leaf has to wait.
        for (const [index, { fromMs, spec }] of steps.entries()) {
          const nowMs = Math.max(fromMs, withdrawnMs)
          if ((steps[index + 1]?.fromMs ?? Number.POSITIVE_INFINITY) <= withdrawnMs) continue
          const ttlSeconds = highestTtlSeconds([spec], withdrawnMs)
          for (const { spec: former } of published)
            if (nowMs < withdrawnMs + 2000 * former.ttlSeconds)
              expect(ttlSeconds).toBeGreaterThanOrEqual(former.ttlSeconds)
          expect(ttlSeconds).toBeLessThanOrEqual(Math.max(...list.map((change) => change.ttlSeconds)))
          expect(spec.formerTtls?.length ?? 0).toBeLessThanOrEqual(16)
        }
      }),
    )
  })
})
