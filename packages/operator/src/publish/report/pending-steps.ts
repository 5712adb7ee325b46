/**
 * What a plan would change while nothing may be written: logged in observe mode, so that a person sees what enforce would do,
 * and counted as ObserveMode or Paused instead of Published.
 */
import type { Informers } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import type { SourceDecision } from '../decide/source-decision.ts'
import { compareStep } from '../decide/step-effect.ts'

/** One text per step that would change something, such as `create DNSEndpoint ns/foo`. */
export function describePending(
  { plan, source }: Pick<SourceDecision, 'plan' | 'source'>,
  informers: Pick<Informers, 'get' | 'ownFields'>,
): string[] {
  return plan.steps.flatMap((step) => {
    switch (step.type) {
      case 'apply': {
        const { state } = compareStep(step.desired, informers)
        if (state === 'equal') return []
        const { object } = step.desired
        return [`${state === 'absent' ? 'create' : 'update'} ${object.kind} ${keyOf(object)}`]
      }
      case 'delete':
        return [`delete ${step.child.kind.kind} ${keyOf(step.child.object)}`]
      case 'add-finalizer':
      case 'remove-finalizer':
      case 'set-secret-name':
        return [`patch ${source.kind} ${source.namespace}/${source.name} (${step.type})`]
    }
  })
}
