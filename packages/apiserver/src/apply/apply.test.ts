import fc from 'fast-check'
import type { Obj } from '@seamark/kube/object'
import { describe, expect, it } from 'vitest'
import { findBuiltinKind } from '../builtin/builtin.ts'
import type { Schema } from '../schema/model.ts'
import { ApplyError, conflictCauses, conflictMessage, serverSideApply, trackUpdate } from './apply.ts'
import type { ApplyInput } from './apply.ts'
import { FieldSet } from './field-set.ts'
import { objectType } from './field-type.ts'
import { fieldsOfCreator } from './owned-fields.ts'
import { compareFields } from './typed-compare.ts'

const schema: Schema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        a: { type: 'integer' },
        b: { type: 'string' },
        map: { type: 'object', additionalProperties: { type: 'string' } },
        set: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
        list: {
          type: 'array',
          items: { type: 'object', properties: { k: { type: 'string' }, v: { type: 'integer' } } },
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['k'],
        },
      },
    },
  },
}

function objectWith(spec: object): Obj {
  return { apiVersion: 'x/v1', kind: 'Thing', metadata: { name: 'n' }, spec } as Obj
}

function apply(
  live: Obj | undefined,
  spec: object,
  manager: string,
  more: Partial<ApplyInput> = {},
): ReturnType<typeof serverSideApply> {
  return serverSideApply({
    live,
    intent: objectWith(spec),
    manager,
    force: false,
    schema,
    apiVersion: 'x/v1',
    now: 'T',
    ...more,
  })
}

function applied(...args: Parameters<typeof apply>): Obj & { spec?: unknown } {
  const outcome = apply(...args)
  if (!('object' in outcome)) throw new Error(conflictMessage(outcome.conflicts))
  return outcome.object
}

describe('server-side apply', () => {
  it('removes fields that the same manager applied before and no longer applies', () => {
    const first = applied(undefined, { a: 1, map: { x: '1', y: '2' } }, 'one')
    expect(applied(first, { map: { y: '2' } }, 'one').spec).toEqual({ map: { y: '2' } })
  })

  it('keeps fields that another manager also owns', () => {
    const first = applied(undefined, { a: 1, map: { x: '1' } }, 'one')
    const shared = applied(first, { map: { x: '1' } }, 'two')
    expect(applied(shared, {}, 'one').spec).toEqual({ map: { x: '1' } })
  })

  it('conflicts with a different value of another manager, and takes ownership with force', () => {
    const first = applied(undefined, { a: 1, list: [{ k: 'x', v: 1 }] }, 'one')
    const outcome = apply(first, { a: 2, list: [{ k: 'x', v: 2 }] }, 'two')
    if (!('conflicts' in outcome)) throw new Error('no conflict')
    expect(conflictMessage(outcome.conflicts)).toBe(
      'Apply failed with 2 conflicts: conflicts with "one":\n- .spec.a\n- .spec.list[k="x"].v',
    )
    expect(conflictCauses(outcome.conflicts)[0]).toEqual({
      reason: 'FieldManagerConflict',
      message: 'conflict with "one"',
      field: '.spec.a',
    })
    const forced = applied(first, { a: 2 }, 'two', { force: true })
    expect(forced.spec).toEqual({ a: 2, list: [{ k: 'x', v: 1 }] })
    expect(forced.metadata.managedFields?.map(({ manager, fieldsV1 }) => [manager, fieldsV1])).toEqual([
      ['one', { 'f:spec': { 'f:list': { 'k:{"k":"x"}': { '.': {}, 'f:k': {}, 'f:v': {} } } } }],
      ['two', { 'f:spec': { 'f:a': {} } }],
    ])
  })

  it('includes the version of an Update manager in a conflict', () => {
    const object = objectWith({ a: 1 })
    object.metadata.managedFields = trackUpdate({
      old: undefined,
      next: object,
      manager: 'm',
      schema,
      apiVersion: 'x/v1',
      now: 'T',
    })
    const outcome = apply(object, { a: 2 }, 'two')
    expect('conflicts' in outcome && conflictMessage(outcome.conflicts)).toBe(
      'Apply failed with 1 conflict: conflict with "m" using x/v1: .spec.a',
    )
  })

  it('keeps fields without a known owner', () => {
    const object = applied(objectWith({ a: 1 }), { b: 'x' }, 'one')
    expect(object.metadata.managedFields?.map(({ manager }) => manager)).toEqual(['one', 'before-first-apply'])
  })

  it.each<[string, object, Partial<Obj>, 400 | 500, string]>([
    [
      'an unknown field',
      { z: 1 },
      {},
      500,
      'failed to create typed patch object (/n; x/v1, Kind=Thing): .spec.z: field not declared in schema',
    ],
    [
      'a repeated key',
      { list: [{ k: 'a' }, { k: 'a' }] },
      {},
      500,
      'failed to create typed patch object (/n; x/v1, Kind=Thing): .spec.list: duplicate entries for key [k="a"]',
    ],
    [
      'wrong types',
      { a: 'x', b: { c: [1, 'y'] } },
      {},
      500,
      'failed to create typed patch object (/n; x/v1, Kind=Thing): errors:\n  .spec.a: expected numeric (int or float), got string\n  .spec.b: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"c":[]interface {}{1, "y"}}}',
    ],
    ['another version', {}, { apiVersion: 'x/v2' }, 400, 'invalid object type: x/v2, Kind=Thing'],
  ])('rejects %s', (_, spec, more, status, message) => {
    expect(() => apply(undefined, spec, 'one', { intent: { ...objectWith(spec), ...more } })).toThrow(
      new ApplyError(status, message),
    )
  })
})

