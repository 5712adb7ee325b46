import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkOf } from './check.ts'
import type { Schema } from './model.ts'
import { reportViolations } from './report.ts'
import { checkStructural, compileSchema } from './schema.ts'

const STRING: Schema = { type: 'string' }

function spec(schema: Schema): Schema {
  return { type: 'object', properties: { spec: schema } }
}

function texts(schema: Schema, value: unknown, old?: unknown): string[] {
  const causes = compileSchema(spec(schema)).validate({ spec: value }, old === undefined ? undefined : { spec: old })
  return causes.map(({ field, message }) => `${field}: ${message}`)
}

describe('validation', () => {
  it.each<[string, Schema, unknown, string]>([
    [
      'a type',
      { type: 'integer' },
      'x',
      'spec: Invalid value: "string": spec in body must be of type integer: "string"',
    ],
    ['null', STRING, null, 'spec: Invalid value: "null": spec in body must be of type string: "null"'],
    ['a required field', { type: 'object', required: ['a'] }, {}, 'spec.a: Required value'],
    [
      'an enumeration',
      { type: 'string', enum: ['a', 'b'] },
      'x',
      'spec: Unsupported value: "x": supported values: "a", "b"',
    ],
    ['a length', { type: 'string', maxLength: 2 }, 'abc', 'spec: Too long: may not be more than 2 bytes'],
    [
      'a short text',
      { type: 'string', minLength: 2 },
      'a',
      'spec: Invalid value: "a": spec in body should be at least 2 chars long',
    ],
    [
      'a pattern',
      { type: 'string', pattern: '^a$' },
      'b',
      'spec: Invalid value: "b": spec in body should match \'^a$\'',
    ],
    [
      'a maximum',
      { type: 'integer', maximum: 3 },
      4,
      'spec: Invalid value: 4: spec in body should be less than or equal to 3',
    ],
    [
      'many items',
      { type: 'array', items: STRING, maxItems: 1 },
      ['a', 'b'],
      'spec: Too many: 2: must have at most 1 item',
    ],
    [
      'a format',
      { type: 'string', format: 'ipv4' },
      'x',
      'spec: Invalid value: "x": spec in body must be of type ipv4: "x"',
    ],
    [
      'a set',
      { type: 'array', items: STRING, 'x-kubernetes-list-type': 'set' },
      ['a', 'a'],
      'spec[1]: Duplicate value: "a"',
    ],
    [
      'a list-map',
      {
        type: 'array',
        items: { type: 'object', properties: { k: STRING } },
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['k'],
      },
      [{ k: 'a' }, { k: 'a' }],
      'spec[1]: Duplicate value: {"k":"a"}',
    ],
  ])('of %s', (_, schema, value, expected) => {
    expect(texts(schema, value)).toEqual([expected])
  })

  it('accepts updates that keep existing violations', () => {
    const schema: Schema = {
      type: 'object',
      properties: {
        a: { type: 'string', maxLength: 1 },
        list: {
          type: 'array',
          items: { type: 'object', properties: { k: STRING, v: { type: 'string', maxLength: 1 } } },
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['k'],
        },
      },
    }
    const old = { a: 'long', list: [{ k: 'x', v: 'long' }] }
    expect(texts(schema, { ...old, list: [{ k: 'y', v: 'z' }, ...old.list] }, old)).toEqual([])
    expect(texts(schema, { a: 'other', list: old.list }, old)).toHaveLength(1)
  })

  it('of a pattern with exponential backtracking terminates', () => {
    expect(texts({ type: 'string', pattern: '^(a+)+$' }, `${'a'.repeat(10_000)}!`)).toHaveLength(1)
  })

  const leaf: fc.Arbitrary<Schema> = fc.oneof(
    fc.record(
      {
        type: fc.constant('string' as const),
        minLength: fc.integer({ min: 0, max: 2 }),
        maxLength: fc.integer({ min: 0, max: 3 }),
        pattern: fc.constantFrom('a', '^b*$'),
      },
      { requiredKeys: ['type'] },
    ),
    fc.record(
      {
        type: fc.constantFrom('integer' as const, 'number' as const),
        minimum: fc.integer({ min: -2, max: 2 }),
        exclusiveMinimum: fc.boolean(),
        multipleOf: fc.constantFrom(1, 2),
        enum: fc.constant<unknown[]>([1, 2]),
      },
      { requiredKeys: ['type'] },
    ),
    fc.constant<Schema>({ type: 'boolean' }),
    fc.constant<Schema>({ 'x-kubernetes-int-or-string': true }),
    fc.constant<Schema>({ type: 'string', nullable: true }),
  )
  const { schema: schemas } = fc.letrec<{ schema: Schema }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 3 },
      leaf,
      fc.record(
        {
          type: fc.constant('array' as const),
          items: tie('schema'),
          maxItems: fc.integer({ min: 0, max: 2 }),
          uniqueItems: fc.boolean(),
        },
        { requiredKeys: ['type', 'items'] },
      ),
      fc.record(
        {
          type: fc.constant('object' as const),
          properties: fc.dictionary(fc.constantFrom('a', 'b'), tie('schema')),
          required: fc.subarray(['a', 'b']),
          minProperties: fc.integer({ min: 0, max: 1 }),
        },
        { requiredKeys: ['type'] },
      ),
      fc.record({ type: fc.constant('object' as const), additionalProperties: tie('schema') }),
      fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }) }),
      fc.record({ oneOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }) }),
      fc.record(
        { allOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }), not: tie('schema') },
        { requiredKeys: ['allOf'] },
      ),
    ),
  }))
  const values = fc.oneof(
    fc.constantFrom<unknown>(null, true, 0, 1, 1.5, -3, '', 'a', 'bb', 'abcd', '2020-01-01'),
    fc.jsonValue({ maxDepth: 2 }),
    fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom<unknown>(1, 'a', null, ['a'], {}), {
      noNullPrototype: true,
    }),
  )

  it('agrees between the fast and the slow path', () => {
    fc.assert(
      fc.property(schemas, values, (schema, value) => {
        expect(checkOf(schema)(value)).toBe(reportViolations(schema, value, undefined).length === 0)
      }),
      { numRuns: 3_000 },
    )
  })
})

