/**
 * TLSRoute: connections are forwarded by their server name, unread (listener mode Passthrough) or after termination. Of
 * several routes for one host the oldest is served; the share of backends that cannot be resolved is closed.
 */
import { byAge } from '@seamark/dialects'
import { messageOf } from '@seamark/kube'
import { TLSRoute, type BackendRef } from '@seamark/kube/gateway-api'
import { keyOf, type Immutable } from '@seamark/kube/object'
import type { Draft } from '../../draft/draft.ts'
import { originOf } from '../../draft/origin.ts'
import type { BuildSettings, Objects } from '../../draft/input.ts'
import { condition, identify, type StatusIntent } from '../../draft/status-intent.ts'
import type { Backend, TcpForwarding } from '../../ir/model.ts'
import type { Parts } from '../../draft/turns.ts'
import { clusterOf } from '../../draft/services.ts'
import { resolveBackend } from './backend-ref.ts'
import type { ServedGateway } from './gateway.ts'
import type { HostOwners } from './host-owners.ts'
import {
  attach,
  detachedIntents,
  servedParents,
  serveOwned,
  type Attachment,
  type RouteFault,
} from './route-attachment.ts'

interface Input {
  readonly draft: Draft
  readonly objects: Objects
  readonly settings: BuildSettings
  readonly gateways: ReadonlyMap<string, ServedGateway>
  readonly owners: HostOwners
}

/** A route with the listeners that it attaches to. */
interface AttachedRoute {
  readonly route: Immutable<TLSRoute>
  readonly tcp?: TcpForwarding
  readonly unresolved?: RouteFault
  readonly attachments: readonly Attachment[]
}

export function* attachTlsRoutes(input: Input): Parts<AttachedRoute[]> {
  const { draft, objects, settings, gateways, owners } = input
  const attached: AttachedRoute[] = []
  for (const route of objects.list(TLSRoute).toSorted(byAge(TLSRoute))) {
    yield
    try {
      const ours = servedParents(route, gateways)
      const refs = ours.length === 0 ? [] : (route.spec?.rules ?? []).flatMap(({ backendRefs = [] }) => backendRefs)
      const forwarding = forwardingOf(draft, objects, settings, route, refs)
      const attachments = ours.map((each) =>
        attach(objects, settings, owners, { kind: 'TLSRoute', object: route }, each, undefined),
      )
      attached.push({ route, ...forwarding, attachments })
    } catch (error) {
      report(draft, route, 'Unreadable', `the object cannot be read: ${messageOf(error)}; it is not served`)
    }
  }
  return attached
}

export function* serveTlsRoutes(input: Input, routes: readonly AttachedRoute[]): Parts<StatusIntent[]> {
  const intents: StatusIntent[] = []
  for (const each of routes) {
    yield
    intents.push(...serveRoute(input, each))
  }
  return intents
}

function serveRoute(
  { draft, settings, owners }: Input,
  { route, tcp, unresolved, attachments }: AttachedRoute,
): StatusIntent[] {
  if (attachments.length === 0) return detachedIntents('TLSRoute', route, settings)
  const origin = originOf('TLSRoute', route, 'spec')
  const parents = attachments.map((attachment) => {
    if (attachment.refusal !== undefined) report(draft, route, 'NameNotGranted', attachment.refusal)
    return {
      parentRef: attachment.parent.parent,
      controllerName: settings.controllerName,
      conditions: [
        serveOwned(attachment, owners, (listener, host) => {
          // Without any backend the connection is closed, as it is for a host without a route.
          if (tcp === undefined) return
          if (!draft.setTcp(host, tcp, origin, listener.id))
            report(draft, route, 'MatchTaken', `host ${host} is forwarded by an older TLSRoute or an HTTPProxy`)
          else if (listener.tls !== undefined)
            draft.claimTls(host, listener.tls, origin, { gateway: listener.gateway, listener: listener.id })
        }),
        unresolved === undefined
          ? condition('ResolvedRefs', true, 'ResolvedRefs', 'all references are resolved')
          : condition('ResolvedRefs', false, unresolved.reason, unresolved.message),
      ],
    }
  })
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
