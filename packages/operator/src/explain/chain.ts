/**
 * The chain from a source to a DNS answer, hop by hop, and the verdict about what clients get. It uses the decisions of the
 * controllers and computes none of them again.
 *
 * Pure: facts in, sentences out. gather.ts collects the facts.
 */
import type { Finding } from '../finding.ts'
import { type Reason, REASONS } from '../reasons.ts'
import type { ManagerLease } from '../process/manager-lease.ts'
import { type AnswerState, headlineOf, judge, type Verdict, type Waiting } from '../verdict.ts'

const HOPS = [
  'source',
  'claim',
  'policy',
  'placement',
  'leaf',
  'cluster',
  'health',
  'selection',
  'address',
  'certificate',
  'endpoint',
  'plan',
  'provider',
  'answer',
  'route',
] as const
type HopName = (typeof HOPS)[number]

export interface Hop {
  readonly name: HopName
  /** `degraded`: it needs a look, and clients get an answer. `skipped`: not requested, or not known here; no fault. */
  readonly state: 'ok' | 'degraded' | 'broken' | 'skipped'
  readonly reason?: Reason
  readonly text: string
}

export interface Explanation {
  readonly host: string
  readonly hops: readonly Hop[]
  /** What to act on first; undefined: it is as it should be. */
  readonly firstBroken?: Hop
  readonly verdict: {
    readonly state: Verdict['state']
    /** One line, and one more for a deletion, move or drain that was asked for. */
    readonly text: string
    readonly at?: HopName
    readonly reason?: Reason
    readonly waiting?: Waiting
  }
}

interface SourceFact {
  /** `HTTPProxy shop/web` */
  readonly name: string
  /** Of the source as a whole: class, exclusion, claim. */
  readonly findings: readonly Finding[]
  readonly isPublishing: boolean
}

export interface ExplainFacts {
  readonly host: string
  /** Every source that names the host; the one that publishes it is first. */
  readonly sources: readonly SourceFact[]
  readonly targets: readonly string[]
  readonly addressFindings: readonly Finding[]
  /** Undefined: none is requested. */
  readonly certificate: CertificateFact | undefined
  readonly endpoint: EndpointFact | undefined
  /** Undefined: no provider is configured. */
  readonly plan: PlanFact | undefined
  /** One of each DNS server of the host; empty or undefined: none could be asked, so that it is not known what clients get. */
  readonly answers: readonly AnswerFact[] | undefined
  /** Why no server was asked although one may be known: by a running manager, whose stored answers count. */
  readonly unasked?: string
  /** Zones of the manager's own DNS server, where it has no other provider. @default none */
  readonly ownZones?: readonly string[]
  /** Kinds that may not be read: their objects are unknown, not absent. */
  readonly forbidden?: readonly Finding[]
  /** DNSEndpoint is not installed: nothing can be published. */
  readonly missingKind?: Finding
  /** The manager's reports about the source: conditions and Events, which include the decisions of its guards. */
  readonly reported?: readonly Finding[]
  /** Undefined: unknown. */
  readonly manager?: ManagerFact
  /** False: sources get no record, certificate or DNSEndpoint (`publish.enabled: false`). @default true */
  readonly isPublishOn?: boolean
  /** Of a host of the fleet: in place of the hops of a source, its address, certificate and DNSEndpoint. */
  readonly fleet?: readonly Hop[]
  /** Of a host of the fleet: what its load balancer publishes, in place of the targets of a source. */
  readonly published?: readonly string[]
  /** Of a host of the fleet: what DNS servers answered when the manager last asked them. */
  readonly storedAnswer?: { readonly state: AnswerState; readonly hop: Hop }
  /** What a deletion, drain or move that was asked for waits for. */
  readonly waiting?: Waiting
  /** An answer contains some of the targets: by weight, by the region of the client. @default all */
  readonly isAnswerPartial?: boolean
  /** The load balancer that publishes the host, if one does. */
  readonly balance?: BalanceFact
  /** What the gateway of this cluster does with a request; undefined: no request was asked about. */
  readonly route?: { readonly isServed: boolean; readonly text: string }
}

