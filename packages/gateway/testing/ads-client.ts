/**
 * A client of the Aggregated Discovery Service that asks for resources as Envoy does: clusters and their endpoints, then
 * listeners and the routes and secrets that they refer to. It acknowledges what it gets unless `reject` names an error.
 */
import { Client, credentials, type ChannelCredentials, type ClientDuplexStream } from '@grpc/grpc-js'
import { decode, encode, typeUrlOf, type Message } from '../src/xds/protobuf.ts'
import { findResourceType, MESSAGE_OF, RESOURCE_TYPES, type ResourceType } from '../src/xds/resource.ts'

export interface Received {
  readonly type: ResourceType
  readonly names: readonly string[]
  readonly removed: readonly string[]
  readonly version: string
}

export interface AdsClientOptions {
  readonly variant?: 'delta' | 'state-of-the-world'
  readonly credentials?: ChannelCredentials
  /** The error to reject a response with; undefined accepts it. */
  readonly reject?: (response: Received) => string | undefined
  /** Called after a response was answered. */
  readonly onAnswered?: (response: Received) => void
  /** Versions of an earlier stream (`versions`): this one continues it. */
  readonly versions?: Readonly<Record<ResourceType, Readonly<Record<string, string>>>>
}

type DeltaResponse = Required<Message<'envoy.service.discovery.v3.DeltaDiscoveryResponse'>>
type SotwResponse = Required<Message<'envoy.service.discovery.v3.DiscoveryResponse'>>
type Any = Message<'google.protobuf.Any'>

const SERVICE = '/envoy.service.discovery.v3.AggregatedDiscoveryService'
const MAX_BYTES = 64 * 1_048_576

export class AdsClient {
  readonly received: Received[] = []
  /** Set when the stream ended. */
  error: Error | undefined
  readonly #options: AdsClientOptions
  readonly #client: Client
  readonly #stream: ClientDuplexStream<Buffer, Buffer>
  readonly #resources = new Map<ResourceType, Map<string, { version: string; value: Uint8Array }>>()
  readonly #subscribed = new Map<ResourceType, Set<string>>()
  readonly #lastVersion = new Map<ResourceType, string>()
  readonly #lastNonce = new Map<ResourceType, string>()
  readonly #waiting = new Set<() => void>()

