/**
 * Metrics of controllers, queues, webhooks, the client and the lease, with controller-runtime's exact names and labels,
 * so that existing dashboards and alerts work; additional ones have the prefix `seamark_`.
 *
 * Place in the flow: one `Metrics` per manager, on its own registry; the probes server exposes it.
 * Guarantees: label values are bounded (names of controllers, results, codes; priorities beyond 25 share one value),
 * and every counter starts at 0, so that the first failure is visible as an increase.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { RequestObserver } from './client/client.ts'
import type { Queue, QueueObserver } from './controller/queue.ts'
import { createRequestMetrics } from './client/request-metrics.ts'
import { registerProcessMetrics } from './process-metrics.ts'

export { addReadMetric } from './read-metrics.ts'

/** Result of a reconcile, in controller-runtime's label values. `requeue` exists there, and is always 0 here. */
type ReconcileResult = 'success' | 'error' | 'requeue' | 'requeue_after'

const RECONCILE_RESULTS: readonly ReconcileResult[] = ['success', 'error', 'requeue', 'requeue_after']

/** Seconds. */
const RECONCILE_BUCKETS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 1.75, 2,
  2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
]
/** Seconds: 10 ns to 1000 s. */
const QUEUE_BUCKETS = Array.from({ length: 12 }, (_, power) => 1e-8 * 10 ** power)

/** Distinct priorities used as label values; limits the number of series if priorities are set per object. */
const MAX_PRIORITY_LABELS = 25

export interface ControllerMetrics {
  readonly queue: QueueObserver
  /** Includes a queue in the gauges until the returned function is called. Each cluster has its own queue. */
  watchQueue(queue: Queue): () => void
  reconciled(result: ReconcileResult, seconds: number): void
  terminalError(): void
  panicked(): void
  timedOut(): void
  workers(change: 1 | -1): void
}

export interface WebhookMetrics {
  started(): void
  finished(code: number, seconds: number): void
  panicked(): void
}

/** State of a cluster's caches and connections at the time of a scrape. */
export interface ClusterStats {
  readonly cluster: string
  /** One per watch: a kind may have several. `silentMs`: time since the last data from the server. */
  readonly caches: readonly { kind: string; objects: number; bytes: number; silentMs?: number | undefined }[]
  readonly sessions: number
  readonly streams: number
}

export interface Metrics {
  readonly registry: Registry
  controller(name: string, concurrency: number): ControllerMetrics
  webhook(path: string, type: 'admission' | 'conversion'): WebhookMetrics
  readonly client: RequestObserver
  leading(lease: string, isLeader: boolean): void
  certificateRead(ok: boolean): void
  /** Called at every scrape, until the returned function is called. */
  watchCluster(stats: () => ClusterStats): () => void
  /** Starts sampling the event loop; the returned function stops it. */
  watchEventLoop(): () => void
}

export interface MetricsOptions {
  registry?: Registry
  /**
   * client-go's histograms of every request (`rest_client_request_duration_seconds`, sizes, retries): many series, so
   * disabled by default as in controller-runtime. There is no client-side rate limiter, hence no metric of one.
   * @default false
   */
  clientHistograms?: boolean
}

/** For metrics that end before those of their manager. */
export function createRegistry(): Registry {
  return new Registry()
}