export interface BalanceFact {
  /** `web/shop` */
  readonly name: string
  readonly endpoints: readonly {
    readonly name: string
    readonly host: string
    readonly health: 'healthy' | 'unhealthy' | 'unknown'
    /** RFC 3339. */
    readonly since?: string
    /** The result of the probe that made it so. */
    readonly detail: string
    readonly isActive: boolean
    /** Why it is published or not; undefined: no manager has decided yet. */
    readonly membership?: { readonly since: string; readonly message: string }
  }[]
  /** Of the `Ready` condition; undefined: no manager has decided yet. */
  readonly selection?: {
    readonly isReady: boolean
    readonly reason: string
    readonly message: string
    readonly since: string
  }
  /** Seconds for which a resolver may keep an older answer. */
  readonly ttl: number
  /** RFC 3339, when the set of published endpoints last changed; undefined: unknown. */
  readonly changedAt?: string
}

export interface ManagerFact {
  readonly isPaused: boolean
  readonly mode: 'enforce' | 'observe'
  /** Undefined: it uses none, or it may not be read. */
  readonly lease?: Pick<ManagerLease, 'key' | 'state' | 'renewedAt'>
}

export interface CertificateFact {
  readonly name: string
  readonly findings: readonly Finding[]
  readonly isPresent: boolean
  readonly isReady: boolean
  readonly message: string
}

export interface EndpointFact {
  readonly name: string
  readonly targets: readonly string[]
  readonly generation: number
  /** ExternalDNS writes the generation that it has observed. */
  readonly observedGeneration: number | undefined
}

export interface PlanFact {
  readonly zone: string
  /** Descriptions of the pending changes. */
  readonly pending: readonly string[]
  readonly refused: readonly { readonly reason: Reason; readonly message: string }[]
  /** The provider's records of the name. */
  readonly records: readonly string[]
  readonly providerFault?: { readonly reason: Reason; readonly message: string }
  /** No manager has persisted a decision about the zone: in observe mode, while paused, or before its first plan. */
  readonly isWithoutState?: boolean
  /** The last change of the name removed its records: why and when, RFC 3339. */
  readonly removed?: { readonly at: string; readonly reason: Reason; readonly plan: number }
  /** What the manager reported about the pending changes, which cannot be computed again outside of it. */
  readonly reported?: readonly Finding[]
}

export interface AnswerFact {
  readonly server: string
  readonly targets: readonly string[]
  /** It gave no answer, and why. */
  readonly fault?: string
}

