/**
 * The chain from a source to a DNS answer, hop by hop, and the verdict about what clients get. It uses the decisions of the
 * controllers and computes none of them again.
 *
 * Pure: facts in, sentences out. gather.ts collects the facts.
 */
import { type Reason, REASONS } from '../reasons.ts'
import { headlineOf, judge } from '../verdict.ts'
import { answerHop, answerState } from './answer-hop.ts'
import type { BalanceFact, EndpointFact, ExplainFacts, Explanation, Hop, HopName } from './facts.ts'
import { broken, byFinding, degraded, idleText, isSameSet, ok, PUBLISH_OFF, skipped } from './hop.ts'

export function explain(facts: ExplainFacts): Explanation {
  const hops = [
    ...(facts.fleet ?? [sourceHop(facts), ...claimHops(facts)]),
    ...(facts.balance === undefined ? [] : [healthHop(facts.balance), selectionHop(facts.balance)]),
    ...(facts.fleet === undefined ? [addressHop(facts), certificateHop(facts), endpointHop(facts)] : []),
    planHop(facts),
    providerHop(facts),
    answerHop(facts),
    ...(facts.route === undefined ? [] : [routeHop(facts.route)]),
  ]
  const verdict = judge(hops, answerState(facts, hops), facts.waiting)
  const { state, at, waiting } = verdict
  return {
    host: facts.host,
    verdict: {
      state,
      text: headlineOf(facts.host, verdict).join('\n'),
      ...(at !== undefined && { at: at.name }),
      ...(at?.reason !== undefined && { reason: at.reason }),
      ...(waiting !== undefined && { waiting }),
    },
    hops,
    ...(at !== undefined && { firstBroken: at }),
  }
}

function sourceHop({
  host,
  sources,
  plan,
  balance,
  forbidden = [],
  missingKind,
  isPublishOn = true,
  route,
}: ExplainFacts): Hop {
  const [first] = sources
  // Before its first endpoint is healthy there is no DNSEndpoint.
  if (first === undefined && balance !== undefined) return ok('source', `DNSLoadBalancer ${balance.name}`)
  if (!isPublishOn && first !== undefined && !first.isPublishing)
    return skipped('source', `${first.name} names the host and gets no record: ${PUBLISH_OFF}`)
  // The gateway may serve the host all the same.
  if (!isPublishOn && first === undefined && route?.isServed === true)
    return skipped('source', `no DNSEndpoint names ${host}; ${PUBLISH_OFF}`)
  if (first === undefined) {
    // For a record whose source was deleted, the guard that holds the deletion is the explanation.
    if (plan !== undefined && plan.records.length > 0 && (plan.refused.length > 0 || plan.pending.length > 0))
      return skipped('source', `no source names ${host} any more; its record is still in zone ${plan.zone}`)
    // Unknown is not absent.
    const unread = byFinding('source', forbidden)
    if (unread !== undefined) return unread
    if (plan?.removed !== undefined && plan.records.length === 0)
      return skipped(
        'source',
        `no source names ${host} any more; its records were removed at ${plan.removed.at} by plan ${plan.removed.plan}: ${REASONS[plan.removed.reason]}`,
      )
    if (missingKind !== undefined) return skipped('source', `no source names ${host}, and there is no DNSEndpoint`)
    const outside = plan !== undefined && plan.zone === '' && plan.providerFault === undefined
    return broken(
      'source',
      'SourceNotFound',
      `no source and no DNSEndpoint names ${host}${outside ? ', and it is in no zone of ours' : ''}; check the host, the namespace and the kinds that are read`,
    )
  }
  const publishing = sources.find((source) => source.isPublishing)
  if (publishing !== undefined) {
    const others = sources.length > 1 ? `; ${sources.length - 1} more name it` : ''
    return ok('source', `${publishing.name}${others}`)
  }
  const hop = byFinding('source', first.findings)
  return hop === undefined ? ok('source', first.name) : { ...hop, text: `${first.name}: ${hop.text}` }
}

/** Where the fleet takes nothing up, no other hop knows that the host is requested. */
function claimHops(facts: ExplainFacts): Hop[] {
  const root = facts.targets.length === 0 ? facts.sources.find(({ isNewRoot }) => isNewRoot) : undefined
  if (root === undefined) return []
  const idle = idleText(facts)
  return [
    heldHop('claim', facts, 'HostClaim') ??
      broken(
        'claim',
        idle === undefined ? 'ChangePending' : 'NoManager',
        `${root.name} is a root, and no fleet has taken it up yet; ${idle ?? 'check that a manager with fleet.enabled runs'}`,
      ),
  ]
}

