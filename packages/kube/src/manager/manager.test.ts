import { afterEach, describe, expect, it, vi } from 'vitest'
import type { RunnableContext } from '../controller/context.ts'
import { createLogger } from '../log.ts'
import { ConfigMap, type Event, Lease, Service } from '../object/kinds.ts'
import { manager, untilSignalled, type Manager } from './manager.ts'
import { reportingAs } from './reporter.ts'
import { untilAborted } from '../stop-signal.ts'
import { fakeClock } from '../testing/clock.ts'
import { memoryCluster } from '../testing/memory/memory-cluster.ts'
import { startManager, stopManagers } from '../testing/memory/started-manager.ts'

afterEach(stopManagers)

const leader = { lease: 'edge', namespace: 'sys' }
const service = (name: string) => ({ metadata: { name, namespace: 'web' } })
const statusOf = async (address: string | undefined, path: string) => (await fetch(`http://${address}${path}`)).status

describe('manager', () => {
  it('with many controllers and runnables causes no warning of Node about listeners', async () => {
    const warn = vi.spyOn(process, 'emitWarning')
    try {
      const { mgr, stop, outcome } = await startManager((each) => {
        for (let index = 0; index < 30; index++) {
          each.controller(`services-${index}`, Service).reconcile(async () => undefined)
          each.add(`runnable-${index}`, async ({ signal }) => untilAborted(signal))
        }
      })
      await expect.poll(() => mgr.isLeading).toBe(true)
      stop.abort()
      await outcome
      expect(warn).not.toHaveBeenCalled()
    } finally {
      warn.mockRestore()
    }
  })

  it('runs a controller from the first list to the stop, and sends nothing when nothing changes', async () => {
    const cluster = memoryCluster()
    cluster.put(Service, service('shop'))
    const wire = (mgr: Manager) =>
      mgr
        .controller('services', Service)
        .owns(ConfigMap)
        .reconcile(async ({ metadata }, ctx) => {
          await ctx.apply(ConfigMap, {
            metadata: { name: `${metadata.name}-child`, namespace: 'web' },
            data: { of: metadata.name ?? '' },
          })
        })
    const first = await startManager(wire, { probes: '127.0.0.1:0', metrics: '127.0.0.1:0' }, cluster)
    await expect.poll(() => cluster.informers.get(ConfigMap, 'web/shop-child')?.data).toEqual({ of: 'shop' })
    expect(await statusOf(first.mgr.addresses.probes, '/readyz')).toBe(200)
    expect(await (await fetch(`http://${first.mgr.addresses.metrics}/metrics`)).text()).toContain(
      'controller_runtime_reconcile_total{controller="services",result="success"} 1',
    )
    first.stop.abort()
    expect(await first.outcome).toBe('stopped')
    expect(cluster.isClosed).toBe(true)

    cluster.requests.length = 0
    const second = await startManager(wire, {}, cluster)
    await expect
      .poll(async () => second.mgr.metrics.registry.getSingleMetricAsString('controller_runtime_reconcile_total'))
      .toContain('result="success"} 1')
    expect(cluster.requests).toEqual([])
  })

  it('starts and stops in order', async () => {
    const log: string[] = []
    const cluster = memoryCluster()
    const startInformers = cluster.informers.start.bind(cluster.informers)
    Object.assign(cluster.informers, {
      start: async (signal: AbortSignal) => {
        log.push('caches start')
        await startInformers(signal)
        log.push('caches stop')
      },
    })
    cluster.put(Service, service('shop'))
    cluster.setState(Service, 'syncing')
    cluster.intercept = ({ kind, verb, body }) => {
      if (!kind.startsWith('Lease')) return
      const holder = (body as Lease | undefined)?.spec?.holderIdentity
      if (verb === 'create') log.push('lease taken')
      if (holder === '') log.push('lease released')
    }
    const { mgr, stop, outcome } = await startManager(
      (made) => {
        made.add('runnable', async ({ signal }) => {
          log.push('runnable start')
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
          log.push('runnable stop')
        })
        made.controller('services', Service).reconcile(async (_object, { signal }) => {
          log.push('reconcile start')
          // Ends after the stop has begun.
          await expect.poll(() => log).toContain('runnable stop')
          log.push(
            `reconcile end ${signal.aborted}`,
            `probes ${await statusOf(made.addresses.probes, '/healthz')} ${await statusOf(made.addresses.probes, '/readyz')}`,
          )
        })
      },
      { leader, probes: '127.0.0.1:0' },
      cluster,
    )
    await expect.poll(() => mgr.addresses.probes).toBeDefined()
    await expect.poll(async () => statusOf(mgr.addresses.probes, '/readyz')).toBe(500)
    expect(log).toEqual(['caches start'])
    cluster.setState(Service, 'live')
    await expect.poll(() => log.at(-1)).toBe('reconcile start')
    expect(await statusOf(mgr.addresses.probes, '/readyz')).toBe(200)
    expect(mgr.isLeading).toBe(true)
    stop.abort()
    expect(await outcome).toBe('stopped')
    expect(log).toEqual([
      'caches start',
      'runnable start',
      'lease taken',
      'reconcile start',
      'runnable stop',
      'reconcile end false',
      'probes 200 500',
      'caches stop',
      'lease released',
    ])
  })

  it('stops everything when one part fails, and rejects with its error', async () => {
    for (const name of ['throws', 'ends']) {
      const seen: string[] = []
      const { outcome } = await startManager((mgr) => {
        mgr.add('other', async ({ signal }) => {
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
          seen.push('other stopped')
        })
        mgr.add(name, async () => {
          if (name === 'throws') throw new Error('broken part')
        })
      })
      expect(String(await outcome)).toContain(name === 'throws' ? 'broken part' : 'ends ended by itself')
      expect(seen).toEqual(['other stopped'])
    }
  })

  it('fails when a port is in use or a cache does not sync, and leaves nothing running', async () => {
    const first = await startManager(() => undefined, { probes: '127.0.0.1:0' })
    await expect.poll(() => first.mgr.addresses.probes).toBeDefined()
    const second = await startManager(() => undefined, {
      metrics: '127.0.0.1:0',
      probes: first.mgr.addresses.probes ?? '',
    })
    expect(String(await second.outcome)).toContain('cannot listen on')
    await expect(fetch(`http://${second.mgr.addresses.metrics}/metrics`)).rejects.toThrow('fetch failed')

    const cluster = memoryCluster()
    cluster.setState(Service, 'syncing')
    const third = await startManager(
      (mgr) => mgr.controller('c', Service).reconcile(async () => undefined),
      { syncTimeout: '20ms' },
      cluster,
    )
    expect(String(await third.outcome)).toContain('Service did not sync within 20 ms')
  })

  it('does not let a missing CRD delay other controllers or readiness', async () => {
    const cluster = memoryCluster()
    cluster.setState(ConfigMap, 'absent')
    cluster.put(Service, service('shop'))
    const seen: string[] = []
    const { mgr } = await startManager(
      (made) => {
        made.controller('absent', ConfigMap).reconcile(async () => void seen.push('absent'))
        made.controller('present', Service).reconcile(async () => void seen.push('present'))
      },
      { probes: '127.0.0.1:0' },
      cluster,
    )
    await expect.poll(() => seen).toEqual(['present'])
    expect(await statusOf(mgr.addresses.probes, '/readyz')).toBe(200)
  })

  it('lets a kind that the server denies delay only the controllers that need it, without a timeout', async () => {
    const cluster = memoryCluster()
    cluster.put(Service, service('shop'))
    cluster.put(ConfigMap, { metadata: { name: 'page', namespace: 'web' } })
    cluster.setState(ConfigMap, 'syncing')
    cluster.setFailure(ConfigMap, { reason: 'denied', message: 'configmaps is forbidden', sinceMs: 1 })
    const clock = fakeClock()
    const seen: string[] = []
    const { mgr, outcome } = await startManager(
      (made) => {
        made.controller('denied', ConfigMap).reconcile(async () => void seen.push('denied'))
        made.controller('allowed', Service).reconcile(async () => void seen.push('allowed'))
      },
      { probes: '127.0.0.1:0', leader, clock },
      cluster,
    )
    await expect.poll(() => seen).toEqual(['allowed'])
    expect(await statusOf(mgr.addresses.probes, '/readyz')).toBe(500)
    await clock.advance(600_000)
    expect(await Promise.race([outcome, Promise.resolve('running')])).toBe('running')
    expect(cluster.lines.join()).toContain('the server denies the watch')
    cluster.setFailure(ConfigMap, undefined)
    cluster.setState(ConfigMap, 'live')
    await expect.poll(() => seen).toEqual(['allowed', 'denied'])
    expect(await statusOf(mgr.addresses.probes, '/readyz')).toBe(200)
  })

  it('waits for an API server that does not answer at the start, without a timeout', async () => {
    const cluster = memoryCluster()
    cluster.put(Service, service('shop'))
    cluster.setState(Service, 'syncing')
    cluster.setFailure(Service, { reason: 'broken', message: 'connection refused', sinceMs: 1 })
    const clock = fakeClock()
    const seen: string[] = []
    const { outcome } = await startManager(
      (made) => made.controller('services', Service).reconcile(async () => void seen.push('reconciled')),
      { leader, clock },
      cluster,
    )
    await expect
      .poll(async () => {
        await clock.advance(60_000)
        return cluster.lines.join()
      })
      .toContain('kind cannot be listed; waiting for the server')
    cluster.setFailure(Service, undefined)
    // Long lists of a server that is back get the whole time.
    await clock.advance(100_000)
    expect(await Promise.race([outcome, Promise.resolve('running')])).toBe('running')
    cluster.setState(Service, 'live')
    await expect.poll(() => seen).toEqual(['reconciled'])
  })

  it('limits the stop: reconciles are aborted, and abandoned, within the grace period', async () => {
    const clock = fakeClock()
    const signals: AbortSignal[] = []
    const { cluster, stop, outcome } = await startManager(
      (mgr) =>
        mgr.controller('stuck', Service).reconcile(async (_object, { signal }) => {
          signals.push(signal)
          await new Promise(() => undefined)
        }),
      { grace: '300ms', clock },
    )
    cluster.put(Service, service('shop'))
    await clock.advance(0)
    await expect.poll(() => signals.length).toBe(1)
    let isStopped = false
    void outcome.then(() => (isStopped = true))
    stop.abort()
    await clock.advance(299)
    expect(isStopped).toBe(false)
    await clock.advance(1)
    expect(await outcome).toBe('stopped')
    expect(signals[0]?.aborted).toBe(true)
  })

  it('provides runnables with cached reads, fenced writes, events and their own log', async () => {
    const cluster = memoryCluster()
    cluster.put(Service, service('shop'))
    const about = { apiVersion: 'v1', kind: 'Service', ...service('shop') }
    let context: RunnableContext | undefined
    const { stop, outcome } = await startManager(
      (mgr) => {
        mgr.cluster.informers.informer(Service)
        mgr.add(
          'work',
          async (given) => {
            context = given
            given.log.info('at work')
            given.event(about, 'Normal', 'Seen', `${given.list(Service).length} services`)
            await given.apply(ConfigMap, { metadata: { name: 'made', namespace: 'web' }, data: { a: 'b' } })
            await new Promise<void>((resolve) => given.signal.addEventListener('abort', () => resolve()))
          },
          { leader: true, reportingController: 'example.com/work' },
        )
        reportingAs(mgr, 'example.com/part').add(
          'part',
          async (given) => {
            given.event(about, 'Normal', 'Seen', 'by a part')
            await untilAborted(given.signal)
          },
          { leader: true },
        )
      },
      { leader },
      cluster,
    )
    const sent = () => cluster.requests.filter(({ kind, verb }) => verb === 'create' && kind.startsWith('Event'))
    await expect.poll(() => sent().length).toBe(2)
    const [own, ofPart] = sent().toSorted((a) => (String((a.body as Event).note) === 'by a part' ? 1 : -1))
    expect(ofPart?.body).toMatchObject({ reportingController: 'example.com/part' })
    expect(own?.body).toMatchObject({
      reportingController: 'example.com/work',
      note: '1 services',
      regarding: { kind: 'Service', name: 'shop' },
    })
    expect(cluster.lines.find((line) => line.includes('at work'))).toContain('"controller":"work"')
    stop.abort(new Error('enough'))
    await outcome
    cluster.requests.length = 0
    await expect(context?.apply(ConfigMap, { metadata: { name: 'late', namespace: 'web' } })).rejects.toThrow('enough')
    await expect(context?.client.get(Service, 'web/shop')).rejects.toThrow('enough')
    expect(cluster.requests).toEqual([])
  })

  it('refuses to run a controller without a reconciler or an aggregator without a pass, by name', async () => {
    const controller = await startManager((mgr) => void mgr.controller('services', Service).owns(ConfigMap))
    expect(String(await controller.outcome)).toContain('controller services has no reconciler')
    const aggregator = await startManager((mgr) => void mgr.keyedAggregator('plans').watches(Service, () => 'all'))
    expect(String(await aggregator.outcome)).toContain('keyed aggregator plans has no pass')
  })

  it('rejects declarations that are late, duplicate or cannot be served', async () => {
    const { mgr, stop, outcome } = await startManager((made) =>
      made.controller('a', Service).reconcile(async () => undefined),
    )
    expect(() => mgr.controller('b', Service)).toThrow('comes too late')
    expect(() => mgr.controller('a', Service)).toThrow('exists already')
    await expect(mgr.run(stop.signal)).rejects.toThrow('runs once')
    stop.abort()
    await outcome
    const other = await manager({ cluster: memoryCluster(), log: createLogger({ level: 'silent' }) })
    other.webhook(Service, { validate: () => [] })
    await expect(other.run(stop.signal)).rejects.toThrow('no `webhooks`')
  })

  it('stops before starting when the signal has already aborted', async () => {
    const cluster = memoryCluster()
    const mgr = await manager({ cluster, log: cluster.log, probes: '127.0.0.1:0' })
    mgr.controller('a', Service).reconcile(async () => undefined)
    await mgr.run(AbortSignal.abort())
    expect([mgr.addresses, cluster.isClosed]).toEqual([{}, true])
  })

  it('stops at the first signal of the process, and leaves the default action for the second', () => {
    const before = process.listenerCount('SIGUSR2')
    const signal = untilSignalled('SIGUSR2', 'SIGWINCH')
    expect(process.listenerCount('SIGUSR2')).toBe(before + 1)
    process.emit('SIGUSR2', 'SIGUSR2')
    expect(signal.aborted).toBe(true)
    expect(String(signal.reason)).toContain('SIGUSR2')
    expect([process.listenerCount('SIGUSR2'), process.listenerCount('SIGWINCH')]).toEqual([before, 0])
  })
})
