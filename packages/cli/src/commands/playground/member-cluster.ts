/**
 * A member cluster of the playground: an API server, the gateway of @seamark/gateway with an address of its own, and a
 * program behind it that answers with the name of the cluster. Only the pod network is simulated: API servers refuse
 * loopback addresses of pods, so that the program has an address of its own in EndpointSlices, which the gateway routes to it.
 *
 * Every part can be stopped and started again on the same port, as a failure and its repair.
 */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  type ApiServer,
  createApiServer,
  newToken,
  type ServerListener,
  type TlsOptions,
  writeKubeconfig,
} from '@seamark/apiserver'
import { BUILD_DEFAULTS, GATEWAY_FIELD_MANAGER, setUpGateway } from '@seamark/gateway'
import {
  type Client,
  type Cluster,
  configFromText,
  connect,
  createLogger,
  CustomResourceDefinition,
  EndpointSlice,
  manager,
  Namespace,
  Service,
} from '@seamark/kube'
import type { Authority } from '@seamark/kube/certificates'
import { playgroundCrds } from '@seamark/operator'

/** What can fail: the API server, the gateway, the programs behind it, or the whole cluster. */
export const PARTS = ['api', 'gateway', 'backends', 'cluster'] as const
export type Part = (typeof PARTS)[number]

/** An API server on this machine, with the kubeconfig of an administrator. */
export class LocalApiServer {
  readonly kubeconfig: string
  readonly client: Client
  readonly url: string
  readonly #server: ApiServer
  readonly #tls: TlsOptions
  readonly #connection: Cluster
  #listener: ServerListener | undefined

  private constructor(server: ApiServer, listener: ServerListener, tls: TlsOptions, token: string) {
    this.#server = server
    this.#listener = listener
    this.#tls = tls
    this.url = listener.url
    this.kubeconfig = writeKubeconfig({ server: listener.url, token, caPem: tls.ca })
    this.#connection = connect(configFromText(this.kubeconfig), { name: 'user', fieldManager: 'you' })
    this.client = this.#connection.client
  }

  static async start(authority: Authority, definitions: readonly object[]): Promise<LocalApiServer> {
    const token = newToken()
    const server = createApiServer({
      tokens: new Map([[token, { name: 'admin', groups: ['system:masters'] }]]),
      anonymous: 'refused',
    })
    const { certPem, keyPem } = await authority.issue({
      commonName: 'kubernetes',
      dnsNames: ['localhost'],
      ipAddresses: ['127.0.0.1'],
      usages: 'server',
    })
    const tls = { cert: certPem, key: keyPem, ca: authority.certPem }
    const local = new LocalApiServer(server, await server.listen({ tls }), tls, token)
    for (const definition of definitions)
      await local.client.create(CustomResourceDefinition, definition as CustomResourceDefinition)
    return local
  }

  async closePort(): Promise<void> {
    await this.#listener?.close()
    this.#listener = undefined
  }

  async openPort(): Promise<void> {
    this.#listener ??= await this.#server.listen({ tls: this.#tls, port: Number(new URL(this.url).port) })
  }

  async stop(): Promise<void> {
    await this.#connection.close()
    await this.#server.close()
  }
}

export interface MemberOptions {
  readonly name: string
  /** Of the gateway: a loopback address of its own. */
  readonly address: string
  /** Of the gateway; 0: a free one. */
  readonly port: number
  readonly authority: Authority
}

export class MemberCluster {
  readonly name: string
  readonly address: string
  readonly #server: LocalApiServer
  readonly #backend: Server
  readonly #slices = new Set<string>()
  readonly #stopped = new Set<Part>()
  #port: number
  #gateway: { stop(): Promise<void> } | undefined

  private constructor({ name, address, port }: MemberOptions, server: LocalApiServer, backend: Server) {
    this.name = name
    this.address = address
    this.#port = port
    this.#server = server
    this.#backend = backend
  }

