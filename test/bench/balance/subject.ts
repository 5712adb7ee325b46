/**
 * The subject of the scale figures: `seamark dnslb` with its DNS server, as a child process with
 * `KUBECONFIG DATA_FOLDER WORKER COUNT`. Prints a line of JSON when COUNT load balancers were decided once (`decided`), each time
 * that it wrote nothing for a second (`idle`), and at its end.
 */
import { tracingChannel } from 'node:diagnostics_channel'
import { readFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import { pathToFileURL } from 'node:url'
import { serverText } from '@seamark/dns'
import { configFromText, connect, createLogger, systemClock } from '@seamark/kube'
import { createProviderTypes, DnsConfig, openDnsService, runDnslb } from '@seamark/operator'
import { startWorker } from '@seamark/operator/testing'
import { threadCpuMs } from '../thread-cpu.ts'

const [, , kubeconfig = '', dataDir = '', worker = '', countText = '0'] = process.argv
const count = Number(countText)
const IDLE_MS = 1_000
const FIELD_MANAGER = 'seamark-dnslb'
const startCpuMs = threadCpuMs()
const decided = new Set<string>()
let writes = 0

const log = createLogger({ level: 'error' })
const target = connect(configFromText(readFileSync(kubeconfig, 'utf8')), {
  fieldManager: FIELD_MANAGER,
  observer: {
    request({ method, code }) {
      if (method === 'GET') return
      if (!code.startsWith('2')) process.stderr.write(`write answered ${code}\n`)
      writes++
    },
  },
})

function report(event: string): void {
  const line = {
    event,
    writes,
    // Since the process was started.
    wallSeconds: performance.now() / 1_000,
    // Of this thread, without the load of the modules; the prober has a thread of its own.
    cpuSeconds: (threadCpuMs() - startCpuMs) / 1_000,
  }
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

tracingChannel('seamark:kube:reconcile').subscribe({
  start: () => undefined,
  end: () => undefined,
  asyncStart: () => undefined,
  error: () => undefined,
  asyncEnd(message) {
    const { controller, key } = message as unknown as { controller: string; key: string }
    if (controller !== 'balance' || decided.size >= count) return
    decided.add(key)
    if (decided.size === count) report('decided')
  },
})

const stop = new AbortController()
process.on('SIGTERM', () => stop.abort())
const config = DnsConfig.parse({ listen: ['127.0.0.1:0'], zones: ['bench.test'], dataDir, rateLimit: 1_000_000 })
const dns = await openDnsService({ config, env: {}, isLeading: () => true, log, clock: systemClock })
if (!(await dns.lead(stop.signal))) throw new Error('the zone cannot be created')
let lastWrites = -1
setInterval(() => {
  if (writes === lastWrites) report('idle')
  lastWrites = writes
}, IDLE_MS).unref()
await runDnslb(
  {
    target,
    controllers: { endpoint: false, dns: true },
    identity: 'bench',
    defaults: { ttlSeconds: 30, onAllUnhealthy: 'ServeLast' },
    providers: { isDynamic: false, staticTypes: [] },
    types: createProviderTypes(),
    env: {},
    extraProviders: [dns.provider],
    hasLeases: false,
    isOnce: false,
    isDryRun: false,
    guard: { allowLoopback: true },
    resolver: serverText(dns.addresses[0] ?? { address: '127.0.0.1', port: 0 }),
    fieldManager: FIELD_MANAGER,
    log,
    clock: systemClock,
    healthTimeoutMs: 120_000,
    startThread: (settings, events) => startWorker(settings, events, pathToFileURL(worker)),
  },
  stop.signal,
)
report('stopped')
await target.close()
await dns.close()
