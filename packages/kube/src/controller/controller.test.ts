import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { afterEach, describe, expect, it } from 'vitest'
import type { Context } from './context.ts'
import {
  defineController,
  defineKeyedController,
  type ControllerBuilder,
  type ControllerOptions,
} from './controller.ts'
import { LeadershipLost } from '../apply/write-fence.ts'
import { ConfigMap, Service } from '../object/kinds.ts'
import { keyOf, kind, type Obj } from '../object/object.ts'
import { requeue, Terminal } from './reconcile-result.ts'
import { withController } from '../object/owner.ts'
import { specChanged } from './predicate.ts'
import { memoryEnvironment, type MemoryEnvironment } from '../testing/memory-environment.ts'

interface Route extends Obj {
  spec: { host: string; service?: string }
  status?: { ready: boolean }
}
const Route = kind<Route>({ group: 'test', version: 'v1', kind: 'Route', plural: 'routes', namespaced: true })
const route = (name: string, host = `${name}.test`): Route => ({ metadata: { name, namespace: 'web' }, spec: { host } })

interface Started {
  environment: MemoryEnvironment
  outcome: Promise<unknown>
  stop: () => void
  kill: () => void
}

const started: Started[] = []
afterEach(async () => {
  for (const { stop, kill, outcome, environment } of started.splice(0)) {
    stop()
    kill()
    await environment.clock.advance(10_000)
    await outcome
  }
})

function start(
  wire: (builder: ControllerBuilder<Route>) => void,
  options: ControllerOptions<Route> = {},
  environment = memoryEnvironment(),
): Started {
  const { builder, controller } = defineController('routes', Route, options)
  wire(builder)
  const [stop, kill] = [new AbortController(), new AbortController()]
  controller.prepare(environment)
  const outcome = controller
    .run(environment, { stop: stop.signal, kill: kill.signal })
    .then(() => 'stopped')
    .catch((error: unknown) => error)
  const result = { environment, outcome, stop: () => stop.abort(), kill: () => kill.abort(new Error('killed')) }
  started.push(result)
  return result
}

const metric = async ({ metrics }: MemoryEnvironment, name: string) => metrics.registry.getSingleMetricAsString(name)

