/**
 * Figures of publish: 10 000 HTTPProxies on a real kube-apiserver where one is found, on the embedded server otherwise, beside
 * a bare `node:http2` loop that makes the same writes. Everything measured is a process of its own, bundled as it is shipped.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { configFromText, connect, CustomResourceDefinition, Namespace, Service } from '@seamark/kube'
import { ControlPlane } from '@seamark/kube/testing'
import { DNSEndpoint, HTTPProxy } from '@seamark/operator'
import { build } from 'esbuild'
import { crds } from '../integration/publish-world.ts'
import { type Figure, median, shared } from './figure.ts'
import { ADDRESS, MOVED_ADDRESS, NAMESPACE, proxyBody, SERVICE } from './publish/objects.ts'

const SOURCES = 10_000
const LATENCY_SAMPLES = 250
const LATENCY_PERIOD_MS = 20

interface Server {
  readonly kubeconfig: string
  readonly path: string
  stop(): Promise<void>
}

interface Usage {
  readonly wallSeconds: number
  readonly cpuSeconds: number
}

interface Report extends Usage {
  readonly event: string
  readonly writes: number
  readonly peakMb: number
  readonly stallMs: number
}

let bundles: Promise<string> | undefined

/** The child programs, bundled once; `tsx` would count its own memory and start into every figure. */
async function bundle(): Promise<string> {
  bundles ??= (async () => {
    const outdir = await mkdtemp(join(tmpdir(), 'publish-bench-'))
    process.on('exit', () => void rm(outdir, { recursive: true, force: true }))
    await build({
      entryPoints: ['raw', 'subject', 'server'].map((name) => join(import.meta.dirname, 'publish', `${name}.ts`)),
      outdir,
      outExtension: { '.js': '.mjs' },
      bundle: true,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      conditions: ['source', 'node'],
      banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
      logLevel: 'error',
    })
    return outdir
  })()
  return bundles
}

async function run(program: string, ...args: string[]): Promise<Usage> {
  const child = spawn(process.execPath, [join(await bundle(), `${program}.mjs`), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()))
  const [code] = (await once(child, 'exit')) as [number]
  if (code !== 0) throw new Error(`${program} ${args.at(-1)} exited with ${code}`)
  return JSON.parse(text) as Usage
}

class Subject {
  readonly #child: ChildProcess
  readonly reports: Report[] = []
  #wake: () => void = () => undefined

  private constructor(child: ChildProcess) {
    this.#child = child
    if (child.stdout === null) throw new Error('the subject has no output')
    createInterface({ input: child.stdout }).on('line', (line) => {
      this.reports.push(JSON.parse(line) as Report)
      this.#wake()
    })
  }