export function createMetrics({ registry = new Registry(), clientHistograms = false }: MetricsOptions = {}): Metrics {
  const registers = [registry]
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[]) =>
    new Counter({ name, help, labelNames, registers })
  const histogram = <L extends string>(name: string, help: string, labelNames: readonly L[], buckets: number[]) =>
    new Histogram({ name, help, labelNames, buckets, registers })
  const gauge = <L extends string>(name: string, help: string, labelNames: readonly L[], collect?: () => void) =>
    new Gauge({ name, help, labelNames, registers, ...(collect !== undefined && { collect }) })

  /**
   * A counter that is updated at a scrape: finding a series by its labels takes longer than most operations counted
   * here. Returns an increment function for each set of labels.
   */
  const tallied = <L extends string>(name: string, help: string, labelNames: readonly L[]) => {
    const tallies: { readonly labels: Record<L, string>; count: number }[] = []
    const collect = function collect(this: Counter<L>): void {
      for (const tally of tallies) {
        this.inc(tally.labels, tally.count)
        tally.count = 0
      }
    }
    registry.registerMetric(new Counter({ name, help, labelNames, registers: [], collect }))
    return (labels: Record<L, string>): (() => void) => {
      const tally = { labels, count: 0 }
      tallies.push(tally)
      return () => void tally.count++
    }
  }

  const total = tallied('controller_runtime_reconcile_total', 'Reconciles per controller and result', [
    'controller',
    'result',
  ])
  const errors = counter('controller_runtime_reconcile_errors_total', 'Reconciles that failed', ['controller'])
  const terminal = counter(
    'controller_runtime_terminal_reconcile_errors_total',
    'Reconciles that failed and are not tried again',
    ['controller'],
  )
  const panics = counter(
    'controller_runtime_reconcile_panics_total',
    'Reconciles that threw what no API or network said: a mistake in the reconciler',
    ['controller'],
  )
  const timeouts = counter('controller_runtime_reconcile_timeouts_total', 'Reconciles stopped by their timeout', [
    'controller',
  ])
  const time = histogram(
    'controller_runtime_reconcile_time_seconds',
    'Length of reconciles',
    ['controller'],
    RECONCILE_BUCKETS,
  )
  const concurrencyLimit = gauge(
    'controller_runtime_max_concurrent_reconciles',
    'Reconciles that may run at once, per cluster',
    ['controller'],
  )
  const running = new Map<string, number>()
  gauge('controller_runtime_active_workers', 'Reconciles running now', ['controller'], function collect(this: Gauge) {
    for (const [controller, count] of running) this.set({ controller }, count)
  })

  const queues = new Map<string, Set<Queue>>()
  const queueLabels = ['name', 'controller'] as const
  const adds = tallied('workqueue_adds_total', 'Keys added to the work queue', queueLabels)
  const retries = counter('workqueue_retries_total', 'Keys queued again after a failure', queueLabels)
  const waited = histogram('workqueue_queue_duration_seconds', 'Time from ready to taken', queueLabels, QUEUE_BUCKETS)
  const worked = histogram('workqueue_work_duration_seconds', 'Time from taken to done', queueLabels, QUEUE_BUCKETS)
  gauge('workqueue_depth', 'Keys that are ready', ['name', 'controller', 'priority'], function collect(this: Gauge) {
    this.reset()
    for (const [name, set] of queues) {
      for (const [priority, depth] of boundedDepths(set)) this.set({ name, controller: name, priority }, depth)
    }
  })
  gauge(
    'workqueue_unfinished_work_seconds',
    'Seconds of work under way, summed',
    queueLabels,
    function collect(this: Gauge) {
      for (const [name, set] of queues) {
        const sum = [...set].reduce((seconds, queue) => seconds + queue.stats().unfinishedMs / 1000, 0)
        this.set({ name, controller: name }, sum)
      }
    },
  )
  gauge(
    'workqueue_longest_running_processor_seconds',
    'Seconds the longest running reconcile has taken so far',
    queueLabels,
    function collect(this: Gauge) {
      for (const [name, set] of queues) {
        const longest = Math.max(0, ...[...set].map((queue) => queue.stats().longestMs / 1000))
        this.set({ name, controller: name }, longest)
      }
    },
  )

  const requests = tallied('rest_client_requests_total', 'HTTP requests to API servers', ['code', 'method', 'host'])
  const requestIncrements = new Map<string, () => void>()
  const observeRequest = clientHistograms ? createRequestMetrics(registry) : undefined
  const restarts = counter('seamark_watch_restarts_total', 'Watches started again, by reason', ['kind', 'reason'])
  const master = gauge('leader_election_master_status', '1 while this process leads', ['name'])
  const reads = counter('certwatcher_read_certificate_total', 'Serving certificates read', [])
  const readErrors = counter('certwatcher_read_certificate_errors_total', 'Serving certificates not readable', [])

  const webhookLatency = new Histogram({
    name: 'controller_runtime_webhook_latency_seconds',
    help: 'Time to answer an admission or conversion request',
    labelNames: ['webhook'],
    registers,
  })
  const webhookRequests = counter('controller_runtime_webhook_requests_total', 'Webhook requests by code', [
    'webhook',
    'code',
  ])
  const webhookInFlight = gauge('controller_runtime_webhook_requests_in_flight', 'Webhook requests under way', [
    'webhook',
  ])
  const webhookPanics = {
    admission: counter('controller_runtime_webhook_panics_total', 'Admission handlers that threw', []),
    conversion: counter('controller_runtime_conversion_webhook_panics_total', 'Conversion functions that threw', []),
  }

  const clusters = new Set<() => ClusterStats>()
  const perKind = (name: string, help: string, value: (cache: ClusterStats['caches'][number]) => number) =>
    gauge(name, help, ['cluster', 'kind'], function collect(this: Gauge) {
      this.reset()
      for (const stats of clusters) {
        const { cluster, caches } = stats()
        for (const cache of caches) this.inc({ cluster, kind: cache.kind }, value(cache))
      }
    })
  perKind('seamark_cache_objects', 'Objects in the caches', ({ objects }) => objects)
  perKind('seamark_cache_bytes', 'About how much JSON the caches hold', ({ bytes }) => bytes)
  gauge(
    'seamark_watch_last_event_age_seconds',
    'Since the server last sent an event, a bookmark or a list of this kind; of several watches the quietest',
    ['cluster', 'kind'],
    function collect(this: Gauge) {
      this.reset()
      for (const stats of clusters) {
        const { cluster, caches } = stats()
        const oldest = new Map<string, number>()
        for (const { kind, silentMs } of caches) {
          if (silentMs !== undefined) oldest.set(kind, Math.max(oldest.get(kind) ?? 0, silentMs))
        }
        for (const [kind, silentMs] of oldest) this.set({ cluster, kind }, silentMs / 1000)
      }
    },
  )
  const perCluster = (name: string, help: string, value: (stats: ClusterStats) => number) =>
    gauge(name, help, ['cluster'], function collect(this: Gauge) {
      this.reset()
      for (const stats of clusters) {
        const now = stats()
        // Managers that share metrics have connections of their own to one cluster.
        this.inc({ cluster: now.cluster }, value(now))
      }
    })
  perCluster('seamark_http2_sessions', 'Open HTTP/2 sessions', ({ sessions }) => sessions)
  perCluster('seamark_http2_streams', 'Open HTTP/2 streams', ({ streams }) => streams)

  registerProcessMetrics(registry)
  let loop: ReturnType<typeof monitorEventLoopDelay> | undefined
  gauge(
    'seamark_event_loop_delay_seconds',
    'Event-loop delay since the last scrape',
    ['quantile'],
    function collect(this: Gauge) {
      if (loop === undefined) return
      this.set({ quantile: 'max' }, loop.count === 0 ? 0 : loop.max / 1e9)
      this.set({ quantile: '0.99' }, loop.count === 0 ? 0 : loop.percentile(99) / 1e9)
      loop.reset()
    },
  )

  return {
    registry,
    controller(name, concurrency) {
      const labels = { name, controller: name }
      const results = new Map(RECONCILE_RESULTS.map((result) => [result, total({ controller: name, result })]))
      for (const metric of [errors, terminal, panics, timeouts]) metric.inc({ controller: name }, 0)
      retries.inc(labels, 0)
      concurrencyLimit.set({ controller: name }, concurrency)
      const work = (change: number): void => void running.set(name, (running.get(name) ?? 0) + change)
      work(0)
      const set = queues.get(name) ?? new Set()
      queues.set(name, set)
      return {
        queue: {
          added: adds(labels),
          retried: () => retries.inc(labels),
          taken: (waitedMs) => waited.observe(labels, waitedMs / 1000),
          finished: (workedMs) => worked.observe(labels, workedMs / 1000),
        },
        watchQueue(queue) {
          set.add(queue)
          return () => set.delete(queue)
        },
        reconciled(result, seconds) {
          results.get(result)?.()
          time.observe({ controller: name }, seconds)
          if (result === 'error') errors.inc({ controller: name })
        },
        terminalError: () => terminal.inc({ controller: name }),
        panicked: () => panics.inc({ controller: name }),
        timedOut: () => timeouts.inc({ controller: name }),
        workers: work,
      }
    },
    webhook(path, type) {
      for (const code of ['200', '500']) webhookRequests.inc({ webhook: path, code }, 0)
      webhookInFlight.set({ webhook: path }, 0)
      return {
        started: () => webhookInFlight.inc({ webhook: path }),
        finished(code, seconds) {
          webhookInFlight.dec({ webhook: path })
          webhookRequests.inc({ webhook: path, code: String(code) })
          webhookLatency.observe({ webhook: path }, seconds)
        },
        panicked: () => webhookPanics[type].inc(),
      }
    },
    client: {
      request(exchange) {
        const { code, method, host } = exchange
        const id = `${code} ${method} ${host}`
        let increment = requestIncrements.get(id)
        if (increment === undefined) requestIncrements.set(id, (increment = requests({ code, method, host })))
        increment()
        observeRequest?.(exchange)
      },
      restart: ({ kind, reason }) => restarts.inc({ kind, reason }),
    },
    leading: (lease, isLeader) => master.set({ name: lease }, isLeader ? 1 : 0),
    certificateRead: (ok) => (ok ? reads : readErrors).inc(),
    watchCluster(stats) {
      clusters.add(stats)
      return () => clusters.delete(stats)
    },
    watchEventLoop() {
      const monitor = monitorEventLoopDelay({ resolution: 10 })
      monitor.enable()
      loop = monitor
      return () => {
        monitor.disable()
        if (loop === monitor) loop = undefined
      }
    },
  }
}

function boundedDepths(queues: ReadonlySet<Queue>): Map<string, number> {
  const depths = new Map<string, number>([['0', 0]])
  for (const queue of queues) {
    for (const [priority, depth] of queue.stats().depth) {
      const isKnown = depths.has(String(priority)) || depths.size < MAX_PRIORITY_LABELS
      const label = isKnown ? String(priority) : 'exceeded_cardinality_limit'
      depths.set(label, (depths.get(label) ?? 0) + depth)
    }
  }
  return depths
}