function healthHop({ endpoints, name }: BalanceFact): Hop {
  if (endpoints.length === 0) return broken('health', 'NoEndpoints', `DNSLoadBalancer ${name} has no endpoint`)
  const text = endpoints
    .map(({ name: endpoint, host, health, since, detail }) => {
      const from = since === undefined ? '' : ` since ${since}`
      return `${endpoint} (${host}) is ${health}${from}${detail === '' ? '' : `: ${detail}`}`
    })
    .join('; ')
  if (endpoints.some(({ health }) => health === 'healthy')) return ok('health', text)
  if (endpoints.every(({ health }) => health === 'unhealthy')) return broken('health', 'AllUnhealthy', text)
  // What is not known keeps what is published.
  return degraded(broken('health', 'HealthUnknown', text))
}

function selectionHop({ name, endpoints, selection, ttl, changedAt }: BalanceFact): Hop {
  if (selection === undefined)
    return broken(
      'selection',
      'HealthUnknown',
      `no manager has decided DNSLoadBalancer ${name} yet; is balance enabled?`,
    )
  const text = `${endpoints.map(membershipText).join('; ')}${endpoints.length === 0 ? 'nothing is published' : ''}. ${cacheText(changedAt, ttl)}`
  const reason = isReason(selection.reason) ? selection.reason : 'HealthyEndpoints'
  if (selection.isReady) return { ...ok('selection', text), reason }
  return broken('selection', reason, `${selection.message === '' ? '' : `${selection.message}; `}${text}`)
}

function membershipText({ name, isActive, membership }: BalanceFact['endpoints'][number]): string {
  const state = `${name} is ${isActive ? '' : 'not '}published`
  return membership === undefined ? state : `${state} since ${membership.since}: ${membership.message}`
}

/** A resolver that asked just before the change keeps the older answer for the TTL. */
function cacheText(changedAt: string | undefined, ttl: number): string {
  const changedMs = Date.parse(changedAt ?? '')
  if (changedAt === undefined || Number.isNaN(changedMs)) return `Caches may keep an older answer for ${ttl} s`
  const until = new Date(changedMs + ttl * 1_000).toISOString().replace(/\.\d+Z$/, 'Z')
  return `The last change was at ${changedAt}: with a TTL of ${ttl} s, caches may keep the older answer until ${until}`
}

function isReason(text: string): text is Reason {
  return Object.hasOwn(REASONS, text)
}

function addressHop({ targets, addressFindings, sources, isPublishOn = true }: ExplainFacts): Hop {
  if (sources.length === 0) return skipped('address', 'no source')
  if (targets.length > 0) return ok('address', targets.join(', '))
  if (!isPublishOn) return skipped('address', PUBLISH_OFF)
  return byFinding('address', addressFindings) ?? skipped('address', 'no record is requested')
}

function certificateHop(facts: ExplainFacts): Hop {
  const { name, validity } = facts.certificate ?? {}
  // Clients refuse it; whether another one is under way comes second.
  if (validity?.state === 'expired')
    return broken('certificate', 'CertificateExpiring', `Certificate ${name} expired at ${validity.until}`)
  return degraded(findCertificateHop(facts))
}

function findCertificateHop(facts: ExplainFacts): Hop {
  const { certificate } = facts
  if (certificate === undefined) return skipped('certificate', 'none is requested')
  const fault = byFinding('certificate', certificate.findings)
  if (!certificate.isPresent)
    return (
      fault ??
      heldHop('certificate', facts, 'Certificate') ??
      broken('certificate', 'CertificateNotReady', `Certificate ${certificate.name} does not exist yet`)
    )
  const { validity } = certificate
  if (validity !== undefined)
    return broken(
      'certificate',
      'CertificateExpiring',
      `Certificate ${certificate.name} expires at ${validity.until} and is not renewed${certificate.isReady ? '' : `: ${certificate.message}`}`,
    )
  if (certificate.isReady) return ok('certificate', `Certificate ${certificate.name} is ready`)
  return broken('certificate', 'CertificateNotReady', `Certificate ${certificate.name}: ${certificate.message}`)
}

/**
 * Why an object is not as desired, as the manager decided it: its mode, the kill switch, a guard of publish, an object that
 * the API server refused, a kind that is not installed.
 */
function heldHop(name: HopName, { manager, reported = [] }: ExplainFacts, kind: string): Hop | undefined {
  if (manager?.isPaused === true)
    return broken(
      name,
      'Paused',
      `writing is paused, so the ${kind} is not written; to resume, remove seamark.io/pause from ConfigMap seamark, or pause from the configuration`,
    )
  if (manager?.mode === 'observe')
    return broken(name, 'ObserveMode', `the manager is in observe mode, so the ${kind} is not written`)
  // A report about another object of the source contains the kind of that object.
  const others = ['Certificate', 'DNSEndpoint'].filter((other) => other !== kind)
  return byFinding(
    name,
    reported.filter(({ message }) => !others.some((other) => message.startsWith(other))),
  )
}

