import { describe, expect, it } from 'vitest'
import type { Change } from '../cache/informer.ts'
import type { Obj, ObjectMeta } from '../object/object.ts'
import { allOf, annotationsChanged, anyOf, labelsChanged, specChanged } from './predicate.ts'

const update = (old: ObjectMeta, object: ObjectMeta): Change<Obj> => ({
  type: 'updated',
  old: { metadata: old },
  object: { metadata: object },
})
const added: Change<Obj> = { type: 'added', object: { metadata: {} }, initial: false }
const deleted: Change<Obj> = { type: 'deleted', object: { metadata: {} } }

describe('predicates', () => {
  it('accept every add and delete', () => {
    for (const predicate of [specChanged, labelsChanged, annotationsChanged]) {
      expect([predicate(added), predicate(deleted)]).toEqual([true, true])
    }
  })

  it('distinguish a changed spec and the start of a deletion from a changed status', () => {
    expect(specChanged(update({ generation: 1, resourceVersion: '1' }, { generation: 1, resourceVersion: '2' }))).toBe(
      false,
    )
    expect(specChanged(update({ generation: 1 }, { generation: 2 }))).toBe(true)
    expect(specChanged(update({ generation: 1 }, { generation: 1, deletionTimestamp: 'x' }))).toBe(true)
    expect(specChanged(update({ resourceVersion: '1' }, { resourceVersion: '2' }))).toBe(true)
  })

  it('compare labels and annotations by content', () => {
    expect(labelsChanged(update({ labels: { a: '1' } }, { labels: { a: '1' } }))).toBe(false)
    expect(labelsChanged(update({ labels: { a: '1' } }, { labels: { b: '1' } }))).toBe(true)
    expect(labelsChanged(update({}, { labels: { constructor: 'x' } }))).toBe(true)
    expect(annotationsChanged(update({ annotations: { a: '1' } }, {}))).toBe(true)
    expect(annotationsChanged(update({}, {}))).toBe(false)
  })

  it('combine', () => {
    const relabelled = update({ generation: 1 }, { generation: 1, labels: { a: '1' } })
    expect(anyOf(specChanged, labelsChanged)(relabelled)).toBe(true)
    expect(allOf(specChanged, labelsChanged)(relabelled)).toBe(false)
  })
})
