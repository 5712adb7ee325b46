/**
 * A status to write: what the build decided, with the times and the entries of others that the object has now. Times change
 * only with the status of a condition, so that an unchanged decision writes nothing.
 */
import { timestamp } from '@seamark/kube'
import type { LoadBalancerIngress } from '@seamark/kube'
import type { StatusIntent } from '../build/status-intent.ts'

type Fields = Readonly<Record<string, unknown>>

export interface MergeInput {
  readonly intent: StatusIntent
  /** `status` of the cached object. */
  readonly current: Fields | undefined
  readonly addresses: readonly LoadBalancerIngress[]
  readonly controllerName: string
  readonly nowMs: number
}

export function mergeStatus({ intent, current, addresses, controllerName, nowMs }: MergeInput): Fields {
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
    case 'GRPCRoute': {
      const before = listOf(current?.['parents'])
      // The list is atomic: entries of other controllers are written back as they are.
      const others = before.filter((each) => each['controllerName'] !== controllerName)
      const ours = listOf(status['parents']).map((parent) => {
        const isSame = (each: Fields) =>
          each['controllerName'] === controllerName &&
          JSON.stringify(each['parentRef']) === JSON.stringify(parent['parentRef'])
        return stamp(parent, before.find(isSame))
      })
      return { parents: [...others, ...ours] }
    }
  }
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
