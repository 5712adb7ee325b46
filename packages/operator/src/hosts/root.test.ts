import { Ingress, IngressClass } from '@seamark/kube'
import { Gateway, GatewayClass, HTTPRoute } from '@seamark/kube/gateway-api'
import { memoryCluster } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import { GLOBAL_CONTROLLER, isRoot, isStillRoot } from './root.ts'

const DEFAULT_CLASS = 'ingressclass.kubernetes.io/is-default-class'
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
          object: ingressClass('global', { [DEFAULT_CLASS]: 'true' }),
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

interface ClassCase {
  readonly name: string
  readonly created: string
  readonly controller: string
  /** The annotation. @default true */
  readonly isDefault?: string
}

describe('an Ingress without spec.ingressClassName, with several default classes', () => {
  const early = '2030-01-01T00:00:00Z'
  const late = '2030-01-01T00:00:01Z'
  const cases: Record<string, { classes: ClassCase[]; annotation?: string; expected: boolean }> = {
    'has the class created last': {
      classes: [
        { name: 'a', created: early, controller: 'example.test/other' },
        { name: 'b', created: late, controller: GLOBAL_CONTROLLER },
      ],
      expected: true,
    },
    'has the class created last, also when its name is the first': {
      classes: [
        { name: 'a', created: late, controller: 'example.test/other' },
        { name: 'b', created: early, controller: GLOBAL_CONTROLLER },
      ],
      expected: false,
    },
    'has the first by name of those created at the same time': {
      classes: [
        { name: 'b', created: late, controller: 'example.test/other' },
        { name: 'a', created: late, controller: GLOBAL_CONTROLLER },
        { name: 'c', created: late, controller: 'example.test/other' },
      ],
      expected: true,
    },
    'has no class that is not marked': {
      classes: [
        { name: 'a', created: early, controller: GLOBAL_CONTROLLER },
        { name: 'b', created: late, controller: 'example.test/other', isDefault: 'false' },
      ],
      expected: true,
    },
    'has the class of its annotation and no default class': {
      annotation: 'other',
      classes: [
        { name: 'global', created: early, controller: GLOBAL_CONTROLLER },
        { name: 'other', created: early, controller: 'example.test/other', isDefault: 'false' },
      ],
      expected: false,
    },
  }
  it.each(Object.entries(cases))('%s', async (_title, { classes, annotation, expected }) => {
    const cluster = memoryCluster()
    for (const { name, created, controller, isDefault = 'true' } of classes)
      cluster.put(IngressClass, {
        metadata: { name, creationTimestamp: created, annotations: { [DEFAULT_CLASS]: isDefault } },
        spec: { controller },
      })
    const object = named('unclassified')
    if (annotation !== undefined) object.metadata.annotations = { 'kubernetes.io/ingress.class': annotation }
    expect(isRoot({ kind: Ingress }, object, 'class', cluster.informers)).toBe(expected)
    expect(await isStillRoot({ kind: Ingress }, object, 'class', cluster.client)).toBe(expected)
  })
})

function ingressClass(name: string, annotations: Record<string, string>): IngressClass {
  return { metadata: { name, annotations }, spec: { controller: GLOBAL_CONTROLLER } }
}
