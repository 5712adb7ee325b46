/** `tcpproxy` of an HTTPProxy: the backends of a TLS connection, possibly in an included HTTPProxy. */
import type { HTTPProxy } from '@seamark/kube/contour'
import { keyOf, type Immutable } from '@seamark/kube/object'
import type { BuildSettings, Objects } from '../../draft/input.ts'
import { clusterOf, resolveService } from '../../draft/services.ts'
import type { DraftSink } from '../../draft/step.ts'
import type { Backend } from '../../ir/model.ts'
import { MAX_DEPTH } from './include-tree.ts'
import type { ProxyVerdict } from './verdict.ts'

export interface TcpInput {
  readonly draft: DraftSink
  readonly objects: Objects
  readonly settings: BuildSettings
  /** An HTTPProxy to include; it is no orphan then. */
  readonly include: (key: string) => { proxy: Immutable<HTTPProxy>; verdict: ProxyVerdict } | undefined
}

/** Undefined if the host cannot be served. */
export function readTcpBackends(
  input: TcpInput,
  proxy: Immutable<HTTPProxy>,
  verdict: ProxyVerdict,
  visited: readonly string[],
): Backend[] | undefined {
  const { draft, objects, settings } = input
  const tcp = proxy.spec?.tcpproxy ?? {}
  const { services = [] } = tcp
  const include = tcp.include ?? tcp.includes
  const { namespace = '' } = proxy.metadata
  if (services.length > 0 && include !== undefined) {
    const message = 'cannot specify services and include in the same httpproxy'
    verdict.error('TCPProxyError', 'NoServicesAndInclude', message)
    return undefined
  }
  if (include !== undefined) {
    const key = `${include.namespace ?? namespace}/${include.name}`
    const child = input.include(key)
    const path = [...visited, keyOf(proxy)]
    if (child === undefined) {
      verdict.error('TCPProxyIncludeError', 'IncludeNotFound', `include ${key} not found`)
      return undefined
    }
    if (path.includes(key)) {
      const message = `include creates a cycle: ${[...path, key].join(' -> ')}`
      verdict.error('TCPProxyIncludeError', 'IncludeCreatesCycle', message)
      return undefined
    }
    if (path.length > MAX_DEPTH) {
      const message = `more than ${MAX_DEPTH} includes follow each other`
      verdict.error('TCPProxyIncludeError', 'IncludeCreatesCycle', message)
      return undefined
    }
    return readTcpBackends(input, child.proxy, child.verdict, path)
  }
  if (services.length === 0) {
    verdict.error('TCPProxyError', 'NothingDefined', 'either services or inclusion must be specified')
    return undefined
  }
  const backends: Backend[] = []
  for (const { name, port, weight } of services) {
    const resolved = resolveService(objects, settings, `${namespace}/${name}`, port)
    if ('fault' in resolved) {
      const message = `Spec.TCPProxy unresolved service reference: ${resolved.fault}`
      verdict.error('TCPProxyError', 'ServiceUnresolvedReference', message)
      return undefined
    }
    const cluster = clusterOf(resolved, settings, { protocol: 'http1', balancing: 'roundRobin' })
    backends.push({ cluster: draft.addCluster(cluster), weight: weight ?? 0 })
  }
  return backends.some(({ weight }) => weight > 0) ? backends : backends.map((each) => ({ ...each, weight: 1 }))
}
