/**
 * One reconcile of publish: observe and decide (considering.ts), act, then tell the user, the metrics and the queue what became
 * of it. Place in the flow: the controller of each source kind calls it with a key.
 */
import { type Clock, type Context, type Next, requeue } from '@seamark/kube'
import type { Kind } from '@seamark/kube/object'
import type { Certificate } from '../api/certificate.ts'
import type { ProductMetrics } from '../metrics.ts'
import { act, type ActDeps } from './act/act.ts'
import { ownerKey } from './decide/child.ts'
import type { Consideration, Considering } from './decide/source-decision.ts'
import type { MassGuard } from './guard/mass-guard.ts'
import type { PublishOptions, SourceKind } from './options.ts'
import type { OwnWrites } from './act/own-writes.ts'
import { conditionStatus, type Told } from './report/report.ts'

export interface PublishShell {
  readonly options: PublishOptions
  readonly considering: Considering
  readonly guard: MassGuard | undefined
  readonly isRetargetGuarded: () => boolean
  readonly enqueue: (certificate: Certificate) => boolean
  readonly isServed: ActDeps['isServed']
  readonly onCertificateApplied: ActDeps['onCertificateApplied']
  readonly ownWrites: OwnWrites
  /** Owner keys of sources whose child was seen to go, until the next reconcile. */
  readonly bereaved: Set<string>
  readonly metrics: ProductMetrics
  readonly clock: Clock
  readonly told: Told
  /** False in observe mode and while writing is paused: decide and count, write nothing. */
  readonly isWriting: () => boolean
  /** Resolves once it is known whether writing is paused, undefined when it is: a start is not to wait like a pause. */
  readonly untilToldToWrite: (running: { readonly signal: AbortSignal }) => Promise<void> | undefined
}

/** While nothing may be written each source is looked at again, so that the end of a pause is noticed. */
const IDLE_RETRY_MS = 10_000
/** What stands in the way of a child is not ours and not watched for us: it may be gone by then. */
const BLOCKED_RETRY_MS = 60_000

export async function reconcile(kind: SourceKind, token: Kind, context: Context, shell: PublishShell): Promise<Next> {
  const told = shell.untilToldToWrite(context)
  if (told !== undefined) await told
  const considered = shell.considering.consider(kind, context.key, shell.clock.monotonic())
  if (considered === undefined) return
  const { source, againAtMs } = considered
  const isWriting = shell.isWriting()
  if (shell.bereaved.delete(ownerKey(source)) && isWriting && !(await isAlive(considered, token, context))) return
  const outcome = isWriting
    ? await act(considered, actDeps(token, context, shell))
    : { findings: [], errors: [], afterMs: IDLE_RETRY_MS }
  const findings = [...considered.findings, ...outcome.findings]
  const reason =
    findings.find((finding) => finding.severity === 'Warning')?.reason ?? findings[0]?.reason ?? 'Published'
  shell.metrics.sourceDecided(kind, context.key, reason)
  if (isWriting && !source.isDeleting) await tell(considered, findings, context, shell)
  if (outcome.errors.length > 0)
    throw outcome.errors.length === 1
      ? outcome.errors[0]
      : new AggregateError(
          outcome.errors,
          `${outcome.errors.length} children of ${ownerKey(source)} failed; first: ${String(outcome.errors[0])}`,
        )
  const waits = [
    'afterMs' in outcome ? outcome.afterMs : undefined,
    againAtMs === undefined ? undefined : againAtMs - shell.clock.monotonic(),
    considered.plan.findings.length > 0 ? BLOCKED_RETRY_MS : undefined,
  ]
  const waitMs = Math.min(...waits.map((wait) => wait ?? Number.POSITIVE_INFINITY))
  if (Number.isFinite(waitMs)) return requeue(Math.max(1, waitMs))
}

/**
 * A child goes with its source, and the watch of the source may be behind that of the child: made again it would be collected
 * again, and so on until the watch tells. So the server is asked, which costs nothing where nothing was deleted.
 */
async function isAlive({ object }: Consideration, token: Kind, { client, key, signal }: Context): Promise<boolean> {
  const live = await client.find(token, key, { signal })
  return live !== undefined && live.metadata.uid === object.metadata.uid
}

function actDeps(kind: Kind, context: Context, shell: PublishShell): ActDeps {
  const { guard, enqueue, isServed, onCertificateApplied, ownWrites } = shell
  return {
    writer: context,
    // Made when first asked for, which most reconciles never do.
    get client() {
      return context.client
    },
    kind,
    guard,
    isRetargetGuarded: shell.isRetargetGuarded(),
    enqueue,
    isServed,
    onCertificateApplied,
    ownWrites,
  }
}

async function tell(
  { source, object }: Consideration,
  findings: Consideration['findings'],
  context: Context,
  shell: PublishShell,
): Promise<void> {
  for (const { severity, reason, message } of shell.told.news(ownerKey(source), findings))
    context.event(object, severity, reason, message)
  if (!shell.options.conditions || source.kind !== 'HTTPProxy') return
  const status = conditionStatus(object, findings, shell.clock.now())
  if (status === undefined) return
  // A condition is a courtesy: without the right to write it (contour-plus' role has none) everything else goes on.
  await context
    .status(object, status as never)
    .catch((error: unknown) => context.log.debug({ err: error }, 'condition not written'))
}
