/**
 * One reconcile of publish: observe and decide (decide/source-decision.ts), act (act/act.ts), then report to Events,
 * condition and metrics. Place in the flow: the controller of each source kind calls it with a key.
 */
import { type Clock, type Context, type Next, requeue } from '@seamark/kube'
import type { Kind } from '@seamark/kube/object'
import type { Certificate } from '../api/certificate.ts'
import { type Finding, warning } from '../finding.ts'
import type { ProductMetrics } from '../metrics.ts'
import type { HeldRecords } from '../safety/held-records.ts'
import type { SecondWriterGuard } from '../safety/second-writer-guard.ts'
import { act, type ActDeps } from './act/act.ts'
import { ownerKey } from './decide/child.ts'
import type { SourceDecision, SourceDecider } from './decide/source-decision.ts'
import { findFormerOwner } from './former-owner.ts'
import type { MassGuard } from '../safety/mass-guard.ts'
import { confirmRetargets } from './guard/omitted-children.ts'
import type { PublishOptions, SourceKind } from './options.ts'
import { describePending } from './report/pending-steps.ts'
import { awaitsRecords, conditionStatus, findHeldDns, type FindingHistory } from './report/report.ts'

export interface PublishShell {
  readonly options: PublishOptions
  readonly decider: SourceDecider
  readonly informers: ActDeps['informers']
  readonly guard: MassGuard | undefined
  readonly isRetargetGuarded: () => boolean
  readonly enqueue: (certificate: Certificate) => boolean
  readonly isServed: ActDeps['isServed']
  readonly onCertificateApplied: ActDeps['onCertificateApplied']
  /** Owner keys of sources whose child was deleted since their last reconcile. */
  readonly sourcesWithDeletedChild: Set<string>
  readonly metrics: ProductMetrics
  readonly clock: Clock
  readonly findingHistory: FindingHistory
  readonly mode: 'observe' | 'enforce'
  /** False in observe mode and while writing is paused: decide and count, write nothing. */
  readonly isWriting: () => boolean
  /** Resolves once it is known whether this process may write; undefined when it is known, so that no reconcile waits for a promise. */
  readonly untilMayWrite: (running: { readonly signal: AbortSignal }) => Promise<unknown> | undefined
  readonly secondWriter: SecondWriterGuard
  /** What records of this process holds; undefined: another process writes the records. */
  readonly heldRecords: HeldRecords | undefined
}

/** While nothing may be written each source is reconciled at this interval, so that the end of a pause is noticed. */
const IDLE_RETRY_MS = 10_000
/** The object that blocks a child is not mapped to this source, so its deletion causes no reconcile. */
const BLOCKED_RETRY_MS = 60_000
/** Until records has read its zones once. */
const RECORDS_RETRY_MS = 5_000

export async function reconcile(kind: SourceKind, token: Kind, context: Context, shell: PublishShell): Promise<Next> {
  const mayWrite = shell.untilMayWrite(context)
  if (mayWrite !== undefined) await mayWrite
  const decided = shell.decider.decide(kind, context.key, shell.clock.monotonic())
  if (decided === undefined) return
  const { source, againAtMs } = decided
  const isWriting = shell.isWriting()
  if (shell.sourcesWithDeletedChild.delete(ownerKey(source)) && isWriting && !(await isAlive(decided, token, context)))
    return
  const held = decided.unconfirmed.length === 0 ? undefined : await findHeldClaim(decided, context, shell)
  if (held !== undefined) {
    shell.metrics.sourceDecided(kind, context.key, held.reason)
    if (isWriting) await report(decided, [held], context, shell)
    return requeue(BLOCKED_RETRY_MS)
  }
  const isConfirmed = !isWriting || shell.guard === undefined || !shell.isRetargetGuarded()
  const result = isWriting
    ? await act(isConfirmed ? decided : await confirmRetargets(decided, context, shell), actDeps(token, context, shell))
    : { findings: reportPending(decided, context, shell), errors: [], afterMs: IDLE_RETRY_MS }
  const findings = [...decided.findings, ...result.findings]
  const reason =
    findings.find((finding) => finding.severity === 'Warning')?.reason ?? findings[0]?.reason ?? 'Published'
  shell.metrics.sourceDecided(kind, context.key, reason)
  if (isWriting && !source.isDeleting) await report(decided, findings, context, shell)
  if (result.errors.length > 0)
    throw result.errors.length === 1
      ? result.errors[0]
      : new AggregateError(
          result.errors,
          `${result.errors.length} children of ${ownerKey(source)} failed; first: ${String(result.errors[0])}`,
        )
  const waits = [
    'afterMs' in result ? result.afterMs : undefined,
    againAtMs === undefined ? undefined : againAtMs - shell.clock.monotonic(),
    decided.plan.findings.length > 0 ? BLOCKED_RETRY_MS : undefined,
    shell.options.conditions && awaitsRecords(decided.object, shell.heldRecords) ? RECORDS_RETRY_MS : undefined,
  ]
  const waitMs = Math.min(...waits.map((wait) => wait ?? Number.POSITIVE_INFINITY))
  if (Number.isFinite(waitMs)) return requeue(Math.max(1, waitMs))
}

