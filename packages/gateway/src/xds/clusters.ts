/** Clusters, endpoints and secrets of the IR as resources of Envoy. */
import { isIP } from 'node:net'
import type { Endpoint } from '../ir/endpoint.ts'
import type { Certificate, Cluster, HealthCheck, WeightedAddress } from '../ir/model.ts'
import { durationOf, Enums, packAny, type Any, type Message } from './protobuf.ts'
import { resourceOf, type Resource } from './resource.ts'

type EnvoyCluster = Message<'envoy.config.cluster.v3.Cluster'>
type Assignment = Message<'envoy.config.endpoint.v3.ClusterLoadAssignment'>
type TransportSocket = Message<'envoy.config.core.v3.TransportSocket'>

/** Every dynamic resource is asked for on the stream that carried the resource that refers to it. */
export const FROM_ADS: Message<'envoy.config.core.v3.ConfigSource'> = {
  ads: {},
  resource_api_version: Enums.ApiVersion.V3,
}

/** Requests and responses are buffered up to this size, e.g. to send a request again. */
export const BUFFER_BYTES = 1_048_576

const PROTOCOL_OPTIONS = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions'
/** As long as the built-in proxy keeps them. */
const IDLE_CONNECTION_MS = 60_000

const HTTP1_OPTIONS = protocolOptions({ http_protocol_options: {} })
const HTTP2_OPTIONS = protocolOptions({ http2_protocol_options: {} })

function protocolOptions(
  explicit: Message<'envoy.extensions.upstreams.http.v3.HttpProtocolOptions.ExplicitHttpConfig'>,
): Any {
  return packAny(PROTOCOL_OPTIONS, {
    common_http_protocol_options: { idle_timeout: durationOf(IDLE_CONNECTION_MS) },
    explicit_http_config: explicit,
  })
}

export function clusterResource(cluster: Cluster): Resource {
  const { name, upstream, protocol, connectTimeoutMs, circuitBreakers, healthCheck } = cluster
  const isHttp2 = protocol === 'h2' || protocol === 'h2c'
  const message: EnvoyCluster = {
    name,
    ...discoveryOf(cluster),
    connect_timeout: durationOf(connectTimeoutMs),
    per_connection_buffer_limit_bytes: { value: BUFFER_BYTES },
    lb_policy: LB_POLICIES[cluster.balancing],
    typed_extension_protocol_options: { [PROTOCOL_OPTIONS]: isHttp2 ? HTTP2_OPTIONS : HTTP1_OPTIONS },
    // An endpoint that the API server no longer lists gets no request, whatever the result of its last health check was.
    ignore_health_on_host_removal: true,
    ...((protocol === 'tls' || protocol === 'h2') && {
      transport_socket: upstreamTls(cluster, upstream.kind === 'dns' ? upstream.host : undefined),
    }),
    ...(healthCheck !== undefined && { health_checks: [healthCheckOf(healthCheck, isHttp2)] }),
    ...(circuitBreakers !== undefined && {
      circuit_breakers: {
        thresholds: [
          {
            ...wrapped('max_connections', circuitBreakers.maxConnections),
            ...wrapped('max_pending_requests', circuitBreakers.maxPendingRequests),
            ...wrapped('max_requests', circuitBreakers.maxRequests),
            ...wrapped('max_retries', circuitBreakers.maxRetries),
          },
        ],
      },
    }),
  }
  return resourceOf('cluster', name, message)
}

const LB_POLICIES = {
  roundRobin: Enums.ClusterLbPolicy.ROUND_ROBIN,
  leastRequest: Enums.ClusterLbPolicy.LEAST_REQUEST,
  random: Enums.ClusterLbPolicy.RANDOM,
  hash: Enums.ClusterLbPolicy.RING_HASH,
} as const satisfies Record<Cluster['balancing'], number>

function discoveryOf({ name, upstream }: Cluster): EnvoyCluster {
  switch (upstream.kind) {
    case 'endpoints':
      return {
        type: Enums.ClusterDiscoveryType.EDS,
        eds_cluster_config: { eds_config: FROM_ADS },
      }
    case 'dns': {
      const { host, port } = upstream
      const { STATIC, STRICT_DNS } = Enums.ClusterDiscoveryType
      return {
        type: isIP(host) === 0 ? STRICT_DNS : STATIC,
        load_assignment: assignmentOf(name, [{ host, port }]),
      }
    }
    case 'addresses': {
      const { STATIC, STRICT_DNS } = Enums.ClusterDiscoveryType
      const { addresses } = upstream
      return {
        type: addresses.every(({ host }) => isIP(host) !== 0) ? STATIC : STRICT_DNS,
        load_assignment: weightedAssignmentOf(name, addresses),
      }
    }
  }
}

