/**
 * The chart, installed: its Pods are processes here. Each runs the rendered command line with the rendered configuration, and the
 * token of the rendered ServiceAccount; ports are free ones of this machine.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigMap, Secret } from '@seamark/kube'
import { kind, type Obj } from '@seamark/kube/object'
import type { AuditedPlane } from './audited-plane.ts'
import { CHART, type HelmName, helmOk, type Values } from './helm.ts'
import { accountKubeconfig, ManagerProcess } from './manager.ts'

interface Container {
  args: string[]
  volumeMounts: { name: string; mountPath: string }[]
}

interface PodSpec {
  serviceAccountName: string
  containers: Container[]
  volumes: { name: string; secret?: { secretName: string } }[]
}

interface Deployment extends Obj {
  spec: { template: { spec: PodSpec } }
}
const Deployment = kind<Deployment>({
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
})

export class Installation implements AsyncDisposable {
  readonly #plane: AuditedPlane
  readonly #namespace: string
  readonly #helm: HelmName
  readonly #folder = mkdtempSync(join(tmpdir(), 'seamark-installation-'))
  readonly replicas: ManagerProcess[] = []

  constructor(plane: AuditedPlane, namespace: string, helm: HelmName = 'helm') {
    this.#plane = plane
    this.#namespace = namespace
    this.#helm = helm
  }

  /** Installs it, or upgrades what is installed. */
  async apply(values: Values, chart = CHART): Promise<string> {
    const argv = ['upgrade', '--install', 'seamark', chart, '--namespace', this.#namespace, '--create-namespace']
    return helmOk(this.#helm, argv, { values, kubeconfig: this.#plane.plane.kubeconfig() })
  }

  /** Of the Deployment. */
  async rendered() {
    const { spec } = (await this.#plane.client.get(Deployment, `${this.#namespace}/seamark`)).spec.template
    const [container] = spec.containers
    if (container === undefined) throw new Error('the Deployment has no container')
    return { ...spec, container }
  }

  /** A replica; `flags`: addresses of this machine in place of those of a Pod. */
  async start(...flags: readonly string[]): Promise<ManagerProcess> {
    const { client, plane } = this.#plane
    const spec = await this.rendered()
    const config = (await client.get(ConfigMap, `${this.#namespace}/seamark`)).data?.['config.yaml'] ?? ''
    const { configFile: mounted, kubeconfig } = this
    // No flag says this one.
    const own = config.replace(/xdsListen: .*/, 'xdsListen: 127.0.0.1:0')
    writeFileSync(mounted, await this.#mountSecrets(own, spec))
    const text = await accountKubeconfig(plane, client, `${this.#namespace}/${spec.serviceAccountName}`)
    writeFileSync(kubeconfig, text, { mode: 0o600 })
    const args = spec.container.args.map((each) => (each === '/etc/seamark/config.yaml' ? mounted : each))
    const here = [
      '--metrics-address',
      '0',
      '--dashboard-address',
      '127.0.0.1:0',
      '--probes-address',
      '127.0.0.1:0',
      '--kubeconfig',
      kubeconfig,
    ]
    const replica = await ManagerProcess.start([...args, ...here, ...flags], { POD_NAMESPACE: this.#namespace })
    this.replicas.push(replica)
    return replica
  }

  /** Secrets that the Pod has as volumes, in folders here, which the configuration then names. */
  async #mountSecrets(config: string, { volumes, container }: PodSpec & { container: Container }): Promise<string> {
    let text = config
    for (const { name, secret } of volumes) {
      const path = container.volumeMounts.find((mount) => mount.name === name)?.mountPath
      if (secret === undefined || path === undefined) continue
      const folder = join(this.#folder, name)
      mkdirSync(folder, { recursive: true })
      const { data = {} } = await this.#plane.client.get(Secret, `${this.#namespace}/${secret.secretName}`)
      for (const [key, value] of Object.entries(data))
        writeFileSync(join(folder, key), Buffer.from(value, 'base64'), { mode: 0o600 })
      text = text.replaceAll(path, folder)
    }
    return text
  }

  get kubeconfig(): string {
    return join(this.#folder, 'kubeconfig')
  }

  /** Of an administrator. */
  get personKubeconfig(): string {
    const file = join(this.#folder, 'person')
    writeFileSync(file, this.#plane.plane.kubeconfig(), { mode: 0o600 })
    return file
  }

  get configFile(): string {
    return join(this.#folder, 'config.yaml')
  }

  async stop(): Promise<void> {
    for (const replica of this.replicas.splice(0)) await replica.stop()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
    rmSync(this.#folder, { recursive: true })
  }
}
