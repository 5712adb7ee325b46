/**
 * A cluster of the playground: an API server, the gateway of @seamark/gateway with an address of its own, and a
 * program behind it that answers with the name of the cluster. Only the pod network is simulated: API servers refuse
 * loopback addresses of pods, so that the program has an address of its own in EndpointSlices, which the gateway routes to it.
 *
 * Every part can be stopped and started again on the same port, as a failure and its repair.
 */
import { type Client, EndpointSlice, Namespace, Service } from '@seamark/kube'
import type { Authority } from '@seamark/kube/certificates'
import { playgroundCrds } from '@seamark/operator'
import { Backend } from './backend.ts'
import { LocalApiServer } from './local-api-server.ts'
import { LocalGateway } from './local-gateway.ts'

/** What can fail: the API server, the gateway, the programs behind it, or the API server and the gateway together. */
export const PARTS = ['api', 'gateway', 'backends', 'cluster'] as const
export type Part = (typeof PARTS)[number]
type SinglePart = Exclude<Part, 'cluster'>

export interface LocalClusterOptions {
  readonly name: string
  /** Of the gateway: a loopback address of its own. */
  readonly address: string
  /** Of the gateway; 0: a free one. */
  readonly port: number
  readonly authority: Authority
  /** Kinds of its API server. @default those of others that we read */
  readonly definitions?: readonly object[]
  /** Keeps its objects. @default in memory only */
  readonly folder?: string
  /** Of the API server, where it is free. @default any */
  readonly apiPort?: number
}

/** Of the program, in the pod network. */
const POD = { host: '10.244.0.1', port: 8080 }

export class LocalCluster {
  readonly name: string
  readonly address: string
  readonly api: LocalApiServer
  readonly #backend: Backend
  readonly #gateway: LocalGateway
  readonly #slices = new Set<string>()
  readonly #stopped = new Set<SinglePart>()

  private constructor({ name, address, port }: LocalClusterOptions, api: LocalApiServer, backend: Backend) {
    this.name = name
    this.address = address
    this.api = api
    this.#backend = backend
    const { kubeconfig } = api
    this.#gateway = new LocalGateway({ name, kubeconfig, address, port, backendPort: () => backend.port })
  }

  static async start(options: LocalClusterOptions): Promise<LocalCluster> {
    const { authority, definitions = playgroundCrds(), folder, apiPort, name } = options
    const api = await LocalApiServer.start({
      authority,
      definitions,
      ...(folder !== undefined && { folder }),
      ...(apiPort !== undefined && { port: apiPort }),
    })
    const member = new LocalCluster(options, api, await Backend.start(name))
    try {
      await member.#gateway.open()
    } catch (error) {
      await member.close()
      throw error
    }
    return member
  }

  get client(): Client {
    return this.api.client
  }

  get kubeconfig(): string {
    return this.api.kubeconfig
  }

  /** The port of the gateway. */
  get port(): number {
    return this.#gateway.port
  }

  /** Of the gateway. */
  get answers(): ReadonlyMap<string, number> | undefined {
    return this.#gateway.answers
  }

  get stoppedParts(): readonly SinglePart[] {
    return [...this.#stopped]
  }

  get delayMs(): number {
    return this.#backend.delayMs
  }

  /** Before each answer of the programs. */
  set delayMs(delayMs: number) {
    this.#backend.delayMs = delayMs
  }

  /** A namespace with a Service whose endpoint is the program of this cluster. */
  async deploy(namespace: string, service: string): Promise<void> {
    const key = `${namespace}/${service}`
    this.#slices.add(key)
    if ((await this.client.find(Namespace, namespace)) === undefined)
      await this.client.create(Namespace, { metadata: { name: namespace } })
    if ((await this.client.find(Service, key)) === undefined)
      await this.client.create(Service, {
        metadata: { namespace, name: service },
        spec: { ports: [{ name: 'http', port: 80 }] },
      })
    if ((await this.client.find(EndpointSlice, key)) === undefined)
      await this.client.create(EndpointSlice, {
        metadata: { namespace, name: service, labels: { 'kubernetes.io/service-name': service } },
        addressType: 'IPv4',
        endpoints: [{ addresses: [POD.host], conditions: { ready: true } }],
        ports: [{ name: 'http', port: POD.port, protocol: 'TCP' }],
      })
    // One that was kept over a restart is of a program that may have been stopped.
    else await this.#setReady(key, true)
  }

  async stopPart(part: Part): Promise<void> {
    for (const each of partsOf(part)) {
      if (this.#stopped.has(each)) continue
      this.#stopped.add(each)
      if (each === 'backends') {
        this.#backend.isStopped = true
        await this.#report()
      } else if (each === 'gateway') await this.#gateway.close()
      else await this.api.closePort()
    }
  }

  async startPart(part: Part): Promise<void> {
    for (const each of partsOf(part).toReversed()) {
      if (!this.#stopped.delete(each)) continue
      if (each === 'backends') this.#backend.isStopped = false
      else if (each === 'gateway') await this.#gateway.open()
      else await this.api.openPort()
      if (each !== 'gateway') await this.#report()
    }
  }

  async close(): Promise<void> {
    await this.#gateway.close()
    this.#backend.close()
    await this.api.stop()
  }

  /** What kubelet reports when the programs of a Service stop or start, as soon as the API server can be reached. */
  async #report(): Promise<void> {
    if (this.#stopped.has('api')) return
    for (const key of this.#slices) await this.#setReady(key, !this.#stopped.has('backends'))
  }

  async #setReady(key: string, ready: boolean): Promise<void> {
    await this.client.patch(EndpointSlice, key, 'json', [
      { op: 'replace', path: '/endpoints/0/conditions/ready', value: ready },
    ])
  }
}

/** A gateway is started when its API server answers. */
function partsOf(part: Part): readonly SinglePart[] {
  return part === 'cluster' ? ['gateway', 'api'] : [part]
}
