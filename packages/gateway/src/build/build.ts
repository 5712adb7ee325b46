/**
 * The pure build: all objects in, configuration of the data plane, statuses and references out.
 *
 * Guarantees: synchronous, no clock, no randomness. The same objects give the same bytes whatever their order, and an object
 * that nothing refers to changes nothing. Bad objects give a status or a finding; everything else is built.
 */
import type { ListenerId } from '../ir/listen-addresses.ts'
import type { Ir } from '../ir/model.ts'
import { compareTexts } from '../ir/route-order.ts'
import { BackendTlsPolicies } from '../sources/gateway-api/backend-tls-policy.ts'
import { addHttpRoutes } from '../sources/gateway-api/http-route.ts'
import { addGlobalIngresses } from '../sources/global-ingress.ts'
import { gatewayIntents, readGateways, type ServedGateway } from '../sources/gateway-api/gateway.ts'
import { ProxyBuilder } from '../sources/http-proxy/proxy-builder.ts'
import { addIngresses, ingressIntent, servedIngresses } from '../sources/ingress.ts'
import { addTlsRoutes } from '../sources/gateway-api/tls-route.ts'
import { describeOrigin, Draft, type Finding } from '../draft/draft.ts'
import { recordingReader, type BuildSettings, type Objects, type Refs } from '../draft/input.ts'
import type { StatusIntent } from '../draft/status-intent.ts'

export interface Build {
  readonly ir: Ir
  /** Sorted by kind and key. */
  readonly statuses: readonly StatusIntent[]
  readonly findings: readonly Finding[]
  readonly refs: Refs
  /** Listeners of Gateways that have a port of their own. */
  readonly ports: readonly GatewayPort[]
}

export interface GatewayPort {
  /** `namespace/name` */
  readonly gateway: string
  readonly listener: string
  readonly id: ListenerId
}

export function build(input: Objects, settings: BuildSettings): Build {
  const refs = new Set<string>()
  const objects = recordingReader(input, refs)
  const draft = new Draft()
  const { statuses, ports } =
    settings.mode === 'global' ? { statuses: [], ports: [] } : addCluster(draft, objects, settings)
  if (settings.mode === 'global') addGlobalIngresses(draft, objects, settings)
  const findings = sortBy(draft.findings, (finding) => JSON.stringify(finding))
  return { ir: draft.toIr(), statuses, findings, refs, ports }
}

/** Everything that leads to Services of this cluster. */
function addCluster(draft: Draft, objects: Objects, settings: BuildSettings): Pick<Build, 'statuses' | 'ports'> {
  const ingresses = servedIngresses(objects, settings)
  addIngresses(draft, objects, settings, ingresses)
  const proxies = new ProxyBuilder(draft, objects, settings)
  proxies.build()
  const gateways = readGateways(draft, objects, settings)
  const byKey = new Map(gateways.map((gateway) => [gateway.key, gateway]))
  const policies = new BackendTlsPolicies(objects, settings)
  const routeStatuses = [
    ...addHttpRoutes({ draft, objects, settings, policies, gateways: byKey }),
    ...addTlsRoutes(draft, objects, settings, byKey),
  ]
  proxies.reportConflicts()
  reportIngressConflicts(draft)
  const statuses = [
    ...ingresses.map(ingressIntent),
    ...proxies.intents(),
    ...gatewayIntents(objects, settings, gateways),
    ...routeStatuses,
    ...policies.intents(),
  ]
  return { statuses: sortBy(statuses, ({ kind, key }) => `${kind} ${key}`), ports: portsOf(gateways) }
}

function sortBy<T>(list: readonly T[], textOf: (item: T) => string): T[] {
  return list
    .map((item) => ({ item, text: textOf(item) }))
    .sort((a, b) => compareTexts(a.text, b.text))
    .map(({ item }) => item)
}

function portsOf(gateways: readonly ServedGateway[]): GatewayPort[] {
  return gateways.flatMap(({ key, listeners }) =>
    listeners
      .filter(({ id, protocol, isServing }) => isServing && id !== protocol)
      .map(({ id, spec }) => ({ gateway: key, listener: spec.name, id })),
  )
}

function reportIngressConflicts(draft: Draft): void {
  for (const { host, winner, loser } of draft.conflicts) {
    if (loser.origin.kind === 'HTTPProxy') continue
    const { at, ...origin } = loser.origin
    const message = `${at}: ${host}${loser.match.path.value} is served by ${describeOrigin(winner.origin)}, which has the same match`
    draft.findings.push({ origin, reason: 'MatchTaken', message })
  }
}
