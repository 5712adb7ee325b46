/**
 * The status that an object should have, without timestamps: those depend on what the object has now, and are added when it
 * is written (controller/status-merge.ts).
 */
import { keyOf, type Immutable, type Key, type Obj } from '@seamark/kube/object'

/** metav1.Condition without the time; `observedGeneration` is added from `generation`. */
export interface ConditionIntent {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: string
  readonly message: string
  readonly [extra: string]: unknown
}

export interface StatusIntent {
  readonly kind:
    | 'Ingress'
    | 'HTTPProxy'
    | 'GatewayClass'
    | 'Gateway'
    | 'HTTPRoute'
    | 'GRPCRoute'
    | 'TLSRoute'
    | 'BackendTLSPolicy'
  readonly key: Key
  /** Of the object that the status is about: a recreated object gets its status again. */
  readonly uid?: string
  readonly generation?: number
  /** Fields of `status`; lists called `conditions` contain ConditionIntents. */
  readonly status: Readonly<Record<string, unknown>>
}

/** The part of an intent that identifies its object. */
export function identify(object: Immutable<Obj>): Pick<StatusIntent, 'key' | 'uid' | 'generation'> {
  const { uid, generation } = object.metadata
  return {
    key: keyOf(object),
    ...(uid !== undefined && { uid }),
    ...(generation !== undefined && { generation }),
  }
}

/** A condition that is true or false. */
export function condition(type: string, isTrue: boolean, reason: string, message: string): ConditionIntent {
  return { type, status: isTrue ? 'True' : 'False', reason, message }
}

/** The intent with a further condition, of each parent for a route; an Ingress has none. */
export function withCondition(intent: StatusIntent, added: ConditionIntent): StatusIntent {
  const add = (fields: Readonly<Record<string, unknown>>) => {
    const conditions = Array.isArray(fields['conditions']) ? (fields['conditions'] as ConditionIntent[]) : []
    return { ...fields, conditions: [...conditions.filter(({ type }) => type !== added.type), added] }
  }
  switch (intent.kind) {
    case 'HTTPRoute':
    case 'GRPCRoute':
    case 'TLSRoute': {
      const parents = Array.isArray(intent.status['parents']) ? (intent.status['parents'] as object[]) : []
      return { ...intent, status: { ...intent.status, parents: parents.map((parent) => add({ ...parent })) } }
    }
    case 'HTTPProxy':
    case 'GatewayClass':
    case 'Gateway':
      return { ...intent, status: add(intent.status) }
    case 'Ingress':
    // The status is about its parents, not about what they send to Envoy.
    case 'BackendTLSPolicy':
      return intent
  }
}
