import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Matcher, findMatcher } from './matcher.ts'
import { RegexpSyntaxError } from './escape.ts'

describe('matcher', () => {
  it.each([
    ['^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$', 'foo.bar-1.example.com', true],
    ['^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$', 'foo..bar', false],
    ['b+', 'aabb', true],
    ['^b+', 'aabb', false],
    ['^(([0-9]{1,5}(h|m|s|ms)){1,4})$', '1h30m', true],
    ['^(([0-9]{1,5}(h|m|s|ms)){1,4})$', '1d', false],
    ['(?i)^hello$', 'HeLLo', true],
    ['^\\p{Lu}\\pL*$', 'Ärger', true],
    ['^\\p{Lu}$', 'ä', false],
    ['\\bfoo\\b', 'a foo b', true],
    ['\\bfoo\\b', 'afoo b', false],
    ['^[^\\s/]+$', 'a b', false],
    ['^[[:alpha:]_]+$', 'ab_', true],
    ['^[\\]\\-a]+$', ']-a', true],
    ['^a.c$', 'a\nc', false],
    ['(?s)^a.c$', 'a\nc', true],
    ['(?m)^b$', 'a\nb\nc', true],
    ['^\\x41\\x{1F600}$', 'A😀', true],
    ['^a{2,3}$', 'aaaa', false],
    ['^a{2,}$', 'aaaa', true],
    ['^a{,2}$', 'a{,2}', true],
    ['', 'anything', true],
    ['a|', '', true],
    ['^(?:a|b)*?c', 'ababc', true],
    ['\\Qa.b\\E', 'a.b', true],
    ['\\Qa.b\\E', 'axb', false],
  ])('%s on %j is %s', (pattern, text, expected) => {
    expect(new Matcher(pattern).test(text)).toBe(expected)
  })

  it.each([
    ['(a', 'missing closing ): `(a`'],
    ['a)', 'unexpected ): `a)`'],
    ['[a', 'missing closing ]: `[a`'],
    ['*a', 'missing argument to repetition operator: `*`'],
    ['a**', 'invalid nested repetition operator: `**`'],
    ['(?=a)', 'invalid or unsupported Perl syntax: `(?=`'],
    ['\\1', 'invalid escape sequence: `\\1`'],
    ['a{1001}', 'invalid repeat count: `{1001}`'],
    ['[b-a]', 'invalid character class range: `b-a`'],
  ])('%s is rejected with the message of Go', (pattern, message) => {
    const error = findMatcher(pattern)
    expect(error).toBeInstanceOf(RegexpSyntaxError)
    expect((error as RegexpSyntaxError).message).toBe(`error parsing regexp: ${message}`)
  })

  it('takes linear time where a backtracking engine takes exponential time', () => {
    const text = `${'a'.repeat(50_000)}!`
    const started = process.cpuUsage().user
    expect(new Matcher('^(a+)+$').test(text)).toBe(false)
    expect(new Matcher('^(([a-z])+.)+[A-Z]([a-z])+$').test(text)).toBe(false)
    expect(new Matcher(`^${'a?'.repeat(200)}${'a'.repeat(200)}$`).test('a'.repeat(200))).toBe(true)
    expect(process.cpuUsage().user - started).toBeLessThan(5_000_000)
  })

  it('agrees with the engine of the platform on the common syntax', () => {
    const atom = fc.constantFrom('a', 'b', '.', '[ab]', '[^a]', '(ab)', '(a|b)', '\\w', '\\d', '\\s', '(?:a|)')
    const piece = fc.tuple(atom, fc.constantFrom('', '*', '+', '?', '{2}', '{1,2}')).map(([a, q]) => a + q)
    const pattern = fc
      .tuple(fc.constantFrom('', '^', '\\b'), fc.array(piece, { maxLength: 5 }), fc.constantFrom('', '$', '\\B'))
      .map(([start, pieces, end]) => start + pieces.join('') + end)
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '1', ' ', '-', '\n'), maxLength: 10 })
    fc.assert(
      fc.property(pattern, text, (source, input) => {
        expect(new Matcher(source).test(input)).toBe(new RegExp(source, 'u').test(input))
      }),
      { numRuns: 2_000 },
    )
  })
  it.each([
    ['a+', 'baac a', ['aa', 'a']],
    ['a+?', 'aa', ['a', 'a']],
    ['(?U)a+', 'aa', ['a', 'a']],
    ['a|ab', 'ab', ['a']],
    ['ab|a', 'ab', ['ab']],
    ['a*', 'baac', ['', 'aa', '']],
    ['', '😀b', ['', '', '']],
    ['(?m)^.', 'ab\nc', ['a', 'c']],
    ['\\b\\w', 'one two', ['o', 't']],
    ['x', 'abc', []],
  ])('finds %s in %j', (pattern, text, expected) => {
    expect([...new Matcher(pattern).find(text)].map(({ start, end }) => text.slice(start, end))).toEqual(expected)
  })

  it('finds the same matches as the engine of the platform', () => {
    const quantifier = fc.constantFrom('', '*', '+', '?', '{2}', '{1,2}', '*?', '+?', '??', '{1,3}?')
    const atom = fc.constantFrom('a', 'b', '.', '[ab]', '[^a]', '(ab)', '(a|ab)', '(ab|a)', '\\b', '$')
    const piece = fc.tuple(atom, quantifier).map(([a, q]) => (a === '\\b' || a === '$' ? a : a + q))
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '1', ' ', '😀'), maxLength: 12 })
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 5 }), text, (pieces, input) => {
        const pattern = pieces.join('')
        const first = new RegExp(pattern, 'u').exec(input)
        const [span] = new Matcher(pattern).find(input)
        expect(span && [span.start, span.end]).toEqual(
          first === null ? undefined : [first.index, first.index + first[0].length],
        )
      }),
      { numRuns: 2_000 },
    )
  })
})
