/**
 * One measurement of one client, in a process of its own: `subject.ts TASK FOLDER PORT`. Prints one JSON line.
 * The tasks `…-theirs` are the same work with @kubernetes/client-node.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { createDecoder, createInformers, processBudget, type Rest, type Source } from '@seamark/kube/testing/parts'
import { threadCpuMs } from '../thread-cpu.ts'
import { type Obj, configFromText, connect, kind } from '@seamark/kube'
import { residentBytes } from '../resident.ts'
import { bookmark, partial, proxy } from './objects.ts'

interface HTTPProxy extends Obj {
  spec?: { virtualhost?: { fqdn?: string } }
}
const describe = { version: 'v1', kind: 'HTTPProxy', plural: 'httpproxies', namespaced: true }
const HTTPProxy = kind<HTTPProxy>({ group: 'projectcontour.io', ...describe })
/** The same kind under another path: an empty list, then 50 000 events. */
const Streamed = kind<HTTPProxy>({ group: 'events-only', ...describe })

const WRITES = 5000
const IN_FLIGHT = 64
const EVENTS = 50_000
const OBJECTS = 10_000
const HEAP_OBJECTS = 20_000

const [task = '', folder = '', port = ''] = process.argv.slice(2)

function kubeconfig(): string {
  const data = (name: string) => readFileSync(join(folder, name)).toString('base64')
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'bench',
    contexts: [{ name: 'bench', context: { cluster: 'bench', user: 'bench' } }],
    clusters: [
      { name: 'bench', cluster: { server: `https://127.0.0.1:${port}`, 'certificate-authority-data': data('ca.crt') } },
    ],
    users: [
      { name: 'bench', user: { 'client-certificate-data': data('client.crt'), 'client-key-data': data('client.key') } },
    ],
  })
}

function collect(): void {
  for (let round = 0; round < 4; round++) globalThis.gc?.()
}

/** Peak of resident memory from here on; Linux resets the old peak on request. */
function forgetPeak(): number {
  writeFileSync('/proc/self/clear_refs', '5')
  return residentBytes('VmHWM')
}

interface Measured {
  seconds: number
  cpuSeconds: number
  blockMs: number
  peakBytes: number
}

async function measure(work: () => Promise<void>): Promise<Measured> {
  collect()
  await delay(200)
  const histogram = monitorEventLoopDelay({ resolution: 1 })
  const before = forgetPeak()
  histogram.enable()
  const startedAt = performance.now()
  const cpu = process.cpuUsage()
  await work()
  const used = process.cpuUsage(cpu)
  const seconds = (performance.now() - startedAt) / 1000
  // The histogram's own timer is 1 ms late by nature; a block is what comes on top.
  await delay(5)
  histogram.disable()
  return {
    seconds,
    cpuSeconds: (used.user + used.system) / 1e6,
    blockMs: Math.max(0, histogram.max / 1e6 - 1),
    peakBytes: residentBytes('VmHWM') - before,
  }
}

async function inParallel(count: number, width: number, run: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const worker = async () => {
    while (next < count) await run(next++)
  }
  await Promise.all(Array.from({ length: width }, worker))
}

const intent = (index: number): HTTPProxy =>
  ({
    metadata: { name: `shop-frontend-${index % OBJECTS}`, namespace: 'team-1' },
    status: { currentStatus: 'valid', description: 'Valid HTTPProxy' },
  }) as HTTPProxy

async function writes(): Promise<Measured> {
  const cluster = connect(configFromText(kubeconfig()))
  await cluster.client.apply(HTTPProxy, intent(0), { subresource: 'status' })
  const result = await measure(async () => {
    await inParallel(WRITES, IN_FLIGHT, async (index) =>
      cluster.client.apply(HTTPProxy, intent(index), { subresource: 'status' }),
    )
  })
  await cluster.close()
  return result
}

async function loadTheirs() {
  const k8s = await import('@kubernetes/client-node')
  const config = new k8s.KubeConfig()
  config.loadFromString(kubeconfig())
  return { k8s, config }
}

async function writesTheirs(): Promise<Measured> {
  const { k8s, config } = await loadTheirs()
  const api = config.makeApiClient(k8s.CustomObjectsApi)
  const options = k8s.setHeaderOptions('Content-Type', 'application/apply-patch+yaml')
  const write = async (index: number) => {
    const body = { apiVersion: 'projectcontour.io/v1', kind: 'HTTPProxy', ...intent(index) }
    const where = {
      group: 'projectcontour.io',
      version: 'v1',
      namespace: 'team-1',
      plural: 'httpproxies',
      name: body.metadata.name ?? '',
    }
    await api.patchNamespacedCustomObjectStatus({ ...where, body, fieldManager: 'bench', force: true }, options)
  }
  await write(0)
  return measure(async () => inParallel(WRITES, IN_FLIGHT, write))
}

