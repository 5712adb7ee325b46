import { describe, expect, it } from 'vitest'
import { findGrantFault } from './grants.ts'

const grants = [
  { namespace: 'web', domains: ['web.example.com', 'Shop.Example.'] },
  { namespace: '*', domains: ['apps.example.com'] },
]

describe('a namespace with a grant', () => {
  it.each([
    ['web', 'web.example.com'],
    ['web', 'a.b.web.example.com.'],
    ['web', '*.SHOP.example'],
    ['other', 'x.apps.example.com'],
  ])('%s may use %s', (namespace, name) => {
    expect(findGrantFault(grants, namespace, name)).toBeUndefined()
  })

  it.each([
    ['web', 'example.com'],
    ['web', 'notweb.example.com'],
    ['web', '*.example.com'],
    ['web', 'x.apps.example.com'],
    ['other', 'web.example.com'],
  ])('%s may not use %s', (namespace, name) => {
    expect(findGrantFault(grants, namespace, name)).toMatch(`namespace ${namespace} may use names in `)
  })
})

it('without grants every namespace may use every name, and without a grant for * so may those that have none', () => {
  expect(findGrantFault([], 'web', 'example.com')).toBeUndefined()
  expect(findGrantFault(grants.slice(0, 1), 'other', 'example.com')).toBeUndefined()
})
