import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { findQuery, hostOf, normalizePath } from './request-facts.ts'

describe('normalizePath', () => {
  it.each([
    ['/plain/path?q=1', '/plain/path', '?q=1'],
    ['/%65xact', '/exact', ''],
    ['/a%2fb', '/a%2Fb', ''],
    ['//a///b', '/a/b', ''],
    ['/a/./b/../c', '/a/c', ''],
    ['/a/..', '/', ''],
    ['/../../etc', '/etc', ''],
    ['/a/%2e%2e/b', '/b', ''],
    [String.raw`/a\..\b`, '/b', ''],
    ['/a/', '/a/', ''],
  ])('%s is %s', (target, path, search) => {
    expect(normalizePath(target)).toEqual({ path, search })
  })

  it.each(['relative', '*', '/%', '/%zz', '/%00'])('refuses %s', (target) => {
    expect(normalizePath(target)).toBeUndefined()
  })

  it('is stable, and leaves no dot segment and no double slash', () => {
    const part = fc.constantFrom('a', '.', '..', '', '%2e', '%2E%2e', '%41', '%2f', 'b.c', '...')
    fc.assert(
      fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
        const once = normalizePath(`/${parts.join('/')}`)?.path ?? ''
        expect(normalizePath(once)?.path).toBe(once)
        expect(once.split('/').slice(1, -1)).not.toContain('')
        expect(once.split('/')).not.toContain('..')
      }),
    )
  })
})

it('hostOf takes port and trailing dot off and refuses what is no port', () => {
  expect(['a.test', 'a.test:80', 'a.test.', '[::1]:80', 'a:b'].map(hostOf)).toEqual([
    'a.test',
    'a.test',
    'a.test',
    '[::1]',
    undefined,
  ])
})

it('findQuery compares values as sent and takes the first of a repeated name', () => {
  expect(findQuery('?a=1&a=2&b&c=%20', 'a')).toBe('1')
  expect(findQuery('?a=1&b&c=%20', 'b')).toBe('')
  expect(findQuery('?c=%20', 'c')).toBe('%20')
  expect(findQuery('?ab=1', 'a')).toBeUndefined()
})
