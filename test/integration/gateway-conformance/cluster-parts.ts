/**
 * The parts of a cluster that the conformance suite expects besides an API server, as far as it uses them: Deployments become
 * Pods, Pods are echo servers on addresses of the network namespace, Services have EndpointSlices, and a kubelet returns logs.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { createServer as createHttpsServer } from 'node:https'
import { connect, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { EndpointSlice, kind, manager, Node, Secret, Service, type Cluster, type Obj } from '@seamark/kube'
import { createAuthority } from '@seamark/kube/certificates'
import { keyOf, type Immutable } from '@seamark/kube/object'

interface PodSpec {
  nodeName?: string
  containers: {
    name: string
    image: string
    env?: { name: string; value?: string }[]
    volumeMounts?: { name: string; mountPath: string }[]
  }[]
  volumes?: { name: string; secret?: { secretName: string; items?: { key: string; path: string }[] } }[]
}

interface Deployment extends Obj {
  spec?: {
    replicas?: number
    template?: { metadata?: { labels?: Record<string, string> }; spec?: PodSpec }
  }
}

const Deployment = kind<Deployment>({
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
})

interface Pod extends Obj {
  spec?: PodSpec
  status?: { podIP?: string; podIPs?: { ip: string }[]; phase?: string; conditions?: object[] }
}

const Pod = kind<Pod>({ group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true })

const NODE = 'conformance'
const NODE_ADDRESS = '10.77.0.1'
/** Port of a container → the variable that sets another one in the echo server. */
const CONTAINER_PORTS: Readonly<Record<number, readonly string[]>> = {
  3000: ['HTTP_PORT', 'TCP_PORT'],
  3001: ['H2C_PORT'],
  8443: ['HTTPS_PORT', 'TLS_PORT'],
}

interface LogLine {
  readonly at: number
  readonly text: string
}

export class ClusterParts {
  readonly #cluster: Cluster
  readonly #echo: string
  readonly #folder: string
  readonly #processes: ChildProcess[] = []
  readonly #servers: Server[] = []
  readonly #logs = new Map<string, LogLine[]>()
  readonly #addresses = new Map<string, string>()
  #nextPort = 20_000

