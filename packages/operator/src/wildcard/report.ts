/**
 * What users see of a wildcard: an Event and a log line when a finding is new or gone, on the Secret that registers the
 * cluster (on the DNSEndpoint for the local one), and a condition on the DNSEndpoint where its schema has room for one.
 * A cluster that is lost or returns is also reported on the manager's configuration object.
 *
 * Guarantee: a cluster without findings writes nothing, neither at a start nor later; the condition is removed with the last
 * finding.
 */
import { type Clock, type Condition, type Context, Forbidden, Secret, setCondition, timestamp } from '@seamark/kube'
import { type Immutable, keyOf, type Obj } from '@seamark/kube/object'
import { supportsConditions } from '../api/condition-support.ts'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import { type Finding, note } from '../finding.ts'
import type { Registration } from '../clusters/registry.ts'
import type { Notify } from '../process/reports/notices.ts'
import { type Reason, REASONS } from '../reasons.ts'

/** False while the wildcard does not follow the nodes of its cluster; absent otherwise. */
export const WILDCARD_CONDITION = 'seamark.io/Wildcard'

/** A member that is lost or returns concerns the manager as a whole, and is reported on its configuration object too. */
const MEMBER_CODES: ReadonlySet<Reason> = new Set(['ClusterUnreachable', 'ClusterReachable', 'KubeconfigRefused'])

export class ClusterReports {
  readonly #clock: Clock
  readonly #notify: Notify
  readonly #last = new Map<string, readonly Finding[]>()
  #hasRoom: Promise<boolean> | undefined

  constructor(clock: Clock, notify: Notify) {
    this.#clock = clock
    this.#notify = notify
  }

  forget(cluster: string): void {
    this.#last.delete(cluster)
  }

  async report(
    cluster: string,
    { namespace, secret }: Registration,
    live: Immutable<DNSEndpoint> | undefined,
    findings: readonly Finding[],
    context: Context,
  ): Promise<void> {
    const about: Immutable<Obj> | undefined =
      secret === undefined ? live : context.get(Secret, `${namespace}/${secret.name}`)
    for (const finding of findNews(cluster, this.#last.get(cluster) ?? [], findings)) {
      const { severity, reason } = finding
      // The time makes each outage an Event of its own: without it the second one would be counted on the first.
      const message = MEMBER_CODES.has(reason)
        ? `${finding.message}; since ${timestamp(this.#clock.now())}`
        : finding.message
      if (MEMBER_CODES.has(reason)) this.#notify({ reason, severity, message, fields: { cluster } })
      else context.log[severity === 'Warning' ? 'warn' : 'info']({ cluster, reason }, message)
      if (about !== undefined) context.event(about, severity, reason, message)
    }
    this.#last.set(cluster, findings)
    if (live !== undefined) await this.#setCondition(live, findings, context)
  }

  async #setCondition(
    live: Immutable<DNSEndpoint>,
    findings: readonly Finding[],
    { client, signal, log }: Context,
  ): Promise<void> {
    const conditions = nextConditions(live, findings, this.#clock.now())
    if (conditions === undefined) return
    this.#hasRoom ??= supportsConditions(client, DNSEndpoint, signal)
    try {
      if (!(await this.#hasRoom)) return
      const { resourceVersion } = live.metadata
      // Null removes the field: no condition leaves no trace.
      const status = { conditions: conditions.length === 0 ? null : conditions }
      const patch = { metadata: { resourceVersion }, status }
      await client.patch(DNSEndpoint, keyOf(live), 'merge', patch, { subresource: 'status', signal })
    } catch (error) {
      this.#hasRoom = undefined
      if (!(error instanceof Forbidden)) throw error
      log.debug({ err: error }, 'condition not written: the role does not allow it')
    }
  }
}

/** Findings that were not there before; when none is left, one note that the cluster is followed again. */
export function findNews(cluster: string, before: readonly Finding[], now: readonly Finding[]): readonly Finding[] {
  // By reason: messages count nodes and repeat transport errors, which differ from one moment to the next.
  const has = (list: readonly Finding[], code: Finding['reason']): boolean => list.some(({ reason }) => reason === code)
  const fresh = now.filter(({ reason }) => !has(before, reason))
  if (has(before, 'ClusterUnreachable') && !has(now, 'ClusterUnreachable'))
    return [note('ClusterReachable', `cluster ${cluster} can be read again; its wildcard follows its nodes`), ...fresh]
  if (before.length > 0 && now.length === 0)
    return [note('Published', `the wildcard of cluster ${cluster} follows its nodes again`)]
  return fresh
}

/**
 * Undefined when the status contains it already. The condition is there only while something is held, with the text of its
 * reason: counts and transport errors differ from one moment to the next, and each would write the status.
 */
export function nextConditions(
  live: Immutable<DNSEndpoint>,
  findings: readonly Finding[],
  nowMs: number,
): Immutable<Condition[]> | undefined {
  const current = live.status?.conditions ?? []
  const [first] = findings
  if (first === undefined) {
    const others = current.filter(({ type }) => type !== WILDCARD_CONDITION)
    return others.length === current.length ? undefined : others
  }
  const { reason } = first
  const condition = { type: WILDCARD_CONDITION, status: 'False' as const, reason, message: REASONS[reason] }
  const next = setCondition(current, condition, nowMs)
  return next === current ? undefined : next
}
