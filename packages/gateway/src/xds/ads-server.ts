/**
 * The Aggregated Discovery Service over gRPC, in both variants. It holds the newest configuration and has a session for
 * each stream (session.ts).
 *
 * Guarantees: the port opens after the first `publish`; a stream beyond the limit is refused, so that clients cannot use
 * up the memory; what clients rejected is reported with the objects that caused it.
 */
import { Metadata, Server, status, type ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js'
import { messageOf, systemClock, type Clock, type ConnectionLimits, type Logger } from '@seamark/kube'
import { limitedPort, type LimitedPort } from './limited-port.ts'
import { decode, encode, typeUrlOf, type Message, type MessageName } from './protobuf.ts'
import { Rejections, type Rejection } from './rejections.ts'
import { findResourceType, MESSAGE_OF, type ResourceMap, type ResourceType } from './resource.ts'
import { ownersOf, type Translation } from './resources.ts'
import { Session, type SessionOptions, type SessionRequest, type SessionResponse } from './session.ts'

type SotwRequest = Required<Message<'envoy.service.discovery.v3.DiscoveryRequest'>>
type DeltaRequest = Required<Message<'envoy.service.discovery.v3.DeltaDiscoveryRequest'>>
type SotwResponse = Message<'envoy.service.discovery.v3.DiscoveryResponse'>
type DeltaResponse = Message<'envoy.service.discovery.v3.DeltaDiscoveryResponse'>

export interface AdsServerOptions extends SessionOptions {
  readonly log: Logger
  readonly clock?: Clock
  /** Streams at a time. @default 256 */
  readonly maxStreams?: number
  /** Of the TCP port. @default 512 connections, 256 of an address, 10 s until a stream */
  readonly limits?: ConnectionLimits
  /** Called when the set of rejected resources changed. */
  readonly onRejections?: (rejections: readonly Rejection[]) => void
}

export interface AdsServer {
  /** Replaces the configuration. @param endpoints of all clusters with endpoints, by the names of the clusters */
  publish(translation: Translation, endpoints: ResourceMap): void
  /** Replaces the endpoints of some clusters. */
  updateEndpoints(changed: ResourceMap): void
  /** @param address `host:port`, `[v6]:port` or `unix:PATH`; returns the port, 0 for a socket file */
  listen(address: string, credentials: ServerCredentials): Promise<number>
  readonly streams: number
  close(): Promise<void>
}

const SERVICE = '/envoy.service.discovery.v3.AggregatedDiscoveryService'
/** A client that connects again reports the version of every resource that it has. */
const MAX_REQUEST_BYTES = 64 * 1_048_576
const KEEPALIVE_MS = 30_000
const MAX_STREAMS = 256

export function createAdsServer(options: AdsServerOptions): AdsServer {
  const { log, clock = systemClock, maxStreams = MAX_STREAMS } = options
  const server = new Server({
    'grpc.keepalive_time_ms': KEEPALIVE_MS,
    'grpc.keepalive_timeout_ms': KEEPALIVE_MS / 3,
    'grpc.max_receive_message_length': MAX_REQUEST_BYTES,
    'grpc.max_send_message_length': -1,
  })
  const sessions = new Set<Session>()
  const rejections = new Rejections()
  let current: Translation | undefined
  /** The newest configuration of which a client accepted a resource of the type. */
  const accepted: Partial<Record<ResourceType, Translation>> = {}
  let endpoints: ResourceMap = new Map()
  let tcp: LimitedPort | undefined

  const resourcesOf = (type: ResourceType): ResourceMap =>
    type === 'endpoints' ? endpoints : (current?.resources[type] ?? new Map())
  const report = (hasChanged: boolean): void => {
    if (hasChanged) options.onRejections?.(rejections.list())
  }

  function serve<Request, Response>(
    variant: 'delta' | 'state-of-the-world',
    stream: ServerDuplexStream<Request, Response>,
    read: (request: Request) => SessionRequest | undefined,
    write: (response: SessionResponse) => Response,
  ): void {
    if (sessions.size >= maxStreams) {
      const details = `this control plane serves ${maxStreams} streams at a time`
      stream.emit('error', { code: status.RESOURCE_EXHAUSTED, details, metadata: new Metadata() })
      return
    }
    const sentWith = new Map<ResourceType, Translation | undefined>()
    const session = new Session(
      variant,
      {
        clock,
        resources: resourcesOf,
        send(response) {
          sentWith.set(response.type, current)
          stream.write(write(response))
        },
        onAccepted(type, names) {
          const translation = sentWith.get(type)
          if (translation !== undefined) accepted[type] = translation
          report(rejections.clear(type, names))
        },
        onRejected(type, names, message) {
          log.warn({ type, resources: names.slice(0, 10), error: message.slice(0, 2_000) }, 'configuration rejected')
          const translation = sentWith.get(type)
          if (translation === undefined) return
          const before = accepted[type]
          report(
            rejections.add(
              names.map((name) => ({ type, name, message, owners: ownersOf(type, name, translation, before) })),
            ),
          )
        },
      },
      options,
    )
    sessions.add(session)
    const leave = tcp?.follow(stream.getPeer())
    const end = (): void => {
      leave?.()
      session.close()
      sessions.delete(session)
    }
    stream.on('data', (request: Request) => {
      const received = read(request)
      if (received !== undefined) session.receive(received)
    })
    stream.on('end', () => {
      end()
      stream.end()
    })
    stream.on('error', (error: Error) => {
      log.debug({ error: messageOf(error) }, 'stream ended')
      end()
    })
    stream.on('cancelled', end)
    stream.on('close', end)
  }

  server.addService(
    {
      StreamAggregatedResources: streamMethod('StreamAggregatedResources', SOTW_REQUEST, SOTW_RESPONSE),
      DeltaAggregatedResources: streamMethod('DeltaAggregatedResources', DELTA_REQUEST, DELTA_RESPONSE),
    },
    {
      StreamAggregatedResources: (stream: ServerDuplexStream<SotwRequest, SotwResponse>) =>
        serve('state-of-the-world', stream, readSotw, writeSotw),
      DeltaAggregatedResources: (stream: ServerDuplexStream<DeltaRequest, DeltaResponse>) =>
        serve('delta', stream, readDelta, writeDelta),
    },
  )

  return {
    get streams() {
      return sessions.size
    },
    publish(translation, nextEndpoints) {
      current = translation
      endpoints = nextEndpoints
      report(rejections.retain((type, name) => resourcesOf(type).has(name)))
      for (const session of sessions) session.pump()
    },
    updateEndpoints(changed) {
      endpoints = new Map([...endpoints, ...changed])
      for (const session of sessions) session.pump()
    },
    async listen(address, credentials) {
      if (current === undefined) throw new Error('there is no configuration yet, and an empty one must not be served')
      const inet = /^(?:\[(?<six>[^\]]+)\]|(?<host>[^:/]+)):(?<port>\d+)$/.exec(address)?.groups
      if (inet !== undefined) {
        tcp = limitedPort(server.createConnectionInjector(credentials), options.limits)
        return await tcp.listen(inet['six'] ?? inet['host'] ?? '', Number(inet['port']))
      }
      return await new Promise<number>((resolve, reject) => {
        server.bindAsync(address, credentials, (error, port) => (error === null ? resolve(port) : reject(error)))
      })
    },
    async close() {
      for (const session of sessions) session.close()
      tcp?.close()
      // Streams end only when their clients do: they are cut.
      server.forceShutdown()
      await Promise.resolve()
    },
  }
}

