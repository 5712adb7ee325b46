import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { memoryCluster } from '@seamark/kube/testing'
import { memoryProvider } from '../../providers/memory.ts'
import { configMapPlanStore } from './config-map-plan-store.ts'
import { createEngine } from '../engine.ts'
import { EMPTY_STATE, fileGuardStore, memoryGuardStore } from '../state/guard-state.ts'
import { inverseOf } from '../plan/inverse.ts'
import { createKillSwitch } from '../../process/kill-switch.ts'
import { NOW, OWNER, owned, plan, record, want, ZONE } from '../../../testing/plan-fixture.ts'
import { filePlanStore, type PlanStore } from './plan-store.ts'
import type { Plan } from '../plan/plan.ts'

const folders: string[] = []
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true })
})

const numbered = (number: number, changes = 1): Plan => ({
  ...plan({
    desired: Array.from({ length: changes }, (_, index) => want(record(`n${index}`, 'A', ['192.0.2.1']))),
    number,
  }),
  provider: 'bind@Z_1',
})

it('state in a folder is readable by the user of the manager only', async () => {
  const parent = await mkdtemp(join(tmpdir(), 'seamark-state-'))
  folders.push(parent)
  const folder = join(parent, 'state')
  await fileGuardStore(folder).update('p/z.', () => ({ ...EMPTY_STATE }))
  await filePlanStore(join(folder, 'plans')).save(numbered(1))
  const modes = await Promise.all(
    ['', ...(await readdir(folder, { recursive: true }))].map(async (name) => {
      const info = await stat(join(folder, name))
      return `${info.isDirectory() ? 'folder' : 'file'} ${(info.mode & 0o777).toString(8)}`
    }),
  )
  expect(modes.toSorted()).toEqual(['file 600', 'file 600', 'folder 700', 'folder 700'])
})

const stores: [string, (kept: number) => Promise<PlanStore>][] = [
  [
    'in a folder',
    async (kept) => {
      const folder = await mkdtemp(join(tmpdir(), 'seamark-plans-'))
      folders.push(folder)
      return filePlanStore(join(folder, 'plans'), kept)
    },
  ],
  ['in a cluster', async (kept) => configMapPlanStore(memoryCluster().client, 'seamark', kept)],
]

describe.each(stores)('applied plans %s', (_where, open) => {
  it('are read back unchanged, newest first, and as an empty list when there is none', async () => {
    const store = await open(10)
    expect(await store.list()).toEqual([])
    expect(await store.load(NOW)).toEqual([])
    await store.save(numbered(NOW))
    await store.save(numbered(NOW + 1, 3))
    expect(await store.list()).toEqual([
      { number: NOW + 1, provider: 'bind@Z_1', zone: ZONE, changes: 3 },
      { number: NOW, provider: 'bind@Z_1', zone: ZONE, changes: 1 },
    ])
    const [loaded] = await store.load(NOW + 1)
    expect(loaded?.changes).toEqual(numbered(NOW + 1, 3).changes)
    await store.remove(numbered(NOW + 1, 3))
    expect((await store.list()).map(({ number }) => number)).toEqual([NOW])
  })

  it('are bounded: old ones are deleted', async () => {
    const store = await open(5)
    for (let index = 0; index < 41; index++) await store.save(numbered(NOW + index))
    const left = (await store.list()).map(({ number }) => number)
    expect(left).toEqual([40, 39, 38, 37, 36].map((index) => NOW + index))
  })

  it('include a plan that is larger than an object may be', async () => {
    const store = await open(5)
    const values = Array.from({ length: 400 }, (_, index) => `${index}`)
    const noise = Array.from({ length: 6_000 }, () => Math.random().toString(36).repeat(20))
    const large: Plan = {
      ...numbered(NOW),
      changes: noise.map((message, index) => ({
        ...(numbered(NOW).changes[0] as Plan['changes'][number]),
        name: `n${index}.${ZONE}`,
        message: `${message}${Math.random()}${values[index % 400] ?? ''}`,
      })),
    }
    await store.save(large)
    const [loaded] = await store.load(NOW)
    expect(loaded?.changes.map(({ message }) => message)).toEqual(large.changes.map(({ message }) => message))
  })
})

describe('an engine that stores plans', () => {
  const open = async (plans: PlanStore) => {
    const memory = memoryProvider({ zones: [ZONE] })
    for (const set of owned(record('old', 'A', ['192.0.2.1']))) memory.put(ZONE, set)
    const engine = createEngine({
      providers: [memory],
      owner: OWNER,
      store: memoryGuardStore(),
      killSwitch: createKillSwitch(),
      mode: 'enforce',
      types: ['A'],
      plans,
    })
    const { signal } = new AbortController()
    const apply = async () => {
      const desired = [want(record('old', 'A', ['192.0.2.2'])), want(record('new', 'A', ['192.0.2.3']))]
      const sources = { present: new Set(desired.map(({ source }) => source.uid)), gone: new Set<string>() }
      const { plans: made } = await engine.plan({ desired, unusable: [], sources }, 'all', signal)
      for (const each of made) await engine.apply(each, signal)
      return made
    }
    return { memory, engine, signal, apply }
  }

  it('can undo its changes, also after a restart', async () => {
    const plans = await (stores[0]?.[1] ?? fail)(10)
    const { memory, engine, signal, apply } = await open(plans)
    const before = memory.dump(ZONE)
    await apply()
    expect(memory.dump(ZONE)).toHaveLength(4)
    const [kept] = await plans.list()
    const [stored] = await plans.load(kept?.number ?? 0)
    await engine.apply(inverseOf(stored ?? fail(), (kept?.number ?? 0) + 1), signal)
    expect(memory.dump(ZONE)).toEqual(before)
  })

  it('stores a plan before its first batch is sent, and removes one that wrote nothing', async () => {
    const plans = await (stores[0]?.[1] ?? fail)(10)
    const { memory, apply, engine, signal } = await open(plans)
    const write = memory.apply.bind(memory)
    let keptWhenSent = 0
    memory.apply = async (...given) => {
      keptWhenSent = (await plans.list()).length
      await write(...given)
    }
    const [made] = await apply()
    expect(keptWhenSent).toBe(1)
    expect(await plans.list()).toHaveLength(1)
    // Sent again, everything is in place already.
    await engine.apply({ ...(made ?? fail()), number: (made?.number ?? 0) + 1 }, signal)
    expect(await plans.list()).toHaveLength(1)
  })
})

function fail(): never {
  throw new Error('nothing was kept')
}
