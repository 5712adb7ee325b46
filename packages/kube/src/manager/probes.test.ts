import { connect } from 'node:net'
import { once } from 'node:events'
import { afterEach, describe, expect, it } from 'vitest'
import { parseListen, startListener, type Listener } from './listener.ts'
import { createMetrics } from '../metrics.ts'
import { metricsHandler, probesHandler } from './probes.ts'
import { createQueue } from '../controller/queue.ts'

const listeners: Listener[] = []
afterEach(async () => {
  await Promise.all(listeners.splice(0).map(async (listener) => listener.close(0)))
})

async function serve(handler: Parameters<typeof startListener>[0]['handler']): Promise<string> {
  const listener = await startListener({ listen: '127.0.0.1:0', handler })
  listeners.push(listener)
  return `http://${listener.address}`
}

const textOf = async (url: string) => {
  const response = await fetch(url)
  return [response.status, await response.text()] as const
}

describe('probes', () => {
  it('respond ok, and list every check when one fails or verbose is requested', async () => {
    let wrong: string | undefined
    const readyz = new Map([
      ['caches', () => wrong],
      ['webhooks', () => undefined],
    ])
    const url = await serve(probesHandler({ healthz: new Map(), readyz }))
    expect(await textOf(`${url}/healthz`)).toEqual([200, 'ok'])
    expect(await textOf(`${url}/readyz`)).toEqual([200, 'ok'])
    expect(await textOf(`${url}/readyz?verbose`)).toEqual([200, '[+]caches ok\n[+]webhooks ok\nreadyz check passed\n'])
    wrong = 'Service is not synced'
    const failed = '[-]caches failed: Service is not synced\n[+]webhooks ok\nreadyz check failed\n'
    expect(await textOf(`${url}/readyz`)).toEqual([500, failed])
    expect(await textOf(`${url}/readyz/webhooks`)).toEqual([200, 'ok'])
    expect((await textOf(`${url}/readyz/nothing`))[0]).toBe(404)
    expect((await textOf(`${url}/other`))[0]).toBe(404)
  })

  it('handle a check that throws and a malformed request', async () => {
    const broken = () => {
      throw new Error('broken check')
    }
    const url = await serve(probesHandler({ healthz: new Map([['broken', broken]]), readyz: new Map() }))
    const socket = connect(Number(url.split(':').at(-1)), '127.0.0.1')
    socket.end('nonsense\r\n\r\n')
    await once(socket.resume(), 'close')
    expect(await textOf(`${url}//?%%%`)).toEqual([404, 'not found\n'])
    expect(await textOf(`${url}/healthz`)).toEqual([500, '[-]broken failed: broken check\nhealthz check failed\n'])
  })

  it('reject an invalid address, and report a port in use', async () => {
    expect(parseListen(':8080')).toEqual({ port: 8080 })
    expect(parseListen('[::1]:0')).toEqual({ host: '::1', port: 0 })
    for (const wrong of ['', '8080', 'a:b', 'a:1:2', ':70000']) expect(() => parseListen(wrong)).toThrow('HOST:PORT')
    const url = await serve(probesHandler({ healthz: new Map(), readyz: new Map() }))
    const taken = startListener({ listen: url.slice('http://'.length), handler: () => undefined })
    await expect(taken).rejects.toThrow('another process')
  })

  it('let a request in progress finish when they close, and abort one that does not', async () => {
    const finish: (() => void)[] = []
    const listener = await startListener({
      listen: '127.0.0.1:0',
      handler: (_request, response) => finish.push(() => response.end('late')),
    })
    const slow = fetch(`http://${listener.address}`).then(async (response) => response.text())
    const stuck = fetch(`http://${listener.address}`).then(
      () => 'answered',
      () => 'cut',
    )
    await expect.poll(() => finish.length).toBe(2)
    const closed = listener.close(200)
    finish[0]?.()
    await closed
    expect([await slow, await stuck]).toEqual(['late', 'cut'])
  })
})

