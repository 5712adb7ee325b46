import { setMaxListeners } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { DnsError } from '@seamark/dns'
import { createLimiter } from '@seamark/kube'
import { fakeClock } from '@seamark/kube/testing'
import { afterEach, describe, expect, it } from 'vitest'
import { ProviderError } from '../../rrset/error.ts'
import type { PlanOutcome } from './result.ts'
import { executorFixture } from '../../../testing/executor-fixture.ts'
import { EMPTY_STATE, fileGuardStore, type GuardState } from '../state/guard-state.ts'
import { inverseOf } from '../plan/inverse.ts'
import {
  applied,
  NOW,
  owned,
  plan,
  record,
  source,
  want,
  type PlanFixture,
  ZONE,
} from '../../../testing/plan-fixture.ts'
import { parsePlanFile, printPlanJson } from '../plan/plan-file.ts'
import type { Plan } from '../plan/plan.ts'
import { compareSets, printSet } from '../../rrset/rrset.ts'
import { memoryProvider } from '../../providers/memory.ts'

const { signal } = new AbortController()
const names = (count: number) => Array.from({ length: count }, (_, index) => `n${String(index).padStart(4, '0')}`)
const desiredSets = (count: number) => names(count).map((name) => want(record(name, 'A', ['192.0.2.1'])))
const zoneOf = (count: number) => names(count).flatMap((name) => owned(record(name, 'A', ['192.0.2.1'])))
const tally = (outcome: PlanOutcome) =>
  Object.fromEntries(
    ['applied', 'already', 'refused'].map((key) => [
      key,
      outcome.results.filter(({ result }) => result === key).length,
    ]),
  )
const codes = (outcome: PlanOutcome) => [...new Set(outcome.results.flatMap(({ code }) => code ?? []))]

describe('an executor', () => {
  it('writes a plan, and the second time finds it already written', async () => {
    const { executor, memory } = executorFixture()
    const first = plan({ desired: desiredSets(3) })
    expect(tally(await executor.submit(first, signal))).toEqual({ applied: 3, already: 0, refused: 0 })
    expect(tally(await executor.submit(first, signal))).toEqual({ applied: 0, already: 3, refused: 0 })
    expect(memory.dump(ZONE)).toHaveLength(6)
    expect(memory.counts.writes).toBe(1)
  })

  it('refuses a plan from a file when its base changed', async () => {
    const { executor, memory, calls } = executorFixture(zoneOf(1))
    const [file] = parsePlanFile(
      printPlanJson([plan({ observed: zoneOf(1), desired: [want(record('n0000', 'A', ['192.0.2.2']))] })]),
    )
    memory.put(ZONE, record('n0000', 'TXT', ['"changed meanwhile"']))
    expect(codes(await executor.submit(file as Plan, signal, { requiresBase: true }))).toEqual(['BaseMoved'])
    expect(calls).toEqual([])
  })

  it('refuses the sets that changed since, and writes the rest', async () => {
    const { executor, memory } = executorFixture(zoneOf(2))
    const moved = plan({ observed: zoneOf(2), desired: names(2).map((name) => want(record(name, 'A', ['192.0.2.2']))) })
    memory.put(ZONE, record('n0000', 'A', ['203.0.113.1']))
    const outcome = await executor.submit(moved, signal)
    expect(outcome.results.map(({ result, code }) => code ?? result)).toEqual(['BaseMoved', 'applied'])
    expect(memory.dump(ZONE).map(printSet)).toContain('n0000.a.test. 60 A 203.0.113.1')
  })

  it('refuses an older plan after a newer one, by the fence and by the marker (INV-12)', async () => {
    const { executor, memory, store } = executorFixture()
    const old = plan({ desired: desiredSets(1), number: NOW })
    const young = plan({ desired: [want(record('n0000', 'A', ['192.0.2.7']))], number: NOW + 5 })
    await executor.submit(young, signal)
    expect(codes(await executor.submit(old, signal))).toEqual(['Superseded'])
    await store.update(`memory/${ZONE}`, () => EMPTY_STATE) // also when the guard state is lost
    expect(codes(await executor.submit(old, signal))).toEqual(['Superseded'])
    expect(memory.dump(ZONE).map(printSet)).toContain('n0000.a.test. 60 A 192.0.2.7')
  })

  it('an older plan does not restore what a newer one deleted, although no marker is left', async () => {
    const { executor, memory } = executorFixture(zoneOf(1))
    const young = plan({
      observed: zoneOf(1),
      sources: { present: new Set(), gone: new Set([`s-n0000.${ZONE}`]) },
      number: NOW + 5,
    })
    expect(tally(await executor.submit(young, signal))).toMatchObject({ applied: 1 })
    expect(codes(await executor.submit(plan({ desired: desiredSets(1), number: NOW }), signal))).toEqual(['Superseded'])
    expect(memory.dump(ZONE)).toEqual([])
  })

  it('sends neither half of a change of type when one half changed since', async () => {
    const { executor, memory, calls } = executorFixture(zoneOf(1))
    const change = plan({ observed: zoneOf(1), desired: [want(record('n0000', 'CNAME', ['b.test.']))] })
    memory.put(ZONE, record('n0000', 'A', ['203.0.113.1']))
    expect(codes(await executor.submit(change, signal))).toEqual(['BaseMoved'])
    expect(calls).toEqual([])
  })

  it('undoes a plan byte for byte', async () => {
    const observed = [...zoneOf(4), record('x', 'A', ['192.0.2.3'])]
    const { executor, memory } = executorFixture(observed)
    const before = memory.dump(ZONE)
    const first = plan({
      observed,
      desired: [
        want(record('n0000', 'A', ['192.0.2.9'])),
        want(record('n0001', 'CNAME', ['b.test.'])),
        want(record('new', 'A', ['192.0.2.1'])),
      ],
      sources: { present: new Set(), gone: new Set(['s-n0002.a.test.']) },
    })
    expect(first.changes).toHaveLength(5)
    await executor.submit(first, signal)
    const undo = await executor.submit(inverseOf(first, NOW + 1), signal)
    expect(codes(undo)).toEqual([])
    expect(memory.dump(ZONE)).toEqual(before)
  })

  it('completes a change that a provider without transactions applied in part', async () => {
    const { executor, memory, faults } = executorFixture([], { capabilities: { isAtomic: false } })
    let isFirst = true
    const set = memory.apply.bind(memory)
    memory.apply = async (zone, batch, inner) => {
      await set(zone, batch, inner)
      if (isFirst) {
        isFirst = false
        throw new ProviderError('OutcomeUnknown', 'unknown', 'connection reset')
      }
    }
    faults.before = () => {}
    expect(tally(await executor.submit(plan({ desired: desiredSets(2) }), signal))).toEqual({
      applied: 2,
      already: 0,
      refused: 0,
    })
    expect(memory.dump(ZONE)).toHaveLength(4)
  })
})

