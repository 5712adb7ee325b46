import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createDecoder, ListParser, type Decoded } from './decode.ts'
import { DecodeError } from '../errors.ts'
import { UID_MARK } from './managed-fields.ts'
import { kind, type Obj } from '../object/object.ts'

interface Thing extends Obj {
  spec?: unknown
}
const Thing = kind<Thing>({ group: 'example.test', version: 'v1', kind: 'Thing', plural: 'things', namespaced: true })

const entry = fc.record({
  manager: fc.constantFrom('seamark', 'kubectl', 'a"b\\c'),
  operation: fc.constantFrom('Apply', 'Update'),
  subresource: fc.option(fc.constant('status'), { nil: undefined }),
  fieldsV1: fc.dictionary(fc.string(), fc.jsonValue()),
})

/** Objects with misleading content: fields named managedFields elsewhere, quotes and brackets in strings. */
const tricky = fc.oneof(
  fc.jsonValue(),
  fc.constant({ managedFields: [1, '"managedFields":[', { metadata: { managedFields: [2] } }] }),
  fc.constant('","managedFields":[]}'),
)

const thing = fc.record({
  order: fc.constantFrom('first', 'middle', 'last', 'only'),
  labels: fc.dictionary(fc.string(), fc.oneof(fc.string(), fc.constant('"managedFields":['))),
  managedFields: fc.option(fc.array(entry), { nil: undefined }),
  before: tricky,
  spec: tricky,
  space: fc.constantFrom(undefined, 1),
})

type Sample = typeof thing extends fc.Arbitrary<infer S> ? S : never

function objectOf({ order, labels, managedFields, before, spec }: Sample): Record<string, unknown> {
  const managed = managedFields === undefined ? {} : { managedFields }
  const name = { name: 'one', namespace: 'ns' }
  const metadata = {
    first: { ...managed, labels, ...name },
    middle: { labels, ...managed, ...name },
    last: { ...name, labels, ...managed },
    only: { ...name, ...managed },
  }[order]
  return { aData: before, apiVersion: 'example.test/v1', kind: 'Thing', metadata, spec }
}

const withoutManaged = (object: Record<string, unknown>) => {
  const { managedFields: _dropped, ...metadata } = object['metadata'] as Record<string, unknown>
  return { ...object, metadata }
}

describe('removing managedFields before parsing', () => {
  it('is equivalent to parsing and then deleting', () => {
    const decoder = createDecoder(Thing)
    fc.assert(
      fc.property(thing, (sample) => {
        const object = objectOf(sample)
        const bytes = Buffer.from(JSON.stringify({ type: 'ADDED', object }, undefined, sample.space))
        const frame = decoder.frame(bytes, 0, bytes.length)
        const expected = withoutManaged(JSON.parse(JSON.stringify(object)) as Record<string, unknown>)
        expect(frame).toEqual({ type: 'ADDED', object: expected, own: undefined })
      }),
      { numRuns: 500 },
    )
  })

  it('keeps the FieldsV1 of our own Apply entries only, by subresource', () => {
    const decoder = createDecoder(Thing, { keepManagedFieldsOf: 'seamark' })
    fc.assert(
      fc.property(thing, (sample) => {
        const bytes = Buffer.from(JSON.stringify(objectOf(sample), undefined, sample.space))
        const { own } = decoder.item(bytes, 0, bytes.length)
        const expected = new Map<string, unknown>()
        for (const { manager, operation, subresource = '', fieldsV1 } of sample.managedFields ?? []) {
          if (manager === 'seamark' && operation === 'Apply')
            expected.set(subresource, JSON.parse(JSON.stringify(fieldsV1)))
        }
        const read = new Map([...(own ?? [])].map(([key, text]) => [key, JSON.parse(text) as unknown]))
        expect(read).toEqual(expected)
      }),
      { numRuns: 500 },
    )
  })

  it('masks UIDs, so that children of different owners share one text', () => {
    const decoder = createDecoder(Thing, { keepManagedFieldsOf: 'seamark' })
    const own = ['11111111-2222-4333-8444-555555555555', 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee'].map((uid) => {
      const fieldsV1 = { 'f:metadata': { 'f:ownerReferences': { [`k:{"uid":"${uid}"}`]: {} } } }
      const managedFields = [{ manager: 'seamark', operation: 'Apply', fieldsV1 }]
      const bytes = Buffer.from(JSON.stringify({ metadata: { name: 'a', managedFields } }))
      return decoder.item(bytes, 0, bytes.length).own
    })
    expect(own[0]?.get('')).toBe(`{"f:metadata":{"f:ownerReferences":{"k:{\\"uid\\":\\"${UID_MARK}\\"}":{}}}}`)
    expect(own[0]).toBe(own[1])
  })

  it('preserves text that is not ASCII', () => {
    const decoder = createDecoder(Thing)
    const object = { metadata: { name: 'a', managedFields: [{ manager: 'ü' }], labels: { x: 'grün 🌊' } } }
    const bytes = Buffer.from(JSON.stringify(object))
    expect(decoder.item(bytes, 0, bytes.length).object.metadata.labels).toEqual({ x: 'grün 🌊' })
  })
})