describe('metrics', () => {
  it('use controller-runtime’s names, and start at 0', async () => {
    const metrics = createMetrics()
    const shop = metrics.controller('shop', 8)
    metrics.webhook('/validate', 'admission')
    shop.watchQueue(createQueue())
    const text = (await textOf(`${await serve(metricsHandler(() => [metrics.registry]))}/metrics`))[1]
    for (const line of [
      'controller_runtime_reconcile_total{controller="shop",result="success"} 0',
      'controller_runtime_reconcile_total{controller="shop",result="error"} 0',
      'controller_runtime_reconcile_total{controller="shop",result="requeue"} 0',
      'controller_runtime_reconcile_total{controller="shop",result="requeue_after"} 0',
      'controller_runtime_reconcile_errors_total{controller="shop"} 0',
      'controller_runtime_terminal_reconcile_errors_total{controller="shop"} 0',
      'controller_runtime_reconcile_panics_total{controller="shop"} 0',
      'controller_runtime_reconcile_timeouts_total{controller="shop"} 0',
      'controller_runtime_max_concurrent_reconciles{controller="shop"} 8',
      'controller_runtime_active_workers{controller="shop"} 0',
      'workqueue_adds_total{name="shop",controller="shop"} 0',
      'workqueue_retries_total{name="shop",controller="shop"} 0',
      'workqueue_depth{name="shop",controller="shop",priority="0"} 0',
      'workqueue_unfinished_work_seconds{name="shop",controller="shop"} 0',
      'workqueue_longest_running_processor_seconds{name="shop",controller="shop"} 0',
      'certwatcher_read_certificate_total 0',
      'certwatcher_read_certificate_errors_total 0',
      'controller_runtime_webhook_panics_total 0',
      'controller_runtime_conversion_webhook_panics_total 0',
      'controller_runtime_webhook_requests_total{webhook="/validate",code="200"} 0',
      'controller_runtime_webhook_requests_in_flight{webhook="/validate"} 0',
    ]) {
      expect(text.split('\n')).toContain(line)
    }
  })

  const patched = {
    method: 'PATCH',
    host: 'h:1',
    durationMs: 30,
    sentBody: 'x'.repeat(300),
    receivedBytes: 2_000,
    retry: 0,
  }

  it("show client-go's histograms of requests only when enabled", async () => {
    const [plain, full] = [createMetrics(), createMetrics({ clientHistograms: true })]
    for (const { client } of [plain, full]) {
      client.request({ ...patched, code: '429' })
      client.request({ ...patched, code: '200', retry: 1 })
    }
    const lines = (await full.registry.metrics()).split('\n')
    for (const line of [
      'rest_client_request_duration_seconds_bucket{le="0.025",verb="PATCH",host="h:1"} 0',
      'rest_client_request_duration_seconds_bucket{le="0.1",verb="PATCH",host="h:1"} 2',
      'rest_client_request_size_bytes_bucket{le="512",verb="PATCH",host="h:1"} 2',
      'rest_client_response_size_bytes_sum{verb="PATCH",host="h:1"} 4000',
      'rest_client_request_retries_total{code="200",verb="PATCH",host="h:1"} 1',
    ]) {
      expect(lines).toContain(line)
    }
    expect(await plain.registry.metrics()).not.toContain('rest_client_request_duration')
  })

  it('count what happens, and follow the queues', async () => {
    const metrics = createMetrics()
    const shop = metrics.controller('shop', 8)
    const queue = createQueue({ observer: shop.queue })
    const forget = shop.watchQueue(queue)
    queue.add('a')
    queue.add('b', { priority: -100 })
    queue.done(queue.take() ?? '')
    shop.reconciled('error', 0.2)
    metrics.client.request({ ...patched, code: '409' })
    metrics.client.restart?.({ kind: 'Service', reason: 'expired' })
    metrics.leading('edge', true)
    metrics.watchCluster(() => ({
      cluster: 'local',
      caches: [
        { kind: 'Service', objects: 1, bytes: 700, silentMs: 1_500 },
        { kind: 'Service', objects: 2, bytes: 1_300, silentMs: 2_500 },
        { kind: 'Node', objects: 0, bytes: 0 },
      ],
      sessions: 2,
      streams: 4,
    }))
    const lines = (await metrics.registry.metrics()).split('\n')
    for (const line of [
      'workqueue_adds_total{name="shop",controller="shop"} 2',
      'workqueue_depth{name="shop",controller="shop",priority="0"} 0',
      'workqueue_depth{name="shop",controller="shop",priority="-100"} 1',
      'workqueue_work_duration_seconds_count{name="shop",controller="shop"} 1',
      'workqueue_queue_duration_seconds_bucket{le="1e-8",name="shop",controller="shop"} 0',
      'controller_runtime_reconcile_errors_total{controller="shop"} 1',
      'controller_runtime_reconcile_time_seconds_bucket{le="0.2",controller="shop"} 1',
      'rest_client_requests_total{code="409",method="PATCH",host="h:1"} 1',
      'leader_election_master_status{name="edge"} 1',
      'seamark_watch_restarts_total{kind="Service",reason="expired"} 1',
      'seamark_cache_objects{cluster="local",kind="Service"} 3',
      'seamark_cache_bytes{cluster="local",kind="Service"} 2000',
      'seamark_watch_last_event_age_seconds{cluster="local",kind="Service"} 2.5',
      'seamark_http2_streams{cluster="local"} 4',
    ]) {
      expect(lines).toContain(line)
    }
    // A kind without any response yet has no age: 0 would mean that it is fresh.
    expect(lines.join()).not.toContain('age_seconds{cluster="local",kind="Node"}')
    forget()
    expect(await metrics.registry.getSingleMetricAsString('workqueue_depth')).not.toContain('-100')
  })

  it('keep the number of label values bounded, for any priorities in use', async () => {
    const metrics = createMetrics()
    const shop = metrics.controller('shop', 8)
    const queue = createQueue({ observer: shop.queue })
    shop.watchQueue(queue)
    for (let priority = 1; priority <= 60; priority++) queue.add(`k${priority}`, { priority })
    const depth = await metrics.registry.getSingleMetricAsString('workqueue_depth')
    expect(depth.split('\n').filter((line) => line.startsWith('workqueue_depth{'))).toHaveLength(26)
    expect(depth).toContain('priority="exceeded_cardinality_limit"} 36')
  })
})