export function explain(facts: ExplainFacts): Explanation {
  const hops = [
    ...(facts.fleet ?? [sourceHop(facts)]),
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

/**
 * By the servers that were asked, else as the manager last asked, while it runs. The records of a zone show what clients do not get;
 * that they get what is in it, only an answer shows.
 */
function answerState(facts: ExplainFacts, hops: readonly Hop[]): AnswerState {
  const { answers = [], plan } = facts
  const stateOf = (name: HopName, values: readonly string[]): AnswerState => {
    const state = hops.find((hop) => hop.name === name)?.state
    if (state === 'skipped') return undefined
    if (values.length === 0) return 'nothing'
    return state === 'broken' ? 'wrong' : 'right'
  }
  if (answers.length > 0) return stateOf('answer', decidingAnswer(facts)?.targets ?? [])
  const zone = plan === undefined || plan.providerFault !== undefined ? undefined : stateOf('provider', plan.records)
  // The zone was read now, and its servers were asked some time ago.
  return zone === 'wrong' || zone === 'nothing' ? zone : validStoredAnswer(facts)?.state
}

/** That all is right counts only as long as somebody would have noticed a change. */
function validStoredAnswer({ storedAnswer, manager, unasked }: ExplainFacts): ExplainFacts['storedAnswer'] {
  const isWatched = unasked !== undefined || manager?.lease?.state === 'held'
  return storedAnswer?.state === 'right' && !isWatched ? undefined : storedAnswer
}

const ok = (name: HopName, text: string): Hop => ({ name, state: 'ok', text })
const skipped = (name: HopName, text: string): Hop => ({ name, state: 'skipped', text })
const broken = (name: HopName, reason: Reason, text: string): Hop => ({ name, state: 'broken', reason, text })
/** Its fault changes no DNS answer. */
const degraded = (hop: Hop): Hop => (hop.state === 'broken' ? { ...hop, state: 'degraded' } : hop)

function byFinding(name: HopName, findings: readonly Finding[]): Hop | undefined {
  const fault = findings.find((finding) => finding.severity === 'Warning') ?? findings[0]
  return fault === undefined ? undefined : broken(name, fault.reason, fault.message)
}

const PUBLISH_OFF = 'publish is off (publish.enabled: false)'

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

/** Undefined: a manager runs, or it is not known. */
function idleText({ manager }: ExplainFacts): string | undefined {
  const lease = manager?.lease
  if (lease?.state !== 'expired') return undefined
  return `no manager holds Lease ${lease.key}${lease.renewedAt === undefined ? '' : ` since ${lease.renewedAt}`}`
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
  if (endpoint.observedGeneration < endpoint.generation) {
    return broken(
      'plan',
      'ChangePending',
      `what serves the DNSEndpoint has observed generation ${endpoint.observedGeneration} of ${endpoint.generation}`,
    )
  }
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

function answerHop(facts: ExplainFacts): Hop {
  const { answers = [], published, isPublishOn = true } = facts
  const desired = desiredAnswer(facts)
  const answer = decidingAnswer(facts)
  if (answer === undefined) return desired.length === 0 ? silentHop(answers) : missingAnswerHop(facts)
  const answered = answer.targets.join(', ')
  // Without a DNSEndpoint the record may be anybody's.
  if (!isPublishOn && published === undefined && desired.length === 0)
    return skipped('answer', `${answer.server} answers ${answered || 'nothing'}; ${PUBLISH_OFF}`)
  if (!isDesired(facts, answer)) {
    const text = `${answer.server} answers ${answered || 'nothing'} instead of ${desired.join(', ') || 'nothing'}`
    return broken('answer', 'AnswerDiffers', text)
  }
  const text = `${answer.server} answers ${answered || 'nothing, as desired'}`
  const silent = answers.filter(({ fault }) => fault !== undefined)
  if (silent.length === 0) return ok('answer', text)
  return degraded(broken('answer', 'NoAnswer', `${faultText(silent)}; ${text}`))
}

function desiredAnswer({ published, targets, endpoint }: ExplainFacts): readonly string[] {
  return published ?? (targets.length > 0 ? targets : (endpoint?.targets ?? []))
}

function isDesired(facts: ExplainFacts, { targets }: AnswerFact): boolean {
  const desired = desiredAnswer(facts)
  return facts.isAnswerPartial === true ? isPart(targets, desired) : isSameSet(targets, desired)
}

/** A client may ask any of the servers: the first that answers something else, else any. Undefined: none answered. */
function decidingAnswer(facts: ExplainFacts): AnswerFact | undefined {
  const given = (facts.answers ?? []).filter(({ fault }) => fault === undefined)
  return given.find((answer) => !isDesired(facts, answer)) ?? given[0]
}

/** Nothing should be answered. */
function silentHop(answers: readonly AnswerFact[]): Hop {
  return skipped('answer', answers.length === 0 ? 'no DNS server is known' : faultText(answers))
}

function faultText(answers: readonly AnswerFact[]): string {
  return answers.map(({ server, fault = '' }) => (fault.includes(server) ? fault : `${server}: ${fault}`)).join('; ')
}

/** Something should be answered, and no server was heard: clients get nothing, or it is not known what they get. */
function missingAnswerHop(facts: ExplainFacts): Hop {
  const { answers = [], storedAnswer, manager } = facts
  if (answers.length > 0) return broken('answer', 'NoAnswer', faultText(answers))
  const stored = validStoredAnswer(facts)
  if (stored !== undefined) {
    if (stored.state !== 'right' || facts.unasked !== undefined) return stored.hop
    const renewed = `Lease ${manager?.lease?.key}, renewed at ${manager?.lease?.renewedAt}`
    return { ...stored.hop, text: `${stored.hop.text}: asked by the manager within the last 5 min (${renewed})` }
  }
  if (facts.unasked !== undefined) return skipped('answer', facts.unasked)
  const idle = idleText(facts)
  const last = storedAnswer === undefined || idle === undefined ? '' : `; ${idle}, so that what it found is out of date`
  const text = `no DNS server of the zone is known here; name one with --server, or the configuration of the manager with --config${last}`
  return degraded(broken('answer', 'AnswerUnknown', text))
}

function routeHop({ isServed, text }: NonNullable<ExplainFacts['route']>): Hop {
  return isServed ? ok('route', text) : broken('route', 'RouteNotServed', text)
}

/** Some of the targets, or nothing of nothing. */
function isPart(part: readonly string[], whole: readonly string[]): boolean {
  return part.length === 0 ? whole.length === 0 : part.every((value) => whole.includes(value))
}

function isSameSet(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && new Set([...a, ...b]).size === new Set(a).size
}
