/**
 * Ports of Gateways that the data plane could not bind, in the statuses: the listener has `Accepted=False` with reason
 * `PortUnavailable`, and its Gateway says that not all of its listeners are valid. Pure; the build does not know about it,
 * because the data plane tries again.
 */
import type { GatewayPort } from '../build/build.ts'
import { condition, type ConditionIntent, type StatusIntent } from '../draft/status-intent.ts'
import { listenerIdOf, type ListenerId, type PortFaults } from '../ir/listen-addresses.ts'
import type { Ir } from '../ir/model.ts'
import { listenerName } from '../xds/listeners.ts'
import type { Rejection } from '../xds/rejections.ts'

interface ListenerIntent {
  readonly name: string
  readonly conditions: readonly ConditionIntent[]
}

/** Listeners of other ports that Envoy rejected: almost always because it cannot bind the address. */
export function rejectedPorts({ listeners }: Ir, rejections: readonly Rejection[]): PortFaults {
  const messages = new Map(
    rejections.filter(({ type }) => type === 'listener').map(({ name, message }) => [name, message]),
  )
  const faults = new Map<ListenerId, string>()
  if (messages.size === 0) return faults
  for (const listener of listeners) {
    const message = messages.get(listenerName(listener))
    if (listener.port !== undefined && message !== undefined)
      faults.set(listenerIdOf(listener), `Envoy rejected it: ${message}`)
  }
  return faults
}

export function withPortFaults(
  statuses: readonly StatusIntent[],
  ports: readonly GatewayPort[],
  faults: PortFaults,
): readonly StatusIntent[] {
  if (faults.size === 0) return statuses
  const faultOf = (gateway: string, listener: string): string | undefined => {
    const port = ports.find((each) => each.gateway === gateway && each.listener === listener)
    return port === undefined ? undefined : faults.get(port.id)
  }
  return statuses.map((intent) => {
    if (intent.kind !== 'Gateway') return intent
    const before = (intent.status['listeners'] ?? []) as readonly ListenerIntent[]
    const listeners = before.map((listener) => {
      const fault = faultOf(intent.key, listener.name)
      return fault === undefined ? listener : { ...listener, conditions: refuse(listener.conditions, fault) }
    })
    if (listeners.every((listener, index) => listener === before[index])) return intent
    const isServing = listeners.some(({ conditions }) => isTrue(conditions, 'Programmed'))
    const conditions = ((intent.status['conditions'] ?? []) as readonly ConditionIntent[]).map((each) => {
      if (each.type === 'Accepted')
        return condition(
          'Accepted',
          isServing,
          'ListenersNotValid',
          'at least one listener is not valid; see their conditions',
        )
      return each.type === 'Programmed' && !isServing
        ? condition('Programmed', false, 'Invalid', 'no listener is served; see their conditions')
        : each
    })
    return { ...intent, status: { ...intent.status, conditions, listeners } }
  })
}

function refuse(conditions: readonly ConditionIntent[], fault: string): ConditionIntent[] {
  return conditions.map((each) => {
    switch (each.type) {
      case 'Accepted':
        return condition('Accepted', false, 'PortUnavailable', `${fault}; it is tried again`)
      case 'Programmed':
        return condition('Programmed', false, 'Invalid', 'the listener is not served; see the other conditions')
      default:
        return each
    }
  })
}

function isTrue(conditions: readonly ConditionIntent[], type: string): boolean {
  return conditions.some((each) => each.type === type && each.status === 'True')
}
