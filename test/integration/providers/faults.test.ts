/**
 * Rows T12 to T15 of the fault matrix, and zones that vanish, on every provider with its real server or strict fake.
 *
 * Time runs thirty times as fast for the engine (its time-out of 30 s is one second here); servers and sockets are real.
 */
import {
  compareSets,
  createZoneView,
  type GeneratedPlanInput,
  markedSet,
  markerName,
  type ObservedRRset,
  OWNER,
  ownershipOf,
  printSet,
  record,
  want,
  planFixtures,
} from '@seamark/operator/testing'
import { type Clock, systemClock } from '@seamark/kube'
import {
  createEngine,
  createKillSwitch,
  type Desired,
  type Engine,
  memoryGuardStore,
  type Plan,
} from '@seamark/operator'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { type Ability, type FaultSubject, faultSubjects, ZONE } from './fault-subjects.ts'

const SPEED = 30
const clock: Clock = {
  now: () => systemClock.now(),
  monotonic: () => systemClock.monotonic() * SPEED,
  after: (ms, run) => systemClock.after(ms / SPEED, run),
}
const signal = new AbortController().signal
const DOWN = ['OutcomeUnknown', 'ProviderUnavailable', 'TransferRefused', 'Stale']
const TYPES = ['A', 'AAAA', 'CNAME', 'TXT']

/** A new process: it has no state but the zone. */
function engineOn(subject: FaultSubject): Engine {
  return createEngine({
    providers: [subject.provider],
    owner: OWNER,
    store: memoryGuardStore(),
    killSwitch: createKillSwitch(),
    mode: 'enforce',
    types: TYPES,
    registry: {},
    clock,
  })
}

const desiredSets = (row: string, count: number, address = '192.0.2.1'): Desired[] =>
  Array.from({ length: count }, (_, index) => want(record(`${row}-${index}`, 'A', [address])))

async function plan(engine: Engine, desired: readonly Desired[], gone: readonly string[] = []) {
  const present = new Set(desired.map((item) => item.source.uid))
  return engine.plan({ desired, unusable: [], sources: { present, gone: new Set(gone) } }, 'all', signal)
}

async function apply(engine: Engine, plans: readonly Plan[]) {
  const outcomes = await Promise.all(plans.map(async (item) => engine.apply(item, signal)))
  return outcomes.flatMap(({ results }) => results)
}

async function sync(engine: Engine, desired: readonly Desired[], gone: readonly string[] = []) {
  const planned = await plan(engine, desired, gone)
  expect(planned.unread).toEqual([])
  return { planned, results: await apply(engine, planned.plans) }
}

async function dump(subject: FaultSubject): Promise<string[]> {
  const sets = await subject.direct.read(subject.zone, 'all', signal)
  return sets
    .filter(({ type }) => type !== 'SOA')
    .toSorted(compareSets)
    .map(printSet)
}

/** Every item is in the zone, with its marker. */
async function expectPublished(subject: FaultSubject, desired: readonly Desired[]): Promise<void> {
  const names = desired.flatMap(({ set }) => [set.name, markerName(set.name, set.type)])
  const found = await subject.direct.read(subject.zone, new Set(names), signal)
  const there = new Map(found.map((set) => [`${set.name} ${set.type}`, set]))
  for (const { set } of desired) {
    expect(there.get(`${set.name} ${set.type}`)?.values, set.name).toEqual(set.values)
    expect(there.has(`${markerName(set.name, set.type)} TXT`), `marker of ${set.name}`).toBe(true)
  }
}

const inPlace = (results: readonly { result: string }[]) => results.filter(({ result }) => result !== 'refused').length