describe('a batch with one record that the service refuses (T13)', () => {
  it('is bisected: found within ⌈log2 n⌉ + 1 calls, the others are written', async () => {
    for (let size = 2; size <= 20; size++) {
      for (let bad = 0; bad < size; bad++) {
        const { executor, memory, faults, calls } = executorFixture()
        const refusedName = `${names(size)[bad]}.${ZONE}`
        let refusals = 0
        faults.before = (batch) => {
          if (!batch.some(({ to }) => to?.name === refusedName)) return
          refusals++
          throw new ProviderError('RecordRejected', 'rejected', 'bad record')
        }
        const outcome = await executor.submit(plan({ desired: desiredSets(size) }), signal)
        expect(tally(outcome)).toEqual({ applied: size - 1, already: 0, refused: 1 })
        expect(codes(outcome)).toEqual(['PoisonRecordIsolated'])
        expect(memory.dump(ZONE)).toHaveLength(2 * (size - 1))
        const isolation = Math.ceil(Math.log2(size)) + 1
        expect(refusals).toBeLessThanOrEqual(isolation)
        // One more call writes the accepted remainder.
        expect(calls.length).toBeLessThanOrEqual(isolation + 1)
      }
    }
  })

  it('counts for nobody else, when it is our own encoding that refuses the record', async () => {
    for (const code of ['BAD_NAME', 'BAD_RDATA', 'BAD_TYPE', 'TOO_LARGE'] as const) {
      const { executor, memory, faults } = executorFixture()
      faults.before = (batch) => {
        if (batch.some(({ to }) => to?.name.startsWith('n0002.'))) throw new DnsError(code, 'no record')
      }
      for (let round = 0; round < 10; round++) {
        const desired = [...desiredSets(3), want(record(`round${round}`, 'A', ['192.0.2.1']))]
        const outcome = await executor.submit(
          plan({
            observed: memory.dump(ZONE),
            desired,
            number: NOW + round,
            sources: { present: new Set(desired.map(({ source: { uid } }) => uid)), gone: new Set() },
          }),
          signal,
        )
        expect(codes(outcome)).toEqual(['PoisonRecordIsolated'])
        expect(executor.status.failures).toBe(0)
      }
      expect(memory.dump(ZONE)).toHaveLength(2 * (2 + 10))
    }
  })

  it('or several refused records: all others are written, and no record is separated from its marker', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 40 }), fc.array(fc.nat(39), { maxLength: 5 }), async (size, picks) => {
        const { executor, memory, faults } = executorFixture()
        const refusedNames = new Set(picks.filter((pick) => pick < size).map((pick) => `${names(size)[pick]}.${ZONE}`))
        faults.before = (batch) => {
          if (batch.some(({ to }) => refusedNames.has(to?.name ?? '')))
            throw new ProviderError('RecordRejected', 'rejected', 'bad')
        }
        expect(tally(await executor.submit(plan({ desired: desiredSets(size) }), signal))).toMatchObject({
          applied: size - refusedNames.size,
          refused: refusedNames.size,
        })
        expect(memory.dump(ZONE)).toHaveLength(2 * (size - refusedNames.size))
      }),
      { numRuns: 200 },
    )
  })
})

