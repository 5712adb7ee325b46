/**
 * Collects the facts for `explain`: decisions out of the same code the controllers run, children as the server has them now,
 * the provider's view where one is configured, and the answer of a DNS server.
 */
import type { Cluster } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import { Certificate } from '../api/certificate.ts'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import { normalizeHost } from '../host-name.ts'
import { type SourceDecision, createSourceDecider } from '../publish/decide/source-decision.ts'
import { wantedOf } from '../publish/decide/decide.ts'
import type { PublishOptions } from '../publish/options.ts'
import { sourceKey } from '../publish/sources/source.ts'
import { watchForPublish } from '../publish/watches.ts'
import type { AnswerFact, CertificateFact, EndpointFact, ExplainFacts, PlanFact } from './chain.ts'

export interface ExplainDeps {
  readonly cluster: Cluster
  readonly options: PublishOptions
  /** What our own provider plans and has for the name; undefined when none is configured. */
  readonly plan?: (host: string, targets: readonly string[], signal: AbortSignal) => Promise<PlanFact>
  readonly answer?: (host: string, signal: AbortSignal) => Promise<AnswerFact>
}

export async function gatherFacts(
  given: string,
  { cluster, options, plan, answer }: ExplainDeps,
  signal: AbortSignal,
): Promise<ExplainFacts> {
  const host = normalizeHost(given)
  const decided = await decideHost(host, cluster, options, signal)
  const chosen = decided.find(isPublishing) ?? decided[0]
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
  }
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
