/**
 * The pure build: all objects in, configuration of the data plane, statuses and references out.
 *
 * Guarantees: no clock, no randomness; done in parts of about a millisecond, between which other work may run. The same objects give the same bytes whatever their order, and an object
 * that nothing refers to changes nothing. Bad objects give a status or a finding; everything else is built.
 */
import type { ListenerId } from '../ir/listen-addresses.ts'
import type { Ir } from '../ir/model.ts'
import { compareTexts } from '../ir/route-order.ts'
import { Allowance } from '../draft/limits.ts'
import { runParts, sortInParts, type Parts } from '../draft/turns.ts'
import { BackendTlsPolicies } from '../sources/gateway-api/backend-tls-policy.ts'
import { HostOwners } from '../sources/gateway-api/host-owners.ts'
import { attachHttpRoutes, serveHttpRoutes } from '../sources/gateway-api/http-route.ts'
import { addGlobalIngresses } from '../sources/global-ingress.ts'
import { gatewayIntents, readGateways, type ServedGateway } from '../sources/gateway-api/gateway.ts'
import { ProxyBuilder } from '../sources/http-proxy/proxy-builder.ts'
import { addIngresses, ingressIntent, servedIngresses } from '../sources/ingress.ts'
import { attachTlsRoutes, serveTlsRoutes } from '../sources/gateway-api/tls-route.ts'
import { Draft, type Finding } from '../draft/draft.ts'
import { describeOrigin } from '../draft/origin.ts'
import { RecordingReader, type BuildSettings, type Objects, type Refs } from '../draft/input.ts'
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

/** All parts at once: offline, and in tests. */
export function build(input: Objects, settings: BuildSettings): Build {
  return runParts(buildParts(input, settings))
}

/** @param refs filled while the objects are read: a change of one of them between two parts needs another build */
export function* buildParts(input: Objects, settings: BuildSettings, refs: Set<string> = new Set()): Parts<Build> {
  const objects = new RecordingReader(input, refs)
  const draft = new Draft()
  const allowance = new Allowance()
  let statuses: readonly StatusIntent[] = []
  let ports: readonly GatewayPort[] = []
  if (settings.mode === 'global') {
    yield* addGlobalIngresses(draft, objects, settings, allowance)
    yield* draft.settle()
    reportTlsConflicts(draft)
  } else ({ statuses, ports } = yield* addCluster(draft, objects, settings, allowance))
  const findings = yield* sortBy(draft.findings, (finding) => JSON.stringify(finding))
  return { ir: yield* draft.toIr(), statuses, findings, refs, ports }
}

/** Everything that leads to Services of this cluster. */
function* addCluster(
  draft: Draft,
  objects: Objects,
  settings: BuildSettings,
  allowance: Allowance,
): Parts<Pick<Build, 'statuses' | 'ports'>> {
  const ingresses = servedIngresses(objects, settings)
  yield* addIngresses(draft, objects, settings, ingresses, allowance)
  const proxies = new ProxyBuilder(draft, objects, settings, allowance)
  yield* proxies.build()
  const gateways = readGateways(draft, objects, settings)
  yield
  const policies = new BackendTlsPolicies(objects, settings)
  const owners = new HostOwners(
    settings,
    gateways.flatMap(({ listeners }) => listeners),
  )
  const byKey = new Map(gateways.map((gateway) => [gateway.key, gateway]))
  const input = { draft, objects, settings, policies, gateways: byKey, owners, allowance }
  const http = yield* attachHttpRoutes(input)
  const tls = yield* attachTlsRoutes(input)
  const routeStatuses = [...(yield* serveHttpRoutes(input, http)), ...(yield* serveTlsRoutes(input, tls))]
  yield* draft.settle()
  yield* proxies.reportConflicts()
  yield* reportIngressConflicts(draft)
  reportTlsConflicts(draft)
  const statuses = [
    ...ingresses.map(ingressIntent),
    ...(yield* proxies.intents()),
    ...gatewayIntents(objects, settings, gateways),
    ...routeStatuses,
    ...policies.intents(),
  ]
  return { statuses: yield* sortBy(statuses, ({ kind, key }) => `${kind} ${key}`), ports: portsOf(gateways) }
}

function* sortBy<T>(list: readonly T[], textOf: (item: T) => string): Parts<T[]> {
  const keyed = list.map((item) => ({ item, text: textOf(item) }))
  yield
  return (yield* sortInParts(keyed, (a, b) => compareTexts(a.text, b.text))).map(({ item }) => item)
}

function portsOf(gateways: readonly ServedGateway[]): GatewayPort[] {
  return gateways.flatMap(({ key, listeners }) =>
    listeners
      .filter(({ id, protocol, isServing }) => isServing && id !== protocol)
      .map(({ id, spec }) => ({ gateway: key, listener: spec.name, id })),
  )
}

/** Conflicts of one object that are reported. */
const MAX_CONFLICTS = 100
/** Conflicts that are read in one part. */
const PART = 200

function* reportIngressConflicts(draft: Draft): Parts<void> {
  const reported = new Map<string, number>()
  for (const [index, { host, winner, loser }] of draft.conflicts.entries()) {
    if (index % PART === PART - 1) yield
    if (loser.origin.kind === 'HTTPProxy') continue
    const { at, ...origin } = loser.origin
    const about = describeOrigin(origin)
    const count = (reported.get(about) ?? 0) + 1
    reported.set(about, count)
    if (count > MAX_CONFLICTS) continue
    const message = `${at}: ${host}${loser.match.path.value} is served by ${describeOrigin(winner.origin)}, which has the same match`
    draft.findings.push({ origin, reason: 'MatchTaken', message })
  }
}

function reportTlsConflicts(draft: Draft): void {
  for (const { loser, message } of draft.tlsConflicts) {
    if (loser.kind === 'HTTPProxy') continue
    const { at: _at, ...origin } = loser
    draft.report({ origin, reason: 'TLSConflict', message })
  }
}
