/**
 * A resource as xDS carries it: a name, the message as bytes, and a version. The version is a hash of the bytes, so that a
 * restarted control plane, or another replica, with the same objects has the same versions and sends nothing.
 */
import { createHash } from 'node:crypto'
import { typeUrlOf, encode, type Any, type Message, type MessageName } from './protobuf.ts'

/** In the order in which an update is sent: what a resource refers to comes before it. */
export const RESOURCE_TYPES = ['cluster', 'endpoints', 'secret', 'listener', 'route'] as const
export type ResourceType = (typeof RESOURCE_TYPES)[number]

export const MESSAGE_OF = {
  cluster: 'envoy.config.cluster.v3.Cluster',
  endpoints: 'envoy.config.endpoint.v3.ClusterLoadAssignment',
  secret: 'envoy.extensions.transport_sockets.tls.v3.Secret',
  listener: 'envoy.config.listener.v3.Listener',
  route: 'envoy.config.route.v3.RouteConfiguration',
} as const satisfies Record<ResourceType, MessageName>

export interface Resource {
  readonly name: string
  readonly any: Any
  /** Content hash. */
  readonly version: string
}

export type ResourceMap = ReadonlyMap<string, Resource>

export function resourceOf<T extends ResourceType>(
  type: T,
  name: string,
  message: Message<(typeof MESSAGE_OF)[T]>,
): Resource {
  return encodedResource(type, name, encode(MESSAGE_OF[type], message))
}

/** @param parts encoded messages: concatenated they are one message, whose repeated fields have the elements of all parts */
export function joinedResource(type: ResourceType, name: string, parts: readonly Uint8Array[]): Resource {
  return encodedResource(type, name, Buffer.concat(parts))
}

function encodedResource(type: ResourceType, name: string, value: Uint8Array): Resource {
  return { name, any: { type_url: typeUrlOf(MESSAGE_OF[type]), value }, version: hashOf(value) }
}

const TYPE_OF_URL = new Map<string, ResourceType>(
  RESOURCE_TYPES.map((type) => [typeUrlOf(MESSAGE_OF[type]), type] as const),
)

/** Undefined for types that this server does not have. */
export function findResourceType(typeUrl: string): ResourceType | undefined {
  return TYPE_OF_URL.get(typeUrl)
}

export function hashOf(content: Uint8Array | string): string {
  return createHash('sha256').update(content).digest('hex').slice(0, 16)
}
