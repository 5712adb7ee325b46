import { describe, expect, it } from 'vitest'
import { decideApply, learnDefaults, type ApplyDecision } from './apply.ts'
import { createLearnedDefaults } from './learned-defaults.ts'
import { ConfigMap, Ingress, Service } from '../object/kinds.ts'
import { maskUids } from '../decode/managed-fields.ts'
import { kind, type Obj } from '../object/object.ts'

const Thing = kind({ group: 'test', version: 'v1', kind: 'Thing', plural: 'things', namespaced: true })
const identity = { metadata: { name: 'x', namespace: 'n' } }

function decide(fields: object | undefined, want: object, live: object | undefined): ApplyDecision {
  return decideApply({
    kind: Thing,
    fields: fields === undefined ? undefined : JSON.stringify(fields),
    want: { ...identity, ...want },
    live: live === undefined ? undefined : { ...identity, ...live },
  })
}
const reason = (decision: ApplyDecision) => (decision.noop ? 'noop' : `${decision.reason} ${decision.path}`)

const data = { 'f:data': { 'f:a': {}, 'f:b': {} } }

describe('apply decision', () => {
  it.each([
    ['an unchanged object', data, { data: { a: '1', b: '2' } }, { data: { a: '1', b: '2' } }, 'noop'],
    [
      'a field of another manager beside the own ones',
      data,
      { data: { a: '1', b: '2' } },
      { data: { a: '1', b: '2', c: '3' } },
      'noop',
    ],
    ['a changed value', data, { data: { a: '1', b: 'x' } }, { data: { a: '1', b: '2' } }, 'Differs .data.b'],
    ['a field dropped', data, { data: { a: '1' } }, { data: { a: '1', b: '2' } }, 'Removes .data.b'],
    ['everything dropped', data, {}, { data: { a: '1', b: '2' } }, 'Removes .data'],
    [
      'a field taken over by another manager',
      { 'f:data': { 'f:a': {} } },
      { data: { a: '1', b: '2' } },
      { data: { a: '1', b: '2' } },
      'Adds .data.b',
    ],
    ['a field removed by another manager', data, { data: { a: '1', b: '2' } }, { data: { a: '1' } }, 'Differs .data.b'],
    [
      'undefined is not a field',
      data,
      { data: { a: '1', b: '2', c: undefined } },
      { data: { a: '1', b: '2' } },
      'noop',
    ],
    ['no live object', data, { data: { a: '1' } }, undefined, 'Absent '],
    ['no own entry', undefined, { data: { a: '1' } }, { data: { a: '1' } }, 'NotOurs '],
    [
      'an empty map never sent before',
      { 'f:data': { 'f:a': {} } },
      { data: { a: '1' }, metadata: { labels: {} } },
      { data: { a: '1' } },
      'Adds .metadata',
    ],
    ['a null for a value', data, { data: { a: '1', b: null } }, { data: { a: '1', b: '2' } }, 'Differs .data.b'],
    ['a scalar for a map', data, { data: 'text' }, { data: { a: '1', b: '2' } }, 'Differs .data'],
    ['a list for a map', data, { data: ['a'] }, { data: { a: '1', b: '2' } }, 'Differs .data'],
    [
      'a key that is a prototype name',
      { 'f:data': { 'f:__proto__': {} } },
      JSON.parse('{"data":{"__proto__":"1"}}'),
      JSON.parse('{"data":{"__proto__":"2"}}'),
      'Differs .data.__proto__',
    ],
  ])('decides on %s', (_name, fields, want, live, expected) => {
    expect(reason(decide(fields, want as object, live as object))).toBe(expected)
  })

  const set = { 'f:names': { 'v:"a"': {}, 'v:"b"': {} } }
  it.each([
    ['the same members', ['a', 'b'], ['a', 'b'], 'noop'],
    ['members of another manager around the own ones', ['a', 'b'], ['x', 'a', 'y', 'b'], 'noop'],
    ['another order', ['b', 'a'], ['a', 'b'], 'Differs .names'],
    ['a member dropped', ['a'], ['a', 'b'], 'Removes .names'],
    ['a member that is not owned', ['a', 'b', 'x'], ['a', 'b', 'x'], 'Adds .names'],
    ['a member removed by another manager', ['a', 'b'], ['a'], 'Differs .names'],
  ])('in a set decides on %s', (_name, want, live, expected) => {
    expect(reason(decide(set, { names: want }, { names: live }))).toBe(expected)
  })

  const ports = {
    'f:ports': {
      'k:{"port":53,"protocol":"SCTP"}': { '.': {}, 'f:port': {}, 'f:protocol': {} },
      'k:{"port":53,"protocol":"TCP"}': { '.': {}, 'f:port': {} },
    },
  }
  const live = [
    { port: 53, protocol: 'TCP', nodePort: 1 },
    { port: 53, protocol: 'SCTP' },
  ]
  it.each([
    ['a key filled in by the server', [{ port: 53 }, { port: 53, protocol: 'SCTP' }], 'noop'],
    ['another order', [{ port: 53, protocol: 'SCTP' }, { port: 53 }], 'Differs .ports'],
    ['an item dropped', [{ port: 53, protocol: 'SCTP' }], 'Removes .ports'],
    ['a new item', [{ port: 53 }, { port: 53, protocol: 'SCTP' }, { port: 54 }], 'Adds .ports'],
    [
      'a new field of an item',
      [
        { port: 53, name: 'x' },
        { port: 53, protocol: 'SCTP' },
      ],
      'Adds .ports[{"port":53,"protocol":"TCP"}].name',
    ],
  ])('in a list with keys decides on %s', (_name, want, expected) => {
    expect(reason(decide(ports, { ports: want }, { ports: live }))).toBe(expected)
  })

  it('distinguishes a dropped field in an atomic value from a default only after a response contained it', () => {
    const atomic = { 'f:rules': {} }
    const want = { rules: [{ host: 'a' }, { host: 'b' }] }
    const filled = {
      rules: [
        { host: 'a', weight: 1 },
        { host: 'b', weight: 1 },
      ],
    }
    expect(reason(decide(atomic, want, filled))).toBe('Undecided .rules[].weight')

    const defaults = createLearnedDefaults()
    const written = {
      ...identity,
      ...filled,
      metadata: { name: 'x', managedFields: [{ manager: 'us', operation: 'Apply', fieldsV1: atomic }] },
    }
    learnDefaults(defaults, Thing, { ...identity, ...want }, written as Obj, 'us')
    const again = (live: object, wanted: object = want, token = Thing) =>
      reason(
        decideApply({
          kind: token,
          fields: JSON.stringify(atomic),
          want: { ...identity, ...wanted },
          live: { ...identity, ...live },
          defaults,
        }),
      )
    expect(again(filled)).toBe('noop')
    expect(
      again({
        rules: [
          { host: 'a', weight: 2 },
          { host: 'b', weight: 1 },
        ],
      }),
    ).toBe('Undecided .rules[].weight')
    expect(again({ rules: [{ host: 'a', weight: 1, path: 'p' }] }, { rules: [{ host: 'a', path: 'p' }] })).toBe(
      'Undecided .rules[].weight',
    )
    expect(again(filled, want, ConfigMap)).toBe('Undecided .rules[].weight')
    expect(again({ rules: [{ host: 'a', weight: 1 }] })).toBe('Differs .rules')
    expect(
      again({
        rules: [
          { host: 'a', weight: 1 },
          { host: 'c', weight: 1 },
        ],
      }),
    ).toBe('Differs .rules[].host')
  })

  it('compares owner references whose UIDs are masked', () => {
    const reference = { '.': {}, 'f:uid': {} }
    const owned = (...uids: string[]) =>
      JSON.stringify({
        'f:metadata': { 'f:ownerReferences': Object.fromEntries(uids.map((uid) => [`k:{"uid":"${uid}"}`, reference])) },
      })
    const object = (...uids: string[]) =>
      ({ metadata: { name: 'x', ownerReferences: uids.map((uid) => ({ uid })) } }) as Obj
    const [one, two] = ['5ea9a8b4-0000-4000-8000-000000000001', '5ea9a8b4-0000-4000-8000-000000000002']
    const decision = (fields: string, want: Obj, live: Obj) =>
      reason(decideApply({ kind: Thing, fields: maskUids(fields), want, live }))
    expect(decision(owned(one), object(one), object(one))).toBe('noop')
    expect(decision(owned(one, two), object(one, two), object(one, two))).toBe('noop')
    expect(decision(owned(one, two), object(one), object(one, two))).toBe('Removes .metadata.ownerReferences')
    expect(decision(owned(one), object(two), object(one))).toMatch(/^Differs/)
    expect(decision(owned(one), object(one, two), object(one, two))).toBe('Adds .metadata.ownerReferences')
    expect(decision(owned(one), object(two), object(one, two))).toBe('Undecided .metadata.ownerReferences')
  })

  it('handles FieldsV1 text that does not match the shape of the object', () => {
    expect(decide({ 'f:a': { 'f:b': {} } }, { a: [1] }, { a: [1] }).noop).toBe(false)
    expect(decide({ 'f:a': { 'v:1': {} } }, { a: { b: 1 } }, { a: { b: 1 } }).noop).toBe(false)
    expect(() => decideApply({ kind: Ingress, fields: '{', want: identity, live: identity })).toThrow(SyntaxError)
    expect(decideApply({ kind: Service, fields: '{}', want: identity, live: identity })).toEqual({ noop: true })
  })
})
