import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { structuralSchema } from './structural-schema.ts'

describe('a structural schema', () => {
  it('expresses types, bounds, defaults, descriptions and extensions as in a CRD', () => {
    const schema = z.object({
      host: z
        .string()
        .min(1)
        .regex(/^[a-z.]+$/)
        .describe('what is served'),
      names: z.string().regex(/a/).regex(/b/).optional(),
      replicas: z.int().min(1).max(5).default(3),
      big: z.int().optional(),
      ratio: z.number().gt(0).optional(),
      mode: z.enum(['Fast', 'Slow']).default('Fast'),
      note: z.string().nullable().optional(),
      labels: z.record(z.string(), z.string()).optional(),
      since: z.iso.datetime().optional(),
      port: z.union([z.int(), z.string()]).optional(),
      items: z
        .array(z.object({ name: z.string() }))
        .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
        .optional(),
    })
    const rules = [{ rule: 'self.replicas > 0', message: 'too few' }]
    expect(structuralSchema(schema.meta({ 'x-kubernetes-validations': rules }))).toEqual({
      type: 'object',
      required: ['host'],
      'x-kubernetes-validations': rules,
      properties: {
        host: { type: 'string', minLength: 1, pattern: '^[a-z.]+$', description: 'what is served' },
        names: { type: 'string', allOf: [{ pattern: 'a' }, { pattern: 'b' }] },
        replicas: { type: 'integer', minimum: 1, maximum: 5, default: 3 },
        big: { type: 'integer' },
        ratio: { type: 'number', minimum: 0, exclusiveMinimum: true },
        mode: { type: 'string', enum: ['Fast', 'Slow'], default: 'Fast' },
        note: { type: 'string', nullable: true },
        labels: { type: 'object', additionalProperties: { type: 'string' } },
        since: { type: 'string', format: 'date-time' },
        port: { anyOf: [{ type: 'integer' }, { type: 'string' }], 'x-kubernetes-int-or-string': true },
        items: {
          type: 'array',
          items: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name'],
        },
      },
    })
  })

  it('keeps unknown fields of loose objects, and leaves strict ones to pruning', () => {
    const schema = z.object({
      loose: z.looseObject({ a: z.string().optional() }),
      strict: z.strictObject({ a: z.string().optional() }),
      any: z.unknown(),
    })
    const object = { type: 'object', properties: { a: { type: 'string' } } }
    expect(structuralSchema(schema)['properties']).toEqual({
      loose: { ...object, 'x-kubernetes-preserve-unknown-fields': true },
      strict: object,
      any: { 'x-kubernetes-preserve-unknown-fields': true },
    })
  })

  it.each<[string, z.ZodType, string]>([
    ['a union', z.object({ a: z.object({ b: z.union([z.string(), z.boolean()]) }) }), 'field a.b: a union'],
    ['look-around', z.object({ a: z.array(z.string().regex(/^(?!x)/)) }), 'field a[]: pattern'],
    ['look-around among others', z.object({ a: z.string().regex(/x/).regex(/(?=y)/) }), 'field a: pattern'],
    [
      'properties beside a type for others',
      z.object({ a: z.object({ b: z.string() }).catchall(z.string()) }),
      'exclude',
    ],
    ['an unknown keyword', z.object({ a: z.string().meta({ examples: ['x'] }) }), "field a: 'examples'"],
  ])('rejects %s', (_what, schema, message) => {
    expect(() => structuralSchema(schema)).toThrow(message)
  })
})
