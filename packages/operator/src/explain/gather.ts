/**
 * Collects the facts for `explain`: decisions from the code that the controllers run, the current child objects, the
 * manager's reports about the source, the provider's records where one is configured, and the answer of a DNS server.
 * A host without a publish source may be in a DNSEndpoint of the wildcard capability, or in one written manually.
 */
import { type Cluster, Forbidden, messageOf, NotFound, NotSynced } from '@seamark/kube'
import { type Immutable, type Kind, keyOf } from '@seamark/kube/object'
import { Certificate } from '../api/certificate.ts'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import { type Finding, warning } from '../finding.ts'
import { normalizeHost } from '@seamark/dialects'
import { type SourceDecision, createSourceDecider } from '../publish/decide/source-decision.ts'
import { desiredChildren } from '../publish/decide/decide.ts'
import { findFormerOwner } from '../publish/former-owner.ts'
import type { PublishOptions } from '../publish/options.ts'
import { sourceKey } from '../publish/sources/source.ts'
import { claimKey } from '../publish/sources/host-claim.ts'
import { watchForPublish, watchPublishers } from '../publish/watches.ts'
import { certificateFact, certificateKey } from './certificate-fact.ts'
import type { AnswerFact, CertificateFact, EndpointFact, ExplainFacts, ManagerFact, PlanFact } from './facts.ts'
import { findBalanceFact } from './balance-fact.ts'
import { type DirectEndpoint, findDirectEndpoint } from './direct-endpoint.ts'
import { findReported } from './reported.ts'

export interface ExplainDeps {
  readonly cluster: Cluster
  readonly options: PublishOptions
  /** The plan and the records of our own providers for the name; undefined where the name is left to ExternalDNS. */
  readonly plan?: (host: string, targets: readonly string[], signal: AbortSignal) => Promise<PlanFact | undefined>
  /** Of the DNS servers of a host. @default none is known */
  readonly answers?: (host: string, signal: AbortSignal) => Promise<readonly AnswerFact[]>
  /** Whether the manager publishes sources. @default true */
  readonly isPublishOn?: boolean
  /** Whether the manager writes at all. */
  readonly manager?: (signal: AbortSignal) => Promise<ManagerFact>
}

export async function gatherFacts(
  given: string,
  { cluster, options, plan, answers, manager, isPublishOn = true }: ExplainDeps,
  signal: AbortSignal,
): Promise<ExplainFacts> {
  const host = normalizeHost(given)
  const { decided, forbidden } = await decideHost(host, cluster, options, signal)
  const chosen = choose(host, decided, isPublishOn)
  const running = await manager?.(signal)
  const managed = { isPublishOn, ...(running !== undefined && { manager: running }) }
  const direct = chosen === undefined ? await findDirectEndpoint(host, cluster, signal) : undefined
  // Also while it has published nothing yet: then no DNSEndpoint has the host.
  const balance = chosen === undefined ? await findBalanceFact(host, cluster, signal) : undefined
  const balanced = balance !== undefined && { balance }
  if (direct !== undefined)
    return {
      ...directFacts(host, direct),
      ...balanced,
      plan: await plan?.(direct.dnsName, direct.targets, signal),
      answers: await answers?.(host, signal),
      ...managed,
    }
  const [certificate, endpoint, missingKind] = await Promise.all([
    findCertificate(chosen, cluster, signal),
    findEndpoint(chosen, host, cluster, signal),
    findMissingKind(cluster, signal),
  ])
  const facts = sourceFacts(host, { decided, chosen, isPublishOn, certificate, endpoint })
  return {
    ...facts,
    ...balanced,
    plan: await plan?.(host, shownTargets(facts), signal),
    answers: await answers?.(host, signal),
    forbidden,
    ...(missingKind !== undefined && { missingKind }),
    reported: chosen === undefined ? [] : await findReported(chosen, cluster, signal),
    ...managed,
  }
}

