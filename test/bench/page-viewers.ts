/**
 * What viewers of the page cost the manager: the CPU of `seamark run` with 10 000 hosts and 20 changes a second, with 50 readers of
 * the stream and without, in turn in one process. The API server and the readers are in this process.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { get, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { configFromText, connect, CustomResourceDefinition, Namespace } from '@seamark/kube'
import { CONFIG_API_VERSION, DNSEndpoint, playgroundCrds } from '@seamark/operator'
import { startEmbeddedServer } from '../integration/apiserver/embedded-server.ts'
import type { Figure } from './figure.ts'

const HOSTS = 10_000
const VIEWERS = 50
const CHANGES_PER_SECOND = 20
const WARM_UP_MS = 8_000
const PHASE_MS = 10_000
/** Phases of each sort: noise of the machine falls on both. */
const ROUNDS = 2
/** Of Linux: clock ticks of /proc. */
const TICKS_PER_SECOND = 100

const pause = async (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

const endpoint = (index: number, version: number) => ({
  metadata: { namespace: 'default', name: `host-${index}` },
  spec: {
    endpoints: [
      {
        dnsName: `host-${index}.bench.test`,
        recordType: 'A' as const,
        targets: [`10.${version % 250}.${index >> 8}.${index & 255}`],
        recordTTL: 60,
      },
    ],
  },
})

/** Of a process, all threads: seconds in user and system mode. */
function cpuSecondsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

async function openViewer(url: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    get(`${url}api/v1/stream`, { agent: false }, (response) => {
      response.resume()
      response.on('error', () => undefined)
      resolve(response)
    }).on('error', reject)
  })
}

async function measure(): Promise<number> {
  const server = await startEmbeddedServer()
  const folder = await mkdtemp(join(tmpdir(), 'seamark-bench-page-'))
  const cluster = connect(configFromText(server.kubeconfig), { name: 'bench', fieldManager: 'bench' })
  const { client } = cluster
  let child: ReturnType<typeof spawn> | undefined
  try {
    for (const definition of playgroundCrds()) await client.create(CustomResourceDefinition, definition)
    await client.create(Namespace, { metadata: { name: 'seamark' } })
    let next = 0
    const create = async (): Promise<void> => {
      while (next < HOSTS) await client.create(DNSEndpoint, endpoint(next++, 0))
    }
    await Promise.all(Array.from({ length: 32 }, create))
    const config = join(folder, 'seamark.yaml')
    const kubeconfig = join(folder, 'kubeconfig')
    await writeFile(kubeconfig, server.kubeconfig, { mode: 0o600 })
    await writeFile(
      config,
      JSON.stringify({
        apiVersion: CONFIG_API_VERSION,
        kind: 'ManagerConfiguration',
        namespace: 'seamark',
        mode: 'enforce',
        logLevel: 'error',
        leaderElection: { enabled: false },
        metrics: { address: '0' },
        probes: { address: '0' },
        dashboard: { address: '127.0.0.1:0' },
        dns: { listen: ['127.0.0.1:0'], zones: ['bench.test'], dataDir: join(folder, 'zones') },
      }),
    )
    // It replaces itself by Node: the same pid.
    const program = join(import.meta.dirname, '../../bin/seamark')
    child = spawn(program, ['run', '--config', config, '--kubeconfig', kubeconfig], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    if (child.stdout === null || child.pid === undefined) throw new Error('the manager was not started')
    const url = await new Promise<string>((resolve, reject) => {
      createInterface({ input: child!.stdout! }).on(
        'line',
        (line) => line.startsWith('page ') && resolve(line.slice(5)),
      )
      child!.once('exit', () => reject(new Error('the manager ended')))
    })
    await untilAnswered(url)

    let changes = 0
    const change = async (): Promise<void> => {
      const index = changes++ % HOSTS
      await client.apply(DNSEndpoint, endpoint(index, 1 + Math.floor(changes / HOSTS)))
    }
    const timer = setInterval(() => void change().catch(() => undefined), 1_000 / CHANGES_PER_SECOND)
    try {
      await pause(WARM_UP_MS)
      const used = { without: 0, with: 0 }
      for (let round = 0; round < ROUNDS; round++) {
        used.without += await cpuDuring(child.pid)
        const viewers = await Promise.all(Array.from({ length: VIEWERS }, async () => openViewer(url)))
        // The snapshots are not changes.
        await pause(WARM_UP_MS / 2)
        used.with += await cpuDuring(child.pid)
        for (const viewer of viewers) viewer.destroy()
        await pause(500)
      }
      return used.with / used.without
    } finally {
      clearInterval(timer)
    }
  } finally {
    if (child !== undefined && child.exitCode === null) {
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
    }
    await cluster.close()
    await server.stop()
    await rm(folder, { recursive: true })
  }
}

async function cpuDuring(pid: number): Promise<number> {
  const before = cpuSecondsOf(pid)
  await pause(PHASE_MS)
  return cpuSecondsOf(pid) - before
}

/** Every host is in the state, and is answered. */
async function untilAnswered(url: string): Promise<void> {
  for (;;) {
    const response = await fetch(`${url}api/v1/state`)
    const text = await response.text()
    if (response.ok) {
      const { hosts } = JSON.parse(text) as { hosts: { answers: { share: number }[] }[] }
      if (hosts.filter(({ answers }) => answers.some(({ share }) => share > 0)).length === HOSTS) return
    }
    await pause(500)
  }
}

export const figures: Figure[] = [
  {
    name: 'page.cpu',
    what: `CPU of the manager with ${VIEWERS} viewers, ${HOSTS} hosts and ${CHANGES_PER_SECOND} changes a second ÷ without viewers`,
    unit: 'ratio',
    bound: { max: 1.25 },
    against: 'the same manager without viewers',
    runs: 3,
    unavailable: () => (process.platform === 'linux' ? undefined : '/proc is read'),
    measure: async () => measure(),
  },
]
