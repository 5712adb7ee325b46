/**
 * Collects the facts for `explain`: decisions out of the same code the controllers run, children as the server has them now,
 * what the manager reported about the source, the provider's view where one is configured, and the answer of a DNS server.
 * A host that no source of publish names may be in a DNSEndpoint of the wildcard capability, or in one written by hand.
 */
import { type Cluster, Event, Forbidden, NotFound } from '@seamark/kube'
import { type Immutable, keyOf } from '@seamark/kube/object'
import { Certificate } from '../api/certificate.ts'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import type { HTTPProxy } from '../api/http-proxy.ts'
import { type Finding, warning } from '../finding.ts'
import { OWNED_BY } from '../publish/annotation-keys.ts'
import type { Reason } from '../reasons.ts'
import { normalizeHost } from '../host-name.ts'
import { type SourceDecision, createSourceDecider } from '../publish/decide/source-decision.ts'
import { wantedOf } from '../publish/decide/decide.ts'
import type { PublishOptions } from '../publish/options.ts'
import { sourceKey } from '../publish/sources/source.ts'
import { CONDITION_TYPE, watchForPublish } from '../publish/watches.ts'
import type { AnswerFact, CertificateFact, EndpointFact, ExplainFacts, ManagerFact, PlanFact } from './chain.ts'

export interface ExplainDeps {
  readonly cluster: Cluster
  readonly options: PublishOptions
  /** What our own provider plans and has for the name; undefined when none is configured. */
  readonly plan?: (host: string, targets: readonly string[], signal: AbortSignal) => Promise<PlanFact>
  readonly answer?: (host: string, signal: AbortSignal) => Promise<AnswerFact>
  /** Whether the manager writes at all. */
  readonly manager?: (signal: AbortSignal) => Promise<ManagerFact>
}

export async function gatherFacts(
  given: string,
  { cluster, options, plan, answer, manager }: ExplainDeps,
  signal: AbortSignal,
): Promise<ExplainFacts> {
  const host = normalizeHost(given)
  const decided = await decideHost(host, cluster, options, signal)
  const chosen = decided.find(isPublishing) ?? decided[0]
  const running = await manager?.(signal)
  const managed = running === undefined ? {} : { manager: running }
  const direct = chosen === undefined ? await findDirectEndpoint(host, cluster, signal) : undefined
  if (direct !== undefined) {
    return {
      host,
      sources: [{ name: `DNSEndpoint ${direct.name}${direct.origin}`, findings: [], isPublishing: true }],
      targets: direct.targets,
      addressFindings: [],
      certificate: undefined,
      endpoint: direct,
      plan: await plan?.(direct.dnsName, direct.targets, signal),
      answer: await answer?.(host, signal),
      ...managed,
    }
  }
  const targets = chosen === undefined ? [] : targetsOf(chosen, host)
  const [certificate, endpoint] = await Promise.all([
    findCertificate(chosen, cluster, signal),
    findEndpoint(chosen, host, cluster, signal),
  ])
  const shown = targets.length > 0 ? targets : (endpoint?.targets ?? [])
  return {
    host,
    sources: decided.map((item) => ({
      name: `${item.source.kind} ${sourceKey(item.source)}`,
      findings: item.decision?.findings ?? [],
      isPublishing: isPublishing(item),
    })),
    targets,
    addressFindings: chosen?.decision?.children.dns.findings ?? [],
    certificate,
    endpoint,
    plan: await plan?.(host, shown, signal),
    answer: await answer?.(host, signal),
    reported: chosen === undefined ? [] : await findReported(chosen, cluster, signal),
    ...managed,
  }
}

/** What guards and the API server said about the objects of a source; none of it can be decided again from outside. */
const REPORTED: ReadonlySet<string> = new Set<Reason>([
  'GuardTripped',
  'ApplyRejected',
  'CRDNotInstalled',
  'WatchForbidden',
])
/** Older Events are about something that was mended or reported again since. */
const REPORTED_MS = 3_600_000

/** The condition where the kind has one, which says what holds now; else the Events of the last hour. */
async function findReported(chosen: SourceDecision, { client }: Cluster, signal: AbortSignal): Promise<Finding[]> {
  const { object } = chosen
  const conditions = (object as Immutable<HTTPProxy>).status?.conditions ?? []
  const condition = conditions.find(({ type }) => type === CONDITION_TYPE)
  if (condition !== undefined) {
    const { status, reason, message } = condition
    return status === 'False' && isReported(reason) ? [warning(reason, message ?? '')] : []
  }
  const { namespace = '', uid } = object.metadata
  const list = await client.list(Event, { namespace, signal }).catch((error: unknown) => {
    if (error instanceof Forbidden || error instanceof NotFound) return undefined
    throw error
  })
  const sinceMs = Date.now() - REPORTED_MS
  return (list?.items ?? [])
    .map((event) => ({ event, atMs: Date.parse(event.series?.lastObservedTime ?? event.eventTime) }))
    .filter(({ event, atMs }) => event.regarding?.uid === uid && isReported(event.reason) && atMs >= sinceMs)
    .toSorted((a, b) => b.atMs - a.atMs)
    .map(({ event }) => warning(event.reason as Reason, event.note ?? ''))
}

