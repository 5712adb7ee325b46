/**
 * Records that a list omitted: without them in the cache, another target looks like a new record, which the guard does not count. So
 * while the configuration is not the one that published last, a record that would be created is read first.
 *
 * Guarantee: nothing is read for an HTTPProxy that was never published, so that a first start with many sources costs no request
 * more.
 */
import type { Context, Informers } from '@seamark/kube'
import { type Immutable, keyOf } from '@seamark/kube/object'
import { DNSEndpoint } from '../../api/dns-endpoint.ts'
import type { HTTPProxy } from '@seamark/kube/contour'
import { isRetarget, type Step } from '../decide/plan.ts'
import type { SourceDecision } from '../decide/source-decision.ts'
import type { PublishOptions } from '../options.ts'
import { CONDITION_TYPE } from '../watches.ts'

export interface RetargetDeps {
  readonly options: Pick<PublishOptions, 'conditions'>
  readonly informers: Pick<Informers, 'get'>
}

/** The decision, with what would change a record on the server as a retarget. */
export async function confirmRetargets(
  decided: SourceDecision,
  context: Pick<Context, 'client' | 'signal'>,
  { informers, options }: RetargetDeps,
): Promise<SourceDecision> {
  if (!mayBePublished(decided, options)) return decided
  const steps: Step[] = []
  for (const step of decided.plan.steps) {
    if (step.type !== 'apply' || step.desired.role !== 'dns') {
      steps.push(step)
      continue
    }
    const key = keyOf(step.desired.object)
    const isCached = informers.get(DNSEndpoint, key) !== undefined
    const live = isCached ? undefined : await context.client.find(DNSEndpoint, key, { signal: context.signal })
    steps.push(isRetarget(step.desired, live) ? { ...step, isRetarget: true } : step)
  }
  return { ...decided, plan: { ...decided.plan, steps } }
}

/** The condition of an HTTPProxy is written once it was decided; other kinds have none. */
function mayBePublished(
  { source, object }: SourceDecision,
  { conditions }: Pick<PublishOptions, 'conditions'>,
): boolean {
  if (source.kind !== 'HTTPProxy' || !conditions) return true
  const { status } = object as Immutable<HTTPProxy>
  return status?.conditions?.some(({ type }) => type === CONDITION_TYPE) === true
}
