import { expect, it } from 'vitest'
import { readWritten } from './write-response.ts'

const entry = (manager: string) => ({ manager, operation: 'Apply', fieldsV1: { 'f:spec': {} } })
const quoted = (manager: string) => Buffer.from(JSON.stringify(manager))

it.each([
  ['ASCII', 'plain'],
  ['other text', 'grün 🌊'],
])('omits managedFields from a response of %s, and reads the entry of a given manager', (_, label) => {
  const object = {
    kind: 'Thing',
    metadata: { labels: { label }, managedFields: [entry('me'), entry('you')], name: 'a' },
  }
  const { value, readOwnFields } = readWritten(Buffer.from(JSON.stringify(object)))
  expect(value).toEqual({ kind: 'Thing', metadata: { labels: { label }, name: 'a' } })
  expect([readOwnFields(quoted('you')), readOwnFields(quoted('nobody'))]).toEqual([
    new Map([['', '{"f:spec":{}}']]),
    undefined,
  ])
})

it('returns a response without managedFields unchanged, and rejects what is not JSON', () => {
  const { value, readOwnFields } = readWritten(Buffer.from('{"metadata":{"name":"a"}}'))
  expect([value, readOwnFields(quoted('me'))]).toEqual([{ metadata: { name: 'a' } }, undefined])
  expect(() => readWritten(Buffer.from('<html>'))).toThrow(SyntaxError)
})