function isReported(reason: string | undefined): reason is Reason {
  return reason !== undefined && REPORTED.has(reason)
}

interface DirectEndpoint extends EndpointFact {
  /** The name in the DNSEndpoint: the host, or the wildcard that covers it. */
  readonly dnsName: string
  readonly origin: string
}

/** A DNSEndpoint that no source of publish stands behind. */
async function findDirectEndpoint(
  host: string,
  { client }: Cluster,
  signal: AbortSignal,
): Promise<DirectEndpoint | undefined> {
  const { items } = await client.list(DNSEndpoint, { signal }).catch((error: unknown) => {
    if (error instanceof NotFound) return { items: [] }
    throw error
  })
  // The closest name wins, as in DNS: the host itself, then the wildcards above it (RFC 4592).
  const labels = host.split('.')
  const names = [host, ...labels.slice(1).map((_, index) => `*.${labels.slice(index + 1).join('.')}`)]
  for (const dnsName of names) {
    const found = items.find((object) => endpointsOf(object, dnsName).length > 0)
    if (found === undefined) continue
    const owner = found.metadata.annotations?.[OWNED_BY]
    return {
      name: keyOf(found),
      dnsName,
      origin: `${owner === undefined ? '' : ` of ${owner}`}${dnsName === host ? '' : `, which has ${dnsName}`}`,
      targets: endpointsOf(found, dnsName).flatMap(({ targets }) => targets ?? []),
      generation: found.metadata.generation ?? 0,
      observedGeneration: found.status?.observedGeneration,
    }
  }
  return undefined
}

function endpointsOf(object: DNSEndpoint, name: string): readonly Partial<DNSEndpoint['spec']['endpoints'][number]>[] {
  const endpoints: readonly Partial<DNSEndpoint['spec']['endpoints'][number]>[] = object.spec.endpoints ?? []
  return endpoints.filter(({ dnsName }) => typeof dnsName === 'string' && normalizeHost(dnsName) === name)
}

async function decideHost(
  host: string,
  cluster: Cluster,
  options: PublishOptions,
  signal: AbortSignal,
): Promise<SourceDecision[]> {
  const stop = new AbortController()
  const watched = watchForPublish(cluster.informers, options)
  const decider = createSourceDecider(cluster.informers, options)
  const running = cluster.informers.start(AbortSignal.any([signal, stop.signal]))
  try {
    await Promise.all(watched.map(async (informer) => informer.synced(signal)))
    const naming = decider.sources.all().filter((source) => source.hosts.some((name) => normalizeHost(name) === host))
    return naming.flatMap((source) => decider.decide(source.kind, sourceKey(source), 0) ?? [])
  } finally {
    stop.abort()
    await running
  }
}

/** It publishes the host, or would but for its address. */
function isPublishing({ decision }: SourceDecision): boolean {
  return decision !== undefined && decision.findings.length === 0
}

function targetsOf({ decision }: SourceDecision, host: string): string[] {
  const wanted = decision === undefined ? [] : wantedOf(decision)
  return wanted.flatMap((item) =>
    item.role === 'dns'
      ? item.object.spec.endpoints
          .filter((endpoint) => normalizeHost(endpoint.dnsName) === host)
          .flatMap((endpoint) => endpoint.targets)
      : [],
  )
}

async function findCertificate(
  chosen: SourceDecision | undefined,
  { client }: Cluster,
  signal: AbortSignal,
): Promise<CertificateFact | undefined> {
  const child = chosen?.decision?.children.certificate
  if (child === undefined || child.state === 'unwanted') return undefined
  const [wanted] = child.state === 'wanted' ? child.wanted : []
  if (wanted === undefined) {
    return child.findings.length === 0
      ? undefined
      : { name: '', findings: child.findings, isPresent: false, isReady: false, message: '' }
  }
  const name = keyOf(wanted.object)
  const live = await client.find(Certificate, name, { signal })
  const ready = live?.status?.conditions?.find((condition) => condition.type === 'Ready')
  const message = ready?.message ?? 'no condition yet; is cert-manager running?'
  return { name, findings: child.findings, isPresent: live !== undefined, isReady: ready?.status === 'True', message }
}

async function findEndpoint(
  chosen: SourceDecision | undefined,
  host: string,
  { client }: Cluster,
  signal: AbortSignal,
): Promise<EndpointFact | undefined> {
  const owned = chosen?.owned.find(
    ({ object }) =>
      isDnsEndpoint(object) && object.spec.endpoints.some((endpoint) => normalizeHost(endpoint.dnsName) === host),
  )
  if (owned === undefined) return undefined
  const live = await client.find(DNSEndpoint, keyOf(owned.object), { signal })
  if (live === undefined) return undefined
  return {
    name: keyOf(live),
    targets: live.spec.endpoints
      .filter((endpoint) => normalizeHost(endpoint.dnsName) === host)
      .flatMap((endpoint) => endpoint.targets),
    generation: live.metadata.generation ?? 0,
    observedGeneration: live.status?.observedGeneration,
  }
}

function isDnsEndpoint(object: unknown): object is DNSEndpoint {
  return Array.isArray((object as DNSEndpoint).spec.endpoints)
}