describe('a call without a response', () => {
  it('is followed by a read: applied changes are not sent again', async () => {
    const clock = fakeClock()
    const { executor, faults, calls } = executorFixture([], { clock })
    faults.after = () => {
      throw new ProviderError('OutcomeUnknown', 'unknown', 'timeout')
    }
    const turn = executor.submit(plan({ desired: desiredSets(5) }), signal)
    await clock.advance(10_000)
    expect(tally(await turn)).toEqual({ applied: 0, already: 5, refused: 0 })
    expect(calls).toHaveLength(1)
  })

  it('is sent again when it had no effect', async () => {
    const clock = fakeClock()
    const { executor, faults, calls } = executorFixture([], { clock })
    faults.before = (_batch, call) => {
      if (call === 1) throw new ProviderError('OutcomeUnknown', 'unknown', 'timeout')
    }
    const turn = executor.submit(plan({ desired: desiredSets(5) }), signal)
    await clock.advance(10_000)
    expect(tally(await turn)).toEqual({ applied: 5, already: 0, refused: 0 })
    expect(calls).toHaveLength(2)
  })

  it('that hangs is aborted after the time-out', async () => {
    const clock = fakeClock()
    const { executor, faults } = executorFixture([], { clock, callTimeoutMs: 1000 })
    faults.before = async () => new Promise(() => {})
    const turn = executor.submit(plan({ desired: desiredSets(1) }), signal)
    await clock.advance(120_000)
    expect(codes(await turn)).toEqual(['OutcomeUnknown'])
  })
})

describe('a service that is down (T12)', () => {
  it('gets at most one request a minute after five failures, and the plan stays visible', async () => {
    const clock = fakeClock()
    const { executor, faults } = executorFixture([], { clock })
    let reads = 0
    faults.onRead = () => {
      reads++
      throw new ProviderError('ProviderUnavailable', 'later', 'connection refused')
    }
    for (let index = 0; index < 60; index++) {
      const turn = executor.submit(plan({ desired: desiredSets(1), number: NOW + index }), signal)
      await clock.advance(10_000)
      expect(['ProviderUnavailable', 'Stale']).toContain(codes(await turn)[0])
    }
    expect(executor.status).toMatchObject({ isOpen: true, code: 'ProviderUnavailable' })
    // Ten minutes: five attempts open the breaker, then one request a minute.
    expect(reads).toBeLessThanOrEqual(5 + 10)
    faults.onRead = () => {}
    await clock.advance(60_000)
    const turn = executor.submit(plan({ desired: desiredSets(1), number: NOW + 100 }), signal)
    await clock.advance(1000)
    expect(tally(await turn)).toMatchObject({ applied: 1 })
    expect(executor.status.isOpen).toBe(false)
  })

  it('does not affect other zones', async () => {
    const broken = executorFixture([], { callTimeoutMs: 60_000 })
    broken.faults.onRead = async () => new Promise(() => {})
    const stop = new AbortController()
    const stuck = broken.executor.submit(plan({ desired: desiredSets(1) }), stop.signal)
    const healthy = executorFixture()
    expect(tally(await healthy.executor.submit(plan({ desired: desiredSets(1) }), signal))).toMatchObject({
      applied: 1,
    })
    broken.faults.onRead = () => {}
    stop.abort()
    void stuck
  })
})

