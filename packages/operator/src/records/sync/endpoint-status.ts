/**
 * The status of a DNSEndpoint: `observedGeneration`, as ExternalDNS sets it, once every record of the object is in place,
 * and a condition where the schema of the kind has conditions (ExternalDNS' own has not).
 */
import { type Condition, setCondition } from '@seamark/kube'
import type { Immutable } from '@seamark/kube/object'
import { SERVED_CONDITION } from '../../api/dns-endpoint.ts'
import { heldMessage } from '../plan/held-set.ts'
import { REASONS } from '../../reasons.ts'
import type { HeldRecord } from '../../safety/held-records.ts'
import type { Held } from './held-changes.ts'
import type { Endpoint } from './sources/source-index.ts'

export interface StatusChange {
  readonly observedGeneration?: number
  readonly conditions?: Immutable<Condition[]>
}

/** Undefined when the status is up to date. `held`: the changes that are not in place. */
export function statusChange(
  object: Endpoint,
  held: readonly Held[],
  options: { readonly hasConditions: boolean; readonly nowMs: number },
): StatusChange | undefined {
  const { generation } = object.metadata
  const [first] = held
  const isObserved = first === undefined && generation !== undefined
  const conditions = options.hasConditions
    ? setCondition(object.status?.conditions, conditionOf(held, generation), options.nowMs)
    : undefined
  const change: StatusChange = {
    ...(isObserved && object.status?.observedGeneration !== generation && { observedGeneration: generation }),
    ...(conditions !== undefined && conditions !== object.status?.conditions && { conditions }),
  }
  return Object.keys(change).length === 0 ? undefined : change
}

function conditionOf(held: readonly Held[], generation: number | undefined): Omit<Condition, 'lastTransitionTime'> {
  const [first] = held
  const observed = generation === undefined ? {} : { observedGeneration: generation }
  if (first === undefined)
    return { type: SERVED_CONDITION, status: 'True', reason: 'Published', message: REASONS.Published, ...observed }
  return { type: SERVED_CONDITION, status: 'False', reason: first.code, message: heldSummary(first, held), ...observed }
}

function heldSummary(first: Held, held: readonly Held[]): string {
  const more = held.length > 1 ? ` (and ${held.length - 1} more)` : ''
  return `${first.name} ${first.type}: ${REASONS[first.code]}: ${heldMessage(first)}${more}`
}

/** The same for the source of the DNSEndpoint; undefined: nothing is held. */
export function heldRecordOf(held: readonly Held[]): HeldRecord | undefined {
  const [first] = held
  return first === undefined ? undefined : { reason: first.code, message: heldSummary(first, held) }
}
