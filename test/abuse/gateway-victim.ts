/**
 * A gateway as it is shipped, in a process with limited memory, on an API server in another process, and a victim that is asked
 * throughout: how long each of its requests took, and which failed.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { Agent as TlsAgent, request as tlsRequest } from 'node:https'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { writeKubeconfig } from '@seamark/apiserver'
import { isThorough } from '@seamark/kit'
import { customResource } from '@seamark/kit/custom-resource'
import { Lag } from '@seamark/kit/lag'
import { startShippedApiServer } from '@seamark/kit/shipped-apiserver'
import { type Client, configFromText, connect, CustomResourceDefinition, Namespace } from '@seamark/kube'
import { HTTPProxy } from '@seamark/kube/contour'
import { playgroundCrds } from '@seamark/operator'
import { startLimited } from './limited-process.ts'

const HEAP_MIB = 512
/** Of the process with everything that is no heap, in MiB. */
const MEMORY_MIB = 512
/** Between two requests of the victim. */
const PAUSE_MS = 10
/** Requests of the victim without an attack, before and in the same process. */
const QUIET_REQUESTS = isThorough ? 300 : 60
/** What an attack may add to the longest time without one, besides what the machine adds to each wait of the test. */
const ADDED_MS = 250
const TIMEOUT_MS = 60_000

interface Ask {
  readonly host: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Over TLS. */
  readonly tls?: { readonly ca: string; readonly cert?: string; readonly key?: string }
  /** Of the connection, where it is another name than the host; over TLS, on a connection of its own. */
  readonly serverName?: string
  /** On an HTTP/2 connection of its own, over TLS. */
  readonly isHttp2?: boolean
}

interface Watched {
  readonly requests: number
  /** Milliseconds. */
  readonly p99: number
  readonly max: number
  readonly failures: readonly string[]
}

export interface AttackedGateway {
  readonly client: Client
  readonly ports: { readonly http: number; readonly https: number }
  /** The status of the answer; 0 if the connection was closed without one. */
  status(ask: Ask): Promise<number>
  metrics(): Promise<string>
  /** Asks the victim without an attack, and while `attack` runs; fails when the attack can be told by its requests. */
  attack(title: string, victim: Ask, attack: () => Promise<void>): Promise<void>
  statusOf(key: string): Promise<HTTPProxy['status']>
  isRunning(): boolean
  peakMib(): Promise<number | undefined>
  stop(): Promise<void>
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}

async function http2Status(port: number, { host, path = '/', tls, serverName = host }: Ask): Promise<number> {
  const session = connectHttp2(`https://127.0.0.1:${port}`, { ...tls, servername: serverName })
  try {
    return await new Promise((resolve) => {
      session.on('error', () => resolve(0))
      const stream = session.request({ ':authority': host, ':path': path })
      stream.on('response', ({ ':status': code }) => resolve(code ?? 0))
      stream.on('error', () => resolve(0)).resume()
      stream.on('close', () => resolve(0))
    })
  } finally {
    session.destroy()
  }
}

/** Not among the kinds that the playground serves. */
function gatewayClassCrd() {
  const names = { group: 'gateway.networking.k8s.io', plural: 'gatewayclasses', singular: 'gatewayclass' }
  const schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  const { metadata, spec, ...types } = customResource({ ...names, kind: 'GatewayClass' }, schema)
  const annotations = { 'api-approved.kubernetes.io': 'unapproved, for tests' }
  return { ...types, metadata: { ...metadata, annotations }, spec: { ...spec, scope: 'Cluster' as const } }
}

