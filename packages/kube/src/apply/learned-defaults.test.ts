import { expect, it } from 'vitest'
import { createLearnedDefaults } from './learned-defaults.ts'
import { ConfigMap, Secret } from '../object/kinds.ts'

it('a set of fields teaches by its first answers, each kind and set on its own', () => {
  const book = createLearnedDefaults()
  let lessons = 0
  while (book.isOpen(ConfigMap, '{"f:data":{}}')) lessons++
  expect(lessons).toBe(32)
  expect(book.isOpen(ConfigMap, '{"f:data":{"f:a":{}}}')).toBe(true)
  expect(book.isOpen(Secret, '{"f:data":{}}')).toBe(true)
})