  /**
   * @param echo path of the program `echo-basic` of the suite
   * @param folder for the files of Secret volumes
   */
  constructor(cluster: Cluster, echo: string, folder: string) {
    this.#cluster = cluster
    this.#echo = echo
    this.#folder = folder
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.#startKubelet()
    const mgr = await manager({ cluster: this.#cluster, fieldManager: 'conformance-parts', grace: '1s' })
    mgr.controller('deployments', Deployment).reconcile(async (deployment, { client }) => {
      const { namespace = '', name } = deployment.metadata
      for (let index = 0; index < (deployment.spec?.replicas ?? 1); index++) {
        // As a ReplicaSet names them; the suite takes the Deployment from it.
        const pod = `${name}-5d4f8c7b9-x${index}`
        const key = `${namespace}/${pod}`
        if (this.#addresses.has(key)) continue
        const { metadata, spec } = deployment.spec?.template ?? {}
        if (spec === undefined) continue
        const address = `10.77.1.${this.#addresses.size + 1}`
        this.#addresses.set(key, address)
        await this.#startPod(key, spec as PodSpec, address)
        await client.create(Pod, {
          metadata: { namespace, name: pod, labels: { ...metadata?.labels } },
          spec: { ...(spec as PodSpec), nodeName: NODE },
        })
        await client.apply(
          Pod,
          {
            metadata: { namespace, name: pod },
            status: {
              phase: 'Running',
              podIP: address,
              podIPs: [{ ip: address }],
              conditions: [{ type: 'Ready', status: 'True' }],
            },
          },
          { subresource: 'status', fieldManager: 'kubelet' },
        )
      }
    })
    mgr
      .controller('endpoints', Service)
      .watches(Pod, ({ metadata }, cache) =>
        cache
          .list(Service)
          .filter((service) => service.metadata.namespace === metadata.namespace && selects(service, metadata.labels))
          .map(keyOf),
      )
      .reconcile(async (service, context) => {
        if (service.spec?.selector === undefined) return
        const { namespace = '', name } = service.metadata
        const pods = context.list(Pod).filter((pod) => {
          return pod.metadata.namespace === namespace && selects(service, pod.metadata.labels)
        })
        await context.apply(EndpointSlice, {
          metadata: { namespace, name: `${name}-pods`, labels: { 'kubernetes.io/service-name': name } },
          addressType: 'IPv4',
          endpoints: pods.flatMap(({ status }) => {
            return status?.podIP === undefined ? [] : [{ addresses: [status.podIP], conditions: { ready: true } }]
          }),
          ports: (service.spec.ports ?? []).map((port) => ({
            name: port.name ?? '',
            port: Number(port.targetPort ?? port.port),
            protocol: port.protocol ?? 'TCP',
          })),
        })
      })
    try {
      await mgr.run(signal)
    } finally {
      for (const process of this.#processes) process.kill('SIGKILL')
      for (const server of this.#servers) server.close()
    }
  }

  async #startPod(key: string, { containers, volumes = [] }: PodSpec, address: string): Promise<void> {
    const [container] = containers
    if (container === undefined || !container.image.includes('echo-basic')) return
    const [namespace = '', name = ''] = key.split('/')
    const env: Record<string, string> = { POD_NAME: name, NAMESPACE: namespace }
    for (const each of container.env ?? []) if (each.value !== undefined) env[each.name] = each.value
    for (const { name: volume, secret } of volumes) {
      const mount = container.volumeMounts?.find((each) => each.name === volume)?.mountPath
      if (secret === undefined || mount === undefined) continue
      const files = await this.#secretFiles(`${namespace}/${secret.secretName}`, secret.items ?? [])
      for (const [variable, value] of Object.entries(env))
        if (value.startsWith(`${mount}/`)) env[variable] = join(files, value.slice(mount.length + 1))
    }
    for (const [port, variables] of Object.entries(CONTAINER_PORTS)) {
      // The program listens on all addresses; each Pod gets its own port behind its address.
      const own = this.#nextPort++
      for (const variable of variables) env[variable] = String(own)
      await this.#forward(address, Number(port), own)
    }
    const process = spawn(this.#echo, [], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    this.#processes.push(process)
    const lines: LogLine[] = []
    this.#logs.set(key, lines)
    for (const stream of [process.stdout, process.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        for (const line of text.split('\n')) if (line !== '') lines.push({ at: Date.now(), text: line })
      })
  }

  /** The suite writes its Secrets after the Deployments that mount them: waits for it by failing, which is retried. */
  async #secretFiles(key: string, items: readonly { key: string; path: string }[]): Promise<string> {
    let secret = await this.#cluster.client.find(Secret, key)
    while (secret === undefined) {
      await new Promise((resolve) => setTimeout(resolve, 50))
      secret = await this.#cluster.client.find(Secret, key)
    }
    const folder = mkdtempSync(join(this.#folder, 'secret-'))
    for (const item of items)
      writeFileSync(join(folder, item.path), Buffer.from(secret.data?.[item.key] ?? '', 'base64'))
    return folder
  }

  async #forward(address: string, port: number, target: number): Promise<void> {
    const server = createServer({ noDelay: true }, (socket) => {
      const upstream = connect({ host: '127.0.0.1', port: target, noDelay: true })
      for (const [from, to] of [
        [socket, upstream],
        [upstream, socket],
      ] as const) {
        from.on('error', () => to.destroy())
        from.on('close', () => to.destroy())
        from.pipe(to)
      }
    })
    this.#servers.push(server)
    await new Promise<void>((resolve) => server.listen(port, address, resolve))
  }

  async #startKubelet(): Promise<void> {
    const authority = await createAuthority({ commonName: 'kubelet' })
    const { certPem, keyPem } = await authority.issue({ commonName: NODE, dnsNames: [NODE], usages: 'server' })
    const server = createHttpsServer({ cert: certPem, key: keyPem }, (request, response) => {
      const { pathname, searchParams } = new URL(request.url ?? '/', 'https://kubelet')
      const [, verb, namespace, pod] = pathname.split('/')
      if (verb !== 'containerLogs') return void response.writeHead(404).end()
      const since = Date.parse(searchParams.get('sinceTime') ?? '') || 0
      const lines = this.#logs.get(`${namespace}/${pod}`) ?? []
      response.end(
        lines
          .filter(({ at }) => at >= since)
          .map(({ text }) => `${text}\n`)
          .join(''),
      )
    })
    this.#servers.push(server)
    await new Promise<void>((resolve) => server.listen(10_250, NODE_ADDRESS, resolve))
    const { client } = this.#cluster
    await client.create(Node, { metadata: { name: NODE } })
    await client.apply(
      Node,
      {
        metadata: { name: NODE },
        status: {
          addresses: [{ type: 'InternalIP', address: NODE_ADDRESS }],
          daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } },
        } as never,
      },
      { subresource: 'status', fieldManager: 'kubelet' },
    )
  }
}

function selects({ spec }: Immutable<Service>, labels: Readonly<Record<string, string>> | undefined): boolean {
  const selector = Object.entries(spec?.selector ?? {})
  return selector.length > 0 && selector.every(([name, value]) => labels?.[name] === value)
}
