/** Gateway: the build of a large cluster, its memory, changes until Envoy has them, and the built-in proxy beside a bare forwarder. */
import { type ChildProcess, fork, spawnSync } from 'node:child_process'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { build, BUILD_DEFAULTS } from '@seamark/gateway'
import { type Figure, shared } from './figure.ts'
import { environmentOf } from './gateway/objects.ts'
import { measureXds, usesEnvoy } from './gateway/xds.ts'

const FLAGS = ['--conditions=source', '--import', 'tsx']
const folder = join(import.meta.dirname, 'gateway')
const LOAD_MS = 4_000
const CONNECTIONS = 32

async function startProgram(...args: string[]): Promise<{ port: number; child: ChildProcess; stop: () => void }> {
  const child = fork(join(folder, 'forwarder.ts'), args, { execArgv: FLAGS, stdio: ['pipe', 'pipe', 'inherit', 'ipc'] })
  const port = await new Promise<number>((resolve, reject) => {
    child.stdout?.once('data', (chunk: Buffer) => resolve(Number(chunk.toString())))
    child.once('exit', (code) => reject(new Error(`${args[0]} ended with ${code}`)))
  })
  return { port, child, stop: () => void child.kill() }
}

/** Keep-alive GETs for a while; requests per second, and how many did not answer 200. */
async function load(port: number): Promise<{ rate: number; failed: number }> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  const until = performance.now() + LOAD_MS
  let [done, failed] = [0, 0]
  const one = async () =>
    new Promise<void>((resolve) => {
      const fail = () => {
        failed++
        resolve()
      }
      const call = request({ host: '127.0.0.1', port, agent, headers: { host: 'host-0.example.test' } }, (response) => {
        if (response.statusCode !== 200) failed++
        response.on('error', fail)
        response.resume().on('end', resolve)
      })
      call.on('error', fail)
      call.end()
    })
  const started = performance.now()
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      while (performance.now() < until) {
        await one()
        done++
      }
    }),
  )
  agent.destroy()
  return { rate: (done / (performance.now() - started)) * 1_000, failed }
}

async function withPrograms<T>(role: string, measure: (port: number, child: ChildProcess) => Promise<T>): Promise<T> {
  const backend = await startProgram('backend')
  try {
    const subject = await startProgram(role, String(backend.port))
    try {
      return await measure(subject.port, subject.child)
    } finally {
      subject.stop()
    }
  } finally {
    backend.stop()
  }
}

/** Two configurations a second, 120 a minute, while the load runs. */
const underChange = shared(async () =>
  withPrograms('proxy', async (port, child) => {
    const timer = setInterval(() => child.stdin?.write('change\n'), 500)
    try {
      return await load(port)
    } finally {
      clearInterval(timer)
    }
  }),
)

const xds = shared(measureXds)

export const figures: readonly Figure[] = [
  {
    name: 'gateway.build',
    what: '5 000 HTTPProxies, 2 000 Ingresses and 5 000 Services: one full build',
    unit: 'ms',
    bound: { max: 400 },
    against: '-',
    measure: async (run) => {
      const environment = environmentOf(run)
      // Objects of a cache are old: their own garbage collection is not part of a build.
      globalThis.gc?.()
      const started = performance.now()
      build(environment, BUILD_DEFAULTS)
      return performance.now() - started
    },
  },
  {
    name: 'gateway.memory',
    what: 'resident with those objects, five builds and a proxy',
    unit: 'MB',
    bound: { max: 300 },
    against: '-',
    runs: 3,
    measure: async () => {
      const result = spawnSync(process.execPath, [...FLAGS, join(folder, 'resident.ts')], { encoding: 'utf8' })
      if (result.status !== 0) throw new Error(result.stderr)
      return Number(result.stdout) / 2 ** 20
    },
  },
  {
    name: 'gateway.proxy',
    what: 'requests a second of the built-in proxy, keep-alive, 1 kB',
    unit: 'ratio',
    bound: { min: 0.6 },
    against: 'a bare node:http forwarder',
    measure: async () => {
      const bare = await withPrograms('bare', load)
      const ours = await withPrograms('proxy', load)
      return ours.rate / bare.rate
    },
  },
  {
    name: 'gateway.proxy.failed',
    what: 'failed requests while 120 configurations a minute arrive under load',
    unit: 'count',
    bound: { max: 0 },
    against: '-',
    runs: 3,
    measure: async (run) => (await underChange(run)).failed,
  },
  {
    name: 'gateway.change',
    what: `one of those HTTPProxies changed → ${usesEnvoy() ? 'answered by Envoy' : 'acknowledged by a bare ADS client'}, p99 of 100`,
    unit: 'ms',
    bound: { max: 700 },
    against: '-',
    runs: 1,
    measure: async (run) => (await xds(run)).changeMs,
  },
  {
    name: 'gateway.endpoint',
    what: 'an EndpointSlice changed → EDS acknowledged by a bare ADS client, p99 of 200',
    unit: 'ms',
    bound: { max: 100 },
    against: '-',
    runs: 1,
    measure: async (run) => (await xds(run)).endpointMs,
  },
  {
    name: 'gateway.restart.pushes',
    what: 'responses to a client with the configuration when the control plane restarts on the same objects',
    unit: 'count',
    bound: { max: 0 },
    against: '-',
    runs: 1,
    measure: async (run) => (await xds(run)).pushes,
  },
]
