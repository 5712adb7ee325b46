/**
 * The manager's reports about a source: decisions of its guards and refusals of the API server, which cannot be computed
 * again outside the manager. Read from the condition of the source, or from its Events.
 */
import { type Cluster, Event, Forbidden, NotFound } from '@seamark/kube'
import type { Immutable } from '@seamark/kube/object'
import type { HTTPProxy } from '@seamark/kube/contour'
import { type Finding, warning } from '../finding.ts'
import type { SourceDecision } from '../publish/decide/source-decision.ts'
import { CONDITION_TYPE } from '../publish/watches.ts'
import type { Reason } from '../reasons.ts'

const REPORTED: ReadonlySet<string> = new Set<Reason>([
  'GuardTripped',
  'ApplyRejected',
  'CRDNotInstalled',
  'SecondWriter',
  'WatchForbidden',
])
/** Older Events are about a problem that was solved or reported again since. */
const REPORTED_MS = 3_600_000

/** The condition, where the kind has one, because it is current; else the Events of the last hour. */
export async function findReported(
  chosen: SourceDecision,
  { client }: Cluster,
  signal: AbortSignal,
): Promise<Finding[]> {
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