describe('controller', () => {
  it('calls the reconciler with the cached object of each key: for the initial objects and for every change', async () => {
    const environment = memoryEnvironment()
    environment.cluster.put(Route, route('a'))
    const seen: string[] = []
    start((builder) => builder.reconcile(async ({ spec }) => void seen.push(spec.host)), {}, environment)
    await environment.clock.advance(0)
    environment.cluster.put(Route, route('b'))
    environment.cluster.put(Route, route('a', 'changed.test'))
    await environment.clock.advance(0)
    expect(seen).toEqual(['a.test', 'b.test', 'changed.test'])
  })

  it('reads the newest version, however many changes precede the reconcile', async () => {
    const { cluster, clock } = start((builder) =>
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
    start(
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
    const { cluster, clock } = start(
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
    start(
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
    start(
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
    start(
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

  it('retries with back-off after an error, not after Terminal, and after a requeue', async () => {
    const attempts: [string, number][] = []
    const { environment } = start((builder) =>
      builder.reconcile(async (_object, { key }) => {
        attempts.push([key, environment.clock.monotonic()])
        const count = attempts.filter(([each]) => each === key).length
        if (key === 'web/failing' && count <= 3) throw new Error('not yet')
        if (key === 'web/broken' && count === 1) throw new TypeError('x is undefined')
        if (key === 'web/wrong') throw new Terminal('host is not a domain')
        if (key === 'web/later') return requeue('1s')
        return undefined
      }),
    )
    const { cluster, clock } = environment
    await clock.advance(0)
    for (const name of ['failing', 'broken', 'wrong', 'later']) cluster.put(Route, route(name))
    await clock.advance(2_500)
    const times = (name: string) => attempts.filter(([key]) => key === `web/${name}`).map(([, at]) => at)
    expect(times('failing')).toEqual([0, 5, 15, 35])
    expect(times('broken')).toEqual([0, 5])
    expect(times('wrong')).toEqual([0])
    expect(times('later')).toEqual([0, 1_000, 2_000])
    const total = await metric(environment, 'controller_runtime_reconcile_total')
    // The counters are updated from the samples collected since the last scrape.
    expect(await metric(environment, 'controller_runtime_reconcile_total')).toBe(total)
    expect(total).toContain('result="error"} 5')
    expect(total).toContain('result="success"} 2')
    expect(total).toContain('result="requeue_after"} 3')
    expect(await metric(environment, 'controller_runtime_reconcile_panics_total')).toContain('} 1')
    expect(await metric(environment, 'controller_runtime_terminal_reconcile_errors_total')).toContain('} 1')
    expect(await metric(environment, 'controller_runtime_reconcile_time_seconds')).toContain(
      '_count{controller="routes"} 10',
    )
  })

  it('puts the reconcile id on every line', async () => {
    const { environment } = start((builder) =>
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

  it('aborts a reconcile at its timeout, and retries it', async () => {
    const aborted: unknown[] = []
    const { environment } = start(
      (builder) =>
        builder.reconcile(async (_object, { signal }) => {
          await new Promise((_resolve, reject) =>
            signal.addEventListener('abort', () => reject(signal.reason as Error)),
          ).catch((error: unknown) => aborted.push(error))
        }),
      { timeout: '30s' },
    )
    environment.cluster.put(Route, route('a'))
    await environment.clock.advance(30_000)
    expect(aborted).toEqual([expect.objectContaining({ code: 'RECONCILE_TIMEOUT' })])
    expect(await metric(environment, 'controller_runtime_reconcile_timeouts_total')).toContain('} 1')
    await environment.clock.advance(40_000)
    expect(aborted).toHaveLength(2)
    // It ended when its signal aborted, so it is not abandoned.
    expect(environment.cluster.lines.join('')).not.toContain('is abandoned')
  })

  it('abandons a reconciler that never returns, frees its worker, and prevents it from writing', async () => {
    const contexts: Context[] = []
    const seen: string[] = []
    const { environment } = start(
      (builder) =>
        builder.reconcile(async (_object, context) => {
          seen.push(context.key)
          contexts.push(context)
          if (contexts.length === 1) await new Promise(() => undefined)
        }),
      { concurrency: 1, timeout: '30s' },
    )
    const { cluster, clock } = environment
    cluster.put(Route, route('stuck'))
    await clock.advance(0)
    cluster.put(Route, route('other'))
    await clock.advance(34_999)
    expect(seen).toEqual(['web/stuck'])
    await clock.advance(1)
    await clock.advance(5)
    expect(seen).toEqual(['web/stuck', 'web/other', 'web/stuck'])
    const [zombie] = contexts
    await expect(zombie?.apply(ConfigMap, { metadata: { name: 'x' } })).rejects.toThrow('was stopped after 30000 ms')
    await expect(zombie?.client.delete(Route, 'web/other')).rejects.toThrow('was stopped')
    expect(cluster.requests).toEqual([])
  })

  it('prevents code left running by a reconcile from writing after it ended', async () => {
    let late: Context | undefined
    const { environment } = start((builder) => builder.reconcile(async (_object, context) => void (late = context)))
    environment.cluster.put(Route, route('a'))
    await environment.clock.advance(0)
    await expect(late?.apply(ConfigMap, { metadata: { name: 'x' } })).rejects.toThrow('has ended')
    expect(environment.cluster.requests).toEqual([])
  })

  it('does not count or retry what stopped because leadership was lost', async () => {
    const { environment } = start((builder) =>
      builder.reconcile(async () => {
        throw new LeadershipLost('sys/edge', 'test')
      }),
    )
    environment.cluster.put(Route, route('a'))
    await environment.clock.advance(60_000)
    expect(await metric(environment, 'controller_runtime_reconcile_total')).toContain('result="error"} 0')
    expect(environment.cluster.lines.join()).not.toContain('reconcile failed')
  })

  it('starts no reconcile before every kind is synced', async () => {
    const environment = memoryEnvironment()
    environment.cluster.setState(Service, 'syncing')
    environment.cluster.put(Route, route('a'))
    const seen: string[] = []
    start(
      (builder) =>
        builder
          .watches(Service, () => [])
          .reconcile(async (_object, context) => {
            context.list(Service)
            seen.push(context.key)
          }),
      {},
      environment,
    )
    await environment.clock.advance(100_000)
    expect(seen).toEqual([])
    environment.cluster.setState(Service, 'live')
    await environment.clock.advance(0)
    expect(seen).toEqual(['web/a'])
  })

  it('fails when a kind does not sync within two minutes', async () => {
    const environment = memoryEnvironment()
    environment.cluster.setState(Service, 'backoff')
    environment.cluster.setState(Service, 'syncing')
    const { outcome } = start(
      (builder) => builder.watches(Service, () => []).reconcile(async () => undefined),
      {},
      environment,
    )
    await environment.clock.advance(120_000)
    expect(String(await outcome)).toContain('Service did not sync within 120000 ms in cluster local')
  })

  it('waits for a missing CRD without a timeout, unless the watch is optional', async () => {
    for (const optional of [false, true]) {
      const environment = memoryEnvironment()
      environment.cluster.setState(Service, 'absent')
      environment.cluster.put(Route, route('a'))
      const seen: string[] = []
      start(
        (builder) =>
          builder
            .watches(Service, () => ['web/a'], { optional })
            .reconcile(async (_object, { key }) => void seen.push(key)),
        {},
        environment,
      )
      await environment.clock.advance(600_000)
      expect(seen).toEqual(optional ? ['web/a'] : [])
      environment.cluster.setState(Service, 'live')
      environment.cluster.put(Service, { metadata: { name: 's' } })
      await environment.clock.advance(1_000)
      expect(seen.length).toBe(optional ? 2 : 1)
    }
  })

  it('lets running reconciles end after stop, starts no new ones, and aborts them on kill', async () => {
    let finish: () => void = () => undefined
    const seen: string[] = []
    const signals: AbortSignal[] = []
    const { environment, outcome, stop, kill } = start(
      (builder) =>
        builder.reconcile(async (_object, { key, signal }) => {
          seen.push(key)
          signals.push(signal)
          await new Promise<void>((resolve) => {
            if (key === 'web/first') finish = resolve
            signal.addEventListener('abort', () => resolve())
          })
        }),
      { concurrency: 2 },
    )
    for (const name of ['first', 'second', 'third']) environment.cluster.put(Route, route(name))
    await environment.clock.advance(0)
    stop()
    await environment.clock.advance(0)
    finish()
    await environment.clock.advance(0)
    expect(seen).toEqual(['web/first', 'web/second'])
    expect(signals[1]?.aborted).toBe(false)
    expect(await Promise.race([outcome, Promise.resolve('running')])).toBe('running')
    kill()
    await environment.clock.advance(0)
    expect(await outcome).toBe('stopped')
    expect(environment.cluster.lines.join()).not.toContain('reconcile failed')
  })

  it('calls gone for a key whose object no longer exists', async () => {
    const seen: string[] = []
    const { environment } = start((builder) =>
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
    const { environment } = start((builder) =>
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
    start(
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
    start(
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
    const { environment } = start((builder) => builder.reconcile(async () => undefined))
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

  it('resets the back-off after a success and after a requeue', async () => {
    for (const how of ['success', 'requeue']) {
      const environment = memoryEnvironment()
      const { cluster, clock } = environment
      cluster.put(Route, route('a'))
      const at: number[] = []
      start(
        (builder) =>
          builder.reconcile(async () => {
            at.push(clock.monotonic())
            if (at.length !== 5) throw new Error('fails')
            // The key is queued again while it runs: the queue keeps its state.
            if (how === 'success') cluster.put(Route, route('a', 'changed.test'))
            else return requeue('1m')
            return undefined
          }),
        {},
        environment,
      )
      await clock.advance(61_000)
      const delays = at.map((each, index) => each - (at[index - 1] ?? each))
      expect(delays.slice(0, 5)).toEqual([0, 5, 10, 20, 40])
      expect(delays.slice(5, 8), how).toEqual([how === 'success' ? 0 : 60_000, 5, 10])
    }
  })

  it('reconciles keys from triggers and timers, until it stops', async () => {
    const environment = memoryEnvironment()
    environment.cluster.put(Route, route('a'))
    const seen: string[] = []
    let enqueue: (keys: readonly string[]) => void = () => undefined
    let isSubscribed = false
    const { clock, stop, outcome } = (() => {
      const begun = start(
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

describe('controller with a finalizer', () => {
  const finalizer = 'test/cleanup'

  it('adds the finalizer before the first effect, cleans up after deletion, and only then removes the finalizer', async () => {
    const log: string[] = []
    const { environment } = start((builder) =>
      builder
        .finalizer(finalizer, async ({ metadata }) => void log.push(`cleanup ${metadata.finalizers?.join()}`))
        .reconcile(async ({ metadata }) => void log.push(`effect ${metadata.finalizers?.join()}`)),
    )
    const { cluster, clock } = environment
    await clock.advance(0)
    cluster.put(Route, route('a'))
    await clock.advance(0)
    expect(log[0]).toBe(`effect ${finalizer}`)
    log.length = 0
    await cluster.client.delete(Route, 'web/a')
    expect(cluster.informers.get(Route, 'web/a')).toBeDefined()
    await clock.advance(0)
    expect(log).toEqual([`cleanup ${finalizer}`])
    expect(cluster.informers.get(Route, 'web/a')).toBeUndefined()
  })

  it('keeps the object while cleanup fails or returns a requeue', async () => {
    const outcomes: (() => { after: number } | undefined)[] = [
      () => {
        throw new Error('provider is down')
      },
      () => requeue('1s'),
      () => undefined,
    ]
    let calls = 0
    const { environment } = start((builder) =>
      builder.finalizer(finalizer, async () => outcomes[calls++]?.()).reconcile(async () => undefined),
    )
    const { cluster, clock } = environment
    await clock.advance(0)
    cluster.put(Route, route('a'))
    await clock.advance(0)
    await cluster.client.delete(Route, 'web/a')
    await clock.advance(10)
    expect([calls, cluster.informers.get(Route, 'web/a')?.metadata.finalizers]).toEqual([2, [finalizer]])
    await clock.advance(1_000)
    expect([calls, cluster.informers.get(Route, 'web/a')]).toEqual([3, undefined])
  })

  it('does not reconcile when the finalizer cannot be added', async () => {
    let effects = 0
    const { environment } = start((builder) =>
      builder.finalizer(finalizer, async () => undefined).reconcile(async () => void effects++),
    )
    const { cluster, clock } = environment
    cluster.intercept = ({ verb }) => {
      if (verb === 'patch') throw new Error('refused')
    }
    cluster.put(Route, route('a'))
    await clock.advance(1_000)
    expect(effects).toBe(0)
    cluster.intercept = undefined
    await clock.advance(60_000)
    expect(effects).toBeGreaterThan(0)
  })

  it('skips an object that is being deleted without its finalizer', async () => {
    let calls = 0
    const { environment } = start((builder) =>
      builder.finalizer(finalizer, async () => void calls++).reconcile(async () => void calls++),
    )
    const metadata = { name: 'a', namespace: 'web', finalizers: ['other'], deletionTimestamp: '2030-01-01T00:00:00Z' }
    environment.cluster.put(Route, { ...route('a'), metadata })
    await environment.clock.advance(0)
    expect([calls, environment.cluster.requests]).toEqual([0, []])
  })
})

describe('a watch that ignores own writes', () => {
  const child = (data: Record<string, string>) => ({ metadata: { name: 'a', namespace: 'web' }, data })

  /** Starts a controller that applies a child; returns the number of reconciles. */
  function startApplying(environment: MemoryEnvironment, ignoreOwnWrites: boolean) {
    const runs: string[] = []
    start(
      (builder) =>
        builder
          .watches(ConfigMap, (object) => [keyOf(object)], { ignoreOwnWrites })
          .reconcile(async ({ spec }, ctx) => {
            runs.push(spec.host)
            await ctx.apply(ConfigMap, child({ host: spec.host }))
          }),
      {},
      environment,
    )
    return runs
  }

  it('does not reconcile for its own writes, but for those of other clients', async () => {
    for (const ignoreOwnWrites of [true, false]) {
      const environment = memoryEnvironment()
      const { cluster, clock } = environment
      cluster.put(Route, route('a'))
      const runs = startApplying(environment, ignoreOwnWrites)
      await clock.advance(0)
      expect(runs).toHaveLength(ignoreOwnWrites ? 1 : 2)
      cluster.put(ConfigMap, child({ host: 'foreign' }))
      await clock.advance(0)
      expect(runs).toHaveLength(ignoreOwnWrites ? 2 : 4)
      expect(cluster.informers.get(ConfigMap, 'web/a')?.data).toEqual({ host: 'a.test' })
      cluster.remove(ConfigMap, 'web/a')
      await clock.advance(0)
      expect(cluster.informers.get(ConfigMap, 'web/a')?.data).toEqual({ host: 'a.test' })
    }
  })

  it('loses no change of other clients during an own write in flight, also when that write fails', async () => {
    for (const isRefused of [true, false]) {
      const environment = memoryEnvironment()
      const { cluster, clock } = environment
      cluster.put(Route, route('a'))
      let isFirst = true
      cluster.intercept = ({ verb }) => {
        if (verb !== 'apply' || !isFirst) return
        isFirst = false
        cluster.put(ConfigMap, child({ by: 'another client' }))
        if (isRefused) throw new Terminal('refused')
      }
      const runs = startApplying(environment, true)
      await clock.advance(1_000)
      expect(runs).toHaveLength(2)
    }
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
