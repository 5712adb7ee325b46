/**
 * Label selectors, also used for annotations as ExternalDNS does: `a=b`, `a!=b`, `a in (b,c)`, `a notin (b)`, `a`, `!a`.
 * Hand-written and linear: the text comes from a flag, the values from tenants.
 */
import type { Invalid } from '../../rrset/rrset.ts'

type Test = (values: Readonly<Record<string, string>>) => boolean

export function parseSelector(text: string): Test | Invalid {
  const tests: Test[] = []
  for (const part of splitTop(text)) {
    const term = part.trim()
    if (term === '') continue
    const test = parseTerm(term)
    if (test === undefined) return { invalid: `'${term}' is not a selector` }
    tests.push(test)
  }
  return (values) => tests.every((test) => test(values))
}

/** Commas inside parentheses do not separate. */
function splitTop(text: string): string[] {
  const parts = ['']
  let depth = 0
  for (const char of text) {
    if (char === '(') depth++
    if (char === ')') depth--
    if (char === ',' && depth === 0) parts.push('')
    else parts[parts.length - 1] += char
  }
  return parts
}

function parseTerm(term: string): Test | undefined {
  const set = /^([\w./-]+) (in|notin) \(([^()]*)\)$/.exec(term.replaceAll(/\s+/g, ' '))
  if (set !== null) {
    const [, key = '', operator, list = ''] = set
    const wanted = new Set(list.split(',').map((item) => item.trim()))
    return operator === 'in'
      ? (values) => wanted.has(valueOf(values, key) ?? '\0')
      : (values) => !wanted.has(valueOf(values, key) ?? '\0')
  }
  const unequal = term.indexOf('!=')
  if (unequal > 0) {
    const [key, value] = [term.slice(0, unequal).trim(), term.slice(unequal + 2).trim()]
    return (values) => valueOf(values, key) !== value
  }
  const equal = term.indexOf('=')
  if (equal > 0) {
    const [key, value] = [
      term.slice(0, equal).trim(),
      term
        .slice(equal + 1)
        .replace(/^=/, '')
        .trim(),
    ]
    return (values) => valueOf(values, key) === value
  }
  if (/^![\w./-]+$/.test(term)) return (values) => valueOf(values, term.slice(1)) === undefined
  return /^[\w./-]+$/.test(term) ? (values) => valueOf(values, term) !== undefined : undefined
}

function valueOf(values: Readonly<Record<string, string>>, key: string): string | undefined {
  return Object.hasOwn(values, key) ? values[key] : undefined
}