  /** @param address `host:port` or `unix:PATH` */
  constructor(address: string, options: AdsClientOptions = {}) {
    this.#options = options
    this.#client = new Client(address, options.credentials ?? credentials.createInsecure(), {
      'grpc.max_receive_message_length': MAX_BYTES,
      'grpc.use_local_subchannel_pool': 1,
    })
    const method = this.#isDelta ? 'DeltaAggregatedResources' : 'StreamAggregatedResources'
    const same = (bytes: Buffer): Buffer => bytes
    this.#stream = this.#client.makeBidiStreamRequest(`${SERVICE}/${method}`, same, same)
    this.#stream.on('data', (bytes: Buffer) => this.#receive(bytes))
    this.#stream.on('error', (error: Error) => {
      this.error = error
      this.#wake()
    })
    this.#stream.on('end', () => this.#wake())
  }

  get #isDelta(): boolean {
    return this.#options.variant !== 'state-of-the-world'
  }

  /** Begins as Envoy does, with all clusters. */
  start(): void {
    this.subscribe('cluster', [])
    if (this.#options.versions === undefined) return
    for (const type of RESOURCE_TYPES) {
      const names = Object.keys(this.#options.versions[type])
      if (type !== 'cluster' && names.length > 0) this.subscribe(type, names)
    }
  }

  subscribe(type: ResourceType, names: readonly string[]): void {
    const known = this.#subscribed.get(type)
    const added = names.filter((name) => known?.has(name) !== true)
    if (known !== undefined && added.length === 0) return
    this.#subscribed.set(type, new Set([...(known ?? []), ...added]))
    const isWildcard = type === 'cluster' || type === 'listener'
    const initial = known === undefined ? (this.#options.versions?.[type] ?? {}) : {}
    this.#send(type, { subscribe: isWildcard ? [] : added, initial, nonce: '' })
  }

  versions(): Record<ResourceType, Record<string, string>> {
    const of = (type: ResourceType) =>
      Object.fromEntries([...(this.#resources.get(type) ?? [])].map(([name, { version }]) => [name, version]))
    return {
      cluster: of('cluster'),
      endpoints: of('endpoints'),
      secret: of('secret'),
      listener: of('listener'),
      route: of('route'),
    }
  }

  names(type: ResourceType): string[] {
    return [...(this.#resources.get(type)?.keys() ?? [])].toSorted()
  }

  /** The message of a resource, decoded. */
  get<T extends ResourceType>(type: T, name: string): Required<Message<(typeof MESSAGE_OF)[T]>> | undefined {
    const found = this.#resources.get(type)?.get(name)
    return found === undefined ? undefined : decode(MESSAGE_OF[type], found.value)
  }

  /** Resolves when the check holds; it is made after every response, and rejects when the stream has ended. */
  async until(check: () => boolean): Promise<void> {
    while (!check()) {
      if (this.error !== undefined) throw this.error
      await new Promise<void>((resolve) => this.#waiting.add(resolve))
    }
  }

  /** Stops reading: responses wait in the stream, unanswered. */
  pause(): void {
    this.#stream.pause()
  }

  resume(): void {
    this.#stream.resume()
  }

  close(): void {
    this.#stream.on('error', () => undefined)
    this.#stream.cancel()
    this.#client.close()
  }

  #receive(bytes: Buffer): void {
    const response = this.#isDelta
      ? decode('envoy.service.discovery.v3.DeltaDiscoveryResponse', bytes)
      : decode('envoy.service.discovery.v3.DiscoveryResponse', bytes)
    const type = findResourceType(response.type_url)
    if (type === undefined) throw new Error(`a response of type ${response.type_url}`)
    const before = this.#resources.get(type) ?? new Map<string, { version: string; value: Uint8Array }>()
    const next = new Map(before)
    let received: Received
    if (this.#isDelta) {
      const { resources, removed_resources: removed } = response as DeltaResponse
      for (const { name = '', version = '', resource } of resources)
        next.set(name, { version, value: resource?.value ?? new Uint8Array() })
      for (const name of removed) next.delete(name)
      received = { type, names: resources.map(({ name = '' }) => name), removed, version: '' }
    } else {
      const { resources, version_info: version } = response as SotwResponse
      const found = resources.map((any) => [nameOf(type, any), any.value ?? new Uint8Array()] as const)
      // A response contains all clusters and all listeners, but only some of the other resources.
      if (type === 'cluster' || type === 'listener') next.clear()
      for (const [name, value] of found) next.set(name, { version, value })
      received = { type, names: found.map(([name]) => name), removed: [], version }
    }
    this.received.push(received)
    this.#lastNonce.set(type, response.nonce)
    const error = this.#options.reject?.(received)
    if (error === undefined) {
      this.#resources.set(type, next)
      if (!this.#isDelta) this.#lastVersion.set(type, received.version)
    }
    this.#send(type, { subscribe: [], initial: {}, nonce: response.nonce, ...(error !== undefined && { error }) })
    if (error === undefined) this.#follow(type)
    this.#options.onAnswered?.(received)
    this.#wake()
  }

  /** Subscribes to what the resources of a type refer to. */
  #follow(type: ResourceType): void {
    if (type === 'cluster') {
      const names = this.names('cluster').filter((name) => this.get('cluster', name)?.eds_cluster_config)
      if (names.length > 0) this.subscribe('endpoints', names)
      else this.subscribe('listener', [])
    }
    if (type === 'endpoints') this.subscribe('listener', [])
    if (type !== 'listener') return
    const [routes, secrets] = [new Set<string>(), new Set<string>()]
    for (const name of this.names('listener'))
      for (const { filters = [], transport_socket: socket } of this.get('listener', name)?.filter_chains ?? []) {
        for (const { typed_config: config } of filters) {
          if (config?.type_url !== typeUrlOf(HTTP_MANAGER) || config.value === undefined) continue
          routes.add(decode(HTTP_MANAGER, config.value).rds.route_config_name ?? '')
        }
        const tls = socket?.typed_config?.value
        if (tls === undefined) continue
        const { common_tls_context: common } = decode(DOWNSTREAM_TLS, tls)
        for (const { name: secret = '' } of common.tls_certificate_sds_secret_configs ?? []) secrets.add(secret)
      }
    if (secrets.size > 0) this.subscribe('secret', [...secrets])
    this.subscribe('route', [...routes])
  }

  #send(
    type: ResourceType,
    request: {
      readonly subscribe: readonly string[]
      readonly initial: Readonly<Record<string, string>>
      readonly nonce: string
      readonly error?: string
    },
  ): void {
    const node = { id: 'test', cluster: 'test' }
    const detail = request.error === undefined ? {} : { error_detail: { code: 3, message: request.error } }
    const isWildcard = type === 'cluster' || type === 'listener'
    const bytes = this.#isDelta
      ? encode('envoy.service.discovery.v3.DeltaDiscoveryRequest', {
          node,
          type_url: typeUrlOf(MESSAGE_OF[type]),
          resource_names_subscribe: request.subscribe,
          initial_resource_versions: request.initial,
          response_nonce: request.nonce,
          ...detail,
        })
      : encode('envoy.service.discovery.v3.DiscoveryRequest', {
          node,
          type_url: typeUrlOf(MESSAGE_OF[type]),
          resource_names: isWildcard ? [] : [...(this.#subscribed.get(type) ?? [])],
          version_info: this.#lastVersion.get(type) ?? Object.values(request.initial)[0] ?? '',
          response_nonce: this.#lastNonce.get(type) ?? '',
          ...detail,
        })
    this.#stream.write(Buffer.from(bytes))
  }

  #wake(): void {
    for (const wake of this.#waiting) wake()
    this.#waiting.clear()
  }
}

const HTTP_MANAGER = 'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager'
const DOWNSTREAM_TLS = 'envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext'

function nameOf(type: ResourceType, { value = new Uint8Array() }: Any): string {
  const message = decode(MESSAGE_OF[type], value)
  return 'cluster_name' in message && message.cluster_name ? message.cluster_name : (message as { name: string }).name
}
