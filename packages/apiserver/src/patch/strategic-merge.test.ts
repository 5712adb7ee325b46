import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { findBuiltinKind } from '../builtin/builtin.ts'
import { PatchError } from './patch-error.ts'
import { applyStrategicMergePatch } from './strategic-merge.ts'

const { schema } = findBuiltinKind('', 'v1', 'Pod')!

function merge(document: unknown, patch: unknown): unknown {
  return applyStrategicMergePatch(document, patch, schema)
}

const pod = {
  metadata: { labels: { a: '1' } },
  spec: {
    containers: [
      { name: 'a', image: '1' },
      { name: 'b', image: '1' },
    ],
  },
}
const containers = (...list: unknown[]): unknown => ({ spec: { containers: list } })

describe('strategic merge patch', () => {
  it.each<[string, unknown, unknown]>([
    [
      'merges items by key',
      containers({ name: 'b', image: '2' }),
      [
        { name: 'a', image: '1' },
        { name: 'b', image: '2' },
      ],
    ],
    [
      'puts new items first',
      containers({ name: 'c' }),
      [{ name: 'c' }, { name: 'a', image: '1' }, { name: 'b', image: '1' }],
    ],
    ['deletes an item', containers({ name: 'a', $patch: 'delete' }), [{ name: 'b', image: '1' }]],
    ['replaces the list', containers({ $patch: 'replace' }, { name: 'c' }), [{ name: 'c' }]],
    [
      'orders items',
      { spec: { '$setElementOrder/containers': [{ name: 'b' }, { name: 'a' }] } },
      [
        { name: 'b', image: '1' },
        { name: 'a', image: '1' },
      ],
    ],
  ])('%s', (_, patch, expected) => {
    expect((merge(pod, patch) as typeof pod).spec.containers).toEqual(expected)
  })

  it.each<[unknown, 400 | 422 | 500, string]>([
    [containers({ image: '1' }), 500, 'map: map[image:1] does not contain declared merge key: name'],
    [{ metadata: { labels: { $patch: 'x' } } }, 500, 'unknown patch type: x in map: map[$patch:x]'],
    [{ spec: { $retainKeys: 'x' } }, 400, 'invalid patch format of retainKeys'],
    [[], 400, 'json: cannot unmarshal array into Go value of type map[string]interface {}'],
  ])('%j is rejected', (patch, status, message) => {
    expect(() => merge(pod, patch)).toThrow(expect.objectContaining({ status, message }) as Error)
  })

  it('changes neither argument and throws nothing but PatchError', () => {
    const name = fc.constantFrom('a', 'b', 'c')
    const item = fc.record(
      {
        name,
        image: name,
        $patch: fc.constantFrom('delete', 'replace', 'merge', 'x'),
        env: fc.array(fc.record({ name, value: name })),
      },
      { requiredKeys: [] },
    )
    const patch = fc.record(
      {
        containers: fc.array(item, { maxLength: 3 }),
        '$setElementOrder/containers': fc.array(fc.record({ name }), { maxLength: 3 }),
        $retainKeys: fc.constant(['containers']),
        volumes: fc.jsonValue({ maxDepth: 1 }),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(patch, (spec) => {
        const before = JSON.stringify([pod, spec])
        try {
          merge(pod, { spec })
        } catch (error) {
          if (!(error instanceof PatchError)) throw error
        }
        expect(JSON.stringify([pod, spec])).toBe(before)
      }),
      { numRuns: 1_000 },
    )
  })
})
