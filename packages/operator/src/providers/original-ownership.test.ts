import { describe, expect, it } from 'vitest'
import { createKillSwitch } from '../process/kill-switch.ts'
import { createEngine } from '../records/engine.ts'
import { failuresOf } from '../records/execute/result.ts'
import type { Desired } from '../records/plan/plan.ts'
import { memoryGuardStore } from '../records/state/guard-state.ts'
import type { RRset } from '../rrset/rrset.ts'
import { memoryProvider } from './memory.ts'
import { ORIGINAL_CLUSTER, ORIGINAL_TYPES, ownerIdOf, sourceIdOf, withOriginalOwnership } from './original-ownership.ts'

const AGE = { createdAt: '', namespace: '', name: 'test', kind: 'Test' }

const ZONE = 'example.com.'
const NAME = 'shop.example.com.'
const MARKER = 'comment-shop.example.com.'
const { signal } = new AbortController()

const a = (...values: string[]): RRset => ({ name: NAME, type: 'A', ttl: 60, values })
const aaaa = (...values: string[]): RRset => ({ name: NAME, type: 'AAAA', ttl: 60, values })
const cname = (...values: string[]): RRset => ({ name: NAME, type: 'CNAME', ttl: 60, values })
const txt = (name: string, ...values: string[]): RRset => ({ name, type: 'TXT', ttl: 600, values })
const marker = (owner = 'GardenRing') => txt(MARKER, `"owner=${owner}"`, '"prefix=comment-"')

async function fixture(sets: RRset[], cnames: string[] = [], identity = 'GardenRing') {
  const memory = memoryProvider({ name: 'memory', zones: [ZONE] })
  const zone = { id: ZONE, name: ZONE }
  await memory.apply(
    zone,
    sets.map((to) => ({ from: undefined, to })),
    signal,
  )
  const provider = withOriginalOwnership(memory, { identity, cnamesOf: () => cnames })
  const engine = createEngine({
    providers: [provider],
    owner: { id: ownerIdOf(identity), cluster: ORIGINAL_CLUSTER },
    store: memoryGuardStore(),
    killSwitch: createKillSwitch(),
    mode: 'enforce',
    types: ORIGINAL_TYPES,
  })
  return {
    /** Plans and applies; returns the codes of refusals. */
    async want(...wanted: RRset[]) {
      const desired = wanted.map((set): Desired => ({
        set,
        source: { uid: sourceIdOf(set.name), label: 'test', age: AGE },
        policy: { isHealthDriven: true, isApproved: true, removeWhenEmpty: true },
      }))
      const sources = { present: { has: () => true }, gone: { has: () => false } }
      const { plans } = await engine.plan({ desired, unusable: [], sources }, new Set([NAME]), signal)
      const codes: string[] = []
      for (const plan of plans) {
        codes.push(...plan.refused.map(({ code }) => code))
        codes.push(...failuresOf(await engine.apply(plan, signal)).map(({ code }) => code ?? ''))
      }
      return codes
    },
    async changes(...wanted: RRset[]) {
      const desired = wanted.map((set) => ({ set, source: { uid: sourceIdOf(set.name), label: 'test', age: AGE } }))
      const sources = { present: { has: () => true }, gone: { has: () => false } }
      const { plans } = await engine.plan({ desired, unusable: [], sources }, new Set([NAME]), signal)
      return plans.flatMap((plan) => plan.changes.map(({ op, type }) => `${op} ${type}`))
    },
    async zone() {
      const read = await memory.read(zone, 'all', signal)
      return read
        .filter(({ type }) => type !== 'SOA' && type !== 'NS')
        .map(({ name, type, values }) => `${name} ${type} ${values.join(' ')}`)
        .toSorted()
    },
  }
}