const letter = fc.constantFrom('a', 'b', 'c')
const specs = fc.record(
  {
    a: fc.integer({ max: 2, min: 0 }),
    b: letter,
    map: fc.dictionary(letter, letter, { maxKeys: 3 }),
    set: fc.uniqueArray(letter, { maxLength: 3 }),
    list: fc.uniqueArray(fc.record({ k: letter, v: fc.integer({ max: 2, min: 0 }) }), {
      maxLength: 3,
      selector: ({ k }) => k,
    }),
  },
  { requiredKeys: [] },
)

describe('ownership', () => {
  it('of a creator equals the comparison with the empty object', () => {
    const type = objectType(schema)
    const metadata = fc.record(
      { name: fc.constant('n'), labels: fc.dictionary(letter, letter), finalizers: fc.uniqueArray(letter) },
      { requiredKeys: ['name'] },
    )
    fc.assert(
      fc.property(specs, metadata, (spec, meta) => {
        const object = { ...objectWith(spec), metadata: meta } as unknown as Record<string, unknown>
        const empty = { apiVersion: 'x/v1', kind: 'Thing' }
        const { added, modified } = compareFields(type, empty, object)
        const direct = FieldSet.fromFieldsV1(fieldsOfCreator(type, empty, object, []) ?? {})
        const hidden = new Set(['f:metadata', 'f:metadata f:name'])
        const expected = [...added.union(modified).paths()]
          .map((path) => path.join(' '))
          .filter((path) => !hidden.has(path))
        expect([...direct.paths()].map((path) => path.join(' '))).toEqual(expected)
      }),
    )
  })

  it('is unchanged by applying the same configuration again', () => {
    fc.assert(
      fc.property(specs, specs, (one, two) => {
        const first = applied(applied(undefined, one, 'one'), two, 'two', { force: true })
        const again = applied(first, two, 'two')
        expect(again).toEqual(first)
      }),
    )
  })

  it('covers exactly the fields of the object when everything was applied', () => {
    fc.assert(
      fc.property(specs, specs, (one, two) => {
        const object = applied(applied(undefined, one, 'one'), two, 'one')
        const clean = applied(undefined, two, 'one')
        // For a first configuration that owned nothing (`list: []`) kube-apiserver also adds an owner.
        const owned = ({ metadata }: Obj) =>
          metadata.managedFields?.flatMap(({ manager, fieldsV1 }) => (manager === 'one' ? [fieldsV1] : []))
        expect(owned(object)).toEqual(owned(clean))
      }),
    )
  })

  it('moves to the manager that changes a value, and is removed with the value', () => {
    const { schema: service } = findBuiltinKind('', 'v1', 'ConfigMap')!
    const write = { schema: service, apiVersion: 'v1', now: 'T' }
    const create = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c' }, data: { a: '1', b: '1' } } as Obj
    create.metadata.managedFields = trackUpdate({ old: undefined, next: create, manager: 'one', ...write })
    const next = { ...create, data: { a: '2' } } as Obj
    expect(
      trackUpdate({ old: create, next, manager: 'two', ...write }).map(({ manager, fieldsV1 }) => [manager, fieldsV1]),
    ).toEqual([
      ['one', { 'f:data': {} }],
      ['two', { 'f:data': { 'f:a': {} } }],
    ])
  })

  it('of more than ten Update managers is merged into one entry', () => {
    let object = objectWith({ map: {} })
    for (let i = 0; i < 12; i++) {
      const next = objectWith({ map: { ...(object as unknown as { spec: { map: object } }).spec.map, [`k${i}`]: 'x' } })
      const now = `2020-01-01T00:00:${String(i).padStart(2, '0')}Z`
      next.metadata.managedFields = trackUpdate({
        old: i === 0 ? undefined : object,
        next,
        manager: `m${i}`,
        schema,
        apiVersion: 'x/v1',
        now,
      })
      object = next
    }
    expect(object.metadata.managedFields).toHaveLength(10)
    expect(object.metadata.managedFields?.[0]?.manager).toBe('ancient-changes')
  })

  it('is reset when the request sends an empty list', () => {
    const old = applied(undefined, { a: 1 }, 'one')
    const next = { ...old, metadata: { ...old.metadata, managedFields: [] } }
    expect(trackUpdate({ old, next, manager: 'two', schema, apiVersion: 'x/v1', now: 'T' })).toEqual([])
  })
})
