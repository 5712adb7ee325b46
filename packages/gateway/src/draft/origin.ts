/** Which object a part of the configuration comes from, and which of two kinds decides. */
import { keyOf, type Immutable, type Obj } from '@seamark/kube/object'
import type { Origin } from '../ir/model.ts'

export function originOf(kind: Origin['kind'], object: Immutable<Obj>, at: string): Origin {
  const { namespace = '', name = '' } = object.metadata
  return { kind, namespace, name, at }
}

export function describeOrigin(origin: Omit<Origin, 'at'>): string {
  return `${origin.kind} ${keyOf({ metadata: origin })}`
}

/** Of the kinds: Ingress, HTTPProxy, routes of the Gateway API. */
export function rankOf(origin: Origin): number {
  switch (origin.kind) {
    case 'Ingress':
    case 'GlobalIngress':
      return 0
    case 'HTTPProxy':
      return 1
    case 'HTTPRoute':
    case 'GRPCRoute':
    case 'TLSRoute':
      return 2
  }
}
