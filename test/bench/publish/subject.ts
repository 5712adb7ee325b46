/**
 * The subject: our manager with contour-plus' options, as a child process with `KUBECONFIG COUNT STEP`. Prints a line of JSON for
 * each `STEP` writes it made (`written`), and when it has nothing to do (`idle`). With a COUNT it also follows every reconcile
 * and prints one when that many sources were decided once (`decided`).
 */
import { tracingChannel } from 'node:diagnostics_channel'
import { readFileSync } from 'node:fs'
import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import { configFromText, connect } from '@seamark/kube'
import { dropIn, runApp } from '@seamark/operator'
import { residentBytes } from '../resident.ts'
import { SERVICE } from './objects.ts'

const [, , kubeconfigPath = '', countText = '0', step = '0'] = process.argv
const count = Number(countText)
let writes = 0
const delay = monitorEventLoopDelay({ resolution: 5 })
const decided = new Set<string>()
let reconciles = 0
let isIdle = false

const cluster = connect(configFromText(readFileSync(kubeconfigPath, 'utf8')), {
  fieldManager: 'contour-plus',
  observer: {
    request({ method, code }) {
      if (method === 'GET') return
      if (!code.startsWith('2')) process.stderr.write(`write answered ${code}\n`)
      writes++
      if (writes % Number(step) === 0) report('written')
    },
  },
})

const started = performance.now()
const before = process.cpuUsage()
delay.enable()

function report(event: string): void {
  const cpu = process.cpuUsage(before)
  const line = {
    event,
    writes,
    reconciles,
    wallSeconds: (performance.now() - started) / 1_000,
    cpuSeconds: (cpu.user + cpu.system) / 1e6,
    peakMb: residentBytes('VmHWM') / 2 ** 20,
    // What the timer itself adds is not a stall.
    stallMs: Math.max(0, delay.percentile(99.9) / 1e6 - 5),
  }
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

if (count > 0)
  tracingChannel('seamark:kube:reconcile').subscribe({
    start: () => undefined,
    end: () => undefined,
    asyncStart: () => undefined,
    error: () => undefined,
    asyncEnd(message) {
      reconciles++
      if (decided.size >= count) return
      decided.add((message as unknown as { key: string }).key)
      if (decided.size === count) report('decided')
    },
  })

/** ms without a write or a reconcile after which the manager has nothing to do. */
const IDLE_MS = 500
let lastSum = -1
setInterval(() => {
  const now = writes + reconciles
  if (now === lastSum && now > 0 && !isIdle) report('idle')
  isIdle = now === lastSum
  lastSum = now
}, IDLE_MS).unref()

const controller = new AbortController()
process.on('SIGTERM', () => controller.abort())
await runApp(
  {
    cluster,
    mode: 'enforce',
    namespace: 'bench',
    reportsInitialFindings: false,
    publish: { ...dropIn, services: [{ service: SERVICE }], defaultIssuerName: 'issuer' },
  },
  controller.signal,
)
report('stopped')
await cluster.close()
