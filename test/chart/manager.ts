/** The manager as a Pod of the chart runs it: its command line, as a process with the token of its ServiceAccount. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Client } from '@seamark/kube'
import { kind } from '@seamark/kube/object'
import type { ControlPlane } from '@seamark/kube/testing'
import { type Ran, run } from './helm.ts'

const ROOT = join(import.meta.dirname, '../..')

/** Builds the bundle when a source is newer. */
export function buildBundle(): void {
  const built = spawnSync(join(ROOT, 'bin/seamark'), ['version'], { encoding: 'utf8' })
  if (built.status !== 0) throw new Error(`the bundle cannot be built: ${built.stderr}`)
}

export const ServiceAccount = kind({
  group: '',
  version: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  namespaced: true,
})

/** As the kubelet requests one for a Pod. */
export async function accountToken(client: Client, key: string): Promise<string> {
  const [namespace = '', name = ''] = key.split('/')
  const { body, status } = await client.request({
    method: 'POST',
    path: `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { expirationSeconds: 3_600 },
    }),
  })
  const text = body.toString('utf8')
  if (status >= 300) throw new Error(`no token of ${key}: ${text}`)
  return (JSON.parse(text) as { status: { token: string } }).status.token
}

export async function accountKubeconfig(plane: ControlPlane, client: Client, key: string): Promise<string> {
  const token = await accountToken(client, key)
  const [namespace] = key.split('/')
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'pod',
    clusters: [
      {
        name: 'pod',
        cluster: {
          server: plane.server,
          'certificate-authority-data': Buffer.from(plane.caPem).toString('base64'),
        },
      },
    ],
    users: [{ name: 'pod', user: { token } }],
    contexts: [{ name: 'pod', context: { cluster: 'pod', user: 'pod', namespace } }],
  })
}

/** A command as a person types it in the Pod. */
export async function seamark(...argv: readonly string[]): Promise<Ran> {
  return run(process.execPath, [join(ROOT, 'dist/seamark.mjs'), ...argv])
}

const MAX_LOG = 400_000

export class ManagerProcess implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>
  #log = ''

  private constructor(argv: readonly string[], env: Readonly<Record<string, string>>) {
    this.#child = spawn(process.execPath, [join(ROOT, 'dist/seamark.mjs'), ...argv], {
      env: { PATH: process.env['PATH'] ?? '', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#ended = once(this.#child, 'close')
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on('data', (chunk) => (this.#log = `${this.#log}${String(chunk)}`.slice(-MAX_LOG)))
  }

  /** Resolves when it printed `ready`; rejects with its output when it ends before. */
  static async start(argv: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<ManagerProcess> {
    const manager = new ManagerProcess(argv, env)
    await new Promise<void>((resolve, reject) => {
      const look = (): void => {
        if (/^ready /m.test(manager.#log)) resolve()
      }
      for (const stream of [manager.#child.stdout, manager.#child.stderr]) stream?.on('data', look)
      const fail = (): void => reject(new Error(`seamark ${argv.join(' ')} ended:\n${manager.#log}`))
      manager.#ended.then(fail).catch(fail)
    })
    return manager
  }

  get log(): string {
    return this.#log
  }

  /** As the kubelet ends a container. */
  async stop(): Promise<void> {
    this.#child.kill('SIGTERM')
    await this.#ended
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }
}
