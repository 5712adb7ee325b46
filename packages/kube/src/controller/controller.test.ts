import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { afterEach, describe, expect, it } from 'vitest'
import { defineController, defineKeyedController } from './controller.ts'
import { ConfigMap, Service } from '../object/kinds.ts'
import { keyOf } from '../object/object.ts'
import { requeue } from './reconcile-result.ts'
import { withController } from '../object/owner.ts'
import { specChanged } from './predicate.ts'
import { memoryEnvironment } from '../testing/memory/memory-environment.ts'
import { Route, route, startController, stopControllers } from '../testing/memory/started-controller.ts'

afterEach(stopControllers)

describe('controller', () => {
  it('calls the reconciler with the cached object of each key: for the initial objects and for every change', async () => {
    const environment = memoryEnvironment()
    environment.cluster.put(Route, route('a'))
    const seen: string[] = []
    startController((builder) => builder.reconcile(async ({ spec }) => void seen.push(spec.host)), {}, environment)
    await environment.clock.advance(0)
    environment.cluster.put(Route, route('b'))
    environment.cluster.put(Route, route('a', 'changed.test'))
    await environment.clock.advance(0)
    expect(seen).toEqual(['a.test', 'b.test', 'changed.test'])
  })

  it('reads the newest version, however many changes precede the reconcile', async () => {
    const { cluster, clock } = startController((builder) =>
      builder.reconcile(async ({ spec }) => void seen.push(spec.host)),
    ).environment
    const seen: string[] = []
    await clock.advance(0)
    for (let index = 0; index < 100; index++) cluster.put(Route, route('a', `${index}.test`))
    await clock.advance(0)
    expect(seen).toEqual(['99.test'])
  })

  it('processes new changes before the objects of the initial list', async () => {
    const environment = memoryEnvironment()
    for (let index = 0; index < 20; index++) environment.cluster.put(Route, route(`old${index}`))
    const seen: string[] = []
    let release: () => void = () => undefined
    const gate = new Promise<void>((resolve) => (release = resolve))
    startController(
      (builder) =>
        builder.reconcile(async ({ metadata }) => {
          seen.push(metadata.name ?? '')
          await gate
        }),
      { concurrency: 1 },
      environment,
    )
    await environment.clock.advance(0)
    environment.cluster.put(Route, route('new'))
    release()
    await environment.clock.advance(0)
    await expect.poll(() => seen.length).toBe(21)
    expect(seen.slice(0, 2)).toEqual(['old0', 'new'])
  })

  it('skips changes that its predicate rejects, and accepts those for which it throws', async () => {
    const seen: string[] = []
    const { cluster, clock } = startController(
      (builder) => builder.reconcile(async ({ metadata }) => void seen.push(metadata.name ?? '')),
      {
        when: (change) => {
          if (change.object.metadata.name === 'broken') throw new Error('broken predicate')
          return specChanged(change)
        },
      },
    ).environment
    await clock.advance(0)
    const stored = cluster.put(Route, route('a'))
    await clock.advance(0)
    cluster.put(Route, { ...stored, status: { ready: true } })
    cluster.put(Route, route('broken'))
    await clock.advance(0)
    expect(seen).toEqual(['a', 'broken'])
  })

  it('reconciles for children it owns, old and new owner alike, and for mapped objects', async () => {
    const environment = memoryEnvironment()
    const { cluster, clock } = environment
    const [a, b] = [
      cluster.put(Route, route('a')),
      cluster.put(Route, { ...route('b'), spec: { host: 'b', service: 'shop' } }),
    ]
    const byService = cluster.informers.index(Route, 'service', ({ spec }) =>
      spec.service === undefined ? [] : [spec.service],
    )
    const seen: string[] = []
    startController(
      (builder) =>
        builder
          .owns(ConfigMap)
          .watches(Service, (service, cache) => cache.by(byService, service.metadata.name ?? '').map(keyOf))
          .reconcile(async (_object, { key }) => void seen.push(key)),
      {},
      environment,
    )
    await clock.advance(0)
    seen.length = 0
    const child = cluster.put(ConfigMap, withController({ metadata: { name: 'child', namespace: 'web' } }, a))
    await clock.advance(0)
    expect(seen.splice(0)).toEqual(['web/a'])
    cluster.put(ConfigMap, withController({ metadata: { ...child.metadata, ownerReferences: [] } }, b))
    await clock.advance(0)
    expect(seen.splice(0).toSorted()).toEqual(['web/a', 'web/b'])
    cluster.put(ConfigMap, { metadata: { name: 'nobody’s', namespace: 'web' } })
    cluster.put(Service, { metadata: { name: 'shop', namespace: 'web' } })
    await clock.advance(0)
    expect(seen.splice(0)).toEqual(['web/b'])
    cluster.remove(ConfigMap, 'web/child')
    await clock.advance(0)
    expect(seen).toEqual(['web/b'])
  })

  it('maps again when a mapper threw, so that no change is lost', async () => {
    const environment = memoryEnvironment()
    const { cluster, clock } = environment
    cluster.put(Route, route('a'))
    let failures = 3
    const seen: string[] = []
    startController(
      (builder) =>
        builder
          .watches(Service, ({ metadata }) => {
            if (failures-- > 0) throw new Error('broken mapper')
            return [`web/${metadata.labels?.['route']}`]
          })
          .reconcile(async (_object, { key }) => void seen.push(key)),
      {},
      environment,
    )
    await clock.advance(0)
    seen.length = 0
    cluster.put(Service, { metadata: { name: 's', labels: { route: 'x' } } })
    cluster.put(Service, { metadata: { name: 's', labels: { route: 'a' } } })
    await clock.advance(100)
    expect(seen).toEqual(['web/a'])
    expect(cluster.lines.filter((line) => line.includes('mapper failed'))).toHaveLength(3)
  })

  it('never runs one key twice at once, nor more than its concurrency, and reconciles again keys that changed meanwhile', async () => {
    const environment = memoryEnvironment()
    const running = new Map<string, number>()
    const runs: string[] = []
    let most = 0
    const releases: (() => void)[] = []
    startController(
      (builder) =>
        builder.reconcile(async (_object, { key }) => {
          running.set(key, (running.get(key) ?? 0) + 1)
          expect(running.get(key)).toBe(1)
          most = Math.max(
            most,
            [...running.values()].reduce((sum, count) => sum + count, 0),
          )
          runs.push(key)
          await new Promise<void>((resolve) => releases.push(resolve))
          running.set(key, 0)
        }),
      { concurrency: 3 },
      environment,
    )
    for (let index = 0; index < 10; index++) environment.cluster.put(Route, route(`r${index}`))
    await environment.clock.advance(0)
    expect(runs).toHaveLength(3)
    environment.cluster.put(Route, route('r0', 'again.test'))
    while (releases.length > 0) {
      for (const release of releases.splice(0)) release()
      await environment.clock.advance(0)
    }
    expect(most).toBe(3)
    expect(runs.filter((key) => key === 'web/r0')).toHaveLength(2)
    expect(runs).toHaveLength(11)
  })

  it('puts the reconcile id on every line', async () => {
    const { environment } = startController((builder) =>
      builder.reconcile(async (_object, { log, reconcileId }) => {
        log.info('one')
        log.child({ part: 'x' }).info('two')
        throw new Error(reconcileId)
      }),
    )
    environment.cluster.put(Route, route('a'))
    await environment.clock.advance(0)
    const lines = environment.cluster.lines.map((line) => JSON.parse(line) as Record<string, string>)
    const [one, two, failed] = ['one', 'two', 'reconcile failed'].map((msg) =>
      lines.find((line) => line['msg'] === msg),
    )
    expect(one).toMatchObject({
      controller: 'routes',
      cluster: 'local',
      key: 'web/a',
      reconcileId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    })
    expect(two?.['reconcileId']).toBe(one?.['reconcileId'])
    expect(failed).toMatchObject({ reconcileId: one?.['reconcileId'], err: { message: one?.['reconcileId'] } })
  })

  it('calls gone for a key whose object no longer exists', async () => {
    const seen: string[] = []
    const { environment } = startController((builder) =>
      builder
        .gone(async (key) => void seen.push(`gone ${key}`))
        .reconcile(async (_object, { key }) => void seen.push(key)),
    )
    const { cluster, clock } = environment
    await clock.advance(0)
    cluster.put(Route, route('a'))
    await clock.advance(0)
    cluster.remove(Route, 'web/a')
    await clock.advance(0)
    expect(seen).toEqual(['web/a', 'gone web/a'])
  })

  it('records events about its object', async () => {
    const { environment } = startController((builder) =>
      builder.reconcile(async (object, context) => {
        context.event(object, 'Warning', 'NoService', 'there is no service')
        context.event({ apiVersion: 'v1', kind: 'Service', metadata: { name: 's' } }, 'Normal', 'Seen', 'x', 'Look')
      }),
    )
    const { metadata } = environment.cluster.put(Route, route('a'))
    await environment.clock.advance(0)
    expect(environment.events).toEqual([
      {
        regarding: {
          apiVersion: 'test/v1',
          kind: 'Route',
          name: 'a',
          namespace: 'web',
          uid: metadata.uid,
          resourceVersion: metadata.resourceVersion,
        },
        type: 'Warning',
        reason: 'NoService',
        note: 'there is no service',
      },
      {
        regarding: { apiVersion: 'v1', kind: 'Service', name: 's' },
        type: 'Normal',
        reason: 'Seen',
        note: 'x',
        action: 'Look',
      },
    ])
  })

  it('collects the changes of a watch with a batch, and waits for no change that needs none', async () => {
    const environment = memoryEnvironment()
    environment.cluster.put(Route, route('a'))
    const seen: string[] = []
    startController(
      (builder) =>
        builder
          .watches(Service, () => ['web/a'], { batchMs: ({ type }) => (type === 'deleted' ? 0 : 100) })
          .reconcile(async ({ spec }) => void seen.push(`${spec.host} ${environment.clock.monotonic()}`)),
      {},
      environment,
    )
    const change = (version: string) =>
      environment.cluster.put(Service, { metadata: { name: 's', namespace: 'web', labels: { version } } })
    await environment.clock.advance(0)
    change('1')
    await environment.clock.advance(60)
    change('2')
    await environment.clock.advance(60)
    expect(seen).toEqual(['a.test 0', 'a.test 100'])
    change('3')
    await environment.clock.advance(10)
    environment.cluster.put(Route, route('a', 'b.test'))
    await environment.clock.advance(200)
    expect(seen.slice(2)).toEqual(['b.test 130'])
    environment.cluster.remove(Service, 'web/s')
    await environment.clock.advance(0)
    expect(seen.slice(3)).toEqual(['b.test 330'])
  })

  it('collects the keys of a trigger that asks for it', async () => {
    const environment = memoryEnvironment()
    environment.cluster.put(Route, route('a'))
    const seen: number[] = []
    let mark: (keys: readonly string[], how?: { afterMs?: number }) => void = () => undefined
    startController(
      (builder) =>
        builder
          .triggers((enqueue) => {
            mark = enqueue
            return undefined
          })
          .reconcile(async () => void seen.push(environment.clock.monotonic())),
      {},
      environment,
    )
    await environment.clock.advance(0)
    for (const stepMs of [30, 30, 80]) {
      mark(['web/a'], { afterMs: 100 })
      await environment.clock.advance(stepMs)
    }
    expect(seen).toEqual([0, 100])
    mark(['web/a'])
    await environment.clock.advance(0)
    expect(seen).toEqual([0, 100, 140])
  })

  it('can be traced', async () => {
    const messages: unknown[] = []
    const listen = (message: unknown) => void messages.push(message)
    subscribe('tracing:seamark:kube:reconcile:start', listen)
    const { environment } = startController((builder) => builder.reconcile(async () => undefined))
    environment.cluster.put(Route, route('a'))
    await environment.clock.advance(0)
    unsubscribe('tracing:seamark:kube:reconcile:start', listen)
    expect(messages).toEqual([
      expect.objectContaining({
        controller: 'routes',
        cluster: 'local',
        key: 'web/a',
        reconcileId: expect.any(String),
      }),
    ])
  })

  it('rejects an invalid concurrency', () => {
    for (const concurrency of [0, -1, 1.5, Number.NaN]) {
      expect(() => defineController('x', Route, { concurrency })).toThrow('not a positive integer')
    }
  })

  it('reconciles keys from triggers and timers, until it stops', async () => {
    const environment = memoryEnvironment()
    environment.cluster.put(Route, route('a'))
    const seen: string[] = []
    let enqueue: (keys: readonly string[]) => void = () => undefined
    let isSubscribed = false
    const { clock, stop, outcome } = (() => {
      const begun = startController(
        (builder) =>
          builder
            .triggers((mark) => {
              enqueue = mark
              isSubscribed = true
              return () => (isSubscribed = false)
            })
            .every('1m', (cache) => cache.list(Route).map(keyOf))
            .reconcile(async ({ spec }) => void seen.push(spec.host)),
        {},
        environment,
      )
      return { ...begun, clock: environment.clock }
    })()
    await clock.advance(0)
    enqueue(['web/a'])
    await clock.advance(0)
    expect(seen).toHaveLength(2)
    await clock.advance(120_000)
    expect(seen).toHaveLength(4)
    stop()
    await outcome
    expect(isSubscribed).toBe(false)
    enqueue(['web/a'])
    await clock.advance(120_000)
    expect(seen).toHaveLength(4)
  })
})