describe("the planner on a zone with the original's ownership records", () => {
  it('creates records with one ownership record for both families, and then changes nothing', async () => {
    const the = await fixture([], ['lb.example.net.'])
    expect(await the.want(a('192.0.2.1'), aaaa('2001:db8::1'))).toEqual([])
    expect(await the.zone()).toEqual([
      `${MARKER} TXT "cnames=lb.example.net" "owner=GardenRing" "prefix=comment-"`,
      `${NAME} A 192.0.2.1`,
      `${NAME} AAAA 2001:db8::1`,
    ])
    expect(await the.changes(a('192.0.2.1'), aaaa('2001:db8::1'))).toEqual([])
    expect(await the.want(a('192.0.2.2'))).toEqual([])
    expect((await the.zone()).filter((line) => line.startsWith(NAME))).toEqual([`${NAME} A 192.0.2.2`])
  })

  it('takes over what the original wrote, switches the type in one batch, and removes everything', async () => {
    const the = await fixture([a('192.0.2.1'), marker()])
    expect(await the.changes(a('192.0.2.1'))).toEqual([])
    expect(await the.want(cname('lb.example.net.'))).toEqual([])
    expect(await the.zone()).toEqual([
      `${MARKER} TXT "owner=GardenRing" "prefix=comment-"`,
      `${NAME} CNAME lb.example.net.`,
    ])
    expect(await the.want({ ...cname(), values: [] })).toEqual([])
    expect(await the.zone()).toEqual([])
  })

  it('maintains what it created without an identity, and leaves the records of every identity alone', async () => {
    const the = await fixture([], [], '')
    expect(await the.want(a('192.0.2.1'))).toEqual([])
    expect(await the.zone()).toEqual([`${MARKER} TXT "owner=" "prefix=comment-"`, `${NAME} A 192.0.2.1`])
    expect(await the.changes(a('192.0.2.1'))).toEqual([])
    expect(await the.want(a('192.0.2.2'))).toEqual([])
    expect(await the.zone()).toContain(`${NAME} A 192.0.2.2`)
    const other = await fixture([a('192.0.2.1'), marker()], [], '')
    expect(await other.want(a('192.0.2.2'))).toEqual(['ForeignOwner'])
  })

  it('replaces the ownership record of the first release', async () => {
    const the = await fixture([a('192.0.2.1'), txt(NAME, '"GardenRing"', '"v=spf1 -all"')])
    expect(await the.want(a('192.0.2.1'))).toEqual([])
    expect(await the.zone()).toEqual([
      `${MARKER} TXT "owner=GardenRing" "prefix=comment-"`,
      `${NAME} A 192.0.2.1`,
      `${NAME} TXT "v=spf1 -all"`,
    ])
    expect(await the.changes(a('192.0.2.1'))).toEqual([])
  })

  it.each([
    ['of another owner', [a('192.0.2.9'), marker('other')], 'ForeignOwner'],
    ['without an owner', [a('192.0.2.9')], 'UnownedRecordExists'],
    ['with an ownership record of another owner and no record', [marker('other')], 'ForeignOwner'],
  ])('does not touch a record %s', async (_case, sets, code) => {
    const the = await fixture(sets)
    const before = await the.zone()
    expect(await the.want(a('192.0.2.1'))).toEqual([code])
    expect(await the.zone()).toEqual(before)
  })
})

describe("a zone with the original's ownership records", () => {
  const zone = { id: ZONE, name: ZONE }
  const open = (...sets: RRset[]) => {
    const memory = memoryProvider({ name: 'memory', zones: [ZONE] })
    for (const set of sets) memory.put(ZONE, set)
    return { memory, provider: withOriginalOwnership(memory, { identity: 'GardenRing', cnamesOf: () => [] }) }
  }
  const find = (sets: readonly RRset[], name: string) => sets.find((set) => set.name === name && set.type === 'TXT')

  it('writes nothing when the ownership record is not as it was read', async () => {
    const { memory, provider } = open(a('192.0.2.1'), marker())
    const seen = find(await provider.read(zone, 'all', signal), `_seamark-a.${NAME}`)
    expect(seen).toBeDefined()
    memory.put(ZONE, marker('Other'))
    const deletion = [
      { from: a('192.0.2.1'), to: undefined },
      { from: seen, to: undefined },
    ]
    await expect(provider.apply(zone, deletion, signal)).rejects.toMatchObject({ code: 'BaseMoved', outcome: 'moved' })
    expect(memory.dump(ZONE)).toHaveLength(2)
  })

  it('shows a TXT record at the name that is not an owner of ours as the record that it is', async () => {
    const { provider } = open(a('192.0.2.1'), txt(NAME, '"verification-code"'))
    const sets = await provider.read(zone, 'all', signal)
    expect(sets.map(({ name, type }) => `${name} ${type}`)).toEqual([`${NAME} A`, `${NAME} TXT`])
  })

  it('shows its owner beside a marker that another manager wrote there', async () => {
    const other = txt(`_seamark-a.${NAME}`, '"v=seamark1,owner=prod,cluster=c,source=s,plan=1"')
    const { provider } = open(a('192.0.2.1'), marker(), other)
    const values = find(await provider.read(zone, 'all', signal), `_seamark-a.${NAME}`)?.values ?? []
    expect(values.map((value) => /owner=(\w+)/.exec(value)?.[1] ?? '').toSorted()).toEqual(['GardenRing', 'prod'])
  })
})
