/**
 * Writes what was decided about a root: its GlobalIngress, its LeafIngresses, their statuses, and Events about changes. Every
 * write is an apply, so that one that would change nothing is not sent.
 */
import { type Context, findCondition, withController } from '@seamark/kube'
import { apiVersionOf, type Immutable, type Obj } from '@seamark/kube/object'
import { GlobalIngress } from '../../api/global-ingress.ts'
import { LeafIngress } from '../../api/leaf-ingress.ts'
import { contentOf } from '../decide/leaf-check.ts'
import type { LeafDecision } from '../decide/leaf-phase.ts'
import { leafStatus } from '../decide/leaf-status.ts'
import type { ObservedLeaf } from '../decide/leaves.ts'
import type { RootPlan } from '../decide/plan.ts'
import type { PlannedLeaves } from '../members/planned-leaves.ts'
import {
  DNS_FINALIZER,
  globalIngressName,
  LEAF_CLUSTER_LABEL,
  REMOTE_FINALIZER,
  ROOT_ANNOTATION,
  ROOT_KIND_LABEL,
} from '../names.ts'
import { ROOT_UID_LABEL } from '../../hosts/root.ts'
import type { RootKind } from '../roots/root-kind.ts'

export async function applyPlan(
  kind: RootKind,
  root: Immutable<Obj>,
  plan: RootPlan,
  {
    leaves,
    planned,
  }: { readonly leaves: ReadonlyMap<string, Immutable<LeafIngress>>; readonly planned: PlannedLeaves },
  ctx: Context,
): Promise<Immutable<GlobalIngress>> {
  const { name = '', namespace = '', uid = '' } = root.metadata
  const labels = { [ROOT_UID_LABEL]: uid, [ROOT_KIND_LABEL]: kind.kind.kind }
  const annotations = { [ROOT_ANNOTATION]: name }
  const owner = { apiVersion: apiVersionOf(kind.kind), kind: kind.kind.kind, ...root }
  const metadata = { name: globalIngressName(kind.kind.kind, name, uid), namespace, labels, annotations }
  const global = await ctx.apply(
    GlobalIngress,
    withController({ metadata: { ...metadata, finalizers: [DNS_FINALIZER] }, spec: plan.spec }, owner),
  )
  const globalOwner = { apiVersion: apiVersionOf(GlobalIngress), kind: GlobalIngress.kind, ...global }
  for (const leaf of plan.leaves) {
    if (leaf.isRendered) planned.set(`${namespace}/${leaf.name}`, contentOf(leaf.name, leaf.spec))
    // One that is being deleted is drained first, and then created again if it is still planned.
    if (leaves.get(leaf.cluster)?.metadata.deletionTimestamp !== undefined) continue
    const leafLabels = { ...labels, [LEAF_CLUSTER_LABEL]: leaf.cluster }
    const own = { name: leaf.name, namespace, labels: leafLabels, annotations, finalizers: [REMOTE_FINALIZER] }
    await ctx.apply(LeafIngress, withController({ metadata: own, spec: leaf.spec }, globalOwner))
  }
  return global
}

export async function writeLeafStatus(
  root: Immutable<Obj>,
  observed: ObservedLeaf,
  decision: LeafDecision,
  ctx: Context,
): Promise<void> {
  const { leaf } = observed
  if (leaf.status?.phase !== decision.phase) {
    const type = decision.phase === 'Unhealthy' ? 'Warning' : 'Normal'
    ctx.event(root, type, decision.reason, `leaf on cluster ${leaf.spec.cluster} is ${decision.phase}`)
  }
  const { result } = observed
  if (result?.reason === 'LeafNotPlanned' && leaf.status?.reason !== result.reason)
    ctx.event(root, 'Warning', result.reason, `leaf on cluster ${leaf.spec.cluster}: ${result.message}`)
  await ctx.status(
    { apiVersion: apiVersionOf(LeafIngress), kind: LeafIngress.kind, ...leaf },
    leafStatus(observed, decision, ctx.clock.now()),
  )
}

/** An Event for every condition that changed, so that a restart repeats none. */
export function reportConditions(
  before: Immutable<GlobalIngress>['status'],
  status: { readonly conditions?: Parameters<typeof findCondition>[0] },
  root: Immutable<Obj>,
  ctx: Context,
): void {
  for (const type of ['HostsOwned', 'Placed', 'Degraded', 'Ready']) {
    const [old, now] = [findCondition(before?.conditions, type), findCondition(status.conditions, type)]
    if (now === undefined || (old?.status === now.status && old.reason === now.reason)) continue
    const isBad = type === 'Degraded' ? now.status === 'True' : now.status === 'False'
    if (old === undefined && (type === 'Ready' || !isBad)) continue
    ctx.event(root, isBad ? 'Warning' : 'Normal', now.reason, now.message)
  }
}