function endpointHop(facts: ExplainFacts): Hop {
  const { endpoint, targets, missingKind, isPublishOn = true } = facts
  // Of a gateway without DNS nothing is published.
  const isWanted = isPublishOn || facts.sources.length === 0
  if (missingKind !== undefined && isWanted && facts.route === undefined)
    return broken('endpoint', missingKind.reason, missingKind.message)
  if (targets.length === 0 && endpoint === undefined) return skipped('endpoint', 'nothing to publish')
  const isOther = endpoint === undefined || (targets.length > 0 && !isSameSet(endpoint.targets, targets))
  const held = isOther ? heldHop('endpoint', facts, 'DNSEndpoint') : undefined
  if (held !== undefined) return held
  if (endpoint === undefined)
    return broken(
      'endpoint',
      'EndpointMissing',
      'the DNSEndpoint does not exist; check that the manager runs, and that its mode is enforce',
    )
  if (targets.length > 0 && !isSameSet(endpoint.targets, targets)) {
    return broken(
      'endpoint',
      'EndpointMissing',
      `DNSEndpoint ${endpoint.name} has ${endpoint.targets.join(', ') || 'no targets'}`,
    )
  }
  return ok('endpoint', `DNSEndpoint ${endpoint.name}: ${endpoint.targets.join(', ')}`)
}

function planHop(facts: ExplainFacts): Hop {
  const { plan, endpoint, sources, fleet, storedAnswer, ownZones = [] } = facts
  if (plan === undefined) {
    // The manager knows its zones; a reader without its configuration does not.
    if (storedAnswer?.hop.reason === 'NoMatchingZone') return broken('plan', 'NoMatchingZone', storedAnswer.hop.text)
    return externalDnsHop(endpoint, ownZones)
  }
  if (plan.providerFault !== undefined && plan.zone === '') return skipped('plan', 'no zone could be read')
  const [refused] = plan.refused
  // Nobody asks for a record there.
  if (plan.zone === '' && sources.length === 0 && fleet === undefined) return skipped('plan', NO_ZONE)
  if (refused !== undefined) return broken('plan', refused.reason, refused.message)
  if (plan.pending.length === 0) return ok('plan', `zone ${plan.zone}: nothing to change`)
  const pending = `zone ${plan.zone}: ${plan.pending.join('; ')}`
  const idle = idleText(facts)
  const reported = byFinding('plan', plan.reported ?? [])
  if (reported !== undefined)
    return { ...reported, text: `${pending}: not done: ${reported.text}${idle === undefined ? '' : `; ${idle}`}` }
  if (idle !== undefined) return broken('plan', 'NoManager', `${pending}: not written; ${idle}`)
  const withoutState =
    plan.isWithoutState === true
      ? '; computed from the zone and the sources alone: no manager has persisted a decision about this zone, and it may hold more'
      : ''
  return broken('plan', 'ChangePending', `${pending}: not written yet${withoutState}`)
}

const NO_ZONE = 'it is in no zone of ours'
const NO_PROVIDER = 'no provider is configured here (--config)'

function externalDnsHop(endpoint: EndpointFact | undefined, ownZones: readonly string[]): Hop {
  if (endpoint === undefined) return skipped('plan', 'no DNSEndpoint')
  const isOutside = ownZones.length > 0
  if (endpoint.observedGeneration === undefined && isOutside)
    return broken(
      'plan',
      'NoMatchingZone',
      `it is in no zone of the manager (${ownZones.join(', ')}), and nothing else has observed DNSEndpoint ${endpoint.name}; add it to dns.zones, or a provider for it to records.providers`,
    )
  if (endpoint.observedGeneration === undefined)
    return skipped('plan', `${NO_PROVIDER}, and nothing has observed the DNSEndpoint`)
  // Until then clients get the former answer.
  if (endpoint.observedGeneration < endpoint.generation)
    return degraded(
      broken(
        'plan',
        'ChangePending',
        `what serves the DNSEndpoint has observed generation ${endpoint.observedGeneration} of ${endpoint.generation}`,
      ),
    )
  // ExternalDNS and a manager with another configuration leave the same trace.
  return ok('plan', `what serves the DNSEndpoint has observed it; ${isOutside ? NO_ZONE : NO_PROVIDER}`)
}

function providerHop({ plan, targets: requested, published, ownZones = [] }: ExplainFacts): Hop {
  const targets = published ?? requested
  if (plan === undefined) return skipped('provider', ownZones.length > 0 ? NO_ZONE : NO_PROVIDER)
  if (plan.providerFault !== undefined) return broken('provider', plan.providerFault.reason, plan.providerFault.message)
  if (plan.zone === '') return skipped('provider', NO_ZONE)
  if (targets.length > 0 && !isSameSet(plan.records, targets)) {
    // On its way is only what a manager has written.
    const reason = plan.refused[0]?.reason ?? (plan.pending.length > 0 ? 'ChangePending' : 'NotYetPropagated')
    return broken('provider', reason, `zone ${plan.zone} has ${plan.records.join(', ') || 'no record'}`)
  }
  return ok('provider', `zone ${plan.zone} has ${plan.records.join(', ') || 'nothing, as desired'}`)
}

function routeHop({ isServed, text }: NonNullable<ExplainFacts['route']>): Hop {
  return isServed ? ok('route', text) : broken('route', 'RouteNotServed', text)
}
