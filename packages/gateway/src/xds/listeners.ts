/**
 * The listeners of Envoy. HTTP is one filter chain; HTTPS has one for each host, chosen by the server name, so that a
 * connection is for one host and hosts can have different TLS settings. A name that no host has matches no filter chain
 * and is closed without a certificate.
 */
import type { ClientValidation, Listener, TlsTermination, TlsVersion, VirtualHost } from '../ir/model.ts'
import type { ListenAddress } from '../ir/listen-addresses.ts'
import { BUFFER_BYTES, FROM_ADS, secretName } from './clusters.ts'
import type { Memo } from './memo.ts'
import { durationOf, encode, Enums, packAny, type Any, type Message } from './protobuf.ts'
import { joinedResource, MESSAGE_OF, type Resource } from './resource.ts'
import { CORS_FILTER, RATE_LIMIT_FILTER } from './route-policies.ts'
import { routeConfigurationName } from './routes.ts'

type FilterChain = Message<'envoy.config.listener.v3.FilterChain'>
type Filter = Message<'envoy.config.listener.v3.Filter'>
type ConnectionManager = Message<'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager'>

export const LISTENER_NAMES = { http: 'ingress_http', https: 'ingress_https' } as const

export function listenerName({ protocol, port }: Pick<Listener, 'protocol' | 'port'>): string {
  return port === undefined ? LISTENER_NAMES[protocol] : `${LISTENER_NAMES[protocol]}_${port}`
}

/** Limits of the built-in proxy. */
const LIMITS = {
  max_request_headers_kb: { value: 60 },
  request_headers_timeout: durationOf(15_000),
  common_http_protocol_options: { idle_timeout: durationOf(60_000), max_headers_count: { value: 100 } },
} satisfies ConnectionManager

const HTTP_FILTERS = [
  {
    name: CORS_FILTER,
    typed_config: packAny('envoy.extensions.filters.http.cors.v3.Cors', {}),
  },
  {
    name: RATE_LIMIT_FILTER,
    typed_config: packAny('envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit', {
      stat_prefix: 'http_local_rate_limiter',
    }),
  },
  {
    name: 'envoy.filters.http.router',
    typed_config: packAny('envoy.extensions.filters.http.router.v3.Router', {}),
  },
]

/** @param memo filter chains of earlier calls */
export function listenerResource(listener: Listener, address: ListenAddress, memo: Memo<Uint8Array>): Resource {
  const name = listenerName(listener)
  const isTls = listener.protocol === 'https'
  const settings = encode(MESSAGE_OF.listener, {
    name,
    address: {
      socket_address: {
        address: address.host,
        port_value: address.port,
        ...(address.host === '::' && { ipv4_compat: true }),
      },
    },
    per_connection_buffer_limit_bytes: { value: BUFFER_BYTES },
    ...(isTls && {
      listener_filters: [
        {
          name: 'envoy.filters.listener.tls_inspector',
          typed_config: packAny('envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector', {}),
        },
      ],
    }),
  })
  const chains = isTls
    ? tlsChains(listener, memo)
    : [partOf({ name: 'http', filters: [httpFilter(listener, undefined)] })]
  return joinedResource('listener', name, [settings, ...chains])
}

function tlsChains(listener: Listener, memo: Memo<Uint8Array>): Uint8Array[] {
  const chains = listener.hosts.flatMap((host) => {
    const filter = filterOf(listener, host)
    if (filter === undefined) return []
    const { tls, tcp } = host
    return [memo.get(JSON.stringify([listener.port, host.host, tls, tcp]), () => partOf(chainOf(host, filter())))]
  })
  return chains.length > 0 ? chains : [partOf(CLOSING_CHAIN)]
}

function partOf(chain: FilterChain): Uint8Array {
  return encode(MESSAGE_OF.listener, { filter_chains: [chain] })
}

/** No cluster has this name: connections to it are closed. */
const NO_CLUSTER = 'none'

/** A listener needs a filter chain; this one is for a name that is never registered (RFC 6761), so every connection is closed. */
const CLOSING_CHAIN: FilterChain = {
  name: 'no host',
  filter_chain_match: { server_names: ['seamark.invalid'] },
  filters: [tcpFilter('none', [{ name: NO_CLUSTER, weight: 1 }])],
}