const SOTW_REQUEST = 'envoy.service.discovery.v3.DiscoveryRequest'
const SOTW_RESPONSE = 'envoy.service.discovery.v3.DiscoveryResponse'
const DELTA_REQUEST = 'envoy.service.discovery.v3.DeltaDiscoveryRequest'
const DELTA_RESPONSE = 'envoy.service.discovery.v3.DeltaDiscoveryResponse'

function streamMethod(name: string, request: MessageName, response: MessageName) {
  const codecOf = <N extends MessageName>(type: N) => ({
    serialize: (value: Message<N>) => bufferOf(encode(type, value)),
    deserialize: (bytes: Buffer) => decode(type, bytes),
  })
  const [requests, responses] = [codecOf(request), codecOf(response)]
  return {
    path: `${SERVICE}/${name}`,
    requestStream: true,
    responseStream: true,
    requestSerialize: requests.serialize,
    requestDeserialize: requests.deserialize,
    responseSerialize: responses.serialize,
    responseDeserialize: responses.deserialize,
  } as const
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function readSotw(request: SotwRequest): SessionRequest | undefined {
  return readRequest(request, { kind: 'replace', names: request.resource_names, version: request.version_info })
}

function readDelta(request: DeltaRequest): SessionRequest | undefined {
  return readRequest(request, {
    kind: 'delta',
    subscribe: request.resource_names_subscribe,
    unsubscribe: request.resource_names_unsubscribe,
    initial: request.initial_resource_versions,
  })
}

function readRequest(
  request: SotwRequest | DeltaRequest,
  subscription: SessionRequest['subscription'],
): SessionRequest | undefined {
  const type = findResourceType(request.type_url)
  return type === undefined ? undefined : { type, nonce: request.response_nonce, ...errorOf(request), subscription }
}

/** A message that is absent is null after decoding. */
function errorOf({ error_detail: error }: { error_detail: { message?: string } | null }): { error?: string } {
  return error === null || error === undefined ? {} : { error: error.message ?? 'rejected without a message' }
}

function writeSotw({ type, nonce, version, resources }: SessionResponse): SotwResponse {
  return {
    type_url: typeUrlOf(MESSAGE_OF[type]),
    nonce,
    version_info: version,
    resources: resources.map(({ any }) => any),
  }
}

function writeDelta({ type, nonce, resources, removed }: SessionResponse): DeltaResponse {
  return {
    type_url: typeUrlOf(MESSAGE_OF[type]),
    nonce,
    resources: resources.map(({ name, version, any }) => ({ name, version, resource: any })),
    removed_resources: removed,
  }
}
