import { Ingress, IngressClass } from '@seamark/kube'
import { Gateway, GatewayClass, HTTPRoute } from '@seamark/kube/gateway-api'
import { memoryCluster } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import { GLOBAL_CONTROLLER } from '../names.ts'
import { isRoot, isStillRoot } from './root-filter.ts'

const named = (name: string, ingressClassName?: string): Ingress => ({
  metadata: { namespace: 'shop', name },
  spec: { ...(ingressClassName !== undefined && { ingressClassName }) },
})
const route: HTTPRoute = {
  metadata: { namespace: 'shop', name: 'route' },
  spec: {
    parentRefs: [
      { kind: 'Service', name: 'mesh' },
      { namespace: 'infra', name: 'global' },
    ],
  },
}

describe('a root whose class the cache has lost', () => {
  it.each([
    {
      by: 'ingressClassName',
      kind: { kind: Ingress },
      object: named('named', 'global'),
      has: [{ kind: IngressClass, object: ingressClass('global', {}) }],
    },
    {
      by: 'the default class',
      kind: { kind: Ingress },
      object: named('default'),
      has: [
        {
          kind: IngressClass,
          object: ingressClass('global', { 'ingressclass.kubernetes.io/is-default-class': 'true' }),
        },
      ],
    },
    {
      by: 'its Gateway',
      kind: { kind: HTTPRoute },
      object: route,
      has: [
        {
          kind: Gateway,
          object: { metadata: { namespace: 'infra', name: 'global' }, spec: { gatewayClassName: 'global' } },
        },
        { kind: GatewayClass, object: { metadata: { name: 'global' }, spec: { controllerName: GLOBAL_CONTROLLER } } },
      ],
    },
  ])('stays a root while the server has the class: $by', async ({ kind, object, has }) => {
    const server = memoryCluster()
    const lost = memoryCluster()
    for (const each of has) server.put(each.kind as never, each.object as never)
    expect(isRoot(kind, object, 'class', server.informers)).toBe(true)
    expect(isRoot(kind, object, 'class', lost.informers)).toBe(false)
    expect(await isStillRoot(kind, object, 'class', server.client)).toBe(true)
    expect(await isStillRoot(kind, object, 'class', lost.client)).toBe(false)
  })
})

function ingressClass(name: string, annotations: Record<string, string>): IngressClass {
  return { metadata: { name, annotations }, spec: { controller: GLOBAL_CONTROLLER } }
}
