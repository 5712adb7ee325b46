/** A custom kind with every kind of list and map, and scripts of writes to it by several managers. */
import type { Schema } from '@seamark/apiserver/testing'
import fc from 'fast-check'
import type { Body, Step } from './model-server.ts'

const STRING: Schema = { type: 'string' }
const INTEGER: Schema = { type: 'integer' }

const PORT: Schema = {
  type: 'object',
  required: ['port'],
  properties: {
    port: INTEGER,
    protocol: { type: 'string', default: 'TCP' },
    name: STRING,
    tags: { type: 'array', items: STRING, 'x-kubernetes-list-type': 'set' },
    options: { type: 'object', properties: { a: INTEGER, b: STRING } },
  },
}

export const WIDGET_SCHEMA: Schema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        size: { type: 'integer', default: 1 },
        title: STRING,
        flag: { type: 'boolean' },
        ratio: { type: 'number' },
        any: { 'x-kubernetes-int-or-string': true },
        labels: { type: 'object', additionalProperties: STRING },
        whole: { type: 'object', additionalProperties: STRING, 'x-kubernetes-map-type': 'atomic' },
        plain: { type: 'array', items: STRING },
        set: { type: 'array', items: STRING, 'x-kubernetes-list-type': 'set' },
        numbers: { type: 'array', items: INTEGER, 'x-kubernetes-list-type': 'set' },
        ports: {
          type: 'array',
          items: PORT,
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['port', 'protocol'],
        },
        objects: { type: 'array', items: { type: 'object', properties: { a: INTEGER } } },
        nested: {
          type: 'object',
          properties: {
            inner: { type: 'object', properties: { x: INTEGER, y: STRING } },
            byName: { type: 'object', additionalProperties: { type: 'object', properties: { x: INTEGER, y: STRING } } },
          },
        },
        free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        maybe: { type: 'string', nullable: true },
      },
    },
    status: {
      type: 'object',
      properties: {
        phase: STRING,
        conditions: {
          type: 'array',
          items: { type: 'object', required: ['type'], properties: { type: STRING, status: STRING } },
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['type'],
        },
      },
    },
  },
}

export const WIDGET_CRD = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.differential.example' },
  spec: {
    group: 'differential.example',
    names: { kind: 'Widget', plural: 'widgets', singular: 'widget', listKind: 'WidgetList' },
    scope: 'Namespaced',
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: WIDGET_SCHEMA },
        subresources: { status: {} },
      },
    ],
  },
}

const letter = fc.constantFrom('a', 'b', 'c')
const number = fc.integer({ min: 0, max: 3 })
const strings = fc.dictionary(letter, letter, { maxKeys: 3 })

function some(shape: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Body> {
  return fc.record(shape, { requiredKeys: [] })
}

const pair = some({ x: number, y: letter })

function portsOf(allowsClash: boolean): fc.Arbitrary<unknown[]> {
  const port = fc
    .tuple(
      fc.integer({ min: 80, max: 82 }),
      some({
        protocol: fc.constantFrom('TCP', 'UDP'),
        name: letter,
        tags: fc.uniqueArray(letter, { maxLength: 2 }),
        options: some({ a: number, b: letter }),
      }),
    )
    .map(([at, rest]) => ({ port: at, ...rest }))
  const identity = (item: Body): string => JSON.stringify([item['port'], item['protocol'] ?? 'TCP'])
  return allowsClash ? fc.array(port, { maxLength: 3 }) : fc.uniqueArray(port, { maxLength: 3, selector: identity })
}

const spec = some({
  size: number,
  title: letter,
  flag: fc.boolean(),
  ratio: fc.constantFrom(0.5, 1, 2.25),
  any: fc.oneof(number, letter),
  labels: strings,
  whole: strings,
  plain: fc.array(letter, { maxLength: 3 }),
  set: fc.uniqueArray(letter, { maxLength: 3 }),
  numbers: fc.uniqueArray(number, { maxLength: 3 }),
  ports: portsOf(false),
  objects: fc.array(some({ a: number }), { maxLength: 2 }),
  nested: some({ inner: pair, byName: fc.dictionary(letter, pair, { maxKeys: 2 }) }),
  free: some({ a: number, b: strings, c: fc.array(number, { maxLength: 2 }) }),
  maybe: fc.option(letter),
})

const metadata = some({
  labels: strings,
  annotations: strings,
  finalizers: fc.uniqueArray(fc.constantFrom('x.io/a', 'x.io/b'), { maxLength: 2 }),
})

const status = some({
  phase: letter,
  conditions: fc.uniqueArray(
    fc.tuple(letter, letter).map(([type, value]) => ({ type, status: value })),
    { maxLength: 2, selector: ({ type }) => type },
  ),
})

function widget(name: string, extra: fc.Arbitrary<Body>): fc.Arbitrary<Body> {
  return fc.tuple(metadata, extra).map(([meta, rest]) => ({
    apiVersion: 'differential.example/v1',
    kind: 'Widget',
    metadata: { name, namespace: 'default', ...meta },
    ...rest,
  }))
}

const manager = fc.constantFrom('one', 'two', 'three')

/** A script begins with a create or an apply; both servers receive the same bytes. */
export function widgetScript(name: string): fc.Arbitrary<Step[]> {
  const whole = widget(name, some({ spec, status }))
  const step = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ kind: fc.constant('apply' as const), manager, force: fc.boolean(), body: whole }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('update' as const), manager, body: whole }) },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant('merge' as const), manager, body: some({ spec, metadata }) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('status' as const), manager, body: whole }) },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('apply-status' as const),
        manager,
        force: fc.boolean(),
        body: widget(name, some({ status })),
      }),
    },
  )
  const first = fc.oneof(
    fc.record({ kind: fc.constant('create' as const), manager, body: whole }),
    fc.record({ kind: fc.constant('apply' as const), manager, force: fc.constant(false), body: whole }),
  )
  return fc
    .tuple(first, fc.array(step as fc.Arbitrary<Step>, { minLength: 2, maxLength: 7 }))
    .map(([start, rest]) => [start, ...rest])
}