describe('decoding', () => {
  it('keeps only metadata with the metadata projection, and sets apiVersion and kind from the token', () => {
    const decoder = createDecoder(Thing, { projection: 'metadata' })
    const bytes = Buffer.from(
      JSON.stringify({ kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: { name: 'a' }, spec: 1 }),
    )
    expect(decoder.item(bytes, 0, bytes.length).object).toEqual({
      apiVersion: 'example.test/v1',
      kind: 'Thing',
      metadata: { name: 'a' },
    })
  })

  it('keeps the complete object when its projection throws, and reports the error', () => {
    const errors: unknown[] = []
    const projection = () => {
      throw new Error('odd')
    }
    const decoder = createDecoder(Thing, { projection, onProjectionError: (error) => errors.push(error) })
    const bytes = Buffer.from('{"metadata":{"name":"a"},"spec":7}')
    expect(decoder.item(bytes, 0, bytes.length).object.spec).toBe(7)
    expect(errors).toHaveLength(1)
  })

  it.each([
    ['not JSON', '{"type":"ADDED","object":{"metadata":{"name":"a"}'],
    ['no object', '{"type":"ADDED"}'],
    ['an unknown type', '{"type":"MOVED","object":{"metadata":{"name":"a"}}}'],
    ['no name', '{"type":"ADDED","object":{"metadata":{}}}'],
    ['no metadata', '{"type":"ADDED","object":{"metadata":null}}'],
    ['a bookmark without version', '{"type":"BOOKMARK","object":{"metadata":{}}}'],
    ['a bookmark without metadata', '{"type":"BOOKMARK","object":{}}'],
    ['a list', '[]'],
    ['null', 'null'],
  ])('rejects a frame with %s, without quoting it', (_what, text) => {
    const bytes = Buffer.from(text)
    expect(() => createDecoder(Thing).frame(bytes, 0, bytes.length)).toThrow(DecodeError)
    const secret = Buffer.from('{"type":"ADDED","object":{"metadata":{"name":"s"},"data":{"password":"hunter2"')
    expect(() => createDecoder(Thing).frame(secret, 0, secret.length)).toThrow(/^(?!.*hunter2)/)
  })

  it('does not let __proto__ keys modify a prototype', () => {
    const bytes = Buffer.from('{"metadata":{"name":"a"},"__proto__":{"polluted":true}}')
    createDecoder(Thing).item(bytes, 0, bytes.length)
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
  })
})

describe('parsing a list', () => {
  const walk = (bytes: Buffer) => {
    const items: Decoded<Thing>[] = []
    const parser = new ListParser(Thing, bytes, createDecoder(Thing), (decoded) => items.push(decoded))
    while (parser.next());
    return { items: items.map(({ object }) => object), page: parser.page }
  }

  it('reads the same items whether the metadata precedes or follows them', () => {
    fc.assert(
      fc.property(
        fc.array(thing, { maxLength: 5 }),
        fc.boolean(),
        fc.constantFrom(undefined, 2),
        (samples, isFirst, space) => {
          const items = samples.map(objectOf)
          const metadata = { resourceVersion: '7', continue: 'more' }
          const list = isFirst ? { kind: 'L', metadata, items } : { apiVersion: 'v1', items, kind: 'L', metadata }
          const read = walk(Buffer.from(JSON.stringify(list, undefined, space)))
          expect(read.page).toEqual({ resourceVersion: '7', continueToken: 'more' })
          expect(read.items).toEqual(
            (JSON.parse(JSON.stringify(items)) as Record<string, unknown>[]).map(withoutManaged),
          )
        },
      ),
    )
  })

  it('rejects a list truncated at any byte: never returns a partial list', () => {
    const whole = Buffer.from(
      '{"apiVersion":"v1","items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}],"metadata":{"resourceVersion":"1"}}',
    )
    for (let end = 0; end < whole.length; end++)
      expect(() => walk(Buffer.from(whole.subarray(0, end)))).toThrow(DecodeError)
    expect(walk(whole).items).toHaveLength(2)
  })

  it('treats null items as an empty list, and a missing resourceVersion as an error', () => {
    expect(walk(Buffer.from('{"items":null,"metadata":{"resourceVersion":"1"}}')).items).toEqual([])
    expect(() => walk(Buffer.from('{"items":[],"metadata":{}}'))).toThrow(DecodeError)
  })
})
