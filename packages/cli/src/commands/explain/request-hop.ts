/** The route hop of `seamark explain URL`: which rule of which object takes the request. Reads the cluster, writes nothing. */
import {
  build,
  BUILD_DEFAULTS,
  type Objects,
  type RequestQuestion,
  type RequestTrace,
  traceRequest,
} from '@seamark/gateway'
import { type Client, ConfigMap, EndpointSlice, Ingress, Namespace, NotFound, Secret, Service } from '@seamark/kube'
import { HTTPProxy, TLSCertificateDelegation } from '@seamark/kube/contour'
import {
  BackendTLSPolicy,
  Gateway,
  GatewayClass,
  GRPCRoute,
  HTTPRoute,
  ReferenceGrant,
  TLSRoute,
} from '@seamark/kube/gateway-api'
import { keyOf, type Immutable, type Key, type Kind, type Obj } from '@seamark/kube/object'
import { type ManagerConfiguration, processGrants } from '@seamark/operator'
import { CommandError, EXIT } from '../../command.ts'
import { type GatewayRules, gatewayRules } from '../../gateway-rules.ts'
import { DEFAULT_NAMESPACE } from '../../flags/kube-flags.ts'

const KINDS: readonly Kind[] = [
  Ingress,
  HTTPProxy,
  TLSCertificateDelegation,
  GatewayClass,
  Gateway,
  HTTPRoute,
  GRPCRoute,
  TLSRoute,
  BackendTLSPolicy,
  ReferenceGrant,
  Service,
  EndpointSlice,
  Secret,
  ConfigMap,
  Namespace,
]

/** `https://HOST/PATH?QUERY` with the header fields of `-H`; undefined if the argument is a host name. */
export function parseQuestion(
  argument: string,
  method: string,
  headerFlags: readonly string[],
): RequestQuestion | undefined {
  if (!argument.includes('://')) {
    if (headerFlags.length > 0)
      throw new CommandError('--header asks about a request: give its URL, https://HOST/PATH', EXIT.usage)
    return undefined
  }
  let url: URL
  try {
    url = new URL(argument)
  } catch {
    throw new CommandError(`${argument} is not a URL such as https://shop.example.com/cart`, EXIT.usage)
  }
  const { protocol } = url
  if (protocol !== 'http:' && protocol !== 'https:')
    throw new CommandError(`${argument}: only http:// and https:// can be explained`, EXIT.usage)
  const headers = headerFlags.map((flag): [string, string] => {
    const colon = flag.indexOf(':')
    if (colon < 1) throw new CommandError(`--header ${flag} is not NAME: VALUE`, EXIT.usage)
    return [flag.slice(0, colon).trim(), flag.slice(colon + 1).trim()]
  })
  const given = new Map(headers.map(([name, value]) => [name.toLowerCase(), value]))
  return {
    protocol: protocol === 'https:' ? 'https' : 'http',
    authority: given.get('host') ?? url.host,
    ...(url.port !== '' && { port: Number(url.port) }),
    target: `${url.pathname}${url.search}`,
    method,
    headers: Object.fromEntries(given),
  }
}

/** What decides which objects the gateway of this configuration serves. */
export function requestRules({ gateway: config, grants, namespace }: ManagerConfiguration): GatewayRules {
  return gatewayRules(config, processGrants(grants, namespace || DEFAULT_NAMESPACE))
}

export async function traceInCluster(
  client: Client,
  question: RequestQuestion,
  rules: GatewayRules,
  signal: AbortSignal,
): Promise<RequestTrace> {
  const objects = await readObjects(client, signal)
  // Which addresses the gateway binds is not known here: every port counts as available.
  const listen = { http: { host: '::', port: 0 }, https: { host: '::', port: 0 } }
  return traceRequest(
    build(objects, { ...BUILD_DEFAULTS, ...rules, listen }),
    objects,
    question,
    objects.list(EndpointSlice),
  )
}

/** A kind that no CRD serves has no objects; one that may not be read is an error: its objects are unknown. */
async function readObjects(client: Client, signal: AbortSignal): Promise<Objects> {
  const lists = await Promise.all(
    KINDS.map(async (kind): Promise<[string, Map<Key, Obj>]> => {
      try {
        const { items } = await client.list(kind, { signal })
        return [kind.kind, new Map(items.map((each) => [keyOf(each), each]))]
      } catch (error) {
        if (error instanceof NotFound) return [kind.kind, new Map()]
        throw error
      }
    }),
  )
  const byKind = new Map(lists)
  return {
    get: <T extends Obj>(kind: Kind<T>, key: Key) => byKind.get(kind.kind)?.get(key) as Immutable<T> | undefined,
    list: <T extends Obj>(kind: Kind<T>) => [...(byKind.get(kind.kind)?.values() ?? [])] as unknown as Immutable<T>[],
  }
}

const SHOWN_ROUTES = 10

/** Lines below the hop: the rule, and why others do not take the request. */
export function printTrace(trace: RequestTrace, isWide: boolean): string {
  const { taken, passed, shadowed, problems } = trace
  const limit = isWide ? Number.POSITIVE_INFINITY : SHOWN_ROUTES
  const indent = ' '.repeat(18)
  const more = (list: readonly unknown[], what: string) =>
    list.length > limit ? [`${indent}… ${list.length - limit} more ${what}; -o wide shows all`] : []
  const lines = [
    ...(taken === undefined ? [] : [`${indent}taken by ${taken.origin}: ${taken.match}`]),
    ...passed.slice(0, limit).map((each) => `${indent}not ${each.origin}: ${each.because}`),
    ...more(passed, 'that do not match'),
    ...shadowed.slice(0, limit).map((each) => `${indent}later ${each.origin}: ${each.match} matches too`),
    ...more(shadowed, 'that match too'),
    ...problems.map((each) => `${indent}problem ${each}`),
  ]
  return lines.map((line) => `${line}\n`).join('')
}
