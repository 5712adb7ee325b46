/**
 * The bootstrap configuration of Envoy: where the control plane is, and nothing else. Everything that depends on objects
 * comes over xDS, in the delta variant, so that a change of one cluster is not sent with all others.
 */
import { hostname } from 'node:os'
import { FROM_ADS } from '../xds/clusters.ts'
import { durationOf, encode, Enums, packAny, toJson, type Message } from '../xds/protobuf.ts'

type XdsAddress = { readonly path: string } | { readonly host: string; readonly port: number; readonly tls?: XdsTls }

/** Files of Envoy's side; Envoy reads them again when their folder changes. */
interface XdsTls {
  readonly caFile: string
  readonly certificateFile: string
  readonly keyFile: string
  /** Name in the certificate of the control plane. */
  readonly serverName: string
}

export interface BootstrapOptions {
  readonly xds: XdsAddress
  /** Socket file of the admin interface; without it there is none. */
  readonly adminSocket?: string
  /** @default the name of the machine */
  readonly nodeId?: string
}

const CONTROL_PLANE = 'seamark'
const KEEPALIVE_MS = 30_000

export function bootstrapOf({ xds, adminSocket, nodeId = hostname() }: BootstrapOptions): object {
  const message: Message<'envoy.config.bootstrap.v3.Bootstrap'> = {
    node: { id: nodeId, cluster: CONTROL_PLANE },
    ...(adminSocket !== undefined && { admin: { address: { pipe: { path: adminSocket } } } }),
    dynamic_resources: {
      ads_config: {
        api_type: Enums.ApiConfigSourceApiType.DELTA_GRPC,
        transport_api_version: Enums.ApiVersion.V3,
        set_node_on_first_message_only: true,
        grpc_services: [{ envoy_grpc: { cluster_name: CONTROL_PLANE } }],
      },
      cds_config: FROM_ADS,
      lds_config: FROM_ADS,
    },
    static_resources: { clusters: [controlPlane(xds)] },
  }
  const name = 'envoy.config.bootstrap.v3.Bootstrap'
  return {
    ...(toJson(name, encode(name, message)) as object),
    // Envoy's default for the size of a compiled regular expression is lower than what RE2 accepts here.
    layered_runtime: {
      layers: [{ name: 'seamark', static_layer: { 're2.max_program_size.error_level': 1_048_576 } }],
    },
  }
}

function controlPlane(xds: XdsAddress): Message<'envoy.config.cluster.v3.Cluster'> {
  const address =
    'path' in xds ? { pipe: { path: xds.path } } : { socket_address: { address: xds.host, port_value: xds.port } }
  return {
    name: CONTROL_PLANE,
    type: 'path' in xds ? Enums.ClusterDiscoveryType.STATIC : Enums.ClusterDiscoveryType.STRICT_DNS,
    connect_timeout: durationOf(5_000),
    load_assignment: { cluster_name: CONTROL_PLANE, endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }] },
    typed_extension_protocol_options: {
      'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': packAny(
        'envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
        {
          explicit_http_config: {
            http2_protocol_options: {
              connection_keepalive: { interval: durationOf(KEEPALIVE_MS), timeout: durationOf(KEEPALIVE_MS / 3) },
            },
          },
        },
      ),
    },
    ...(!('path' in xds) && xds.tls !== undefined && { transport_socket: clientTls(xds.tls) }),
  }
}

function clientTls({ caFile, certificateFile, keyFile, serverName }: XdsTls) {
  return {
    name: 'envoy.transport_sockets.tls',
    typed_config: packAny('envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext', {
      sni: serverName,
      common_tls_context: {
        alpn_protocols: ['h2'],
        tls_params: { tls_minimum_protocol_version: Enums.TlsParametersTlsProtocol.TLSv1_2 },
        tls_certificates: [
          {
            certificate_chain: { filename: certificateFile },
            private_key: { filename: keyFile },
            watched_directory: { path: folderOf(certificateFile) },
          },
        ],
        validation_context: {
          trusted_ca: { filename: caFile },
          watched_directory: { path: folderOf(caFile) },
          match_typed_subject_alt_names: [
            { san_type: Enums.SubjectAltNameMatcherSanType.DNS, matcher: { exact: serverName } },
          ],
        },
      },
    }),
  }
}

function folderOf(file: string): string {
  const slash = file.lastIndexOf('/')
  return slash < 0 ? '.' : file.slice(0, slash) || '/'
}