/** Nothing may be written: logs what would be, once, and returns the reason why it is not. */
function reportPending(decided: SourceDecision, context: Context, shell: PublishShell): Finding[] {
  const pending = describePending(decided, shell.informers)
  if (pending.length === 0) return []
  const reason = shell.mode === 'observe' ? 'ObserveMode' : 'Paused'
  const finding = warning(reason, `not written: ${pending.join(', ')}`)
  for (const { message } of shell.findingHistory.takeNew(decided.source.kind, context.key, 'findings', [finding]))
    context.log.info({ reason, source: ownerKey(decided.source) }, message)
  return [finding]
}

/**
 * Garbage collection deletes a child with its source, and the watch of the source may be behind that of the child: a child
 * created again would be collected again until the watch reports the deletion. A live read costs nothing where nothing was
 * deleted.
 */
async function isAlive({ object }: SourceDecision, token: Kind, { client, key, signal }: Context): Promise<boolean> {
  const live = await client.find(token, key, { signal })
  return live !== undefined && live.metadata.uid === object.metadata.uid
}

/** The finding for a claim that may not be acted on yet (former-owner.ts). The context creates client and log on first use. */
async function findHeldClaim(
  decided: SourceDecision,
  { client, log, signal }: Context,
  { decider, options }: PublishShell,
): Promise<Finding | undefined> {
  const held = await findFormerOwner(decided, { client, sources: decider.sources, options, signal })
  if (held !== undefined)
    log.warn(
      { reason: held.reason, source: ownerKey(decided.source), message: held.message },
      'a claim waits for the former owner of the host',
    )
  return held
}

function actDeps(kind: Kind, context: Context, shell: PublishShell): ActDeps {
  const { guard, enqueue, isServed, onCertificateApplied, secondWriter, informers } = shell
  return {
    writer: context,
    secondWriter,
    informers,
    // Created on first use; most reconciles never need it.
    get client() {
      return context.client
    },
    kind,
    guard,
    isRetargetGuarded: shell.isRetargetGuarded(),
    enqueue,
    isServed,
    onCertificateApplied,
  }
}

async function report(
  { source, object, owned, conflicts }: SourceDecision,
  findings: SourceDecision['findings'],
  context: Context,
  shell: PublishShell,
): Promise<void> {
  for (const { severity, reason, message } of shell.findingHistory.takeNew(
    source.kind,
    context.key,
    'findings',
    findings,
  ))
    context.event(object, severity, reason, message)
  reportConflicts({ source, object, conflicts }, context, shell)
  if (!shell.options.conditions || source.kind !== 'HTTPProxy') return
  if (awaitsRecords(object, shell.heldRecords)) return
  const status = conditionStatus(object, findings, shell.clock.now(), findHeldDns(owned, shell.heldRecords))
  if (status === undefined) return
  // Without permission to write a condition (contour-plus' role has none) everything else continues.
  await context
    .status(object, status as never)
    .catch((error: unknown) => context.log.debug({ err: error }, 'condition not written'))
}

/** Each of the two objects is told about the other, once. */
function reportConflicts(
  { source, object, conflicts }: Pick<SourceDecision, 'source' | 'object' | 'conflicts'>,
  context: Context,
  { findingHistory }: PublishShell,
): void {
  const about = new Map(conflicts.map(({ about: other = object, finding }) => [finding, other]))
  for (const finding of findingHistory.takeNew(source.kind, context.key, 'conflicts', [...about.keys()]))
    context.event(about.get(finding) ?? object, finding.severity, finding.reason, finding.message)
}