describe('pruning', () => {
  const schema = spec({
    type: 'object',
    properties: {
      a: STRING,
      free: {
        type: 'object',
        'x-kubernetes-preserve-unknown-fields': true,
        properties: { known: { type: 'object', properties: { x: STRING } } },
      },
      map: { type: 'object', additionalProperties: { type: 'object', properties: { x: STRING } } },
      list: { type: 'array', items: { type: 'object', properties: { x: STRING } } },
    },
  })
  const body = (): object => ({
    apiVersion: 'v1',
    metadata: { name: 'n', bogus: 1, labels: {} },
    spec: {
      a: 'x',
      z: 1,
      free: { any: { thing: 1 }, known: { x: 'x', y: 1 } },
      map: { k: { x: 'x', y: 1 } },
      list: [{ x: 'x', y: 1 }],
    },
    extra: {},
  })
  const unknown = ['extra', 'metadata.bogus', 'spec.free.known.y', 'spec.list[0].y', 'spec.map.k.y', 'spec.z']

  it('drops undeclared fields and returns their paths', () => {
    const object = body()
    expect(compileSchema(schema).prune(object)).toEqual(unknown)
    expect(object).toEqual({
      apiVersion: 'v1',
      metadata: { name: 'n' },
      spec: { a: 'x', free: { any: { thing: 1 }, known: { x: 'x' } }, map: { k: { x: 'x' } }, list: [{ x: 'x' }] },
    })
  })

  it('only reports unknown fields when nothing is to be removed', () => {
    const object = body()
    expect(compileSchema(schema).unknownFields(object)).toEqual(unknown)
    expect(object).toEqual(body())
  })

  it('drops nulls that no default replaces', () => {
    const object = { spec: { a: null, free: { x: null } } }
    compileSchema(schema).prune(object)
    expect(object).toEqual({ spec: { free: { x: null } } })
  })
})

describe('defaulting', () => {
  const schema = spec({
    type: 'object',
    properties: {
      a: { type: 'integer', default: 1 },
      n: { type: 'integer', default: 2, nullable: true },
      deep: { type: 'object', default: {}, properties: { x: { type: 'string', default: 'y' } } },
      off: { type: 'object', properties: { x: { type: 'string', default: 'y' } } },
      list: { type: 'array', items: { type: 'object', properties: { x: { type: 'integer', default: 3 } } } },
    },
  })

  it.each<[object, object]>([
    [{}, {}],
    [{ spec: {} }, { spec: { a: 1, n: 2, deep: { x: 'y' } } }],
    [
      { spec: { a: null, n: null, off: {}, list: [{}] } },
      { spec: { a: 1, n: null, deep: { x: 'y' }, off: { x: 'y' }, list: [{ x: 3 }] } },
    ],
  ])('%j becomes %j', (object, expected) => {
    const copy = structuredClone(object)
    compileSchema(schema).applyDefaults(copy)
    expect(copy).toEqual(expected)
    compileSchema(schema).applyDefaults(copy)
    expect(copy).toEqual(expected)
  })

  it('copies defaults into each object', () => {
    const [one, two] = [{ spec: {} as { deep?: object } }, { spec: {} as { deep?: object } }]
    compileSchema(schema).applyDefaults(one)
    compileSchema(schema).applyDefaults(two)
    expect(one.spec.deep).not.toBe(two.spec.deep)
  })
})

describe('structural rules', () => {
  it.each<[string, Schema, string]>([
    [
      'a type everywhere',
      { type: 'object', properties: { a: {} } },
      'properties[a].type: Required value: must not be empty for specified object fields',
    ],
    [
      'items of arrays',
      { type: 'object', properties: { a: { type: 'array' } } },
      'properties[a].items: Required value: must be specified',
    ],
    ['an object at the root', { type: 'string' }, 'type: Invalid value: "string": must be object at the root'],
    [
      'no types below logic',
      { type: 'object', properties: { a: { type: 'string', anyOf: [{ type: 'string' }] } } },
      'properties[a].anyOf[0].type: Forbidden: must be empty to be structural',
    ],
    [
      'RE2 patterns',
      { type: 'object', properties: { a: { type: 'string', pattern: '(?=a)' } } },
      'properties[a].pattern: Invalid value: "(?=a)": must be a valid regular expression, but isn\'t: error parsing regexp: invalid or unsupported Perl syntax: `(?=`',
    ],
    [
      'no rules on metadata',
      { type: 'object', properties: { metadata: { type: 'object', properties: { labels: { type: 'object' } } } } },
      'properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified',
    ],
  ])('require %s', (_, schema, expected) => {
    expect(checkStructural(schema).map(({ field, message }) => `${field}: ${message}`)).toContain(expected)
  })

  it('accept the usual forms of int-or-string', () => {
    const port: Schema = { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] }
    expect(checkStructural({ type: 'object', properties: { port } })).toEqual([])
  })
})
