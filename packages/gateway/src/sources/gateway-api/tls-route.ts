/**
 * TLSRoute: connections are forwarded by their server name, unread (listener mode Passthrough) or after termination. Of
 * several routes for one host the oldest is served; the share of backends that cannot be resolved is closed.
 */
import { byAge } from '@seamark/dialects'
import { messageOf } from '@seamark/kube'
import { TLSRoute, type BackendRef } from '@seamark/kube/gateway-api'
import { keyOf, type Immutable } from '@seamark/kube/object'
import { originOf, type Draft } from '../../draft/draft.ts'
import { type BuildSettings, type Objects } from '../../draft/input.ts'
import { condition, identify, type StatusIntent } from '../../draft/status-intent.ts'
import type { Backend, TcpForwarding } from '../../ir/model.ts'
import { clusterOf } from '../../draft/services.ts'
import { resolveBackend } from './backend-ref.ts'
import type { ServedGateway } from './gateway.ts'
import { attach, detachedIntents, servedParents, type RouteFault } from './route-attachment.ts'

export function addTlsRoutes(
  draft: Draft,
  objects: Objects,
  settings: BuildSettings,
  gateways: ReadonlyMap<string, ServedGateway>,
): StatusIntent[] {
  return objects
    .list(TLSRoute)
    .toSorted(byAge(TLSRoute))
    .flatMap((route) => {
      try {
        return addRoute(draft, objects, settings, gateways, route)
      } catch (error) {
        const message = `the object cannot be read: ${messageOf(error)}; it is not served`
        report(draft, route, 'Unreadable', message)
        return []
      }
    })
}

function addRoute(
  draft: Draft,
  objects: Objects,
  settings: BuildSettings,
  gateways: ReadonlyMap<string, ServedGateway>,
  route: Immutable<TLSRoute>,
): StatusIntent[] {
  const ours = servedParents(route, gateways)
  if (ours.length === 0) return detachedIntents('TLSRoute', route, settings)
  const refs = (route.spec?.rules ?? []).flatMap(({ backendRefs = [] }) => backendRefs)
  const { tcp, unresolved } = forwardingOf(draft, objects, settings, route, refs)
  const parents = ours.map((each) => ({
    parentRef: each.parent,
    controllerName: settings.controllerName,
    conditions: [
      attach(
        objects,
        { kind: 'TLSRoute', object: route },
        each,
        (listener, host) => {
          // Without any backend the connection is closed, as it is for a host without a route.
          if (tcp === undefined) return
          if (!draft.setTcp(host, tcp, listener.id))
            report(draft, route, 'MatchTaken', `host ${host} is forwarded by an older TLSRoute or an HTTPProxy`)
          else if (listener.tls !== undefined) draft.setTls(host, listener.tls, undefined, listener.id)
        },
        undefined,
      ),
      unresolved === undefined
        ? condition('ResolvedRefs', true, 'ResolvedRefs', 'all references are resolved')
        : condition('ResolvedRefs', false, unresolved.reason, unresolved.message),
    ],
  }))
  return [{ kind: 'TLSRoute', ...identify(route), status: { parents } }]
}

function forwardingOf(
  draft: Draft,
  objects: Objects,
  settings: BuildSettings,
  route: Immutable<TLSRoute>,
  refs: readonly Immutable<BackendRef>[],
): { tcp?: TcpForwarding; unresolved?: RouteFault } {
  const { namespace = '' } = route.metadata
  const backends: Backend[] = []
  let invalidWeight = 0
  let unresolved: RouteFault | undefined
  for (const ref of refs) {
    const { weight = 1 } = ref
    const resolved = resolveBackend(objects, settings, { kind: 'TLSRoute', namespace }, ref)
    if ('reason' in resolved) {
      unresolved ??= resolved
      invalidWeight += weight
    } else if (weight > 0) {
      const cluster = clusterOf(resolved, settings, { protocol: 'http1', balancing: 'roundRobin' })
      backends.push({ cluster: draft.addCluster(cluster), weight })
    }
  }
  return {
    ...(backends.length > 0 && { tcp: { backends, ...(invalidWeight > 0 && { invalidWeight }) } }),
    ...(unresolved !== undefined && { unresolved }),
  }
}

function report(draft: Draft, route: Immutable<TLSRoute>, reason: string, message: string): void {
  const { at: _at, ...origin } = originOf('TLSRoute', route, '')
  draft.findings.push({ origin, reason, message: `${keyOf(route)}: ${message}` })
}
