/** A Pod of the rendered Envoys: its bootstrap, arguments, volumes, probe and hook are what the API server has of the chart. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram } from '@seamark/kit'
import { type Client, ConfigMap, Secret } from '@seamark/kube'
import { kind, type Obj } from '@seamark/kube/object'
import { type Container, type Pod, ask } from './pod.ts'

interface EnvoyDeployment extends Obj {
  spec: {
    template: {
      spec: {
        containers: (Container & { args: string[]; ports: { name: string; containerPort: number }[] })[]
        volumes: {
          name: string
          projected?: { sources: { secret: { name: string; items: { key: string; path: string }[] } }[] }
        }[]
      }
    }
  }
}
const EnvoyDeployment = kind<EnvoyDeployment>({
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
})

export interface EnvoyWorld {
  readonly client: Client
  readonly namespace: string
  /** Socket file of the Service of the xDS port. */
  readonly xds: string
  /** Addresses of backends, and their socket files. */
  readonly reaches: readonly { readonly host: string; readonly port: number; readonly path: string }[]
}

export interface EnvoyPod extends Pod {
  /** As the kubelet writes Secrets that have changed into a volume. */
  refresh(): Promise<void>
  readonly log: string
}

let count = 0

export async function startEnvoyPod({ client, namespace, xds, reaches }: EnvoyWorld): Promise<EnvoyPod> {
  const folder = mkdtempSync(join(tmpdir(), 'seamark-envoy-'))
  const { spec } = (await client.get(EnvoyDeployment, `${namespace}/seamark-envoy`)).spec.template
  const [container] = spec.containers
  if (container === undefined) throw new Error('the Deployment has no container')
  const sources = spec.volumes.find(({ name }) => name === 'certificates')?.projected?.sources ?? []
  const certificates = join(folder, 'certificates')
  mkdirSync(certificates)
  let version = 0
  const refresh = async (): Promise<void> => {
    const data = `..${++version}`
    mkdirSync(join(certificates, data))
    for (const { secret } of sources) {
      const { data: found = {} } = await client.get(Secret, `${namespace}/${secret.name}`)
      for (const { key, path } of secret.items) {
        writeFileSync(join(certificates, data, path), Buffer.from(found[key] ?? '', 'base64'))
        if (version === 1) symlinkSync(join('..data', path), join(certificates, path))
      }
    }
    symlinkSync(data, join(certificates, '..new'))
    renameSync(join(certificates, '..new'), join(certificates, '..data'))
  }
  await refresh()

  const text = (await client.get(ConfigMap, `${namespace}/seamark-envoy`)).data?.['bootstrap.json'] ?? ''
  const bootstrap = join(folder, 'bootstrap.json')
  // The only differences: folders of this machine, and no DNS that knows the Service.
  const service = /\{\s*"socket_address": \{\s*"address": "[^"]+\.svc",\s*"port_value": 8001\s*\}\s*\}/
  const here = text
    .replace(service, JSON.stringify({ pipe: { path: xds } }))
    .replace('"STRICT_DNS"', '"STATIC"')
    .replaceAll('/tmp/envoy-admin', join(folder, 'admin'))
    .replaceAll('/etc/seamark-xds', certificates)
  writeFileSync(bootstrap, here)
  const args = container.args.map((each) =>
    each === '/etc/envoy/bootstrap.json' ? bootstrap : each === '$(POD_NAME)' ? `envoy-${++count}` : each,
  )
  const portOf = (name: string): number => container.ports.find((each) => each.name === name)?.containerPort ?? 0
  const socketOf = (name: string): string => join(folder, `${name}.sock`)
  const accepts = [
    { path: socketOf('http'), port: portOf('http') },
    { path: socketOf('drain'), port: portOf('drain') },
    { path: socketOf('probe'), port: portOf('http'), isAnnounced: true },
  ]
  const command = [
    findProgram('envoy') ?? 'envoy',
    ...args,
    '--use-dynamic-base-id',
    '--concurrency',
    '1',
    '--log-level',
    'warning',
  ]
  const addresses = [...new Set(reaches.map(({ host }) => `ip addr add ${host}/32 dev lo`))]
  const setUp = ['ip link set lo up', ...addresses, 'exec "$@"'].join('\n')
  const namespaced = [process.execPath, join(import.meta.dirname, 'envoy-namespace.mjs')]
  const child = spawn(
    'unshare',
    ['--net', 'sh', '-e', '-c', setUp, 'sh', ...namespaced, JSON.stringify({ accepts, reaches, command })],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let log = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => (log = `${log}${String(chunk)}`.slice(-20_000)))
  const ended = once(child, 'close')
  return {
    ports: new Map([['http', { path: socketOf('http') }]]),
    refresh,
    get log() {
      return log
    },
    unready: async () => ((await isAccepted(socketOf('probe'))) ? undefined : `the port is closed:\n${log}`),
    preStop: async () => ask({ path: socketOf('drain') }, container.lifecycle.preStop.httpGet?.path ?? ''),
    async end() {
      child.kill('SIGTERM')
      await ended
      rmSync(folder, { recursive: true })
    },
  }
}

/** The forwarder tells when the port behind it is open. */
async function isAccepted(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path })
    const end = (is: boolean) => (): void => {
      socket.destroy()
      resolve(is)
    }
    socket.once('data', end(true))
    socket.once('error', end(false))
    socket.once('close', end(false))
  })
}