describe('quotas (T14)', () => {
  it('throttling halves the rate and keeps the plan', async () => {
    const clock = fakeClock()
    const limiter = createLimiter({ perSecond: 4, clock, random: () => 0.5 })
    const { executor, faults } = executorFixture([], { clock, limiter })
    faults.before = (_batch, call) => {
      if (call <= 2) throw new ProviderError('Throttled', 'later', 'Rate exceeded')
    }
    const turn = executor.submit(plan({ desired: desiredSets(1) }), signal)
    await clock.advance(60_000)
    expect(tally(await turn)).toMatchObject({ applied: 1 })
    expect(limiter.rate).toBeLessThan(4)
  })

  it('in a full zone deletes are sent first', async () => {
    const observed = zoneOf(3)
    const { executor, memory, faults } = executorFixture(observed)
    faults.before = (batch) => {
      const grown =
        memory.dump(ZONE).length +
        batch.reduce((sum, { from, to }) => sum + Number(to !== undefined) - Number(from !== undefined), 0)
      const creates = batch.some(({ from }) => from === undefined)
      if (creates && (grown > 6 || memory.dump(ZONE).length >= 6))
        throw new ProviderError('ZoneQuotaExceeded', 'later', 'zone is full')
    }
    const fixture: PlanFixture = {
      observed,
      desired: [want(record('new', 'A', ['192.0.2.1']))],
      sources: { present: new Set(), gone: new Set(['s-n0000.a.test.']) },
    }
    expect(tally(await executor.submit(plan(fixture), signal))).toEqual({ applied: 2, already: 0, refused: 0 })
  })

  it('in a zone that stays full the creates are refused, without a retry loop', async () => {
    const { executor, faults, calls } = executorFixture()
    faults.before = () => {
      throw new ProviderError('ZoneQuotaExceeded', 'later', 'zone is full')
    }
    expect(codes(await executor.submit(plan({ desired: desiredSets(3) }), signal))).toEqual(['ZoneQuotaExceeded'])
    expect(calls.length).toBeLessThanOrEqual(2)
  })
})

describe('the kill switch', () => {
  it('stops before the next batch; the plan continues afterwards', async () => {
    const { executor, killSwitch, faults, calls } = executorFixture([], { capabilities: { maxChanges: 2 } })
    faults.after = () => killSwitch.set('annotation', true)
    const outcome = await executor.submit(plan({ desired: desiredSets(5) }), signal)
    expect(tally(outcome)).toMatchObject({ applied: 1, refused: 4 })
    expect(codes(outcome)).toEqual(['Paused'])
    faults.after = () => {}
    expect(codes(await executor.submit(plan({ desired: desiredSets(5), number: NOW + 1 }), signal))).toEqual(['Paused'])
    expect(calls).toHaveLength(1)
    killSwitch.set('annotation', false)
    // The plan is still valid: one change is present, the others follow.
    expect(tally(await executor.submit(plan({ desired: desiredSets(5) }), signal))).toMatchObject({
      applied: 4,
      already: 1,
    })
  })
})

describe('forty processes on one account of five requests a second', () => {
  it('share it: most of it is used, and no process starves', async () => {
    const clock = fakeClock()
    let seed = 7
    const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647
    let tokens = 5
    let filledAt = 0
    const account = {
      tryTake(): boolean {
        tokens = Math.min(5, tokens + ((clock.monotonic() - filledAt) / 1000) * 5)
        filledAt = clock.monotonic()
        if (tokens < 1) return false
        tokens--
        return true
      },
    }
    const served = Array.from({ length: 40 }, () => 0)
    let asked = 0
    const stop = new AbortController()
    setMaxListeners(0, stop.signal)
    const work = async (id: number) => {
      const limiter = createLimiter({ perSecond: 2, clock, random })
      while (!stop.signal.aborted) {
        await limiter.acquire(stop.signal)
        asked++
        if (account.tryTake()) {
          limiter.succeeded()
          served[id] = (served[id] ?? 0) + 1
        } else {
          limiter.throttled()
        }
      }
    }
    const all = Promise.all(served.map(async (_, id) => work(id)))
    await clock.advance(1_200_000)
    stop.abort()
    await all
    const total = served.reduce((sum, count) => sum + count, 0)
    const fair = (5 * 1200) / 40
    expect(total).toBeGreaterThan(0.75 * 40 * fair)
    expect(Math.min(...served)).toBeGreaterThan(0.5 * fair)
    expect(Math.max(...served)).toBeLessThan(2 * fair)
    // Most requests are answered, not throttled.
    expect(asked).toBeLessThan(1.5 * total)
  })
})

