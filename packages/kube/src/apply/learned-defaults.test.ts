import { expect, it } from 'vitest'
import { createLearnedDefaults } from './learned-defaults.ts'
import { ConfigMap, Secret } from '../object/kinds.ts'

it('the defaults of a set of fields are recorded from its first responses, per kind and set', () => {
  const defaults = createLearnedDefaults()
  let responses = 0
  while (defaults.isOpen(ConfigMap, '{"f:data":{}}')) responses++
  expect(responses).toBe(32)
  expect(defaults.isOpen(ConfigMap, '{"f:data":{"f:a":{}}}')).toBe(true)
  expect(defaults.isOpen(Secret, '{"f:data":{}}')).toBe(true)
})