  static async start(options: MemberOptions): Promise<MemberCluster> {
    const server = await LocalApiServer.start(options.authority, playgroundCrds())
    const backend = createServer((_request, response) => response.end(options.name))
    await new Promise<void>((resolve) => backend.listen(0, '127.0.0.1', resolve))
    const member = new MemberCluster(options, server, backend)
    try {
      await member.#openGateway()
    } catch (error) {
      await member.close()
      throw error
    }
    return member
  }

  get client(): Client {
    return this.#server.client
  }

  get kubeconfig(): string {
    return this.#server.kubeconfig
  }

  /** The port of the gateway. */
  get port(): number {
    return this.#port
  }

  /** A namespace with a Service whose endpoint is the program of this cluster. */
  async deploy(namespace: string, service: string): Promise<void> {
    if ((await this.client.find(Namespace, namespace)) === undefined)
      await this.client.create(Namespace, { metadata: { name: namespace } })
    await this.client.create(Service, {
      metadata: { namespace, name: service },
      spec: { ports: [{ name: 'http', port: 80 }] },
    })
    await this.client.create(EndpointSlice, {
      metadata: { namespace, name: service, labels: { 'kubernetes.io/service-name': service } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [POD.host], conditions: { ready: true } }],
      ports: [{ name: 'http', port: POD.port, protocol: 'TCP' }],
    })
    this.#slices.add(`${namespace}/${service}`)
  }

  async stopPart(part: Part): Promise<void> {
    if (this.#stopped.has(part)) return
    this.#stopped.add(part)
    if (part === 'backends') await this.#setReady(false)
    if (part === 'gateway' || part === 'cluster') await this.#closeGateway()
    if (part === 'api' || part === 'cluster') await this.#server.closePort()
  }

  async startPart(part: Part): Promise<void> {
    if (!this.#stopped.delete(part)) return
    if (part === 'api' || part === 'cluster') await this.#server.openPort()
    if (part === 'gateway' || part === 'cluster') await this.#openGateway()
    if (part === 'backends') await this.#setReady(true)
  }

  async close(): Promise<void> {
    await this.#closeGateway()
    this.#backend.closeAllConnections()
    this.#backend.close()
    await this.#server.stop()
  }

  /** What kubelet reports when the programs of a Service stop or start. */
  async #setReady(ready: boolean): Promise<void> {
    for (const key of this.#slices)
      await this.client.patch(EndpointSlice, key, 'json', [
        { op: 'replace', path: '/endpoints/0/conditions/ready', value: ready },
      ])
  }

  async #openGateway(): Promise<void> {
    const stopping = new AbortController()
    const log = createLogger({ level: 'silent' })
    const connection = connect(configFromText(this.kubeconfig), {
      name: this.name,
      fieldManager: GATEWAY_FIELD_MANAGER,
      log,
    })
    const mgr = await manager({ cluster: connection, fieldManager: GATEWAY_FIELD_MANAGER, log, grace: GRACE_MS })
    const ready = new Promise<number>((resolve) => {
      setUpGateway(mgr, {
        settings: BUILD_DEFAULTS,
        http: { host: this.address, port: this.#port },
        statusAddresses: [{ ip: this.address }],
        routeEndpoint: () => ({ host: '127.0.0.1', port: (this.#backend.address() as AddressInfo).port }),
        onReady: ({ http }) => resolve(http?.port ?? 0),
      })
    })
    const done = mgr.run(stopping.signal)
    done.catch(() => undefined)
    this.#gateway = {
      stop: async () => {
        stopping.abort()
        await done.catch(() => undefined)
        await connection.close()
      },
    }
    this.#port = await Promise.race([ready, done.then(() => this.#port)])
  }

  async #closeGateway(): Promise<void> {
    const gateway = this.#gateway
    this.#gateway = undefined
    await gateway?.stop()
  }
}

const GRACE_MS = 500
/** Of the program, in the pod network. */
const POD = { host: '10.244.0.1', port: 8080 }