for (const kind of faultSubjects) {
  describe.skipIf(!kind.isAvailable)(`faults of ${kind.title}`, () => {
    let subject: FaultSubject
    let started: FaultSubject | undefined
    const never = (what: Ability) => kind.never?.includes(what) === true
    const keepAlive = setInterval(() => undefined, 1000)
    beforeAll(async () => {
      subject = await kind.start()
      started = subject
    })
    afterAll(async () => {
      clearInterval(keepAlive)
      await started?.close()
    })

    it('T12: a service that hangs makes a zone unread, never an empty one; what was planned is not lost', async () => {
      const engine = engineOn(subject)
      const desired = desiredSets('t12', 3)
      const { plans } = await plan(engine, desired)
      const before = await dump(subject)
      subject.faults.mode = 'hang'
      const results = await apply(engine, plans)
      expect(results.map(({ result }) => result)).toEqual(['refused', 'refused', 'refused'])
      for (const { code } of results) expect(DOWN).toContain(code)
      const blind = await plan(engine, desired)
      expect(blind.plans).toEqual([])
      expect(DOWN).toContain(blind.unread[0]?.code)
      subject.faults.mode = 'pass'
      expect(await dump(subject)).toEqual(before)
      expect(inPlace((await sync(engine, desired)).results)).toBe(3)
      await expectPublished(subject, desired)
    })

    it('T12: a service that is down is soon left alone, the zone is Stale, and it comes back by itself', async () => {
      const engine = engineOn(subject)
      const desired = desiredSets('t12', 3, '192.0.2.2')
      await plan(engine, desired)
      const before = await dump(subject)
      subject.faults.mode = 'down'
      const codes: (string | undefined)[] = []
      while (codes.at(-1) !== 'Stale' && codes.length < 20) codes.push((await plan(engine, desired)).unread[0]?.code)
      expect(codes.at(-1)).toBe('Stale')
      const asked = subject.faults.counts.requests
      for (let index = 0; index < 50; index++) await plan(engine, desired)
      expect(subject.faults.counts.requests - asked).toBeLessThanOrEqual(2)
      expect(await dump(subject)).toEqual(before)
      subject.faults.mode = 'pass'
      await expect.poll(async () => (await plan(engine, desired)).unread, { timeout: 30_000 }).toEqual([])
      expect(inPlace((await sync(engine, desired)).results)).toBe(3)
      await expectPublished(subject, desired)
    })

    it('T13: a change that was made without an answer is found by reading, and not sent again', async () => {
      const engine = engineOn(subject)
      const desired = desiredSets('t13-lost', 4)
      const { plans } = await plan(engine, desired)
      const { writes } = subject.faults.counts
      subject.faults.mode = 'lose-reply'
      expect(inPlace(await apply(engine, plans))).toBe(4)
      await expectPublished(subject, desired)
      // Without transactions each set is a change of its own.
      const expected = subject.provider.capabilities.isAtomic ? 1 : 8
      expect(subject.faults.counts.writes - writes).toBeLessThanOrEqual(expected)
      expect((await plan(engine, desired)).plans.flatMap(({ changes }) => changes)).toEqual([])
    })

    it.skipIf(never('refuse'))(
      'T13: one record that the service refuses holds back none of nineteen others',
      async () => {
        const engine = engineOn(subject)
        const good = desiredSets('t13-good', 19)
        const bad = want({ ...record('t13-good-9x', 'A', []), values: ['not-an-address'] })
        const { results } = await sync(engine, [...good, bad])
        expect(inPlace(results)).toBe(19)
        const refused = results.filter(({ result }) => result === 'refused')
        expect(refused.map(({ change }) => change.name)).toEqual([bad.set.name])
        expect(['PoisonRecordIsolated', 'RecordRejected']).toContain(refused[0]?.code)
        await expectPublished(subject, good)
        expect((await dump(subject)).filter((line) => line.includes('t13-good-9x') && line.includes(' A '))).toEqual([])
      },
    )

    it('T13: cut off after k of n writes, no record exists without its marker, and the rest follows', async () => {
      for (let k = 0; k <= 6; k++) {
        const engine = engineOn(subject)
        const desired = desiredSets(`t13-cut${k}`, 3)
        const { plans } = await plan(engine, desired)
        subject.faults.writesLeft = k
        await apply(engine, plans)
        subject.faults.writesLeft = undefined
        subject.faults.mode = 'pass'
        const lines = await dump(subject)
        for (const { set } of desired) {
          const hasRecord = lines.some((line) => line.startsWith(`${set.name} `))
          const hasMarker = lines.some((line) => line.startsWith(`${markerName(set.name, set.type)} `))
          expect(hasMarker || !hasRecord, set.name).toBe(true)
        }
        await sync(engineOn(subject), desired)
        await expectPublished(subject, desired)
      }
    })

    it.skipIf(never('throttle'))('T14: throttled changes wait, slow down, and are made', async () => {
      const engine = engineOn(subject)
      const desired = desiredSets('t14', 3)
      const { plans } = await plan(engine, desired)
      const { writes } = subject.faults.counts
      subject.throttle?.(3)
      expect(inPlace(await apply(engine, plans))).toBe(3)
      await expectPublished(subject, desired)
      expect(subject.faults.counts.writes - writes).toBeLessThanOrEqual(3 + 6)
    })

    it.skipIf(never('fill'))(
      'T14: a full zone takes what a delete makes room for, and refuses the rest without a loop',
      async () => {
        const engine = engineOn(subject)
        // Enough that the loss of one is no mass deletion, whatever else is in the zone.
        const [lost, ...kept] = desiredSets('t14-old', 20)
        await sync(engine, [...kept, ...(lost === undefined ? [] : [lost])])
        await subject.fill?.(0)
        const { writes } = subject.faults.counts
        const fresh = [...kept, ...desiredSets('t14-new', 2)]
        const { results } = await sync(engine, fresh, [lost?.source.uid ?? ''])
        expect(results.filter(({ result }) => result === 'applied').map(({ change }) => change.op)).toContain('delete')
        const refused = results.filter(({ result }) => result === 'refused')
        expect(refused.map(({ code }) => code)).toEqual(refused.map(() => 'ZoneQuotaExceeded'))
        expect(refused.length).toBeGreaterThan(0)
        expect(subject.faults.counts.writes - writes).toBeLessThanOrEqual(6)
        await subject.fill?.(1000)
        await sync(engine, fresh)
        await expectPublished(subject, fresh)
      },
    )

    it.skipIf(never('hold-foreign'))(
      'T15: what is not ours is byte for byte as it was, in generated zones',
      async () => {
        const generated = fc.sample(planFixtures, { numRuns: kind.zones, seed: 15 })
        for (const environment of generated) await expectForeignUntouched(subject, environment)
      },
    )

    it.skipIf(never('vanish'))(
      'a zone that vanished is unread: nothing is written, and nothing is taken for deleted',
      async () => {
        // One of its own: the zone of the other tests stays.
        const doomed = await kind.start()
        onTestFinished(async () => doomed.close())
        const desired = desiredSets('gone', 2)
        const engine = engineOn(doomed)
        await sync(engine, desired)
        const { writes } = doomed.faults.counts
        await doomed.vanish?.()
        const seen = await plan(engine, desired)
        expect(seen.plans).toEqual([])
        // For a zone that it does not have, Knot answers that the key is unknown.
        expect(['ZoneNotFound', 'TransferRefused', 'CredentialsInvalid']).toContain(seen.unread[0]?.code)
        const fresh = await plan(engineOn(doomed), desired)
        expect(fresh.plans).toEqual([])
        expect(fresh.unread.length + fresh.withoutZone.length).toBeGreaterThan(0)
        expect(doomed.faults.counts.writes).toBe(writes)
      },
    )
  })
}

