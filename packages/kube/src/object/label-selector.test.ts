import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { matchesLabelSelector, parseLabelSelector, type LabelSelector } from './label-selector.ts'

const labels = { role: 'router', zone: 'a', 'example.com/x': '' }

function matches(text: string, of: Record<string, string> = labels): boolean {
  const predicate = parseLabelSelector(text)
  if (typeof predicate !== 'function') throw new Error(predicate.invalid)
  return predicate(of)
}

describe('a label selector as text', () => {
  it.each([
    ['', true],
    [' , ', true],
    ['role', true],
    ['!role', false],
    ['! missing', true],
    ['role=router', true],
    [' role = router , zone ', true],
    ['role==router,zone!=b', true],
    ['missing!=b', true],
    ['role in (router, infra)', true],
    ['role in (infra),zone', false],
    ['role notin (router)', false],
    ['role notin(infra)', true],
    ['missing notin (x)', true],
    ['missing in (x)', false],
    ['example.com/x=', true],
    ['example.com/x in ()', true],
    ['constructor', false],
    ['toString!=x', true],
  ])('%s', (text, expected) => {
    expect(matches(text)).toBe(expected)
  })

  it.each([
    'a b',
    'in (x)',
    '=x',
    'a=b c',
    'a in x',
    'a in (x',
    'a in x)',
    'a in ((x))',
    'a within (x)',
    '!',
    '!a=b',
    'a/b/c',
    '/a',
    'a/',
    '-a',
    'a=-b',
    'a=b/c',
    '__proto__',
  ])('%s is not a selector', (text) => {
    expect(parseLabelSelector(text)).toMatchObject({ invalid: expect.stringContaining('is not a label selector') })
  })

  it('accepts any value when annotations are selected', () => {
    const predicate = parseLabelSelector('note=see https://example.com/x?a=b,team', { hasFreeValues: true })
    expect(typeof predicate === 'function' && predicate({ note: 'see https://example.com/x?a=b', team: '' })).toBe(true)
  })

  it('is equivalent to the object form', () => {
    const key = fc.constantFrom('a', 'b', 'example.com/c', 'constructor')
    const value = fc.constantFrom('', '1', 'x-y', 'Z.z')
    const term = fc.oneof(
      fc.record({ key, operator: fc.constantFrom('In', 'NotIn'), values: fc.array(value, { minLength: 1 }) }),
      fc.record({ key, operator: fc.constantFrom('Exists', 'DoesNotExist') }),
    )
    const textOf = (one: { key: string; operator: string; values?: string[] }) => {
      if (one.operator === 'Exists') return one.key
      if (one.operator === 'DoesNotExist') return `!${one.key}`
      return `${one.key} ${one.operator.toLowerCase()} (${one.values?.join(',')})`
    }
    const all = fc.tuple(fc.dictionary(key, value), fc.array(term), fc.dictionary(key, value))
    fc.assert(
      fc.property(all, ([matchLabels, matchExpressions, of]) => {
        const selector: LabelSelector = { matchLabels, matchExpressions }
        const equal = Object.entries(matchLabels).map(([name, wanted]) => `${name}=${wanted}`)
        expect(matches([...equal, ...matchExpressions.map(textOf)].join(','), of)).toBe(
          matchesLabelSelector(selector, of),
        )
      }),
    )
  })

  it('is read in one pass, for any input', () => {
    for (const text of ['('.repeat(100_000), `a in (${','.repeat(100_000)}`, `${'a.'.repeat(100_000)}!`])
      expect(parseLabelSelector(text)).toHaveProperty('invalid')
  })
})

describe('a label selector as an object', () => {
  it('selects everything when it is empty, and nothing by an unknown operator', () => {
    expect(matchesLabelSelector({}, labels)).toBe(true)
    expect(matchesLabelSelector({ matchExpressions: [{ key: 'role', operator: 'Gt', values: ['1'] }] }, labels)).toBe(
      false,
    )
  })
})
