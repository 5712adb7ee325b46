import { describe, expect, it } from 'vitest'
import { fullMatcher, regexFault } from './regex.ts'

describe('regular expressions of users', () => {
  it('match the whole text', () => {
    expect(['a', 'ab', 'b'].filter(fullMatcher('a|b'))).toEqual(['a', 'b'])
    expect(regexFault('a)(b')).toBeDefined()
  })

  it('that are too long are refused, and take no place of other patterns', () => {
    expect(regexFault('x'.repeat(4_096))).toBeUndefined()
    const faults = new Set<string | undefined>()
    for (let count = 0; count <= 10_000; count++) faults.add(regexFault(`${'x'.repeat(4_096)}${count}`))
    expect([...faults]).toEqual(['longer than 4096 characters'])
    expect(regexFault('/another')).toBeUndefined()
  })
})
