/**
 * The pure build: all objects in, configuration of the data plane, statuses and references out.
 *
 * Guarantees: synchronous, no clock, no randomness. The same objects give the same bytes whatever their order, and an object
 * that nothing refers to changes nothing. Bad objects give a status or a finding; everything else is built.
 */
import type { Ir } from '../ir/model.ts'
import { compareTexts } from '../ir/route-order.ts'
import { addHttpRoutes } from '../sources/http-route.ts'
import { gatewayIntents, readGateways } from '../sources/gateway.ts'
import { ProxyBuilder } from '../sources/http-proxy.ts'
import { addIngresses, servedIngresses } from '../sources/ingress.ts'
import { describeOrigin, Draft, type Finding } from './draft.ts'
import { recordingReader, type BuildSettings, type Objects, type Refs } from './input.ts'
import { identify, type StatusIntent } from './status-intent.ts'

export interface Build {
  readonly ir: Ir
  /** Sorted by kind and key. */
  readonly statuses: readonly StatusIntent[]
  readonly findings: readonly Finding[]
  readonly refs: Refs
}

export function build(input: Objects, settings: BuildSettings): Build {
  const refs = new Set<string>()
  const objects = recordingReader(input, refs)
  const draft = new Draft()
  addIngresses(draft, objects, settings)
  const proxies = new ProxyBuilder(draft, objects, settings)
  proxies.build()
  const gateways = readGateways(draft, objects, settings)
  const routeStatuses = addHttpRoutes(draft, objects, settings, gateways)
  proxies.reportConflicts()
  reportIngressConflicts(draft)
  const ingresses = servedIngresses(objects, settings).map((ingress): StatusIntent => {
    return { kind: 'Ingress', ...identify(ingress), status: {} }
  })
  const statuses = [
    ...ingresses,
    ...proxies.intents(),
    ...gatewayIntents(objects, settings, gateways),
    ...routeStatuses,
  ].toSorted((a, b) => compareTexts(`${a.kind} ${a.key}`, `${b.kind} ${b.key}`))
  const findings = draft.findings.toSorted((a, b) => compareTexts(JSON.stringify(a), JSON.stringify(b)))
  return { ir: draft.toIr(), statuses, findings, refs }
}

function reportIngressConflicts(draft: Draft): void {
  for (const { host, winner, loser } of draft.conflicts) {
    if (loser.origin.kind === 'HTTPProxy') continue
    const { at, ...origin } = loser.origin
    const message = `${at}: ${host}${loser.match.path.value} is served by ${describeOrigin(winner.origin)}, which has the same match`
    draft.findings.push({ origin, reason: 'MatchTaken', message })
  }
}
