/**
 * The wire side of packages/kube against @kubernetes/client-node 1.4 (and a bare node:http2 loop on a real server).
 * Every measurement is a fresh process; baseline and subject take turns within one run.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { needs } from '@seamark/kit'
import { createAuthority } from '@seamark/kube/certificates'
import { shared, type Figure } from './figure.ts'
import { measureRealWrites } from './kube/real-writes.ts'

/** What bin/seamark gives to Node; both sides run with it. */
const SHIPPED_FLAGS = /^exec node (.*) "\$bundle"/m
  .exec(readFileSync(join(import.meta.dirname, '../../bin/seamark'), 'utf8'))![1]!
  .split(' ')
const NODE_FLAGS = [...SHIPPED_FLAGS, '--conditions=source', '--import', 'tsx', '--expose-gc']
const CLIENT_NODE = '@kubernetes/client-node 1.4, same run'

function start(file: string, ...args: string[]): ChildProcess {
  const path = join(import.meta.dirname, 'kube', file)
  return spawn(process.execPath, [...NODE_FLAGS, path, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
}

/** The first line that a child prints. */
async function firstLine(child: ChildProcess): Promise<string> {
  let text = ''
  for await (const chunk of child.stdout ?? []) {
    text += String(chunk)
    if (text.includes('\n')) break
  }
  if (!text.includes('\n')) throw new Error('the bench process ended without a result')
  return text.slice(0, text.indexOf('\n'))
}

async function subject<T>(task: string, folder = '', port = ''): Promise<T> {
  const child = start('subject.ts', task, folder, port)
  try {
    return JSON.parse(await firstLine(child)) as T
  } finally {
    child.kill()
  }
}

async function withServer<T>(run: (folder: string, port: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'seamark-bench-'))
  try {
    const authority = await createAuthority({ commonName: 'bench' })
    const server = await authority.issue({ commonName: 'server', ipAddresses: ['127.0.0.1'], usages: 'server' })
    const client = await authority.issue({ commonName: 'client', usages: 'client' })
    const files = {
      'ca.crt': authority.certPem,
      'server.crt': server.certPem,
      'server.key': server.keyPem,
      'client.crt': client.certPem,
      'client.key': client.keyPem,
    }
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
    const child = start('server.ts', folder)
    try {
      const [, port = ''] = (await firstLine(child)).split(' ')
      return await run(folder, port)
    } finally {
      child.kill()
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

interface Measured {
  seconds: number
  cpuSeconds: number
  blockMs: number
  peakBytes: number
}

const pair = (task: string) =>
  shared(async () => {
    return withServer(async (folder, port) => ({
      theirs: await subject<Measured>(`${task}-theirs`, folder, port),
      ours: await subject<Measured & { sliceMs: number }>(task, folder, port),
    }))
  })

const writes = pair('writes')
const watch = pair('watch')
const sync = pair('sync')

export const figures: Figure[] = [
  {
    name: 'kube.writes',
    what: '5 000 small writes, 64 in flight, TLS: requests/s',
    unit: 'ratio',
    bound: { min: 12 },
    against: CLIENT_NODE,
    async measure(run) {
      const { ours, theirs } = await writes(run)
      return theirs.seconds / ours.seconds
    },
  },
  {
    name: 'kube.writes.cpu',
    what: 'CPU per request of those writes',
    unit: 'ratio',
    bound: { max: 0.085 },
    against: CLIENT_NODE,
    async measure(run) {
      const { ours, theirs } = await writes(run)
      return ours.cpuSeconds / theirs.cpuSeconds
    },
  },
  {
    name: 'kube.watch.cpu',
    what: '50 000 watch events of 2.4 KB into our cache: CPU per event',
    unit: 'ratio',
    bound: { max: 0.95 },
    against: `${CLIENT_NODE}, Watch into a Map`,
    async measure(run) {
      const { ours, theirs } = await watch(run)
      return ours.cpuSeconds / theirs.cpuSeconds
    },
  },
  {
    name: 'kube.watch.block',
    what: 'longest event-loop block while they arrive',
    unit: 'ms',
    bound: { max: 30 },
    against: '-',
    measure: async (run) => (await watch(run)).ours.blockMs,
  },
  {
    name: 'kube.watch.slice',
    what: 'longest decode slice while they arrive, CPU time of the thread',
    unit: 'ms',
    bound: { max: 2 },
    against: '-',
    measure: async (run) => (await watch(run)).ours.sliceMs,
  },
  {
    name: 'kube.sync.block',
    what: 'initial sync of 10 000 objects: longest event-loop block',
    unit: 'ms',
    bound: { max: 40 },
    against: '-',
    measure: async (run) => (await sync(run)).ours.blockMs,
  },
  {
    name: 'kube.sync.rss',
    what: 'peak RSS above the start, of that sync',
    unit: 'ratio',
    bound: { max: 0.6 },
    against: `${CLIENT_NODE}, unpaged CustomObjects list`,
    async measure(run) {
      const { ours, theirs } = await sync(run)
      return ours.peakBytes / theirs.peakBytes
    },
  },
  {
    name: 'kube.heap.full',
    what: 'heap per cached 2.4 KB HTTPProxy with its key and one index',
    unit: 'bytes',
    bound: { max: 2600 },
    against: '-',
    runs: 3,
    measure: async () => (await subject<{ bytes: number }>('heap-full')).bytes,
  },
  {
    name: 'kube.heap.metadata',
    what: 'the same, metadata only',
    unit: 'bytes',
    bound: { max: 950 },
    against: '-',
    runs: 3,
    measure: async () => (await subject<{ bytes: number }>('heap-metadata')).bytes,
  },
  {
    name: 'kube.real.writes',
    what: 'server-side applies through our client on a real kube-apiserver, 32 in flight',
    unit: 'ratio',
    bound: { min: 0.9 },
    against: 'a bare node:http2 loop, same run',
    runs: 3,
    unavailable: () => (needs('kube-apiserver', 'etcd') ? undefined : 'kube-apiserver and etcd are not installed'),
    measure: async () => measureRealWrites(),
  },
]
