/**
 * Header fields that are about one connection or about how a message is delimited. They are the business of whoever sends the
 * message: a proxy neither passes them on nor lets an object set them.
 */

/** RFC 9110 §7.6.1, RFC 9113 §8.2.2. */
export const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** @param name lower case. Policies of objects may neither set nor remove these. */
export function isReservedField(name: string): boolean {
  return HOP_BY_HOP.has(name) || name === 'content-length' || name === 'host'
}

/** What proxies say about their clients. The proxy is the edge: nobody before it is believed. */
const CERTIFICATE_FIELD = 'x-forwarded-client-cert'
const ENVOY_PREFIX = 'x-envoy-'
/** Written by the proxy itself. */
const WRITTEN_FIELDS = ['x-forwarded-for', 'x-forwarded-proto']

/**
 * Whether a field of a client is not passed on. CGI and WSGI take `_` in a name for `-` (RFC 3875 §4.1.18), so that a field in
 * another spelling is the same one for a backend.
 * @param name lower case
 */
export function isEdgeField(name: string): boolean {
  if (!name.includes('_')) return name === CERTIFICATE_FIELD || name.startsWith(ENVOY_PREFIX)
  const plain = name.replaceAll('_', '-')
  return plain === CERTIFICATE_FIELD || plain.startsWith(ENVOY_PREFIX) || WRITTEN_FIELDS.includes(plain)
}

/**
 * Those of other spellings that Envoy is told to remove: it takes names and no prefixes, and removes the ones with `-` itself.
 * Those of one name in all mixes of `-` and `_`; of its own ones, which are many, with `_` only.
 */
export const EDGE_SPELLINGS: readonly string[] = [
  ...[CERTIFICATE_FIELD, ...WRITTEN_FIELDS, 'x-envoy-internal'].flatMap(spellings),
  ...[
    'x-envoy-attempt-count',
    'x-envoy-decorator-operation',
    'x-envoy-downstream-service-cluster',
    'x-envoy-downstream-service-node',
    'x-envoy-expected-rq-timeout-ms',
    'x-envoy-external-address',
    'x-envoy-force-trace',
    'x-envoy-ip-tags',
    'x-envoy-max-retries',
    'x-envoy-original-host',
    'x-envoy-original-path',
    'x-envoy-retry-on',
    'x-envoy-upstream-alt-stat-name',
    'x-envoy-upstream-rq-timeout-ms',
  ].map((name) => name.replaceAll('-', '_')),
]

function spellings(name: string): string[] {
  const [first = '', ...rest] = name.split('-')
  const all = rest.reduce((list, part) => list.flatMap((start) => [`${start}-${part}`, `${start}_${part}`]), [first])
  return all.filter((each) => each !== name)
}
