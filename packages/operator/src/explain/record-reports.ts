/**
 * What the manager reported about the records of DNSEndpoints: the condition where the schema of the kind has conditions, else
 * the Events of the last hour. A change that a DNS service refuses, or a clock that is wrong, cannot be seen outside of it.
 */
import { type Client, Event, findCondition, Forbidden, NotFound } from '@seamark/kube'
import { type DNSEndpoint, SERVED_CONDITION } from '../api/dns-endpoint.ts'
import { type Finding, warning } from '../finding.ts'
import { type Reason, REASONS } from '../reasons.ts'

/** Older Events are about a problem that was solved or reported again since. */
const REPORTED_MS = 3_600_000

/** `name`: absolute, as it is written in the reports. Newest first. */
export async function findRecordReports(
  endpoints: readonly DNSEndpoint[],
  name: string,
  client: Pick<Client, 'list'>,
  signal: AbortSignal,
): Promise<Finding[]> {
  const served = endpoints.flatMap(({ status }) => findCondition(status?.conditions, SERVED_CONDITION) ?? [])
  const held = served.flatMap(({ status, reason, message }) =>
    status === 'False' && isReason(reason) && message.startsWith(`${name} `) ? [warning(reason, message)] : [],
  )
  if (held.length > 0) return held
  const uids = new Set(endpoints.map(({ metadata }) => metadata.uid))
  const namespaces = new Set(endpoints.map(({ metadata }) => metadata.namespace ?? ''))
  const events: Event[] = []
  for (const namespace of namespaces) {
    const list = await client.list(Event, { namespace, signal }).catch((error: unknown) => {
      if (error instanceof Forbidden || error instanceof NotFound) return undefined
      throw error
    })
    events.push(...(list?.items ?? []))
  }
  const sinceMs = Date.now() - REPORTED_MS
  return events
    .filter(({ regarding, note = '' }) => uids.has(regarding?.uid) && note.startsWith(`${name} `))
    .map((event) => ({ event, atMs: Date.parse(event.series?.lastObservedTime ?? event.eventTime) }))
    .filter(({ atMs }) => atMs >= sinceMs)
    .toSorted((a, b) => b.atMs - a.atMs)
    .flatMap(({ event: { reason, note = '' } }) => (isReason(reason) ? [warning(reason, note)] : []))
}

function isReason(text: string | undefined): text is Reason {
  return text !== undefined && Object.hasOwn(REASONS, text)
}
