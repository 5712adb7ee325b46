/**
 * The part of Envoy's API that the gateway uses, from the `.proto` files of Envoy that `@grpc/grpc-js-xds` contains: a
 * descriptor for protobufjs and TypeScript types. Only the messages of MESSAGES are kept, without the fields that refer
 * to others, so that the descriptor stays small and a field outside of it is a type error.
 */
import { dirname, join } from 'node:path'
import { createRequire } from 'node:module'
import protobuf from 'protobufjs'

const require = createRequire(import.meta.url)
const XDS_PACKAGE = dirname(require.resolve('@grpc/grpc-js-xds/package.json'))
const FOLDERS = [
  ...['envoy-api', 'xds', 'googleapis', 'protoc-gen-validate'].map((name) => join(XDS_PACKAGE, 'deps', name)),
  dirname(require.resolve('protobufjs/package.json')),
]

const EXTENSIONS = 'envoy.extensions'
/** Full names of the messages, by the file that contains them. */
const MESSAGES: Readonly<Record<string, readonly string[]>> = {
  'envoy/service/discovery/v3/discovery.proto': [
    'envoy.service.discovery.v3.DiscoveryRequest',
    'envoy.service.discovery.v3.DiscoveryResponse',
    'envoy.service.discovery.v3.DeltaDiscoveryRequest',
    'envoy.service.discovery.v3.DeltaDiscoveryResponse',
    'envoy.service.discovery.v3.Resource',
  ],
  'google/rpc/status.proto': ['google.rpc.Status'],
  'google/protobuf/any.proto': ['google.protobuf.Any'],
  'google/protobuf/duration.proto': ['google.protobuf.Duration'],
  'google/protobuf/wrappers.proto': [
    'google.protobuf.UInt32Value',
    'google.protobuf.BoolValue',
    'google.protobuf.DoubleValue',
  ],
  'google/protobuf/empty.proto': ['google.protobuf.Empty'],
  'envoy/config/bootstrap/v3/bootstrap.proto': [
    'envoy.config.bootstrap.v3.Bootstrap',
    'envoy.config.bootstrap.v3.Bootstrap.StaticResources',
    'envoy.config.bootstrap.v3.Bootstrap.DynamicResources',
    'envoy.config.bootstrap.v3.Admin',
  ],
  'envoy/config/core/v3/address.proto': [
    'envoy.config.core.v3.Address',
    'envoy.config.core.v3.CidrRange',
    'envoy.config.core.v3.SocketAddress',
    'envoy.config.core.v3.Pipe',
  ],
  'envoy/config/core/v3/base.proto': [
    'envoy.config.core.v3.DataSource',
    'envoy.config.core.v3.HeaderValue',
    'envoy.config.core.v3.HeaderValueOption',
    'envoy.config.core.v3.Node',
    'envoy.config.core.v3.RuntimeFractionalPercent',
    'envoy.config.core.v3.TransportSocket',
    'envoy.config.core.v3.WatchedDirectory',
  ],
  'envoy/config/core/v3/config_source.proto': [
    'envoy.config.core.v3.AggregatedConfigSource',
    'envoy.config.core.v3.ApiConfigSource',
    'envoy.config.core.v3.ConfigSource',
    'envoy.config.core.v3.PathConfigSource',
  ],
  'envoy/config/core/v3/grpc_service.proto': [
    'envoy.config.core.v3.GrpcService',
    'envoy.config.core.v3.GrpcService.EnvoyGrpc',
  ],
  'envoy/config/core/v3/health_check.proto': [
    'envoy.config.core.v3.HealthCheck',
    'envoy.config.core.v3.HealthCheck.HttpHealthCheck',
  ],
  'envoy/config/core/v3/protocol.proto': [
    'envoy.config.core.v3.Http1ProtocolOptions',
    'envoy.config.core.v3.Http2ProtocolOptions',
    'envoy.config.core.v3.HttpProtocolOptions',
    'envoy.config.core.v3.KeepaliveSettings',
  ],
  'envoy/config/listener/v3/listener.proto': ['envoy.config.listener.v3.Listener'],
  'envoy/config/listener/v3/listener_components.proto': [
    'envoy.config.listener.v3.Filter',
    'envoy.config.listener.v3.FilterChain',
    'envoy.config.listener.v3.FilterChainMatch',
    'envoy.config.listener.v3.ListenerFilter',
  ],
  'envoy/config/route/v3/route.proto': ['envoy.config.route.v3.RouteConfiguration'],
  'envoy/config/route/v3/route_components.proto': [
    'envoy.config.route.v3.DirectResponseAction',
    'envoy.config.route.v3.HeaderMatcher',
    'envoy.config.route.v3.QueryParameterMatcher',
    'envoy.config.route.v3.RedirectAction',
    'envoy.config.route.v3.RetryPolicy',
    'envoy.config.route.v3.Route',
    'envoy.config.route.v3.RouteAction',
    'envoy.config.route.v3.RouteAction.HashPolicy',
    'envoy.config.route.v3.RouteAction.HashPolicy.ConnectionProperties',
    'envoy.config.route.v3.RouteAction.HashPolicy.Cookie',
    'envoy.config.route.v3.RouteAction.HashPolicy.Header',
    'envoy.config.route.v3.RouteAction.HashPolicy.QueryParameter',
    'envoy.config.route.v3.RouteAction.RequestMirrorPolicy',
    'envoy.config.route.v3.RouteAction.UpgradeConfig',
    'envoy.config.route.v3.RouteMatch',
    'envoy.config.route.v3.VirtualHost',
    'envoy.config.route.v3.WeightedCluster',
    'envoy.config.route.v3.WeightedCluster.ClusterWeight',
  ],
  'envoy/config/cluster/v3/cluster.proto': [
    'envoy.config.cluster.v3.Cluster',
    'envoy.config.cluster.v3.Cluster.CommonLbConfig',
    'envoy.config.cluster.v3.Cluster.EdsClusterConfig',
  ],
  'envoy/config/cluster/v3/circuit_breaker.proto': [
    'envoy.config.cluster.v3.CircuitBreakers',
    'envoy.config.cluster.v3.CircuitBreakers.Thresholds',
  ],
  'envoy/config/endpoint/v3/endpoint.proto': ['envoy.config.endpoint.v3.ClusterLoadAssignment'],
  'envoy/config/endpoint/v3/endpoint_components.proto': [
    'envoy.config.endpoint.v3.Endpoint',
    'envoy.config.endpoint.v3.LbEndpoint',
    'envoy.config.endpoint.v3.LocalityLbEndpoints',
  ],
  'envoy/type/matcher/v3/regex.proto': [
    'envoy.type.matcher.v3.RegexMatchAndSubstitute',
    'envoy.type.matcher.v3.RegexMatcher',
  ],
  'envoy/type/matcher/v3/string.proto': ['envoy.type.matcher.v3.StringMatcher'],
  'envoy/type/v3/percent.proto': ['envoy.type.v3.FractionalPercent', 'envoy.type.v3.Percent'],
  'envoy/type/v3/http_status.proto': ['envoy.type.v3.HttpStatus'],
  'envoy/type/v3/range.proto': ['envoy.type.v3.Int64Range'],
  'envoy/type/v3/token_bucket.proto': ['envoy.type.v3.TokenBucket'],
  'envoy/extensions/filters/http/cors/v3/cors.proto': [
    `${EXTENSIONS}.filters.http.cors.v3.Cors`,
    `${EXTENSIONS}.filters.http.cors.v3.CorsPolicy`,
  ],
  'envoy/extensions/filters/http/local_ratelimit/v3/local_rate_limit.proto': [
    `${EXTENSIONS}.filters.http.local_ratelimit.v3.LocalRateLimit`,
  ],
  'envoy/extensions/filters/http/router/v3/router.proto': [`${EXTENSIONS}.filters.http.router.v3.Router`],
  'envoy/extensions/filters/listener/tls_inspector/v3/tls_inspector.proto': [
    `${EXTENSIONS}.filters.listener.tls_inspector.v3.TlsInspector`,
  ],
  'envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.proto': [
    `${EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
    `${EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager.InternalAddressConfig`,
    `${EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager.UpgradeConfig`,
    `${EXTENSIONS}.filters.network.http_connection_manager.v3.HttpFilter`,
    `${EXTENSIONS}.filters.network.http_connection_manager.v3.Rds`,
  ],
  'envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy.proto': [
    `${EXTENSIONS}.filters.network.tcp_proxy.v3.TcpProxy`,
    `${EXTENSIONS}.filters.network.tcp_proxy.v3.TcpProxy.WeightedCluster`,
    `${EXTENSIONS}.filters.network.tcp_proxy.v3.TcpProxy.WeightedCluster.ClusterWeight`,
  ],
  'envoy/extensions/transport_sockets/tls/v3/common.proto': [
    `${EXTENSIONS}.transport_sockets.tls.v3.CertificateValidationContext`,
    `${EXTENSIONS}.transport_sockets.tls.v3.SubjectAltNameMatcher`,
    `${EXTENSIONS}.transport_sockets.tls.v3.TlsCertificate`,
    `${EXTENSIONS}.transport_sockets.tls.v3.TlsParameters`,
  ],
  'envoy/extensions/transport_sockets/tls/v3/secret.proto': [
    `${EXTENSIONS}.transport_sockets.tls.v3.SdsSecretConfig`,
    `${EXTENSIONS}.transport_sockets.tls.v3.Secret`,
  ],
  'envoy/extensions/transport_sockets/tls/v3/tls.proto': [
    `${EXTENSIONS}.transport_sockets.tls.v3.CommonTlsContext`,
    `${EXTENSIONS}.transport_sockets.tls.v3.DownstreamTlsContext`,
    `${EXTENSIONS}.transport_sockets.tls.v3.UpstreamTlsContext`,
  ],
  'envoy/extensions/upstreams/http/v3/http_protocol_options.proto': [
    `${EXTENSIONS}.upstreams.http.v3.HttpProtocolOptions`,
    `${EXTENSIONS}.upstreams.http.v3.HttpProtocolOptions.ExplicitHttpConfig`,
  ],
}

const WANTED = new Set(Object.values(MESSAGES).flat())

interface Json {
  nested?: Record<string, Json>
  fields?: Record<string, { type: string; id: number; rule?: string; keyType?: string }>
  oneofs?: Record<string, { oneof: string[] }>
  values?: Record<string, number>
}

function loadRoot(): protobuf.Root {
  const root = new protobuf.Root()
  root.resolvePath = (_origin, target) =>
    FOLDERS.map((folder) => join(folder, target)).find((file) => protobuf.util.fs.existsSync(file)) ?? null
  root.loadSync(Object.keys(MESSAGES), { keepCase: true })
  root.resolveAll()
  return root
}

/** `.a.b.C` → `a.b.C`. */
const plain = (fullName: string): string => fullName.replace(/^\./, '')

function isKept(field: protobuf.Field): boolean {
  const { resolvedType } = field
  return (
    field.getOption('deprecated') !== true &&
    (resolvedType === null || resolvedType instanceof protobuf.Enum || WANTED.has(plain(resolvedType.fullName)))
  )
}

function keptMessages(root: protobuf.Root): protobuf.Type[] {
  return [...WANTED].toSorted().map((name) => root.lookupType(name))
}

/** An enum that a kept field uses, as its own message or file declares it. */
function keptEnums(messages: readonly protobuf.Type[]): protobuf.Enum[] {
  const enums = new Set<protobuf.Enum>()
  for (const message of messages)
    for (const { resolvedType } of message.fieldsArray.filter(isKept))
      if (resolvedType instanceof protobuf.Enum) enums.add(resolvedType)
  return [...enums].toSorted((a, b) => (a.fullName < b.fullName ? -1 : 1))
}

function place(tree: Json, fullName: string, content: Json): void {
  const parts = plain(fullName).split('.')
  let at = tree
  for (const part of parts) {
    at.nested ??= {}
    at = at.nested[part] ??= {}
  }
  Object.assign(at, content)
}

function descriptorOf(message: protobuf.Type): Json {
  const kept = message.fieldsArray.filter(isKept)
  const fields = kept.map((field) => [
    field.name,
    {
      ...(field instanceof protobuf.MapField && { keyType: field.keyType }),
      ...(field.repeated && { rule: 'repeated' }),
      type: field.resolvedType === null ? field.type : plain(field.resolvedType.fullName),
      id: field.id,
    },
  ])
  const oneofs = message.oneofsArray
    .map(({ name, fieldsArray }) => [name, { oneof: fieldsArray.filter(isKept).map((field) => field.name) }] as const)
    .filter(([name, { oneof }]) => oneof.length > 0 && !name.startsWith('_'))
  return {
    fields: Object.fromEntries(fields),
    ...(oneofs.length > 0 && { oneofs: Object.fromEntries(oneofs) }),
  }
}

/** `envoy.config.route.v3.RouteAction.HashPolicy` → `RouteActionHashPolicy`; two messages of one name get their package. */
function typeNames(all: readonly { fullName: string }[]): Map<string, string> {
  const short = (fullName: string): string =>
    fullName
      .split('.')
      .filter((part) => /^[A-Z]/.test(part))
      .join('')
  const counts = new Map<string, number>()
  for (const { fullName } of all) counts.set(short(fullName), (counts.get(short(fullName)) ?? 0) + 1)
  return new Map(
    all.map(({ fullName }) => {
      const name = short(fullName)
      if (counts.get(name) === 1) return [plain(fullName), name]
      const packageName =
        fullName
          .split('.')
          .filter((part) => /^[a-z]/.test(part) && !/^v\d/.test(part))
          .at(-1) ?? ''
      return [plain(fullName), `${packageName[0]?.toUpperCase()}${packageName.slice(1)}${name}`]
    }),
  )
}

const SCALARS: Readonly<Record<string, string>> = {
  string: 'string',
  bool: 'boolean',
  bytes: 'Uint8Array',
  double: 'number',
  float: 'number',
  int32: 'number',
  uint32: 'number',
  int64: 'number',
  uint64: 'number',
}

function typeOf(field: protobuf.Field, names: ReadonlyMap<string, string>): string {
  const { resolvedType } = field
  const one = resolvedType === null ? SCALARS[field.type] : names.get(plain(resolvedType.fullName))
  if (one === undefined) throw new Error(`no type for ${field.fullName}: ${field.type}`)
  if (field instanceof protobuf.MapField) return `Readonly<Record<string, ${one}>>`
  return field.repeated ? `readonly ${one}[]` : one
}

const HEADER = 'Generated by scripts/generate/envoy-api.ts from the .proto files of Envoy; do not edit.'

/** @returns the content of `envoy-api.ts`: types, enums, and the descriptor as a constant. */
export function envoyApi(): string {
  const root = loadRoot()
  const messages = keptMessages(root)
  const enums = keptEnums(messages)
  const names = typeNames([...messages, ...enums])
  const tree: Json = {}
  for (const message of messages) place(tree, message.fullName, descriptorOf(message))
  for (const each of enums) place(tree, each.fullName, { values: each.values })
  const nameOf = (fullName: string): string => names.get(plain(fullName)) ?? ''
  const lines = [
    `// ${HEADER}`,
    '/* oxlint-disable */',
    '',
    'export const Enums = {',
    ...enums.map((each) => `  ${nameOf(each.fullName)}: ${JSON.stringify(each.values)},`),
    '} as const',
    '',
    ...enums.map((each) => {
      const name = nameOf(each.fullName)
      return `type ${name} = (typeof Enums.${name})[keyof typeof Enums.${name}]`
    }),
    '',
    ...messages.flatMap((message) => {
      const fields = message.fieldsArray.filter(isKept)
      const name = nameOf(message.fullName)
      const members = fields.map((field) => `  readonly ${field.name}?: ${typeOf(field, names)}`)
      return members.length === 0
        ? [`type ${name} = Readonly<Record<string, never>>`, '']
        : [`interface ${name} {`, ...members, '}', '']
    }),
    '/** Types by the full names of their messages. */',
    'export interface Messages {',
    ...messages.map(({ fullName }) => `  '${plain(fullName)}': ${nameOf(fullName)}`),
    '}',
    '',
    '/** For `Root.fromJSON` of protobufjs. */',
    `export const DESCRIPTOR = JSON.parse('${JSON.stringify(tree)}') as { nested: Record<string, never> }`,
    '',
  ]
  return lines.join('\n')
}
