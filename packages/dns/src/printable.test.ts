import { expect, it } from 'vitest'
import { DnsError } from './error.ts'
import { printable } from './printable.ts'

it.each([
  ['a\u001b[31mred', 'a\\u{1b}[31mred'],
  ['two\r\nlines', 'two\\u{d}\\u{a}lines'],
  ['csi \u009b31m', 'csi \\u{9b}31m'],
  ['right to left \u202e', 'right to left \\u{202e}'],
  ['isolate \u2066', 'isolate \\u{2066}'],
  ['name é.test "x\\y"', 'name é.test "x\\y"'],
])('%j is printed as %s', (text, printed) => {
  expect(printable(text)).toBe(printed)
})

it('long text is cut', () => {
  expect(printable('x'.repeat(50), 10)).toBe(`${'x'.repeat(10)}…`)
})

it('the message of a DnsError has no control characters, whatever value it quotes, and is bounded', () => {
  const { message } = new DnsError('BAD_NAME', `'\u001b]0;owned\u0007' is no name: ${'x'.repeat(10_000)}`)
  expect(message).toMatch(/^'\\u\{1b\}\]0;owned\\u\{7\}' is no name: x+…$/)
  expect(message.length).toBeLessThan(1100)
})
