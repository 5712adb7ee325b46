import type { Ingress } from '@seamark/kube'
import { expect, it } from 'vitest'
import { SUMMARY_ANNOTATION } from '../names.ts'
import { isReportOnly, rootBatchMs } from './root-batch.ts'

const root = (changes: Partial<Ingress['metadata']> = {}, status = {}): Ingress => ({
  metadata: { namespace: 'shop', name: 'shop', generation: 1, annotations: { mine: '1' }, ...changes },
  status,
})

const isReport = (old: Ingress, object: Ingress): boolean => isReportOnly({ type: 'updated', old, object })

it('the batch grows with the members, up to two seconds', () => {
  expect([0, 3, 100, 1_000].map(rootBatchMs)).toEqual([0, 30, 1_000, 2_000])
})

it('a change of the status or the summary of a root is a report', () => {
  expect(isReport(root(), root({ resourceVersion: '2' }, { loadBalancer: {} }))).toBe(true)
  expect(isReport(root(), root({ annotations: { mine: '1', [SUMMARY_ANNOTATION]: 'ready 1/2' } }))).toBe(true)
})

it.each<[string, Partial<Ingress['metadata']>]>([
  ['spec', { generation: 2 }],
  ['labels', { labels: { tier: 'prod' } }],
  ['annotations', { annotations: { mine: '2' } }],
  ['finalizers', { finalizers: ['x/y'] }],
  ['deletion', { deletionTimestamp: '2030-01-01T00:00:00Z' }],
])('a change of the %s of a root is none', (_what, changes) => {
  expect(isReport(root(), root(changes))).toBe(false)
})

it('what has no generation, what is new and what is gone is no report', () => {
  const object: Ingress = { metadata: { name: 'shop' } }
  expect(isReport(object, object)).toBe(false)
  expect(isReportOnly({ type: 'added', object: root(), initial: false })).toBe(false)
  expect(isReportOnly({ type: 'deleted', object: root() })).toBe(false)
})
