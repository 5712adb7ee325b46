/**
 * Label selectors, evaluated locally: the text form of kubectl and flags (`a=b,c!=d,e in (x,y),!f`) and the object form
 * of the API (matchLabels, matchExpressions), each converted to a predicate.
 *
 * Invariants: one pass over the text, no regular expression that could backtrack: the text may come from a tenant. A
 * key that is not an own property of the labels is absent, regardless of its name. Terms are joined by AND; no terms
 * select everything.
 */
import type { Immutable } from './object.ts'

export type Labels = Readonly<Record<string, string>>
export type LabelPredicate = (labels: Labels) => boolean

/** Why a text is not a selector. */
export interface InvalidSelector {
  readonly invalid: string
}

/** Kubernetes' LabelSelector. */
export interface LabelSelector {
  matchLabels?: Record<string, string>
  matchExpressions?: { key: string; operator: string; values?: string[] }[]
}

export interface SelectorOptions {
  /**
   * Allow values of any characters but `,`, `(` and `)`, for selectors over annotations. @default characters of label
   * values
   */
  readonly hasFreeValues?: boolean
}

export function parseLabelSelector(
  text: string,
  { hasFreeValues = false }: SelectorOptions = {},
): LabelPredicate | InvalidSelector {
  const terms: LabelPredicate[] = []
  let at = 0
  while (at <= text.length) {
    const end = findTermEnd(text, at)
    const term = text.slice(at, end).trim()
    if (term !== '') {
      const parsed = parseTerm(term, hasFreeValues)
      if (parsed === undefined) return { invalid: `'${term}' is not a label selector such as a=b, a in (b,c) or !a` }
      terms.push(parsed)
    }
    at = end + 1
  }
  return (labels) => terms.every((matches) => matches(labels))
}

/** An unknown operator selects nothing, the safe result for access grants. */
export function matchesLabelSelector(selector: Immutable<LabelSelector>, labels: Labels): boolean {
  for (const [key, wanted] of Object.entries(selector.matchLabels ?? {}))
    if (valueOf(labels, key) !== wanted) return false
  return (selector.matchExpressions ?? []).every(({ key, operator, values = [] }) => {
    const value = valueOf(labels, key)
    switch (operator) {
      case 'In':
        return value !== undefined && values.includes(value)
      case 'NotIn':
        return value === undefined || !values.includes(value)
      case 'Exists':
        return value !== undefined
      case 'DoesNotExist':
        return value === undefined
      default:
        return false
    }
  })
}

/** Commas inside parentheses separate values, not terms. */
function findTermEnd(text: string, from: number): number {
  let depth = 0
  for (let at = from; at < text.length; at++) {
    const char = text[at]
    if (char === '(') depth++
    else if (char === ')') depth--
    else if (char === ',' && depth === 0) return at
  }
  return text.length
}

function parseTerm(term: string, hasFreeValues: boolean): LabelPredicate | undefined {
  if (term.startsWith('!')) {
    const absent = term.slice(1).trim()
    return isKey(absent) ? (labels) => valueOf(labels, absent) === undefined : undefined
  }
  let keyEnd = 0
  while (keyEnd < term.length && isKeyChar(term.charCodeAt(keyEnd))) keyEnd++
  const key = term.slice(0, keyEnd)
  if (!isKey(key)) return undefined
  const rest = term.slice(keyEnd).trim()
  if (rest === '') return (labels) => valueOf(labels, key) !== undefined
  const isValue = hasFreeValues ? isFreeValue : isLabelValue
  if (rest.startsWith('!=')) {
    const value = rest.slice(2).trim()
    return isValue(value) ? (labels) => valueOf(labels, key) !== value : undefined
  }
  if (rest.startsWith('=')) {
    const value = rest.slice(rest.startsWith('==') ? 2 : 1).trim()
    return isValue(value) ? (labels) => valueOf(labels, key) === value : undefined
  }
  const open = rest.indexOf('(')
  const operator = rest.slice(0, Math.max(0, open)).trim()
  if ((operator !== 'in' && operator !== 'notin') || !rest.endsWith(')')) return undefined
  const values = rest
    .slice(open + 1, -1)
    .split(',')
    .map((value) => value.trim())
  if (!values.every(isValue)) return undefined
  const wanted = new Set(values)
  return (labels) => {
    const value = valueOf(labels, key)
    const isIn = value !== undefined && wanted.has(value)
    return operator === 'in' ? isIn : !isIn
  }
}

function valueOf(labels: Labels, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined
}

function isAlphanumeric(code: number): boolean {
  return (code >= 48 && code <= 57) || (code >= 65 && code <= 90) || (code >= 97 && code <= 122)
}

/** `-`, `.`, `_`, and `/` between prefix and name. */
function isKeyChar(code: number): boolean {
  return isAlphanumeric(code) || code === 45 || code === 46 || code === 95 || code === 47
}

/** `name` or `prefix/name`; each part begins and ends with a letter or digit. */
function isKey(text: string): boolean {
  const parts = text.split('/')
  return parts.length <= 2 && parts.every((part) => part !== '' && isLabelValue(part))
}

function isLabelValue(text: string): boolean {
  if (text === '') return true
  if (!isAlphanumeric(text.charCodeAt(0)) || !isAlphanumeric(text.charCodeAt(text.length - 1))) return false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 47 || !isKeyChar(code)) return false
  }
  return true
}

function isFreeValue(text: string): boolean {
  return !text.includes('(') && !text.includes(')')
}