  static async start(server: Server, sources: number, step: number): Promise<Subject> {
    const args = [join(await bundle(), 'subject.mjs'), server.path, String(sources), String(step)]
    return new Subject(spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] }))
  }

  async until(isRight: (report: Report) => boolean): Promise<Report> {
    for (;;) {
      const found = this.reports.find(isRight)
      if (found !== undefined) return found
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  async stop(): Promise<Report> {
    const exited = once(this.#child, 'exit')
    this.#child.kill('SIGTERM')
    await exited
    const last = this.reports.at(-1)
    if (last === undefined) throw new Error('the subject reported nothing')
    return last
  }
}

const isReal = ControlPlane.missing() === undefined

async function startServer(kind: 'real' | 'embedded'): Promise<Server> {
  const folder = await mkdtemp(join(tmpdir(), 'publish-server-'))
  const path = join(folder, 'kubeconfig')
  const clean = async (): Promise<void> => rm(folder, { recursive: true, force: true })
  if (kind === 'real') {
    const plane = await ControlPlane.start({ crds: crds() })
    await writeFile(path, plane.kubeconfig(), { mode: 0o600 })
    const stop = async (): Promise<void> => {
      await plane.stop()
      await clean()
    }
    return prepare({ kubeconfig: plane.kubeconfig(), path, stop }, [])
  }
  const child = spawn(process.execPath, ['--max-old-space-size=6144', join(await bundle(), 'server.mjs'), path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(child.stdout, 'data')
  const { readFile } = await import('node:fs/promises')
  const stop = async (): Promise<void> => {
    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    await exited
    await clean()
  }
  return prepare({ kubeconfig: await readFile(path, 'utf8'), path, stop }, crds())
}

async function prepare(server: Server, definitions: object[]): Promise<Server> {
  const cluster = connect(configFromText(server.kubeconfig))
  for (const definition of definitions)
    await cluster.client.create(CustomResourceDefinition, definition as CustomResourceDefinition)
  await cluster.client.create(Namespace, { metadata: { name: NAMESPACE } })
  const [namespace = '', name = ''] = SERVICE.split('/')
  await cluster.client.create(Service, {
    metadata: { namespace, name },
    spec: { type: 'LoadBalancer', ports: [{ port: 443 }] },
  })
  await cluster.close()
  await moveTo(server, ADDRESS)
  return server
}

async function moveTo(server: Server, ip: string): Promise<void> {
  const cluster = connect(configFromText(server.kubeconfig))
  await cluster.client.patch(
    Service,
    SERVICE,
    'merge',
    { status: { loadBalancer: { ingress: [{ ip }] } } },
    { subresource: 'status' },
  )
  await cluster.close()
}

interface Measurement {
  readonly converge: number
  readonly cpu: number
  readonly rss: number
  readonly stall: number
  readonly restart: number
  readonly restartWrites: number
  readonly move: number
  readonly latency: number
}

const measure = shared(async (): Promise<Measurement> => {
  const kind = isReal ? 'real' : 'embedded'
  const count = String(SOURCES)
  const baseline = await startServer(kind)
  const raw = await run('raw', baseline.path, count, 'children')
  const rawMove = await run('raw', baseline.path, count, 'move')
  await baseline.stop()

  const server = await startServer(kind)
  try {
    await run('raw', server.path, count, 'proxies')
    const first = await Subject.start(server, SOURCES, SOURCES)
    const converged = await first.until(({ writes }) => writes === 2 * SOURCES)
    const { peakMb, stallMs } = await first.stop()

    const list = await run('raw', server.path, count, 'list')
    const second = await Subject.start(server, SOURCES, SOURCES)
    const decided = await second.until(({ event }) => event === 'decided')
    const before = Date.now()
    await moveTo(server, MOVED_ADDRESS)
    await second.until(({ writes }) => writes === SOURCES)
    const moveSeconds = (Date.now() - before) / 1_000
    const latency = await measureLatency(server)
    await second.stop()
    return {
      converge: converged.wallSeconds / raw.wallSeconds,
      cpu: converged.cpuSeconds / raw.cpuSeconds,
      rss: peakMb,
      stall: stallMs,
      restart: decided.wallSeconds / list.wallSeconds,
      restartWrites: decided.writes,
      move: moveSeconds / rawMove.wallSeconds,
      latency,
    }
  } finally {
    await server.stop()
  }
})

/** On top of everything that is there: a proxy every 20 ms, until its DNSEndpoint is seen, less the create itself; ms. */
async function measureLatency(server: Server): Promise<number> {
  const cluster = connect(configFromText(server.kubeconfig))
  const stop = new AbortController()
  const seenAt = new Map<string, number>()
  const informer = cluster.informers.informer(DNSEndpoint)
  informer.subscribe((change) => {
    if (change.type === 'added' && !change.initial) seenAt.set(change.object.metadata.name ?? '', performance.now())
  })
  const running = cluster.informers.start(stop.signal)
  await informer.synced(stop.signal)
  const creates: number[] = []
  const startedAt = new Map<string, number>()
  const pending: Promise<void>[] = []
  for (let index = 0; index < LATENCY_SAMPLES; index++) {
    const object = JSON.parse(proxyBody(SOURCES + index)) as HTTPProxy
    const started = performance.now()
    startedAt.set(object.metadata.name ?? '', started)
    pending.push(cluster.client.create(HTTPProxy, object).then(() => void creates.push(performance.now() - started)))
    await new Promise((resolve) => setTimeout(resolve, LATENCY_PERIOD_MS))
  }
  await Promise.all(pending)
  const deadline = Date.now() + 10_000
  while (seenAt.size < LATENCY_SAMPLES && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20))
  stop.abort()
  await running
  await cluster.close()
  const seen = [...startedAt].map(([name, started]) => (seenAt.get(name) ?? Number.POSITIVE_INFINITY) - started)
  return median(seen) - median(creates)
}

/** CPU-seconds of a convergence over this many sources on the embedded server. */
async function cpuFor(sources: number): Promise<number> {
  const server = await startServer('embedded')
  try {
    await run('raw', server.path, String(sources), 'proxies')
    const subject = await Subject.start(server, sources, sources)
    const { cpuSeconds } = await subject.until(({ writes }) => writes === 2 * sources)
    await subject.stop()
    return cpuSeconds
  } finally {
    await server.stop()
  }
}

const growth = shared(async () => {
  const small = await cpuFor(1_000)
  const large = await cpuFor(100_000)
  return Math.log(large / small) / Math.log(100)
})

const where = isReal ? 'kube-apiserver' : 'the embedded server'
const loop = `a bare node:http2 loop, 32 in flight, on ${where}`

export const figures: Figure[] = [
  {
    name: 'publish.converge',
    what: '10 000 HTTPProxies to 20 000 children: wall',
    unit: 'ratio',
    bound: { max: 1.25 },
    against: loop,
    runs: 3,
    measure: async (run) => (await measure(run)).converge,
  },
  {
    name: 'publish.cpu',
    what: 'our CPU-seconds for it',
    unit: 'ratio',
    bound: { max: 2.2 },
    against: loop,
    runs: 3,
    measure: async (run) => (await measure(run)).cpu,
  },
  {
    name: 'publish.rss',
    what: 'peak resident memory',
    unit: 'MB',
    bound: { max: 200 },
    against: '-',
    runs: 3,
    measure: async (run) => (await measure(run)).rss,
  },
  {
    name: 'publish.stall',
    what: 'event-loop delay p99.9',
    unit: 'ms',
    bound: { max: 50 },
    against: '-',
    runs: 3,
    measure: async (run) => (await measure(run)).stall,
  },
  {
    name: 'publish.restart',
    what: 'restart until every source was decided: wall',
    unit: 'ratio',
    bound: { max: 2 },
    against: `a bare client listing the three kinds on ${where}`,
    runs: 3,
    measure: async (run) => (await measure(run)).restart,
  },
  {
    name: 'publish.restart.writes',
    what: 'write requests of that restart',
    unit: 'count',
    bound: { max: 0 },
    against: '-',
    runs: 3,
    measure: async (run) => (await measure(run)).restartWrites,
  },
  {
    name: 'publish.move',
    what: 'load balancer address changes, 10 000 updates: wall',
    unit: 'ratio',
    bound: { max: 1.25 },
    against: loop,
    runs: 3,
    measure: async (run) => (await measure(run)).move,
  },
  {
    name: 'publish.latency',
    what: 'created to DNSEndpoint seen at 50/s, p50 less the create',
    unit: 'ms',
    bound: { max: 3.5 },
    against: `p50 of the create on ${where}`,
    runs: 3,
    measure: async (run) => (await measure(run)).latency,
  },
  {
    name: 'publish.growth',
    what: 'exponent of CPU from 1 000 to 100 000 sources',
    unit: 'exponent',
    bound: { max: 1.05 },
    against: 'the same with 1 000',
    runs: 1,
    measure: growth,
  },
]
