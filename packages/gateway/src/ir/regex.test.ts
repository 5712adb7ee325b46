import { describe, expect, it } from 'vitest'
import { fullMatcher, MAX_SIZE, regexFault, requestSteps, StepsExceeded } from './regex.ts'

describe('regular expressions of users', () => {
  it('match the whole text', () => {
    const matches = fullMatcher('a|b')
    expect(['a', 'ab', 'b'].filter((text) => matches(text, requestSteps()))).toEqual(['a', 'b'])
    expect(regexFault('a)(b')).toBeDefined()
  })

  it('that are too long are refused, and take no place of other patterns', () => {
    expect(regexFault('x'.repeat(4_096))).toBeUndefined()
    const faults = new Set<string | undefined>()
    for (let count = 0; count <= 10_000; count++) faults.add(regexFault(`${'x'.repeat(4_096)}${count}`))
    expect([...faults]).toEqual(['longer than 4096 characters'])
    expect(regexFault('/another')).toBeUndefined()
  })

  it('are refused for what they are, whatever was refused or compiled before', () => {
    for (let count = 0; count < 11_000; count++) expect(regexFault(`/small${count}`)).toBeUndefined()
    expect(regexFault('/one-more')).toBeUndefined()
  })

  it('are measured before anything is compiled: repetitions multiply', () => {
    expect(regexFault('([a-z]{1,30}){1,30}')).toBeUndefined()
    expect(regexFault('(.{30}){30}'.repeat(2))).toMatch(`more than ${MAX_SIZE}`)
    expect(regexFault('((a{100}){100})')).toBe('invalid repeat count: `{100}`')
    expect(regexFault('((((){1000}){1000}){1000}){1000}')).toBe('invalid repeat count: `{1000}`')
  })

  it('cost a request a bounded number of steps, and less once they are known', () => {
    const matches = fullMatcher('/((a{0,30}){0,30})b01')
    const steps = requestSteps()
    const long = `/${'a'.repeat(15_000)}`
    expect(() => {
      for (let count = 0; count < 10; count++) fullMatcher(`/((a{0,30}){0,30})b0${count}`)(long, steps)
    }).toThrow(StepsExceeded)
    const short = `/${'a'.repeat(20)}b01`
    expect(matches(short, requestSteps())).toBe(true)
    const known = requestSteps()
    const before = known.left
    expect(matches(short, known)).toBe(true)
    expect(before - known.left).toBe(short.length)
  })
})