/** Of a host of the fleet, whose record is that of its load balancer: `published`. */
export async function gatherFleetFacts(
  given: string,
  published: readonly string[],
  { cluster, plan, answers, manager, isPublishOn = true }: Omit<ExplainDeps, 'options'>,
  signal: AbortSignal,
): Promise<ExplainFacts> {
  const host = normalizeHost(given)
  const [direct, balance, running, answered] = await Promise.all([
    findDirectEndpoint(host, cluster, signal),
    findBalanceFact(host, cluster, signal),
    manager?.(signal),
    answers?.(host, signal),
  ])
  return {
    ...directFacts(host, direct),
    ...(balance !== undefined && { balance }),
    published,
    plan: await plan?.(direct?.dnsName ?? host, direct?.targets ?? published, signal),
    answers: answered,
    isPublishOn,
    ...(running !== undefined && { manager: running }),
  }
}

/** The source whose hops are shown: the one that publishes, else the first. Without publish a source only names the host. */
export function choose(host: string, decided: readonly HostDecision[], isPublishOn: boolean): HostDecision | undefined {
  const publishing = isPublishOn ? decided.filter((item) => !isBalanced(item, host)) : []
  return publishing.find(isPublishing) ?? publishing[0]
}

type Gathered = Omit<ExplainFacts, 'plan' | 'answers'>

/** Its record is that of a DNSEndpoint without a source; undefined: there is none. */
export function directFacts(host: string, direct: DirectEndpoint | undefined): Gathered {
  const name = direct === undefined ? '' : `DNSEndpoint ${direct.name}${direct.origin}`
  return {
    host,
    sources: direct === undefined ? [] : [{ name, findings: [], isPublishing: true }],
    targets: direct?.targets ?? [],
    addressFindings: [],
    certificate: undefined,
    endpoint: direct,
  }
}

export function sourceFacts(
  host: string,
  {
    decided,
    chosen,
    isPublishOn,
    certificate,
    endpoint,
  }: {
    readonly decided: readonly HostDecision[]
    readonly chosen: HostDecision | undefined
    readonly isPublishOn: boolean
    readonly certificate: CertificateFact | undefined
    readonly endpoint: EndpointFact | undefined
  },
): Gathered {
  return {
    host,
    sources: decided.map((item) => ({
      name: `${item.source.kind} ${sourceKey(item.source)}`,
      findings: findingsOf(item),
      isPublishing: isPublishOn && isPublishing(item),
      ...(isNewRoot(item, host) && { isNewRoot: true }),
    })),
    targets: chosen === undefined ? [] : targetsOf(chosen, host),
    addressFindings: chosen?.decision?.children.dns.findings ?? [],
    certificate,
    endpoint,
  }
}

/** The requested targets, else those that are published. */
function shownTargets({ targets, endpoint }: Pick<ExplainFacts, 'targets' | 'endpoint'>): readonly string[] {
  return targets.length > 0 ? targets : (endpoint?.targets ?? [])
}

export interface HostDecision extends SourceDecision {
  /** Why nothing of the decision may be written yet. */
  readonly held: Finding | undefined
}

async function decideHost(
  host: string,
  cluster: Cluster,
  options: PublishOptions,
  signal: AbortSignal,
): Promise<{ decided: HostDecision[]; forbidden: Finding[] }> {
  const stop = new AbortController()
  const watched = watchForPublish(cluster.informers, options)
  const publishers = watchPublishers(cluster, options)
  const decider = createSourceDecider(cluster.informers, options)
  const running = cluster.informers.start(AbortSignal.any([signal, stop.signal]))
  const refusals: Refusal[] = []
  try {
    const sync = async (informer: (typeof watched)[number]): Promise<void> => {
      const found = await findForbidden(informer.kind, cluster, signal)
      if (found === undefined) await informer.synced(signal)
      else refusals.push(found)
    }
    await Promise.all([publishers.synced(signal), ...watched.map(sync)])
    const forbidden = refusals.map(({ finding }) => finding)
    const naming = decider.sources.all().filter((source) => source.hosts.some((name) => normalizeHost(name) === host))
    const decided: HostDecision[] = []
    for (const source of naming) {
      const found = decider.decide(source.kind, sourceKey(source), 0)
      if (found === undefined) continue
      const held = await findFormerOwner(found, { client: cluster.client, sources: decider.sources, options, signal })
      decided.push({ ...found, held })
    }
    return { decided, forbidden }
  } catch (error) {
    // Nothing can be decided without a kind that may not be read: the refusal says which one.
    throw error instanceof NotSynced && refusals[0] !== undefined ? refusals[0].error : error
  } finally {
    stop.abort()
    await running
  }
}

