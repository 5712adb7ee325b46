/**
 * The controller of the baseline (baseline.ts): determines whether this configuration is the one that published last,
 * stores it once every source has its targets, and exchanges held changes and approvals between the mass guard and their
 * store.
 *
 * A failure leaves the guard on; the runtime retries with back-off.
 */
import { type Manager, requeue } from '@seamark/kube'
import { type BaselineState, fingerprint, readBaseline, STATE_NAME, writeBaseline } from './baseline.ts'
import type { SourceDecider } from '../decide/source-decision.ts'
import type { HeldSet, MassGuard } from './mass-guard.ts'
import { OmittedSources } from './omitted-sources.ts'
import type { PublishSetUp } from '../set-up.ts'
import { sourceKey } from '../sources/source.ts'

const POLL_MS = 2_000

/** Reasons for which the targets of a source are unknown. */
const UNKNOWN_TARGET: ReadonlySet<string> = new Set(['ServiceNotFound', 'NoLoadBalancerAddress', 'ParentNotFound'])

/** Every source of the caches is published with its targets: with this configuration no target changes any more. */
function isSettled(decider: SourceDecider, nowMs: number): boolean {
  return decider.sources.all().every((source) => {
    const decided = decider.decide(source.kind, sourceKey(source), nowMs)
    if (decided?.decision === undefined) return true
    const isMoving = decided.plan.steps.some((step) => step.type === 'apply' && step.isRetarget)
    const isUnknown = decided.decision.children.dns.findings.some(({ reason }) => UNKNOWN_TARGET.has(reason))
    return !isMoving && !(isUnknown && decided.owned.length > 0)
  })
}

/** Where held changes and their approvals are persisted. */
export interface ApprovalExchange {
  /** Persists what is held and which approved changes were made. Returns the keys of approved changes. */
  exchange(held: HeldSet, made: ReadonlySet<string>): Promise<ReadonlySet<string>>
  /** The annotation that approves held changes was changed. */
  readonly hasNews: boolean
  /** Processes annotations that approve held changes; `release` is the deprecated one of the state object. */
  takeApprovals(release: string): Promise<void>
}

/** Until the configuration is known to be the one that published last, retargets are counted; see baseline.ts. */
export function addBaselineController(
  manager: Manager,
  { decider, guard }: { decider: SourceDecider; guard: MassGuard },
  baseline: { isGuarded: boolean },
  {
    options,
    namespace,
    clock,
    isWriting,
    approvals,
  }: Pick<PublishSetUp, 'options' | 'namespace' | 'clock' | 'isWriting' | 'approvals'>,
): void {
  const current = fingerprint(options)
  let stored: BaselineState | undefined
  let isUnsaved = false
  const omitted = new OmittedSources()
  let quiet = 0
  /** The store has held changes. A previous process may have left some. */
  let isHolding = true
  /** Keys of approved changes that were made, until they are persisted. */
  const made = new Set<string>()
  manager
    .keyedController('publish-baseline', { concurrency: 1 })
    .triggers((mark) => {
      mark([STATE_NAME])
      return undefined
    })
    .reconcile(async (_, { client, signal }) => {
      stored ??= await readBaseline(client, namespace, signal)
      if (stored.fingerprint === current) baseline.isGuarded = false
      if (!isWriting()) return requeue(POLL_MS)
      for (const key of guard.takePassed()) made.add(key)
      const isHeld = guard.held > 0
      if (isHeld || made.size > 0 || isHolding || approvals.hasNews) {
        guard.approve(await approvals.exchange(guard.heldSet, made))
        made.clear()
        isHolding = isHeld
        const { release } = await readBaseline(client, namespace, signal)
        const isNew = release !== '' && release !== stored.released
        await approvals.takeApprovals(isNew ? release : '')
        if (isNew && isHolding) {
          stored = { ...stored, released: release }
          isUnsaved = true
        }
      }
      quiet = guard.isIdle ? quiet + 1 : 0
      const isPublished = baseline.isGuarded && quiet >= 2 && isSettled(decider, clock.monotonic())
      if (isPublished && !(await omitted.mayExist(decider, client, signal))) {
        stored = { ...stored, fingerprint: current }
        isUnsaved = true
      }
      if (isUnsaved && quiet >= 2) {
        const { released, fingerprint: known = '' } = stored
        await writeBaseline(client, namespace, { fingerprint: known, released }, signal)
        isUnsaved = false
        if (known === current) baseline.isGuarded = false
      }
      return requeue(POLL_MS)
    })
}