async function watch(): Promise<Measured & { sliceMs: number }> {
  const cluster = connect(configFromText(kubeconfig()), { freeze: false })
  const informer = cluster.informers.informer(Streamed)
  cluster.informers.index(Streamed, 'fqdn', (object) => [object.spec?.virtualhost?.fqdn ?? ''])
  const stop = new AbortController()
  let seen = 0
  let finish: () => void = () => undefined
  const finished = new Promise<void>((resolve) => (finish = resolve))
  informer.subscribe(() => {
    if (++seen === EVENTS) finish()
  })
  let running: Promise<void> | undefined
  const result = await measure(async () => {
    processBudget.meter = threadCpuMs
    processBudget.longestMs = 0
    running = cluster.informers.start(stop.signal)
    await finished
  })
  stop.abort()
  await running
  await cluster.close()
  return { ...result, sliceMs: processBudget.longestMs }
}

async function watchTheirs(): Promise<Measured> {
  const { k8s, config } = await loadTheirs()
  const cache = new Map<string, unknown>()
  return measure(async () => {
    let seen = 0
    await new Promise<void>((resolve, reject) => {
      new k8s.Watch(config)
        .watch(
          '/apis/events-only/v1/httpproxies',
          {},
          (phase: string, object: HTTPProxy) => {
            if (phase === 'BOOKMARK') return
            cache.set(`${object.metadata.namespace}/${object.metadata.name}`, object)
            if (++seen === EVENTS) resolve()
          },
          (error: unknown) => (seen < EVENTS ? reject(error as Error) : undefined),
        )
        .catch(reject)
    })
  })
}

async function sync(): Promise<Measured> {
  const cluster = connect(configFromText(kubeconfig()), { freeze: false })
  const informer = cluster.informers.informer(HTTPProxy)
  informer.subscribe(() => undefined)
  const stop = new AbortController()
  let running: Promise<void> | undefined
  const result = await measure(async () => {
    running = cluster.informers.start(stop.signal)
    await informer.synced()
  })
  const count = cluster.informers.list(HTTPProxy).length
  if (count !== OBJECTS) throw new Error(`${count} objects instead of ${OBJECTS}`)
  stop.abort()
  await running
  await cluster.close()
  return result
}

async function syncTheirs(): Promise<Measured> {
  const { k8s, config } = await loadTheirs()
  const api = config.makeApiClient(k8s.CustomObjectsApi)
  let list: { items: unknown[] } | undefined
  const result = await measure(async () => {
    list = (await api.listClusterCustomObject({
      group: 'projectcontour.io',
      version: 'v1',
      plural: 'httpproxies',
    })) as { items: unknown[] }
  })
  if (list?.items.length !== OBJECTS) throw new Error(`${list?.items.length} objects instead of ${OBJECTS}`)
  return result
}

/** Heap per cached object through the whole path from bytes to cache, without a network. */
async function heap(projection: 'full' | 'metadata'): Promise<{ bytes: number }> {
  const make = projection === 'full' ? proxy : partial
  const source: Source<HTTPProxy> = {
    list: async () => Promise.reject(new Error('not used')),
    isServed: async () => true,
    async watch(_request, each, _onBytes, signal) {
      const decoder = createDecoder(HTTPProxy, { projection })
      for (let index = 0; index < HEAP_OBJECTS; index++) {
        const bytes = Buffer.from(JSON.stringify({ type: 'ADDED', object: make(index, 1000 + index) }))
        each(decoder.frame(bytes, 0, bytes.length))
      }
      const end = Buffer.from(JSON.stringify({ type: 'BOOKMARK', object: bookmark(1000 + HEAP_OBJECTS, true) }))
      each(decoder.frame(end, 0, end.length))
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    },
  }
  const informers = createInformers({} as Rest, { freeze: false, sourceOf: () => source as unknown as Source<never> })
  const informer = informers.informer(HTTPProxy, { projection })
  informers.index(HTTPProxy, 'fqdn', (object) =>
    projection === 'full'
      ? [object.spec?.virtualhost?.fqdn ?? '']
      : [object.metadata.labels?.['app.kubernetes.io/instance'] ?? ''],
  )
  collect()
  const before = process.memoryUsage().heapUsed
  const stop = new AbortController()
  const running = informers.start(stop.signal)
  await informer.synced()
  await delay(50)
  collect()
  const bytes = (process.memoryUsage().heapUsed - before) / HEAP_OBJECTS
  stop.abort()
  await running
  return { bytes }
}

const tasks: Record<string, () => Promise<unknown>> = {
  writes,
  'writes-theirs': writesTheirs,
  watch,
  'watch-theirs': watchTheirs,
  sync,
  'sync-theirs': syncTheirs,
  'heap-full': async () => heap('full'),
  'heap-metadata': async () => heap('metadata'),
}
const run = tasks[task]
if (run === undefined) throw new Error(`no task ${task}`)
process.stdout.write(`${JSON.stringify(await run())}\n`)
process.exit(0)
