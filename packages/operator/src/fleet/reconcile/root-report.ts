/** The last part of a root's reconcile: status of the GlobalIngress, status of the root, and Events about changes. */
import { type Context, findCondition } from '@seamark/kube'
import { apiVersionOf } from '@seamark/kube/object'
import type { Finding } from '../../finding.ts'
import { GlobalIngress } from '../../api/global-ingress.ts'
import { type AnswerVerdict, NO_OWN_HOST } from '../dns/answer-check.ts'
import { silentServers } from '../decide/dns-presence.ts'
import type { LeavesFacts } from '../decide/leaves.ts'
import { decideStatus, type LeafSummary, statusAddresses } from '../decide/status.ts'
import { reportConditions } from './root-objects.ts'
import { reportSharedHosts } from './shared-host-events.ts'
import type { RootPass } from './root-pass.ts'
import { writeRootStatus } from './root-status.ts'

export interface RootOutcome {
  readonly facts: LeavesFacts
  readonly leaves: readonly LeafSummary[]
  /** Shared hosts that no cluster serves completely. */
  readonly partialHosts: readonly string[]
  /** Whether DNS answers the hosts. */
  readonly isAnswered: boolean
  /** What DNS servers answer; undefined: they were not asked. */
  readonly verdict: AnswerVerdict | undefined
  /** What the manager itself lacks to publish hosts. */
  readonly blocked: Finding | undefined
}

export async function reportRoot(
  { kind, root, policy, claimed, plan, global }: RootPass,
  { facts, leaves, partialHosts, isAnswered, verdict, blocked }: RootOutcome,
  ctx: Context,
): Promise<void> {
  const { status, summary } = decideStatus({
    spec: facts.hasDns ? plan.spec : { ...plan.spec, published: true },
    generation: global.metadata.generation ?? 0,
    policy: policy.source,
    leaves,
    refusedHosts: claimed.refused,
    refusedLeaves: plan.refused,
    placement: plan.placement,
    partialHosts,
    isDnsVerified: isAnswered && verdict?.isPending !== true,
    answered: verdict === NO_OWN_HOST ? undefined : (verdict?.answered ?? global.status?.answered),
    answerFault: verdict?.fault,
    blocked,
    silentServers: isAnswered ? [] : silentServers(facts.answers ?? []),
    previous: global.status?.conditions,
    nowMs: facts.nowMs,
  })
  reportConditions(global.status, status, root, ctx)
  reportSharedHosts(global.status, status, { kind, root, refused: claimed.refused }, ctx)
  await ctx.status({ apiVersion: apiVersionOf(GlobalIngress), kind: GlobalIngress.kind, ...global }, status)
  const ready = findCondition(status.conditions, 'Ready')
  await writeRootStatus(
    kind,
    root,
    {
      addresses: statusAddresses(plan.spec, leaves, isAnswered && facts.hasDns),
      leaves,
      isReady: ready?.status === 'True',
      message: ready?.message ?? '',
      summary,
    },
    ctx,
  )
}
