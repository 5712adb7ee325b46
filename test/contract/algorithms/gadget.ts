/** A custom kind with every kind of constraint, and bodies that violate them. */
import type { Schema } from '@seamark/apiserver/testing'
import fc from 'fast-check'

const STRING: Schema = { type: 'string' }

export const GADGET_SCHEMA: Schema = {
  type: 'object',
  required: ['spec'],
  properties: {
    spec: {
      type: 'object',
      required: ['name', 'kind'],
      properties: {
        name: { type: 'string', minLength: 2, maxLength: 5, pattern: '^[a-z]+$' },
        kind: { type: 'string', enum: ['red', 'green'] },
        level: { type: 'integer', enum: [1, 2, 3] },
        small: { type: 'integer', format: 'int32', minimum: 1, maximum: 10 },
        open: { type: 'number', minimum: 0, exclusiveMinimum: true, maximum: 5, exclusiveMaximum: true },
        step: { type: 'integer', multipleOf: 3 },
        ratio: { type: 'number', format: 'double' },
        flag: { type: 'boolean' },
        when: { type: 'string', format: 'date-time' },
        day: { type: 'string', format: 'date' },
        address: { type: 'string', format: 'ipv4' },
        id: { type: 'string', format: 'uuid' },
        odd: { type: 'string', format: 'no-such-format' },
        raw: { type: 'string', format: 'byte' },
        any: { 'x-kubernetes-int-or-string': true },
        percent: {
          'x-kubernetes-int-or-string': true,
          anyOf: [{ type: 'integer' }, { type: 'string' }],
          pattern: '^[0-9]+%$',
        },
        list: { type: 'array', items: { type: 'string', maxLength: 2 }, minItems: 1, maxItems: 2 },
        set: { type: 'array', items: STRING, 'x-kubernetes-list-type': 'set' },
        byKey: {
          type: 'array',
          items: { type: 'object', required: ['k'], properties: { k: STRING, v: { type: 'integer', default: 7 } } },
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['k'],
        },
        map: { type: 'object', additionalProperties: { type: 'integer' }, minProperties: 1, maxProperties: 2 },
        nullable: { type: 'string', nullable: true },
        defaulted: { type: 'object', default: {}, properties: { a: { type: 'integer', default: 3 }, b: STRING } },
        one: {
          type: 'object',
          properties: { a: STRING, b: STRING },
          oneOf: [{ required: ['a'] }, { required: ['b'] }],
        },
        some: {
          type: 'object',
          properties: { a: STRING, b: { type: 'integer' } },
          anyOf: [{ required: ['a'] }, { properties: { b: { minimum: 5 } } }],
        },
        all: { type: 'integer', allOf: [{ minimum: 2 }, { maximum: 4 }] },
        not: { type: 'string', not: { enum: ['x'] } },
        free: {
          type: 'object',
          'x-kubernetes-preserve-unknown-fields': true,
          properties: { known: { type: 'object', properties: { a: STRING } } },
        },
        embedded: {
          type: 'object',
          'x-kubernetes-embedded-resource': true,
          'x-kubernetes-preserve-unknown-fields': true,
        },
        ruled: {
          type: 'object',
          properties: {
            min: { type: 'integer' },
            max: { type: 'integer' },
            text: {
              type: 'string',
              maxLength: 20,
              'x-kubernetes-validations': [{ rule: "!self.startsWith('bad')", message: 'no bad text' }],
            },
          },
          'x-kubernetes-validations': [
            {
              rule: '!has(self.min) || !has(self.max) || self.min <= self.max',
              messageExpression: "self.min > 2 ? 'min far above max' : 'min above max'",
            },
            { rule: 'has(self.min)', reason: 'FieldValueRequired', fieldPath: '.min', message: 'min is needed' },
            { rule: 'self.max < 100' },
          ],
        },
      },
    },
  },
}

export const GADGET_CRD = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'gadgets.differential.example' },
  spec: {
    group: 'differential.example',
    names: { kind: 'Gadget', plural: 'gadgets', singular: 'gadget', listKind: 'GadgetList' },
    scope: 'Namespaced',
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: GADGET_SCHEMA } }],
  },
}

const unexpected: fc.Arbitrary<unknown> = fc.constantFrom<unknown>(
  null,
  true,
  0,
  1,
  4,
  7,
  12,
  2.5,
  -1,
  3000000000,
  '',
  'a',
  'ab',
  'abcdefg',
  'x',
  'red',
  'Ä<&>',
  '10%',
  '2020-01-01T00:00:00Z',
  '2020-02-30',
  '1.2.3.4',
  'YQ==',
  [],
  {},
  ['a'],
  ['a', 'a'],
  ['abc', 'b', 'c'],
  [1, 'x'],
  [null],
  { a: 'x' },
  { a: 'x', b: 'y' },
  { a: 1, b: 6 },
  { a: 1, b: 2, c: 3 },
  [{ k: 'a' }, { k: 'a' }],
  [{ k: 'a', v: null }, { v: 1 }],
  { min: 3, max: 2 },
  { max: 5 },
  { min: 1, max: 200 },
  { min: 1, max: 2, text: 'bad one' },
  { min: 1, max: 2, text: 'good', unknown: 1 },
  { known: { a: 'x', z: 1 }, other: [1] },
  { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x', bogus: 1 }, spec: {} },
  { kind: '' },
)

/** Mostly valid, with a few fields replaced by unexpected values. */
export const gadgetSpec: fc.Arbitrary<unknown> = fc
  .tuple(
    fc.record({ name: fc.constantFrom('abc', 'zz'), kind: fc.constantFrom('red', 'green') }),
    fc.dictionary(
      fc.constantFrom(...Object.keys(GADGET_SCHEMA.properties!['spec']!.properties!), 'unknown'),
      unexpected,
      {
        maxKeys: 4,
      },
    ),
  )
  .map(([good, odd]) => ({ ...good, ...odd }))
