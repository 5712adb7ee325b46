/**
 * What the manager reported about the records of DNSEndpoints: the condition where the schema of the kind has conditions, else
 * the Events of the last hour. A change that a DNS service refuses, or a clock that is wrong, cannot be seen outside of it.
 */
import { type Client, Event, findCondition, Forbidden, NotFound } from '@seamark/kube'
import { type DNSEndpoint, SERVED_CONDITION } from '../api/dns-endpoint.ts'
import { type Finding, warning } from '../finding.ts'
import { type Reason, REASONS } from '../reasons.ts'
import type { Plan, Refusal } from '../records/plan/plan.ts'

/** Older Events are about a problem that was solved or reported again since. */
const REPORTED_MS = 3_600_000

/** `name`: absolute, as it is written in the reports. Newest first. */
export async function findRecordReports(
  endpoints: readonly DNSEndpoint[],
  name: string,
  client: Pick<Client, 'list'>,
  signal: AbortSignal,
): Promise<Finding[]> {
  return (await readRecordReports(endpoints, client, signal))(endpoints, name)
}

/** Plans as the manager would make them: a change that it has reported as not done is held. `requesting`: by name. */
export async function holdReported(
  plans: readonly Plan[],
  requesting: (name: string) => readonly DNSEndpoint[],
  client: Pick<Client, 'list'>,
  signal: AbortSignal,
): Promise<readonly Plan[]> {
  const changed = plans.flatMap(({ changes }) => changes.flatMap(({ name }) => requesting(name)))
  if (changed.length === 0) return plans
  const reportsOf = await readRecordReports(changed, client, signal)
  return plans.map((plan) => {
    const held = plan.changes.map((change): Refusal | undefined => {
      const [report] = reportsOf(requesting(change.name), change.name)
      if (report === undefined) return undefined
      const { markers: _, group: __, ...rest } = change
      return { ...rest, code: report.reason, why: `the manager reported: ${report.message}` }
    })
    return {
      ...plan,
      changes: plan.changes.filter((_, index) => held[index] === undefined),
      refused: [...plan.refused, ...held.filter((each) => each !== undefined)],
    }
  })
}

/** Reads Events once, for many names. */
async function readRecordReports(
  all: readonly DNSEndpoint[],
  client: Pick<Client, 'list'>,
  signal: AbortSignal,
): Promise<(endpoints: readonly DNSEndpoint[], name: string) => Finding[]> {
  const namespaces = new Set(all.map(({ metadata }) => metadata.namespace ?? ''))
  const events: Event[] = []
  for (const namespace of namespaces) {
    const list = await client.list(Event, { namespace, signal }).catch((error: unknown) => {
      if (error instanceof Forbidden || error instanceof NotFound) return undefined
      throw error
    })
    events.push(...(list?.items ?? []))
  }
  const sinceMs = Date.now() - REPORTED_MS
  const recent = events
    .map((event) => ({ event, atMs: Date.parse(event.series?.lastObservedTime ?? event.eventTime) }))
    .filter(({ atMs }) => atMs >= sinceMs)
    .toSorted((a, b) => b.atMs - a.atMs)
  return (endpoints, name) => {
    const served = endpoints.flatMap(({ status }) => findCondition(status?.conditions, SERVED_CONDITION) ?? [])
    const held = served.flatMap(({ status, reason, message }) =>
      status === 'False' && isReason(reason) && message.startsWith(`${name} `) ? [warning(reason, message)] : [],
    )
    if (held.length > 0) return held
    const uids = new Set(endpoints.map(({ metadata }) => metadata.uid))
    return recent
      .filter(({ event: { regarding, note = '' } }) => uids.has(regarding?.uid) && note.startsWith(`${name} `))
      .flatMap(({ event: { reason, note = '' } }) => (isReason(reason) ? [warning(reason, note)] : []))
  }
}

function isReason(text: string | undefined): text is Reason {
  return text !== undefined && Object.hasOwn(REASONS, text)
}