/** Made only when it is needed: the message of a filter takes longer than everything else of the chain. */
function filterOf(listener: Listener, { host, tls, tcp }: VirtualHost): (() => Filter) | undefined {
  if (tcp !== undefined) {
    const usable = tcp.backends.filter(({ weight }) => weight > 0)
    const clusters = (usable.length > 0 ? usable : tcp.backends).map(({ cluster, weight }) => ({
      name: cluster,
      weight: Math.max(weight, 1),
    }))
    const { invalidWeight = 0 } = tcp
    const shares = invalidWeight > 0 ? [...clusters, { name: NO_CLUSTER, weight: invalidWeight }] : clusters
    return shares.length === 0 ? undefined : () => tcpFilter(host, shares)
  }
  return tls === undefined ? undefined : () => httpFilter(listener, host)
}

function chainOf({ host, tls, tcp }: VirtualHost, filter: Filter): FilterChain {
  return {
    name: host,
    filter_chain_match: host === '*' ? { transport_protocol: 'tls' } : { server_names: [host] },
    filters: [filter],
    ...(tls !== undefined && {
      transport_socket: {
        name: 'envoy.transport_sockets.tls',
        typed_config: downstreamTls(tls, tcp === undefined ? ['h2', 'http/1.1'] : []),
      },
    }),
  }
}

function tcpFilter(host: string, clusters: readonly { name: string; weight: number }[]): Filter {
  return {
    name: 'envoy.filters.network.tcp_proxy',
    typed_config: packAny('envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy', {
      stat_prefix: `tcp/${host}`,
      weighted_clusters: { clusters },
    }),
  }
}

function httpFilter(listener: Listener, host: string | undefined): Filter {
  const { protocol } = listener
  const isTls = protocol === 'https'
  return {
    name: 'envoy.filters.network.http_connection_manager',
    typed_config: packAny('envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager', {
      ...LIMITS,
      // One prefix for all ports: the requests in flight are counted by it before a stop.
      stat_prefix: LISTENER_NAMES[protocol],
      rds: { config_source: FROM_ADS, route_config_name: routeConfigurationName(listener, host) },
      http_filters: HTTP_FILTERS,
      http_protocol_options: { accept_http_10: true },
      use_remote_address: { value: true },
      // No client is internal, also not one with a private address: the rules of the edge are for all of them. Without any range
      // Envoy takes private addresses for internal; no client has this one.
      internal_address_config: { cidr_ranges: [{ address_prefix: '255.255.255.255', prefix_len: { value: 32 } }] },
      normalize_path: { value: true },
      merge_slashes: true,
      path_with_escaped_slashes_action: Enums.HttpConnectionManagerPathWithEscapedSlashesAction.KEEP_UNCHANGED,
      server_header_transformation: Enums.HttpConnectionManagerServerHeaderTransformation.PASS_THROUGH,
      preserve_external_request_id: true,
      // Over TLS a trailing dot makes it another host than the one of the connection: 421.
      ...(!isTls && { strip_trailing_host_dot: true }),
      // Routes that accept upgrades enable them; others answer 403.
      upgrade_configs: [{ upgrade_type: 'websocket', enabled: { value: false } }],
    }),
  }
}

const TLS_VERSIONS = {
  '1.2': Enums.TlsParametersTlsProtocol.TLSv1_2,
  '1.3': Enums.TlsParametersTlsProtocol.TLSv1_3,
} as const satisfies Record<TlsVersion, number>

function downstreamTls(tls: TlsTermination, alpnProtocols: readonly string[]): Any {
  const { certificate, minVersion, maxVersion, clientValidation } = tls
  return packAny('envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext', {
    common_tls_context: {
      tls_params: {
        tls_minimum_protocol_version: TLS_VERSIONS[minVersion],
        tls_maximum_protocol_version: TLS_VERSIONS[maxVersion],
      },
      tls_certificate_sds_secret_configs: [{ name: secretName(certificate), sds_config: FROM_ADS }],
      alpn_protocols: alpnProtocols,
      ...(clientValidation !== undefined && { validation_context: validationOf(clientValidation) }),
    },
    ...(clientValidation !== undefined &&
      clientValidation.ca !== '' && { require_client_certificate: { value: !clientValidation.isOptional } }),
  })
}

function validationOf({
  ca,
}: ClientValidation): Message<'envoy.extensions.transport_sockets.tls.v3.CertificateValidationContext'> {
  if (ca !== '') return { trusted_ca: { inline_string: ca } }
  return { trust_chain_verification: Enums.CertificateValidationContextTrustChainVerification.ACCEPT_UNTRUSTED }
}
