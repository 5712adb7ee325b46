import { expect, it } from 'vitest'
import { createLearnedDefaults } from './learned-defaults.ts'
import { ConfigMap, Secret } from '../object/kinds.ts'

it('the defaults of a set of fields are recorded from its first responses, per kind and set', () => {
  const book = createLearnedDefaults()
  let lessons = 0
  while (book.isOpen(ConfigMap, '{"f:data":{}}')) lessons++
  expect(lessons).toBe(32)
  expect(book.isOpen(ConfigMap, '{"f:data":{"f:a":{}}}')).toBe(true)
  expect(book.isOpen(Secret, '{"f:data":{}}')).toBe(true)
})
