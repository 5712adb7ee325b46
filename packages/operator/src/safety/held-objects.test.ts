import { ConfigMap, type Manager } from '@seamark/kube'
import { fakeClock, memoryCluster } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import { approveInStore } from './approve.ts'
import { Approvals } from './annotated-approvals.ts'
import { HeldObjects } from './held-objects.ts'
import { createMassGuard } from './mass-guard.ts'
import { DEFAULT_MASS_LIMITS } from './mass-limits.ts'
import { HELD_OBJECTS_STORE, type ObjectScope, openObjectStore } from './object-store.ts'

type Work = (scope: string) => Promise<unknown>

/** A process with a guard of publish, of which all six requests of `ask` are held. */
function start(cluster = memoryCluster(), clock = fakeClock(), scope: ObjectScope = 'publish') {
  const store = openObjectStore(cluster.client, 'seamark')
  const annotated = { ids: new Set<string>() }
  const listeners = new Set<() => void>()
  const reports: string[] = []
  const approvals = new Approvals({
    store,
    switches: {
      get approvedIds() {
        return annotated.ids
      },
      subscribe: (listener) => {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
    },
    clock,
    report: ({ id, result }) => reports.push(`${id} ${result}`),
  })
  const guard = createMassGuard({
    clock,
    limits: DEFAULT_MASS_LIMITS,
    idPrefix: 'p',
    cause: 'undo the cause',
    groupOf: ({ name }) => name.slice(0, name.indexOf('/')),
    countPublished: () => 6,
  })
  const held = new HeldObjects({ store, approvals, isWriting: () => true, clock })
  let approvedTimes = 0
  held.add(scope, guard, () => approvedTimes++)
  let work: Work = async () => undefined
  const controller = {
    triggers: () => controller,
    reconcile: (given: Work) => {
      work = given
    },
  }
  held.start({ keyedController: () => controller } as unknown as Manager)
  const names = Array.from({ length: 6 }, (_, index) => `ns/${index}`)
  const ask = (name: string) => guard.ask({ change: 'prune', kind: 'DNSEndpoint', name }).state
  return {
    cluster,
    clock,
    store,
    guard,
    held,
    reports,
    approved: () => approvedTimes,
    ask,
    askAll: () => [...new Set(names.map(ask))],
    exchange: async () => work(scope),
    hold: async () => {
      for (const name of names) ask(name)
      await clock.advance(1_000)
      expect([...new Set(names.map(ask))]).toEqual(['held'])
      await work(scope)
      return guard.heldGroups[0]?.id ?? ''
    },
    annotate: (...ids: string[]) => {
      annotated.ids = new Set(ids)
      for (const listener of listeners) listener()
    },
    writes: () => cluster.requests.filter(({ verb }) => verb === 'create' || verb === 'update').length,
  }
}

describe('held changes of objects', () => {
  it('are approved by the command, once and for one hour', async () => {
    const { hold, store, clock, exchange, ask, approved } = start()
    const id = await hold()
    const answer = await approveInStore(store, id, clock.now(), { mayRepeat: true })
    expect([answer.result, answer.covered.length, answer.scope]).toEqual(['approved', 6, 'publish'])
    expect(answer.covered[0]).toMatchObject({ name: 'ns/0', type: 'DNSEndpoint', op: 'delete', code: 'GuardTripped' })
    await exchange()
    expect([approved(), ask('ns/0'), ask('ns/1')]).toEqual([1, 'go', 'go'])
    await exchange()
    const left = (await store.load('publish')).approvals[0]?.keys
    expect(left).toHaveLength(4)
    await clock.advance(3_600_000)
    expect((await approveInStore(store, id, clock.now(), { mayRepeat: false })).result).toBe('expired')
  })

  it('are approved by annotation once; an id that is unknown or was used is reported', async () => {
    const { hold, annotate, exchange, askAll, reports } = start()
    const id = await hold()
    annotate('p-0')
    await exchange()
    await exchange()
    annotate(id)
    await exchange()
    expect(askAll()).toEqual(['go'])
    await exchange()
    expect(await hold()).toBe(id)
    annotate(id, 'p-1')
    await exchange()
    expect(askAll()).toEqual(['held'])
    expect(reports).toEqual(['p-0 unknown', `${id} approved`, `${id} used`, 'p-1 unknown'])
  })

  it('an annotation that stays across a restart approves nothing a second time', async () => {
    const first = start()
    const id = await first.hold()
    first.annotate(id)
    await first.exchange()
    expect(first.askAll()).toEqual(['go'])
    await first.exchange()
    const again = start(first.cluster, first.clock)
    again.annotate(id)
    expect(await again.hold()).toBe(id)
    expect([again.askAll(), again.reports]).toEqual([['held'], [`${id} used`]])
  })

  it('an approved change that was made is persisted as such after an exchange that failed', async () => {
    const { hold, store, clock, exchange, ask, cluster } = start()
    const id = await hold()
    await approveInStore(store, id, clock.now(), { mayRepeat: true })
    await exchange()
    expect(ask('ns/0')).toBe('go')
    cluster.intercept = () => {
      throw new Error('unavailable')
    }
    await expect(exchange()).rejects.toThrow('unavailable')
    cluster.intercept = undefined
    await exchange()
    expect((await store.load('publish')).approvals[0]?.keys).toHaveLength(5)
  })

  it('are not persisted any more when nothing is held, also after an exchange that failed', async () => {
    const { hold, guard, store, exchange, cluster, writes } = start()
    await hold()
    for (let index = 0; index < 6; index++)
      guard.withdraw({ change: 'prune', kind: 'DNSEndpoint', name: `ns/${index}` })
    cluster.intercept = () => {
      throw new Error('unavailable')
    }
    await expect(exchange()).rejects.toThrow('unavailable')
    cluster.intercept = undefined
    await exchange()
    expect((await store.load('publish')).held).toEqual([])
    const before = writes()
    await exchange()
    expect(writes()).toBe(before)
  })

  it('stay persisted across a restart, with the time since when, and the restart writes nothing', async () => {
    const first = start()
    const id = await first.hold()
    const before = (await first.store.load('publish')).held
    await first.clock.advance(60_000)
    const again = start(first.cluster, first.clock)
    const written = again.writes()
    await again.exchange()
    expect([again.guard.heldGroups[0]?.id, again.writes()]).toEqual([id, written])
    expect(again.askAll()).toEqual(['held'])
    await again.exchange()
    expect([(await again.store.load('publish')).held, again.writes()]).toEqual([before, written])
    // And can be approved before anything is decided anew.
    const third = start(first.cluster, first.clock)
    await approveInStore(third.store, id, first.clock.now(), { mayRepeat: true })
    await third.exchange()
    expect(third.askAll()).toEqual(['go'])
  })

  it('are persisted up to a number, and more are not written again and again', async () => {
    const { guard, clock, exchange, store, writes } = start()
    const ask = () => {
      for (let index = 0; index < 5_006; index++)
        guard.ask({ change: 'prune', kind: 'DNSEndpoint', name: `${index < 5_000 ? 'a' : 'b'}/${index}` })
    }
    ask()
    await clock.advance(1_000)
    ask()
    await exchange()
    expect([guard.held, (await store.load('publish')).held.length]).toEqual([5_006, 5_000])
    const before = writes()
    await exchange()
    expect(writes()).toBe(before)
  })

  it('the deprecated annotation approves what is held, once per value', async () => {
    const { hold, held, askAll } = start()
    expect(await held.release('publish', 'yes')).toBeUndefined()
    await hold()
    expect(await held.release('publish', 'yes')).toMatchObject({ id: 'yes', covered: { length: 6 } })
    expect(askAll()).toEqual(['go'])
    await hold()
    expect(await held.release('publish', 'yes')).toBeUndefined()
    expect(askAll()).toEqual(['held'])
  })
})

/** As the version before wrote it: a zone of records that does not exist. */
const FORMER = {
  'publish.a5d47a43':
    '{"version":1,"fence":0,"ownedNames":0,"ownedSources":0,"deleted":[],"gone":[],"retargeted":[],"approvals":[{"id":"p-0123456789ab","at":1000,"until":3601000,"keys":[]}],"decided":{"key":"publish","provider":"","zone":"","plan":2000,"mode":"enforce"},"waiting":[],"held":[' +
    ['a', 'b', 'c', 'd', 'e', 'f']
      .map(
        (name, index) =>
          `{"name":"web/${name}","type":"DNSEndpoint","op":"delete","code":"GuardTripped","why":"6 of 6 objects would be removed at once, and none of them is; undo the cause (a class, Service or prefix in the configuration or the sources), or let exactly these changes pass with: seamark approve p-cfa34a5ac3db","source":"","key":"000000000${index}","since":2000,"isApprovable":true,"set":"p-cfa34a5ac3db"}`,
      )
      .join(',') +
    ']}',
}

describe('the state that an earlier version wrote', () => {
  function upgraded() {
    const cluster = memoryCluster()
    cluster.put(ConfigMap, { metadata: { namespace: 'seamark', name: HELD_OBJECTS_STORE }, data: FORMER })
    return start(cluster)
  }

  it('is read: what is held is held and can be approved under its id, and a used approval is used', async () => {
    const { store, exchange, guard, writes, clock, approved } = upgraded()
    expect([...(await store.list()).keys()]).toEqual(['publish'])
    await exchange()
    expect([guard.held, writes()]).toEqual([6, 0])
    expect((await approveInStore(store, 'p-0123456789ab', clock.now(), { mayRepeat: true })).result).toBe('used')
    const { result, covered } = await approveInStore(store, 'p-cfa34a5ac3db', clock.now(), { mayRepeat: true })
    expect([result, covered.length, covered[0]?.since]).toEqual(['approved', 6, 2000])
    await exchange()
    expect(approved()).toBe(1)
  })

  it('is written in the current form once it changes, in place', async () => {
    const { store, clock, cluster } = upgraded()
    await approveInStore(store, 'p-cfa34a5ac3db', clock.now(), { mayRepeat: true })
    const { data = {} } = cluster.informers.get(ConfigMap, `seamark/${HELD_OBJECTS_STORE}`) ?? {}
    expect(Object.keys(data)).toEqual(Object.keys(FORMER))
    expect(JSON.parse(Object.values(data)[0] ?? '')).toMatchObject({
      version: 2,
      scope: 'publish',
      held: { length: 6 },
      approvals: [{ id: 'p-cfa34a5ac3db' }, { id: 'p-0123456789ab' }],
    })
  })
})