describe('guard state over restarts', () => {
  const folders: string[] = []
  afterEach(async () => {
    for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true })
  })

  it('killed after every batch, twenty times, stays within one budget', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'seamark-guard-'))
    folders.push(folder)
    const memory = memoryProvider({ zones: [ZONE], capabilities: { maxChanges: 2 } })
    for (const set of zoneOf(100)) memory.put(ZONE, set)
    const kept = names(100).slice(25)
    for (let attempt = 0; attempt < 20; attempt++) {
      // A new process: only the zone and the store are known.
      const store = fileGuardStore(folder)
      const { executor, faults } = executorFixture([], { memory, store })
      const state: GuardState = await store.load(`memory/${ZONE}`)
      const next = plan({
        observed: memory.dump(ZONE),
        desired: kept.map((name) => want(record(name, 'A', ['192.0.2.1']))),
        sources: {
          present: new Set(),
          gone: new Set(
            names(100)
              .slice(0, 25)
              .map((name) => `s-${name}.${ZONE}`),
          ),
        },
        state,
        number: NOW + attempt,
        now: Date.now(),
      })
      const killed = new Error('killed')
      faults.after = () => {
        throw new ProviderError('Paused', 'later', killed.message)
      }
      await executor.submit(next, signal)
    }
    const left = memory.dump(ZONE).filter(({ type }) => type === 'A').length
    expect(left).toBe(90)
  })

  it('two processes that each delete ten different names stay within one budget', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'seamark-guard-'))
    folders.push(folder)
    const memory = memoryProvider({ zones: [ZONE] })
    for (const set of zoneOf(100)) memory.put(ZONE, set)
    const observed = memory.dump(ZONE)
    // Both plans are made before either is applied, so neither accounts for the other.
    const losing = (from: number, to: number, number: number) => {
      const lost = names(100).slice(from, to)
      return plan({
        observed,
        scope: new Set(lost.map((name) => `${name}.${ZONE}`)),
        sources: { present: new Set(), gone: new Set(lost.map((name) => `s-${name}.${ZONE}`)) },
        state: { ...EMPTY_STATE, ownedNames: 100, ownedSources: 100 },
        number,
        now: Date.now(),
      })
    }
    const plans = [losing(0, 10, NOW), losing(10, 20, NOW + 1)]
    expect(plans.map(({ changes }) => changes.length)).toEqual([10, 10])
    const outcomes: PlanOutcome[] = []
    for (const each of plans)
      outcomes.push(await executorFixture([], { memory, store: fileGuardStore(folder) }).executor.submit(each, signal))
    expect(outcomes.map(tally)).toMatchObject([
      { applied: 10, refused: 0 },
      { applied: 0, refused: 10 },
    ])
    expect(outcomes.map(codes)).toEqual([[], ['DeleteBudgetSpent']])
  })

  it('reads back what it wrote, and rejects invalid content', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'seamark-guard-'))
    folders.push(folder)
    const store = fileGuardStore(folder)
    const state: GuardState = {
      ...EMPTY_STATE,
      fence: 7,
      waiting: new Map([['a.test. A', 5]]),
      deleted: [{ at: 1, key: 'x' }],
    }
    await store.update('p/z.', () => state)
    expect(await fileGuardStore(folder).load('p/z.')).toEqual(state)
    await Promise.all(
      Array.from({ length: 20 }, async () =>
        fileGuardStore(folder).update('p/z.', (old) => ({ ...old, fence: old.fence + 1 })),
      ),
    )
    expect((await store.load('p/z.')).fence).toBe(27)
    await writeFile(join(folder, `${encodeURIComponent('p/z.')}.json`), '{"version":1,"fence":"x"}')
    await expect(store.load('p/z.')).rejects.toThrow(/guard state/)
  })
})

it('a plan applied by an executor is the plan an ideal provider would apply', async () => {
  const observed = zoneOf(6)
  const fixture: PlanFixture = {
    observed,
    desired: [...desiredSets(3), want(record('z', 'CNAME', ['b.test.']), source('z'))],
  }
  const { executor, memory } = executorFixture(observed)
  const next = plan(fixture)
  await executor.submit(next, signal)
  expect(memory.dump(ZONE)).toEqual(applied(observed, next.changes).sort(compareSets))
})
