/**
 * Keeps the baseline (baseline.ts) while the manager leads: finds out whether this configuration is the one that published
 * last, notes it once everything points where it says, and honours releases of what the mass guard holds.
 */
import { type Client, type Manager, sleep } from '@seamark/kube'
import { type BaselineState, fingerprint, readBaseline, writeBaseline } from './baseline.ts'
import type { SourceDecider } from '../decide/source-decision.ts'
import type { MassGuard } from './mass-guard.ts'
import type { PublishSetUp } from '../set-up.ts'
import { sourceKey } from '../sources/source.ts'

const POLL_MS = 2_000

/** Why it is not known where a source's names point. */
const UNKNOWN_TARGET: ReadonlySet<string> = new Set(['ServiceNotFound', 'NoLoadBalancerAddress', 'ParentNotFound'])

/** Every source points where its names are published: with this configuration nothing would move, or has moved already. */
function isSettled(decider: SourceDecider, nowMs: number): boolean {
  return decider.sources.all().every((source) => {
    const decided = decider.decide(source.kind, sourceKey(source), nowMs)
    if (decided?.decision === undefined) return true
    const isMoving = decided.plan.steps.some((step) => step.type === 'apply' && step.isRetarget)
    const isUnknown = decided.decision.children.dns.findings.some(({ reason }) => UNKNOWN_TARGET.has(reason))
    return !isMoving && !(isUnknown && decided.owned.length > 0)
  })
}

/**
 * Until the configuration is known to be the one that published last, retargets are counted; see baseline.ts. A release is
 * noted only when all it let go is done, so that a crash in the middle does not hold the rest for ever.
 */
export async function keepBaseline(
  { log }: Manager,
  client: Client,
  { decider, guard }: { decider: SourceDecider; guard: MassGuard },
  baseline: { isGuarded: boolean },
  { options, namespace, clock, isWriting }: Pick<PublishSetUp, 'options' | 'namespace' | 'clock' | 'isWriting'>,
  signal: AbortSignal,
): Promise<void> {
  const current = fingerprint(options)
  let stored: BaselineState | undefined
  let isUnsaved = false
  let quiet = 0
  while (!signal.aborted) {
    try {
      stored ??= await readBaseline(client, namespace, signal)
      if (stored.fingerprint === current) baseline.isGuarded = false
      if (isWriting()) {
        if (guard.held > 0) {
          const { release } = await readBaseline(client, namespace, signal)
          if (release !== '' && release !== stored.released) {
            guard.release()
            stored = { ...stored, released: release }
            isUnsaved = true
          }
        }
        quiet = guard.isIdle ? quiet + 1 : 0
        if (baseline.isGuarded && quiet >= 2 && isSettled(decider, clock.monotonic())) {
          stored = { ...stored, fingerprint: current }
          isUnsaved = true
        }
        if (isUnsaved && quiet >= 2) {
          const { released, fingerprint: known = '' } = stored
          await writeBaseline(client, namespace, { fingerprint: known, released }, signal)
          isUnsaved = false
        }
      }
    } catch (error) {
      // Nothing is lost: the guard stays on, and the next poll tries again.
      if (!signal.aborted) log.warn({ err: error }, 'the state of publish cannot be kept')
    }
    await sleep(clock, POLL_MS, signal)
  }
}