function upstreamTls({ protocol, tls }: Cluster, dnsName: string | undefined): TransportSocket {
  const { validation } = tls ?? {}
  const sni = tls?.sni ?? (dnsName !== undefined && isIP(dnsName) === 0 ? dnsName : undefined)
  return {
    name: 'envoy.transport_sockets.tls',
    typed_config: packAny('envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext', {
      ...(sni !== undefined && { sni }),
      common_tls_context: {
        alpn_protocols: [protocol === 'h2' ? 'h2' : 'http/1.1'],
        ...(validation !== undefined && {
          validation_context: {
            trusted_ca: { inline_string: validation.ca },
            match_typed_subject_alt_names: validation.subjectNames.map((exact) => ({
              san_type: sanType(exact),
              matcher: { exact },
            })),
          },
        }),
      },
    }),
  }
}

const SAN_TYPES = Enums.SubjectAltNameMatcherSanType

function sanType(name: string) {
  if (isIP(name) !== 0) return SAN_TYPES.IP_ADDRESS
  return name.includes('://') ? SAN_TYPES.URI : SAN_TYPES.DNS
}

function healthCheckOf(check: HealthCheck, isHttp2: boolean): Message<'envoy.config.core.v3.HealthCheck'> {
  const { path, host, intervalMs, timeoutMs, unhealthyThreshold, healthyThreshold, expectedStatuses } = check
  return {
    timeout: durationOf(timeoutMs),
    interval: durationOf(intervalMs),
    // Without it a cluster without requests is checked once a minute.
    no_traffic_interval: durationOf(intervalMs),
    unhealthy_threshold: { value: unhealthyThreshold },
    healthy_threshold: { value: healthyThreshold },
    http_health_check: {
      path,
      host,
      ...(expectedStatuses.length > 0 && { expected_statuses: expectedStatuses }),
      ...(isHttp2 && { codec_client_type: Enums.CodecClientType.HTTP2 }),
    },
  }
}

function wrapped<K extends string>(key: K, value: number | undefined): { [key in K]?: { value: number } } {
  return value === undefined ? {} : ({ [key]: { value } } as { [key in K]: { value: number } })
}

/**
 * Endpoints are named by their cluster, not by their Service. Envoy asks for a name once for all clusters that use it: a
 * second cluster of the Service, such as one with another policy, would wait for an answer that was already given.
 */
export function endpointsResource(cluster: string, endpoints: readonly Endpoint[]): Resource {
  return resourceOf('endpoints', cluster, assignmentOf(cluster, endpoints))
}

function assignmentOf(name: string, endpoints: readonly Endpoint[]): Assignment {
  const list = endpoints.map(({ host, port }) => ({
    endpoint: { address: { socket_address: { address: host, port_value: port } } },
  }))
  return { cluster_name: name, ...(list.length > 0 && { endpoints: [{ lb_endpoints: list }] }) }
}

/** One group of endpoints for each priority, as Envoy has them. */
function weightedAssignmentOf(name: string, addresses: readonly WeightedAddress[]): Assignment {
  const priorities = [...new Set(addresses.map(({ priority }) => priority))].toSorted((a, b) => a - b)
  return {
    cluster_name: name,
    endpoints: priorities.map((priority) => ({
      priority,
      lb_endpoints: addresses
        .filter((address) => address.priority === priority)
        .map(({ host, port, weight }) => ({
          endpoint: { address: { socket_address: { address: host, port_value: port } } },
          load_balancing_weight: { value: weight },
        })),
    })),
  }
}

/**
 * `namespace/name`, without the hash of the content that the IR has: a rotation then changes the secret alone. A new name
 * would change the filter chain, and Envoy ends the connections of a changed filter chain after its drain time.
 */
export function secretName(certificate: string): string {
  return certificate.slice(0, certificate.lastIndexOf('/'))
}

export function secretResource({ name, chain, key }: Certificate): Resource {
  return resourceOf('secret', secretName(name), {
    name: secretName(name),
    tls_certificate: { certificate_chain: { inline_string: chain }, private_key: { inline_string: key } },
  })
}
