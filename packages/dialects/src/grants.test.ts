import { describe, expect, it } from 'vitest'
import { findGrantFault, processGrants } from './grants.ts'

const grants = [
  { namespace: 'web', domains: ['web.example.com', 'Shop.Example.', '*.shop.example'] },
  { namespace: 'admin', domains: ['example.com'] },
  { namespace: '*', domains: ['apps.example.com'] },
]

describe('a namespace with a grant', () => {
  it.each([
    ['web', 'web.example.com'],
    ['web', 'a.b.web.example.com.'],
    ['web', '*.SHOP.example'],
    ['other', 'x.apps.example.com'],
    ['admin', 'mail.example.com'],
  ])('%s may use %s', (namespace, name) => {
    expect(findGrantFault(grants, namespace, name)).toBeUndefined()
  })

  it.each([
    ['web', 'example.com'],
    ['web', 'notweb.example.com'],
    ['web', '*.example.com'],
    ['web', 'x.apps.example.com'],
    ['other', 'web.example.com'],
    // Granted to others by a longer domain.
    ['admin', 'web.example.com'],
    ['admin', 'a.apps.example.com'],
    // A wildcard needs a grant of its own.
    ['web', '*.web.example.com'],
    ['admin', '*.example.com'],
  ])('%s may not use %s', (namespace, name) => {
    expect(findGrantFault(grants, namespace, name)).toMatch(`namespace ${namespace} may use names in `)
  })
})

it('without any grant every namespace may use every name; with one, a namespace that has none may use nothing', () => {
  expect(findGrantFault([], 'web', 'example.com')).toBeUndefined()
  expect(findGrantFault(grants.slice(0, 1), 'other', 'example.com')).toBe(
    'namespace other may use no name: nothing is granted to it; example.com is not granted to it; add a grant to the configuration',
  )
})

it('what is in the namespace of the manager may have every name, also one that is granted to others', () => {
  const table = processGrants(grants, 'seamark')
  for (const name of ['other.test', 'web.example.com', '*.example.com', '*', '.'])
    expect(findGrantFault(table, 'seamark', name)).toBeUndefined()
  expect(findGrantFault(table, 'web', 'other.test')).toBeDefined()
  expect(processGrants([], 'seamark')).toEqual([])
})
