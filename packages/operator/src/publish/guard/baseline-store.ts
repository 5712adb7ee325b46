/**
 * The controller of the baseline (baseline.ts): determines whether this configuration is the one that published last,
 * stores it once every source has its targets, and obeys the deprecated annotation that approves what is held.
 *
 * A failure leaves the guard on; the runtime retries with back-off.
 */
import { type Manager, requeue } from '@seamark/kube'
import { type BaselineState, fingerprint, readBaseline, STATE_NAME, writeBaseline } from './baseline.ts'
import type { SourceDecider } from '../decide/source-decision.ts'
import { releaseNotice } from '../../safety/annotated-approvals.ts'
import type { MassGuard } from '../../safety/mass-guard.ts'
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
    heldObjects,
    notify,
  }: Pick<PublishSetUp, 'options' | 'namespace' | 'clock' | 'isWriting' | 'heldObjects' | 'notify'>,
): void {
  const current = fingerprint(options)
  let stored: BaselineState | undefined
  let isUnsaved = false
  const omitted = new OmittedSources()
  let quiet = 0
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
      if (guard.held > 0) {
        const { release } = await readBaseline(client, namespace, signal)
        if (release !== '' && release !== stored.released) {
          const report = await heldObjects.release('publish', release)
          if (report !== undefined)
            notify(
              releaseNotice(report, {
                where: ` on ConfigMap ${STATE_NAME}`,
                form: 'seamark.io/approve-held: ID on ConfigMap seamark',
              }),
            )
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