/** Puts a generated zone there, plans and applies, checks everything that is not ours, and cleans up. */
async function expectForeignUntouched(subject: FaultSubject, environment: GeneratedPlanInput): Promise<void> {
  await subject.renew?.()
  const { direct, zone } = subject
  const observed: ObservedRRset[] = environment.observed
    // An asterisk inside a label is a legal name that PowerDNS refuses.
    .filter(({ name }) => !/[^.]\*/.test(name))
    .map(({ name, type, ttl, values }) => ({ name, type, ttl, values }))
  const labels = [...environment.observed.map(({ name }) => name), ...environment.desired.map(({ set }) => set.name)]
  const names = new Set([...labels, ...labels.flatMap((name) => TYPES.map((type) => markerName(name, type)))])
  const clear = async () => {
    const left = (await direct.read(zone, 'all', signal)).filter(({ name }) => names.has(name))
    if (left.length > 0) await writeAll(left.map((from) => ({ from, to: undefined })))
  }
  const writeAll = async (batch: Parameters<typeof direct.apply>[1]) => {
    const size = direct.capabilities.isAtomic ? direct.capabilities.maxChanges : 1
    for (let at = 0; at < batch.length; at += size) await direct.apply(zone, batch.slice(at, at + size), signal)
  }
  await clear()
  if (observed.length > 0) await writeAll(observed.map((to) => ({ from: undefined, to })))
  const view = createZoneView(observed, { origin: ZONE, registry: {} })
  const foreign = observed.filter((set) => {
    const subjectOf = markedSet(set.name) ?? set
    if (ownershipOf(view, subjectOf.name, subjectOf.type, OWNER).kind === 'ours') return false
    // A registry entry kept since an adoption is deleted with its record.
    return set.type !== 'TXT' || markedSet(set.name) !== undefined
  })
  await sync(engineOn(subject), environment.desired, [...environment.gone])
  const after = await dump(subject)
  for (const set of foreign) expect(after, printSet(set)).toContain(printSet(set))
  await clear()
}