interface Refusal {
  readonly finding: Finding
  readonly error: Forbidden
}

/** A refused watch is retried without end; a plain read reports the refusal at once. */
async function findForbidden(kind: Kind, { client }: Cluster, signal: AbortSignal): Promise<Refusal | undefined> {
  try {
    await client.list(kind, { limit: 1, signal })
  } catch (error) {
    if (error instanceof Forbidden)
      return {
        finding: warning('WatchForbidden', `${kind.kind} cannot be listed: ${messageOf(error)}`),
        error,
      }
    if (!(error instanceof NotFound)) throw error
  }
  return undefined
}

/** Without it nothing can be published, and no DNSEndpoint of somebody else names the host. */
async function findMissingKind({ client }: Cluster, signal: AbortSignal): Promise<Finding | undefined> {
  try {
    await client.list(DNSEndpoint, { limit: 1, signal })
  } catch (error) {
    if (error instanceof NotFound)
      return warning(
        'CRDNotInstalled',
        'DNSEndpoint.externaldns.k8s.io is not installed; create its CRD with: seamark hub init; or install ExternalDNS',
      )
    if (!(error instanceof Forbidden)) throw error
  }
  return undefined
}

/** Balance publishes it: its record is that of the DNSEndpoint of the load balancer. */
function isBalanced({ publications }: HostDecision, host: string): boolean {
  return publications.get(claimKey(host))?.by === 'balance'
}

function isNewRoot({ publications }: HostDecision, host: string): boolean {
  const publication = publications.get(claimKey(host))
  return publication?.by === 'balance' && publication.holder === undefined
}

/** The source publishes the host, or would if it had an address. */
function isPublishing(item: HostDecision): boolean {
  return item.decision !== undefined && findingsOf(item).length === 0
}

/** Of the source as a whole. */
function findingsOf({ decision, held }: HostDecision): readonly Finding[] {
  return [...(held === undefined ? [] : [held]), ...(decision?.findings ?? [])]
}

function targetsOf({ decision }: SourceDecision, host: string): string[] {
  const desired = decision === undefined ? [] : desiredChildren(decision)
  return desired.flatMap((item) =>
    item.role === 'dns'
      ? item.object.spec.endpoints
          .filter((endpoint) => normalizeHost(endpoint.dnsName) === host)
          .flatMap((endpoint) => endpoint.targets)
      : [],
  )
}

async function findCertificate(
  chosen: HostDecision | undefined,
  { client }: Cluster,
  signal: AbortSignal,
): Promise<CertificateFact | undefined> {
  const key = certificateKey(chosen)
  const live = key === undefined ? undefined : await client.find(Certificate, key, { signal })
  return certificateFact(chosen, () => live, Date.now())
}

async function findEndpoint(
  chosen: SourceDecision | undefined,
  host: string,
  { client }: Cluster,
  signal: AbortSignal,
): Promise<EndpointFact | undefined> {
  const owned = ownedEndpoint(chosen, host)
  const live = owned === undefined ? undefined : await client.find(DNSEndpoint, keyOf(owned), { signal })
  return live === undefined ? undefined : endpointFact(live, host)
}

/** The DNSEndpoint of a source that has the host, as the caches have it. */
export function ownedEndpoint(chosen: SourceDecision | undefined, host: string): Immutable<DNSEndpoint> | undefined {
  for (const { object } of chosen?.owned ?? [])
    if (isDnsEndpoint(object) && object.spec.endpoints.some(({ dnsName }) => normalizeHost(dnsName) === host))
      return object
  return undefined
}

export function endpointFact(object: Immutable<DNSEndpoint>, host: string): EndpointFact {
  return {
    name: keyOf(object),
    targets: object.spec.endpoints
      .filter(({ dnsName }) => normalizeHost(dnsName) === host)
      .flatMap(({ targets }) => targets),
    generation: object.metadata.generation ?? 0,
    observedGeneration: object.status?.observedGeneration,
  }
}

function isDnsEndpoint(object: unknown): object is Immutable<DNSEndpoint> {
  return Array.isArray((object as DNSEndpoint).spec.endpoints)
}