describe('a keyed controller', () => {
  it('reconciles each key separately, with back-off, requeue and keys from watches', async () => {
    const environment = memoryEnvironment()
    const { cluster, clock } = environment
    const { builder, controller } = defineKeyedController('clusters', {})
    const seen: string[] = []
    builder
      .watches(Service, ({ metadata }) => [`cluster ${metadata.name}`])
      .triggers((mark) => {
        mark(['registry'])
        return undefined
      })
      .reconcile(async (key) => {
        seen.push(key)
        if (key === 'cluster slow') await new Promise(() => undefined)
        if (key === 'cluster bad' && seen.filter((each) => each === key).length < 3) throw new Error('unreachable')
        return key === 'registry' ? requeue('1m') : undefined
      })
    expect(controller.incomplete).toBeUndefined()
    const stop = new AbortController()
    const outcome = controller.run(environment, { stop: stop.signal, kill: stop.signal })
    cluster.put(Service, { metadata: { name: 'slow' } })
    cluster.put(Service, { metadata: { name: 'bad' } })
    cluster.put(Service, { metadata: { name: 'good' } })
    await clock.advance(60_000)
    expect(seen.toSorted()).toEqual([
      'cluster bad',
      'cluster bad',
      'cluster bad',
      'cluster good',
      'cluster slow',
      'registry',
      'registry',
    ])
    stop.abort()
    await clock.advance(10_000)
    await outcome
  })

  it('names itself when it was declared without a reconciler', () => {
    const { controller } = defineKeyedController('clusters', {})
    expect(controller.incomplete).toContain('controller clusters has no reconciler')
  })
})
