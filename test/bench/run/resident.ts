/** Resident memory of the shipped `seamark run` of a checkout, with many objects that it serves. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { createApiServer, newToken, writeKubeconfig } from '@seamark/apiserver'
import { type Client, configFromText, connect, CustomResourceDefinition, Namespace, Service } from '@seamark/kube'
import { HTTPProxy } from '@seamark/kube/contour'
import { playgroundCrds } from '@seamark/operator'

const OBJECTS = 10_000
const IN_FLIGHT = 32
/** Between the last status and the reading: caches and queues are at rest. */
const REST_MS = 15_000
const TIMEOUT_MS = 300_000

async function each(count: number, run: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0
  await Promise.all(
    Array.from({ length: IN_FLIGHT }, async () => {
      while (next < count) await run(next++)
    }),
  )
}

async function addObjects(client: Client): Promise<void> {
  for (const definition of playgroundCrds()) await client.create(CustomResourceDefinition, definition)
  await client.create(Namespace, { metadata: { name: 'seamark' } })
  await each(200, async (index) => client.create(Namespace, { metadata: { name: `team-${index}` } }))
  await each(OBJECTS, async (index) => {
    const namespace = `team-${index % 200}`
    await client.create(Service, {
      metadata: { namespace, name: `svc-${index}` },
      spec: { ports: [{ name: 'http', port: 80, protocol: 'TCP' }] },
    })
    await client.create(HTTPProxy, {
      metadata: { namespace, name: `proxy-${index}` },
      spec: {
        virtualhost: { fqdn: `host-${index}.example.test` },
        routes: [
          { conditions: [{ prefix: '/' }], services: [{ name: `svc-${index}`, port: 80 }] },
          { conditions: [{ prefix: '/api' }], services: [{ name: `svc-${index}`, port: 80 }] },
        ],
      },
    })
  })
}

/** Octets. */
export async function measureResident(checkout: string): Promise<number> {
  const token = newToken()
  const tokens = new Map([[token, { name: 'admin', groups: ['system:masters'] }]])
  const server = createApiServer({ anonymous: 'refused', tokens })
  const { url, caPem = '' } = await server.listen({ tls: 'self-signed' })
  const folder = await mkdtemp(join(tmpdir(), 'seamark-bench-run-'))
  const kubeconfig = join(folder, 'kubeconfig')
  const text = writeKubeconfig({ server: url, caPem, token })
  await writeFile(kubeconfig, text, { mode: 0o600 })
  const cluster = connect(configFromText(text), { fieldManager: 'bench' })
  try {
    await addObjects(cluster.client)
    return await residentOf(checkout, kubeconfig, cluster.client)
  } finally {
    await cluster.close()
    await server.close()
    await rm(folder, { recursive: true })
  }
}

async function residentOf(checkout: string, kubeconfig: string, client: Client): Promise<number> {
  const args = ['run', '--kubeconfig', kubeconfig, '--namespace', 'seamark', '--mode', 'enforce', '--gateway-enabled']
  const local = ['--gateway-http-listen', '127.0.0.1:0', '--gateway-https-listen', '127.0.0.1:0']
  const off = ['--probes-address', '0', '--metrics-address', '0', '--log-level', 'error']
  const program = spawn(join(checkout, 'bin/seamark'), [...args, ...local, ...off], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(program, 'exit')
  try {
    await ready(program.stdout)
    const until = performance.now() + TIMEOUT_MS
    for (;;) {
      const { items } = await client.list(HTTPProxy)
      if (items.filter(({ status }) => status?.currentStatus === 'valid').length === OBJECTS) break
      if (program.exitCode !== null) throw new Error(`${checkout} ended`)
      if (performance.now() > until) throw new Error(`${checkout} does not write all statuses`)
      await setTimeout(1_000)
    }
    await setTimeout(REST_MS)
    const kilobytes = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${program.pid}/status`, 'utf8'))?.[1]
    return Number(kilobytes) * 1024
  } finally {
    program.kill('SIGTERM')
    await exited
  }
}

/** Both the manager and the gateway. */
async function ready(output: NodeJS.ReadableStream): Promise<void> {
  const missing = new Set(['ready', 'gateway'])
  for await (const line of createInterface(output)) {
    missing.delete(line.split(' ', 1)[0] ?? '')
    if (missing.size > 0) continue
    output.resume()
    return
  }
  throw new Error('seamark run ended before it was ready')
}
