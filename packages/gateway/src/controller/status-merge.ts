/**
 * A status to write: what the build decided, with the times and the entries of others that the object has now. Times change
 * only with the status of a condition, so that an unchanged decision writes nothing.
 */
import { timestamp } from '@seamark/kube'
import type { LoadBalancerIngress } from '@seamark/kube'
import type { Key } from '@seamark/kube/object'
import type { StatusIntent } from '../draft/status-intent.ts'

type Fields = Readonly<Record<string, unknown>>

export interface MergeInput {
  readonly intent: StatusIntent
  /** `status` of the cached object. */
  readonly current: Fields | undefined
  readonly addresses: readonly LoadBalancerIngress[]
  readonly controllerName: string
  /** The one Gateway of this instance, `namespace/name`; entries about others belong to other instances. */
  readonly gateway?: Key
  readonly nowMs: number
}

export function mergeStatus(input: MergeInput): Fields {
  const { intent, current, addresses, nowMs } = input
  const { kind, generation, status } = intent
  const stamp = (fields: Fields, before: Fields | undefined): Fields => stampFields(fields, before, generation, nowMs)
  const loadBalancer = addresses.length === 0 ? {} : { loadBalancer: { ingress: addresses } }
  switch (kind) {
    case 'Ingress':
      return loadBalancer
    case 'HTTPProxy':
      return { ...stamp(status, current), ...loadBalancer }
    case 'GatewayClass':
      return stamp(status, current)
    case 'Gateway': {
      const values = addresses.map(({ ip, hostname }) => {
        return ip === undefined ? { type: 'Hostname', value: hostname ?? '' } : { type: 'IPAddress', value: ip }
      })
      const before = listOf(current?.['listeners'])
      const listeners = listOf(status['listeners']).map((listener) => {
        return stamp(
          listener,
          before.find(({ name }) => name === listener['name']),
        )
      })
      return { ...stamp(status, current), listeners, ...(values.length > 0 && { addresses: values }) }
    }
    case 'HTTPRoute':
    case 'GRPCRoute':
    case 'TLSRoute':
      return { parents: mergeEntries(input, 'parents', 'parentRef', stamp) }
    case 'BackendTLSPolicy': {
      const ancestors = mergeEntries(input, 'ancestors', 'ancestorRef', stamp)
      return ancestors.length === 0 && current === undefined ? {} : { ancestors }
    }
  }
}

/** The list is atomic: entries of other controllers and instances are written back as they are. */
function mergeEntries(
  { intent, current, controllerName, gateway }: MergeInput,
  list: 'parents' | 'ancestors',
  ref: 'parentRef' | 'ancestorRef',
  stamp: (fields: Fields, before: Fields | undefined) => Fields,
): Fields[] {
  const before = listOf(current?.[list])
  const isOurs = (each: Fields) =>
    each['controllerName'] === controllerName && (gateway === undefined || gatewayOf(each[ref], intent.key) === gateway)
  const ours = listOf(intent.status[list]).map((entry) => {
    const isSame = (each: Fields) => isOurs(each) && JSON.stringify(each[ref]) === JSON.stringify(entry[ref])
    return stamp(entry, before.find(isSame))
  })
  return [...before.filter((each) => !isOurs(each)), ...ours]
}

/** `namespace/name` of the Gateway that an entry is about; its namespace defaults to that of the route. */
function gatewayOf(ref: unknown, route: Key): Key {
  const { namespace, name } = (ref ?? {}) as { namespace?: string; name?: string }
  return `${namespace ?? route.split('/')[0] ?? ''}/${name ?? ''}`
}

function stampFields(
  fields: Fields,
  before: Fields | undefined,
  generation: number | undefined,
  nowMs: number,
): Fields {
  if (!Array.isArray(fields['conditions'])) return fields
  const old = listOf(before?.['conditions'])
  const conditions = listOf(fields['conditions']).map((condition) => {
    const same = old.find((each) => each['type'] === condition['type'])
    const isUnchanged = same !== undefined && same['status'] === condition['status']
    const time = isUnchanged ? same['lastTransitionTime'] : undefined
    return {
      ...condition,
      ...(generation !== undefined && { observedGeneration: generation }),
      lastTransitionTime: typeof time === 'string' ? time : timestamp(nowMs),
    }
  })
  return { ...fields, conditions }
}

function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? (value as Fields[]) : []
}
