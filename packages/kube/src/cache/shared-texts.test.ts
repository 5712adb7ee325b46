import { expect, it } from 'vitest'
import { shareTexts } from './shared-texts.ts'

const withConditions = (conditions: unknown) => ({ metadata: { name: 'a' }, status: { conditions } })

it('conditions are what they were, whatever an object has in their place', () => {
  const condition = {
    type: 'Valid',
    status: 'True',
    reason: 'Valid',
    message: 'm'.repeat(1_000),
    lastTransitionTime: '2026-03-01T00:00:00Z',
    observedGeneration: 1,
  }
  for (const conditions of [
    [condition, { ...condition }],
    [],
    [null, 1, 'x', [], { type: 7, reason: null }],
    {},
    'x',
    null,
  ]) {
    const object = withConditions(structuredClone(conditions))
    shareTexts(object)
    expect(object).toEqual(withConditions(conditions))
  }
  for (const status of [undefined, null, 'x', 1]) {
    const object = { metadata: { name: 'a' }, status }
    shareTexts(object)
    expect(object.status).toBe(status)
  }
})

it('a frozen object stays as it is', () => {
  const object = withConditions([Object.freeze({ type: 'Valid', reason: 'Valid', message: 'fine' })])
  shareTexts(object)
  expect(object).toEqual(withConditions([{ type: 'Valid', reason: 'Valid', message: 'fine' }]))
})
