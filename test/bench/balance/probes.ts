/**
 * Probes COUNT endpoints every INTERVAL seconds over kept connections, as a process of its own, and prints probes and
 * CPU-seconds of the last ROUNDS intervals. `bare` is a loop of node:http with one kept connection for each endpoint; `ours`
 * is the prober. Arguments: `bare|ours PORT COUNT INTERVAL ROUNDS`.
 */
import { Agent, get } from 'node:http'
import type { LookupFunction } from 'node:net'
import { systemClock } from '@seamark/kube'
import { createProbeClient, createProber, PROFILES, probeTarget, systemConnect } from '@seamark/operator/testing'

const [, , mode = '', ...numbers] = process.argv
const [port = 0, count = 0, intervalSeconds = 0, rounds = 0] = numbers.map(Number)
const intervalMs = intervalSeconds * 1_000
const ADDRESS = '127.0.0.1'
/** The first rounds open the connections, and let the compiler work. */
const WARM_UP_ROUNDS = 2
let probes = 0
let failures = 0

function startBare(): void {
  const agent = new Agent({ keepAlive: true, maxFreeSockets: 1 })
  const lookup: LookupFunction = (_name, { all }, done) => {
    if (all === true) done(null, [{ address: ADDRESS, family: 4 }])
    else done(null, ADDRESS, 4)
  }
  let next = 0
  const startedMs = performance.now()
  setInterval(() => {
    const due = Math.floor(((performance.now() - startedMs) / intervalMs) * count)
    for (; next < due; next++) {
      const request = get({ host: `endpoint-${next % count}.test`, port, path: '/', agent, lookup }, (response) => {
        response.resume()
        if (response.statusCode === 200) probes++
        else failures++
      })
      request.on('error', () => failures++)
    }
  }, 10)
}

function startOurs(): void {
  const client = createProbeClient({
    clock: systemClock,
    resolve: async () => [ADDRESS],
    connect: systemConnect,
    guard: () => undefined,
  })
  const counting: typeof client = {
    ...client,
    async probe(request, timeoutMs) {
      const result = await client.probe(request, timeoutMs)
      if (result.code === 'Passed') probes++
      else failures++
      return result
    },
  }
  const prober = createProber({
    clock: systemClock,
    random: Math.random,
    client: counting,
    onReport: () => undefined,
  })
  const policy = { ...PROFILES.default, intervalMs, jitter: 0 }
  const targets = Array.from({ length: count }, (_, index) => {
    const host = `endpoint-${index}.test`
    return { key: host, target: probeTarget({ host, scheme: 'http', port }, policy, host), seed: 'healthy' as const }
  })
  prober.update(targets, [])
}

if (mode === 'bare') startBare()
else startOurs()
setTimeout(() => {
  const [probesBefore, cpuBefore] = [probes, process.cpuUsage()]
  setTimeout(() => {
    const { user, system } = process.cpuUsage(cpuBefore)
    const line = { probes: probes - probesBefore, failures, cpuSeconds: (user + system) / 1e6 }
    process.stdout.write(`${JSON.stringify(line)}\n`, () => process.exit(0))
  }, rounds * intervalMs)
}, WARM_UP_ROUNDS * intervalMs)