/** `seamark gateway`, or `seamark run` with a configuration. */
export async function startAttackedGateway(config?: string): Promise<AttackedGateway> {
  const server = await startShippedApiServer()
  const text = writeKubeconfig({ server: server.url, caPem: server.ca, token: server.token })
  const folder = await mkdtemp(join(tmpdir(), 'seamark-abuse-gateway-'))
  const [kubeconfig, settings] = [join(folder, 'kubeconfig'), join(folder, 'seamark.yaml')]
  await writeFile(kubeconfig, text, { mode: 0o600 })
  await writeFile(settings, config ?? '')
  const cluster = connect(configFromText(text), { fieldManager: 'test' })
  for (const definition of [...playgroundCrds(), gatewayClassCrd()])
    await cluster.client.create(CustomResourceDefinition, definition as CustomResourceDefinition)
  for (const name of ['victim', 'tenant', 'seamark']) await cluster.client.create(Namespace, { metadata: { name } })
  const metrics = `127.0.0.1:${await freePort()}`
  const common = ['--kubeconfig', kubeconfig, '-n', 'seamark']
  const listen = ['--http-listen', '127.0.0.1:0', '--https-listen', '127.0.0.1:0', '--metrics', metrics]
  const args = config === undefined ? ['gateway', ...common, ...listen] : ['run', ...common, '--config', settings]
  const program = startLimited('bin/seamark', args, HEAP_MIB)
  const [, http = '', https = ''] = await program.line(/^(?:ready|gateway) \S*:(\d+) \S*:(\d+)$/)
  const agents: { destroy(): void }[] = []
  const plain = new Agent({ keepAlive: true })
  agents.push(plain)
  const secure = new Map<string, TlsAgent>()

  const status = async (ask: Ask): Promise<number> =>
    new Promise((resolve) => {
      const { host, path = '/', headers, tls, serverName = host } = ask
      if (ask.isHttp2 === true) return resolve(http2Status(Number(https), ask))
      const options = { host: '127.0.0.1', path, headers: { ...headers, host }, timeout: TIMEOUT_MS }
      let call
      if (tls === undefined) call = request({ ...options, port: Number(http), agent: plain })
      else {
        const id = JSON.stringify([host, serverName, tls])
        const agent = secure.get(id) ?? new TlsAgent({ keepAlive: true })
        secure.set(id, agent)
        call = tlsRequest({ ...options, ...tls, port: Number(https), servername: serverName, agent })
      }
      call.on('response', (response) => {
        response.resume().on('error', () => resolve(0))
        response.on('end', () => resolve(response.statusCode ?? 0))
      })
      call.on('timeout', () => call.destroy())
      call.on('error', () => resolve(0))
      call.end()
    })

  const watch = async (ask: Ask, isOver: (requests: number) => boolean): Promise<Watched> => {
    const times: number[] = []
    const failures: string[] = []
    while (!isOver(times.length)) {
      const begun = performance.now()
      const answer = await status(ask)
      times.push(performance.now() - begun)
      if (answer !== 200) failures.push(`request ${times.length}: ${answer}`)
      await setTimeout(PAUSE_MS)
    }
    const sorted = times.toSorted((a, b) => a - b)
    const p99 = sorted[Math.floor(sorted.length * 0.99)] ?? 0
    return { requests: times.length, p99, max: sorted.at(-1) ?? 0, failures }
  }

  return {
    client: cluster.client,
    ports: { http: Number(http), https: Number(https) },
    status,
    metrics: async () => (await fetch(`http://${metrics}/metrics`)).text(),
    async attack(title, victim, attack) {
      const until = performance.now() + TIMEOUT_MS
      while ((await status(victim)) !== 200) {
        if (performance.now() > until) throw new Error('the victim is not served')
        await setTimeout(PAUSE_MS)
      }
      const quiet = await watch(victim, (requests) => requests >= QUIET_REQUESTS)
      using lag = new Lag()
      const state = { isDone: false }
      const attacking = attack().finally(() => (state.isDone = true))
      // Reported below, after the victim was watched.
      attacking.catch(() => undefined)
      const attacked = await watch(victim, (requests) => state.isDone && requests >= QUIET_REQUESTS)
      await attacking
      const show = ({ requests, p99, max }: Watched) =>
        `p99 ${p99.toFixed(1)} ms, longest ${max.toFixed(1)} ms of ${requests}`
      process.stdout.write(
        `${title}: without ${show(quiet)}; with ${show(attacked)}; lag of the test ${lag.maxMs.toFixed(1)} ms\n`,
      )
      const failures = [...quiet.failures, ...attacked.failures]
      if (failures.length > 0) throw new Error(`requests of the victim failed: ${failures.slice(0, 10).join(', ')}`)
      if (attacked.max > quiet.max + ADDED_MS + lag.maxMs)
        throw new Error(
          `a request of the victim waited ${attacked.max.toFixed(0)} ms, without the attack ${quiet.max.toFixed(0)} ms`,
        )
      const peak = (await program.peakMib()) ?? 0
      process.stdout.write(`peak of the process ${peak.toFixed(0)} MiB\n`)
      if (peak > MEMORY_MIB) throw new Error(`the process took ${peak.toFixed(0)} MiB`)
    },
    statusOf: async (key) => (await cluster.client.get(HTTPProxy, key)).status,
    isRunning: () => program.isRunning(),
    peakMib: async () => program.peakMib(),
    async stop() {
      for (const agent of [...agents, ...secure.values()]) agent.destroy()
      await program.stop()
      await cluster.close()
      await server.stop('SIGKILL')
      await rm(folder, { recursive: true })
    },
  }
}
